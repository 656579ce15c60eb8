# cmake -D PART=plugin|compute -D CLANG=clang++ -D SOURCE=folder -D OUT=folder "-DINCLUDES=folder;..."
# -P clang_warnings.cmake: fails if Clang has a warning about the public headers, the sources of the bridge and
# the plugin (plugin), or about the sources of the library and the programs of tables (compute). It makes no
# code, and reads the library as two sources: headers cost as much as all the rest.
# -Wshadow is left to GCC, since names of different files meet here.
set(warnings -fsyntax-only -Wall -Wextra -Wno-missing-field-initializers -Werror)
set(options -std=c++20 ${warnings} -D VK_NO_PROTOTYPES "-DIMPRINT_VERSION=\"0\"" -I ${SOURCE} -I ${SOURCE}/compute/include
  -I ${SOURCE}/plugin/include)
foreach(folder IN LISTS INCLUDES)
  list(APPEND options -idirafter ${folder})
endforeach()
file(MAKE_DIRECTORY ${OUT})

# Reads `files`, in one source OUT/name.
macro(read_with_clang name files)
  set(text "")
  foreach(file IN LISTS ${files})
    string(APPEND text "#include \"${file}\"\n")
  endforeach()
  file(WRITE ${OUT}/${name} "${text}")
  execute_process(COMMAND ${CLANG} ${ARGN} ${OUT}/${name} RESULT_VARIABLE status ERROR_VARIABLE messages)
  if(NOT status EQUAL 0)
    string(APPEND found "${name}: found warnings of Clang, expected none:\n${messages}\n")
  endif()
endmacro()

# Reads the sources of the rooms in the list `group`.
macro(read_rooms group)
  set(sources "")
  foreach(room IN LISTS ${group})
    file(GLOB_RECURSE files ${SOURCE}/${room}/*.cpp)
    list(APPEND sources ${files})
  endforeach()
  # Built for one instruction set, or instead of another file.
  list(FILTER sources EXCLUDE REGEX "/kernels_[^/]*\\.cpp$|_absent\\.cpp$")
  list(LENGTH sources count)
  math(EXPR read "${read} + ${count}")
  read_with_clang(${group}.cpp sources ${options})
endmacro()

set(found "")
set(read 0)
if(PART STREQUAL "compute")
  set(least 270)
  # In the order in which rooms include each other; the second source has all other rooms of compute.
  set(library_rooms base vk tensor graph cpu kernels program tuning)
  file(GLOB others LIST_DIRECTORIES true RELATIVE ${SOURCE}/compute ${SOURCE}/compute/*)
  list(REMOVE_ITEM others ${library_rooms})
  list(TRANSFORM library_rooms PREPEND compute/)
  list(TRANSFORM others PREPEND compute/)
  read_rooms(library_rooms)
  read_rooms(others)
  # The programs that no test needs: tools/test --all builds them, too.
  file(GLOB sources ${SOURCE}/tests/learning/abi_*.cpp ${SOURCE}/tests/learning/*_trial.cpp
    ${SOURCE}/tests/learning/careless_person.cpp ${SOURCE}/tests/learning/signal_games.cpp)
  list(REMOVE_DUPLICATES sources)
  read_with_clang(abi_table.cpp sources ${options})
  set(sources ${SOURCE}/tests/learning/ppo_table.cpp)
  read_with_clang(ppo_table.cpp sources ${options})
else()
  set(least 100)
  file(GLOB headers ${SOURCE}/plugin/include/imprint/*.h)
  read_with_clang(headers.c headers -x c -std=c11 -Wpedantic ${warnings})
  file(GLOB headers ${SOURCE}/plugin/include/imprint/*.hpp)
  read_with_clang(headers.cpp headers -std=c++20 -Wpedantic ${warnings})
  set(plugin_rooms engine-bridge plugin)
  read_rooms(plugin_rooms)
endif()
if(found)
  message(FATAL_ERROR "${found}")
endif()
if(read LESS ${least})
  message(FATAL_ERROR "sources: found ${read}, expected at least ${least}. Check SOURCE: ${SOURCE}")
endif()
