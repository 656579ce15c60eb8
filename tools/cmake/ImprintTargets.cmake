# imprint_defaults(target): properties of every target.
function(imprint_defaults target)
  # Only the static libraries use C++20 in their headers. The plugin's header is C; its users may compile
  # without C++.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_compile_features(${target} PUBLIC cxx_std_20)
  else()
    target_compile_features(${target} PRIVATE cxx_std_20)
  endif()
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wno-missing-field-initializers)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      target_compile_options(${target} PRIVATE -Wno-restrict)  # false alarms in std::string's operator+ (GCC bug 105651)
    endif()
    if(IMPRINT_WERROR)
      target_compile_options(${target} PRIVATE -Werror)
    endif()
    if(IMPRINT_SANITIZE)
      target_compile_options(${target} PRIVATE -fsanitize=${IMPRINT_SANITIZE} -fno-omit-frame-pointer)
      target_link_options(${target} PRIVATE -fsanitize=${IMPRINT_SANITIZE})
    endif()
  endif()
endfunction()
