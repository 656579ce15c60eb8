# Clang for what runs briefly: without optimisation it needs two thirds of GCC's time. Libraries, samples and tools that compute keep their compiler.

# Clang 16 or newer. Older ones cannot read GCC's C++20 library.
find_program(IMPRINT_CLANGXX NAMES clang++-19 clang++-18 clang++-17 clang++-16 clang++)
set(clang_version 0)
if(IMPRINT_CLANGXX AND NOT CMAKE_CROSSCOMPILING)
  execute_process(COMMAND ${IMPRINT_CLANGXX} -dumpversion OUTPUT_VARIABLE clang_version OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()

option(IMPRINT_CLANG_TESTS "Compile tests and the command line of a release by clang++ 16 or newer where it is found, though the compiler is GCC" ON)
set(clang_reads FALSE)  # whether it finds a C++20 library, and takes the options
if(clang_version VERSION_GREATER_EQUAL 16)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/clang_reads.cpp CONTENT "#include <ranges>\n#include <string>\n")
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_RELEASE}")
  execute_process(COMMAND ${IMPRINT_CLANGXX} ${flags} -std=c++20 -fsyntax-only ${PROJECT_BINARY_DIR}/clang_reads.cpp RESULT_VARIABLE failed OUTPUT_QUIET
    ERROR_QUIET)
  if(failed EQUAL 0 AND NOT "${flags}" MATCHES "-flto|-coverage|-fprofile" AND NOT CMAKE_INTERPROCEDURAL_OPTIMIZATION)
    set(clang_reads TRUE)
  endif()
endif()

# Whether imprint_compile_by_clang() does anything.
set(imprint_clang_compiles FALSE)
if(clang_reads AND IMPRINT_CLANG_TESTS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release"
    AND NOT IMPRINT_SANITIZE AND NOT IMPRINT_FUZZ AND NOT IMPRINT_WERROR)
  set(imprint_clang_compiles TRUE)
endif()

# imprint_compile_by_clang(): for the C++ targets of this folder and of those that it adds from here on.
macro(imprint_compile_by_clang)
  if(imprint_clang_compiles)
    set(CMAKE_CXX_COMPILE_OBJECT  # GCC's options, without words about those that Clang lacks
      "${IMPRINT_CLANGXX} -Wno-unknown-warning-option -Qunused-arguments <DEFINES> <INCLUDES> <FLAGS> -o <OBJECT> -c <SOURCE>")
    # Without its time: ccache brings a precompiled header back that is older than what it includes.
    set(CMAKE_CXX_COMPILE_OPTIONS_CREATE_PCH -Xclang -emit-pch -Xclang -fno-pch-timestamp -Xclang -include -Xclang <PCH_HEADER> -x c++-header)
    set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE> -Xclang -include -Xclang <PCH_HEADER>)
    set(CMAKE_CXX_COMPILE_OPTIONS_INSTANTIATE_TEMPLATES_PCH -fpch-instantiate-templates)
  endif()
endmacro()
