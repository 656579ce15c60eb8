# cmake -D CLANG=clang++ -D SOURCE=folder -D OUT=folder "-DINCLUDES=folder;..." -P clang_warnings.cmake: fails if
# Clang has a warning about the sources of the libraries. It reads each library as one source and makes no code.
set(options -std=c++20 -fsyntax-only -Wall -Wextra -Wshadow -Wno-missing-field-initializers -Werror
  -D VK_NO_PROTOTYPES "-DIMPRINT_VERSION=\"0\"" -I ${SOURCE} -I ${SOURCE}/compute/include -I ${SOURCE}/plugin/include)
foreach(folder IN LISTS INCLUDES)
  list(APPEND options -idirafter ${folder})
endforeach()
file(MAKE_DIRECTORY ${OUT})
foreach(library compute engine-bridge plugin)
  file(GLOB_RECURSE files ${SOURCE}/${library}/*.cpp)
  # Built for one instruction set, or instead of another file.
  list(FILTER files EXCLUDE REGEX "/kernels_[^/]*\\.cpp$|_absent\\.cpp$")
  list(LENGTH files count)
  if(count LESS 10)
    message(FATAL_ERROR "sources: found ${count} in ${library}, expected at least 10. Check SOURCE: ${SOURCE}")
  endif()
  list(TRANSFORM files REPLACE "(.+)" "#include \"\\1\"\n")
  list(JOIN files "" text)
  file(WRITE ${OUT}/${library}.cpp "${text}")
  execute_process(COMMAND ${CLANG} ${options} ${OUT}/${library}.cpp RESULT_VARIABLE status ERROR_VARIABLE messages)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${library}: found warnings of Clang, expected none:\n${messages}")
  endif()
endforeach()
