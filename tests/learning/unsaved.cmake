# A pet that cannot be saved: the report is still written, the message says why, and the program fails. cmake
# -D PET= -D OUT=folder -P unsaved.cmake
file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT})
set(file /proc/unsaved.imprint)  # a folder that refuses files only when one is written
execute_process(COMMAND ${PET} --headless --seconds 2 --teacher off --no-ghost --save ${file} --report ${OUT}/report.json
  RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE message)
if(NOT status EQUAL 2 OR NOT message MATCHES "unsaved.imprint")
  message(FATAL_ERROR "expected status 2 and a message that names the file, found ${status}: ${message}")
endif()
file(READ ${OUT}/report.json report)
string(JSON problem GET "${report}" save_problem)
string(JSON hash GET "${report}" weights_hash)
string(JSON learned TYPE "${report}" learned)
if(NOT problem MATCHES "unsaved.imprint" OR hash STREQUAL "" OR NOT learned STREQUAL "NULL")
  message(FATAL_ERROR "expected a report with why it was not saved, its hash and nothing learned, found:\n${report}")
endif()

# An unwritable log and an invalid seed are errors before the game starts.
if(EXISTS /dev/full)
  execute_process(COMMAND ${PET} --headless --seconds 1 --teacher off --no-ghost --log /dev/full
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE message)
  if(NOT status EQUAL 2 OR NOT message MATCHES "/dev/full")
    message(FATAL_ERROR "expected status 2 and a message that names the log, found ${status}: ${message}")
  endif()
endif()
foreach(seed -1 99999999999999999999 1x "")
  execute_process(COMMAND ${PET} --headless --check "--seed=${seed}" RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE message)
  if(NOT status EQUAL 2)
    message(FATAL_ERROR "--seed '${seed}' was accepted, with status ${status}: ${message}")
  endif()
endforeach()
execute_process(COMMAND ${PET} --headless --check --seed 18446744073709551615 RESULT_VARIABLE status ERROR_VARIABLE message)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the largest seed was refused: ${message}")
endif()

# Taught, but without time to learn: the program fails. Frames that wait for the save do not count as the
# game's.
execute_process(COMMAND ${PET} --headless --device cpu --seconds 8 --budget-us 0 --no-ghost --save ${OUT}/pet.imprint --report ${OUT}/idle.json
  RESULT_VARIABLE status OUTPUT_VARIABLE words ERROR_VARIABLE message)
file(READ ${OUT}/idle.json report)
string(JSON minibatches GET "${report}" minibatches)
string(JSON driver GET "${report}" driver)
string(JSON frames GET "${report}" frames)
string(JSON metered GET "${report}" frame_cpu_us frames)
string(JSON learned GET "${report}" learned)
if(NOT status EQUAL 1 OR NOT minibatches EQUAL 0 OR NOT learned STREQUAL "OFF" OR driver STREQUAL "" OR NOT frames EQUAL metered)
  message(FATAL_ERROR "expected status 1, no minibatches and a driver, found ${status}: ${message}\n${report}")
endif()

# If names cannot be written, the pet and its hash are still written. Files saved only for the hash are
# removed.
file(WRITE ${OUT}/named.log "imprint-pet-log 3\nseed 1 pets 1 idle 0 teacher off learner feedback\n1 0 name bed home\n30 end\n")
file(MAKE_DIRECTORY ${OUT}/temporary ${OUT}/named.imprint.names.new)
foreach(save "" ${OUT}/named.imprint)
  set(saving)
  if(save)
    set(saving --save ${save})
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -E env TMPDIR=${OUT}/temporary ${PET} --headless --no-ghost --replay ${OUT}/named.log ${saving}
      --report ${OUT}/named.json
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE message)
  file(READ ${OUT}/named.json report)
  string(JSON problem ERROR_VARIABLE none GET "${report}" save_problem)
  string(JSON hash GET "${report}" weights_hash)
  file(GLOB left ${OUT}/temporary/*.names)
  if(hash STREQUAL "" OR left OR (save AND NOT problem MATCHES "named.imprint.names") OR (save AND NOT EXISTS ${save}) OR (NOT save AND NOT status EQUAL 0))
    message(FATAL_ERROR "expected a hash, a pet and nothing left behind, found ${status}, \"${left}\": ${message}\n${report}")
  endif()
endforeach()
