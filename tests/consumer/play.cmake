# tools/play refuses an unknown option before it builds anything, and knows every option of the game:
# cmake -D SOURCE= -D PET=program -P play.cmake
execute_process(COMMAND ${SOURCE}/tools/play --headless --frobnicate=1 RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT status EQUAL 2 OR NOT errors MATCHES "no option '--frobnicate'" OR output MATCHES "building")
  message(FATAL_ERROR "tools/play --frobnicate: expected status 2, a message and no build, found ${status}: ${output}${errors}")
endif()

execute_process(COMMAND ${PET} --help OUTPUT_VARIABLE help)
string(REGEX MATCHALL "\n  (-h,)?--[a-z-]+" lines "${help}")
if(NOT lines)
  message(FATAL_ERROR "${PET} --help lists no options:\n${help}")
endif()
foreach(line ${lines})
  string(REGEX REPLACE ".*--" "--" option "${line}")
  if(NOT errors MATCHES " ${option}[ \n]")
    message(FATAL_ERROR "tools/play does not know ${option}: ${errors}")
  endif()
endforeach()

execute_process(COMMAND ${PET} --check --headless --seconds never RESULT_VARIABLE status ERROR_VARIABLE errors)
if(NOT status EQUAL 2 OR NOT errors MATCHES "--seconds: found 'never'")
  message(FATAL_ERROR "expected status 2 and the value that is wrong, found ${status}: ${errors}")
endif()
