# Extracts the pages' C and C++, compiles it against the installed Imprint, and runs it:
# cmake [-D SKIPPED=pattern of programs that are not run] -D PAGES=imprint_pages -D SOURCE=tree -D OUT=folder -D PREFIX=installed -D GENERATOR= -D LAUNCHER= -D C_COMPILER= -D CXX_COMPILER= -D LINKER_FLAGS= -P pages.cmake
file(REMOVE_RECURSE ${OUT}/extracted)
execute_process(COMMAND ${PAGES} extract ${SOURCE} ${OUT}/extracted COMMAND_ERROR_IS_FATAL ANY)

# run(WHAT COMMAND...): the end of its output where it fails.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what}:\n${output}")
  endif()
endfunction()

run("the pages' programs cannot be configured" ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${OUT}/build -G ${GENERATOR}
  -D CMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS_RELEASE=-O0" "-DCMAKE_CXX_FLAGS_RELEASE=-O0" -D CMAKE_PREFIX_PATH=${PREFIX} -D CMAKE_C_COMPILER=${C_COMPILER}
  -D CMAKE_CXX_COMPILER=${CXX_COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D CMAKE_C_COMPILER_LAUNCHER=${LAUNCHER} "-DCMAKE_EXE_LINKER_FLAGS=${LINKER_FLAGS}"
  -D EXTRACTED=${OUT}/extracted -D SOURCE=${SOURCE})
run("the pages' programs do not compile" ${CMAKE_COMMAND} --build ${OUT}/build --parallel 2)
set(run_all)
if(SKIPPED)
  set(run_all --exclude-regex ${SKIPPED})
endif()
run("a page's program does not run" ${CMAKE_CTEST_COMMAND} --test-dir ${OUT}/build --output-on-failure --parallel 2 --timeout 300 ${run_all})
