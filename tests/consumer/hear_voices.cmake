# The sample 12-hear-voices with the network of an npm package: cmake -D SAMPLE=program -D OUT=folder -P
# hear_voices.cmake. Prints SKIPPED where the package cannot be reached.
include(${CMAKE_CURRENT_LIST_DIR}/npm_package.cmake)
set(model ${OUT}/package/dist/silero_vad_v5.onnx)
fetch_npm_package(@ricky0123/vad-web@0.0.31 ${OUT} dist/silero_vad_v5.onnx)
if(SKIPPED)
  message("SKIPPED: ${SKIPPED}")
  return()
endif()

# Its own sounds: silence, vowels, noise, vowels.
execute_process(COMMAND ${SAMPLE} ${model} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
message("${output}${errors}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "expected status 0, found ${status}")
endif()
string(REGEX MATCHALL "voice from" voices "${output}")
list(LENGTH voices count)
if(NOT count EQUAL 2)
  message(FATAL_ERROR "expected two voices, found ${count}")
endif()

# A file that is no sound.
file(WRITE ${OUT}/no.wav "no sound")
execute_process(COMMAND ${SAMPLE} ${model} ${OUT}/no.wav RESULT_VARIABLE status ERROR_VARIABLE errors OUTPUT_QUIET)
if(NOT status EQUAL 1 OR NOT errors MATCHES "found no whole WAV file")
  message(FATAL_ERROR "expected status 1 and a message, found ${status}: ${errors}")
endif()
