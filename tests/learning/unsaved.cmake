# A pet that cannot be saved: the report is written all the same, the message says why, and the program fails.
# cmake -D PET= -D OUT=folder -P unsaved.cmake
file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT})
set(file /proc/unsaved.imprint)  # a folder that takes no files, which shows only when one is written
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
