# The sample 12-hear-voices with the network of an npm package: cmake -D SAMPLE=program -D OUT=folder -P
# hear_voices.cmake. Prints SKIPPED where the package cannot be reached.
set(package @ricky0123/vad-web@0.0.31)
set(model ${OUT}/package/dist/silero_vad_v5.onnx)
if(NOT EXISTS ${model})
  file(MAKE_DIRECTORY ${OUT})
  find_program(npm npm)
  if(NOT npm)
    message("SKIPPED: found no npm, which fetches ${package}. Install it.")
    return()
  endif()
  execute_process(COMMAND ${npm} pack ${package} --pack-destination ${OUT} WORKING_DIRECTORY ${OUT} TIMEOUT 60
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE errors)
  file(GLOB archive ${OUT}/*vad-web*.tgz)
  if(NOT status EQUAL 0 OR NOT archive)
    message("SKIPPED: npm could not fetch ${package}: ${errors}")
    return()
  endif()
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${OUT} PATTERNS package/dist/silero_vad_v5.onnx)
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
