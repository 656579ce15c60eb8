# Finds the packages that Imprint needs. Each missing one gives one line that says what to install.
function(imprint_require_header variable header package)
  find_path(${variable} ${header} ${ARGN})
  if(NOT ${variable})
    message(FATAL_ERROR "${header} not found: install ${package} (Debian), or run tools/test, which does")
  endif()
endfunction()

find_package(Threads REQUIRED)

imprint_require_header(IMPRINT_VULKAN_INCLUDE vulkan/vulkan_core.h libvulkan-dev)
add_library(imprint_vulkan_headers INTERFACE)
add_library(imprint::vulkan_headers ALIAS imprint_vulkan_headers)
set_target_properties(imprint_vulkan_headers PROPERTIES EXPORT_NAME vulkan_headers)
target_include_directories(imprint_vulkan_headers SYSTEM INTERFACE $<BUILD_INTERFACE:${IMPRINT_VULKAN_INCLUDE}>)
target_compile_definitions(imprint_vulkan_headers INTERFACE VK_NO_PROTOTYPES)

# volk finds the system's Vulkan loader for the standalone device. A host's device never uses it.
imprint_require_header(IMPRINT_VOLK_INCLUDE volk.c libvulkan-volk-dev)

if(IMPRINT_RUNTIME_COMPILER)
  # Newer packages of glslang name these libraries without their dependencies. As targets they are linked in
  # the right order.
  find_package(SPIRV-Tools CONFIG QUIET)
  find_package(SPIRV-Tools-opt CONFIG QUIET)
  find_package(glslang CONFIG QUIET)
  if(NOT TARGET glslang::glslang)
    message(FATAL_ERROR "glslang not found: install glslang-dev (Debian), or run tools/test, which does")
  endif()
endif()

if(IMPRINT_PICTURES)
  find_package(PNG QUIET)
  find_package(JPEG QUIET)
  if(NOT PNG_FOUND OR NOT JPEG_FOUND)
    message(FATAL_ERROR "libpng or libjpeg-turbo not found: install libpng-dev and libjpeg62-turbo-dev (Debian), or run tools/test, which does. "
      "A game that reads no pictures needs neither: IMPRINT_PICTURES=OFF")
  endif()
endif()
