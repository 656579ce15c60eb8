# The snippet of README.md, compiled as it stands, and run within main.cpp:
# cmake -D SOURCE= -D OUT=folder -D COMPILER= -D PLUGIN=library -D VOLK=folder -D VULKAN=folder -P readme.cmake
set(README ${SOURCE}/README.md)
file(READ ${README} text)
string(FIND "${text}" "\n## In a game\n" section)
if(section EQUAL -1)
  message(FATAL_ERROR "${README} has no section \"In a game\"")
endif()
string(SUBSTRING "${text}" ${section} -1 text)

# extract(LANGUAGE FILE): the section's first block in ```LANGUAGE, written to FILE and left in `block`.
function(extract language file)
  set(fence "\n```${language}\n")
  string(FIND "${text}" "${fence}" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "${README}, section \"In a game\": no snippet in ```${language}")
  endif()
  string(LENGTH "${fence}" length)
  math(EXPR begin "${begin} + ${length}")
  string(SUBSTRING "${text}" ${begin} -1 rest)
  string(FIND "${rest}" "\n```\n" end)
  string(SUBSTRING "${rest}" 0 ${end} block)
  file(WRITE ${file} "${block}\n")
  set(block "${block}" PARENT_SCOPE)
endfunction()

extract(cpp ${OUT}/readme_snippet.h)
get_filename_component(plugin_folder ${PLUGIN} DIRECTORY)
set(host ${SOURCE}/samples/host)
execute_process(COMMAND ${COMPILER} -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Werror -I ${OUT} -I ${SOURCE}/plugin/include -I ${host}
  -idirafter ${VOLK} -idirafter ${VULKAN} ${CMAKE_CURRENT_LIST_DIR}/main.cpp ${host}/host.cpp -x c++ -w ${VOLK}/volk.c -x none
  ${PLUGIN} -Wl,-rpath,${plugin_folder} -ldl -o ${OUT}/readme RESULT_VARIABLE status ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the snippet of README.md does not compile:\n${errors}")
endif()
execute_process(COMMAND ${OUT}/readme RESULT_VARIABLE status ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the snippet of README.md does not run:\n${errors}")
endif()
string(REGEX MATCHALL "\n" lines "${block}")
list(LENGTH lines count)
if(count GREATER 26)
  message(FATAL_ERROR "the snippet of README.md has grown to ${count} lines: a first look should take about 20")
endif()

# The one in C, as C11.
extract(c ${OUT}/readme_example.c)
execute_process(COMMAND ${COMPILER} -x c -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror -I ${SOURCE}/plugin/include -c ${OUT}/readme_example.c
  -o ${OUT}/readme_example.o RESULT_VARIABLE status ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the C example of README.md does not compile:\n${errors}")
endif()
