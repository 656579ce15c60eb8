# cmake -D SOURCE= -D OUT= -D BUILD= -D GENERATOR= -D LAUNCHER= -D C_COMPILER= -D CXX_COMPILER= -D CXX_FLAGS=
# -D UNITY= -D BATCH= -D COMMAND_LINE= -D PLUGIN= -D HOST= -P baked.cmake
# Bakes a game's kernels, builds the plugin without a compiler, and runs the game from the archive. Results
# are bit-equal to those with a compiler.
cmake_minimum_required(VERSION 3.25)

set(model ${SOURCE}/tests/data/models/godot/BallChase.onnx)
set(pet ${CMAKE_CURRENT_LIST_DIR}/pet.json)
file(REMOVE_RECURSE ${OUT}/results)
file(MAKE_DIRECTORY ${OUT}/results)

# run(NAME STATUS COMMAND...): stores the output in `output`.
function(run what expected)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL expected)
    message(FATAL_ERROR "${what}: status ${status}, expected ${expected}:\n${output}${errors}")
  endif()
  message(STATUS "${what}: ${output}")
  set(output "${output}${errors}" PARENT_SCOPE)
endfunction()
function(expect what)
  if(NOT output MATCHES "${what}")
    message(FATAL_ERROR "expected '${what}', found:\n${output}")
  endif()
endfunction()

# Sources that this tree's build folder compiled come from the compiler cache.
set(ENV{CCACHE_BASEDIR} ${BUILD})
set(unity)
if(UNITY)
  set(unity -D CMAKE_UNITY_BUILD=ON)
  if(BATCH)
    list(APPEND unity -D CMAKE_UNITY_BUILD_BATCH_SIZE=${BATCH})
  endif()
endif()
run("configuring" 0 ${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G ${GENERATOR} -D CMAKE_BUILD_TYPE=Release
  -D CMAKE_CXX_FLAGS_RELEASE=${CXX_FLAGS} ${unity}
  -D CMAKE_C_COMPILER=${C_COMPILER} -D CMAKE_CXX_COMPILER=${CXX_COMPILER} -D CMAKE_C_COMPILER_LAUNCHER=${LAUNCHER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
  -D CMAKE_DISABLE_FIND_PACKAGE_glslang=ON
  -D IMPRINT_RUNTIME_COMPILER=OFF -D IMPRINT_PICTURES=OFF -D IMPRINT_BUILD_SAMPLES=OFF -D IMPRINT_BUILD_TESTS=OFF -D IMPRINT_BUILD_TOOLS=OFF -D IMPRINT_INSTALL=OFF)
run("building" 0 ${CMAKE_COMMAND} --build ${BUILD} --target imprint_plugin)
set(without ${BUILD}/plugin/libimprint.so)

set(here)
if(DEFINED ENV{IMPRINT_TEST_DEVICE})
  set(here --device $ENV{IMPRINT_TEST_DEVICE})
endif()
run("write the profile of this device" 0 ${COMMAND_LINE} devices --profile ${OUT}/results/device.json ${here})
set(device --profile ${OUT}/results/device.json)
set(everything --model ${model} --batch 4 --agent ${pet} --game-model ${CMAKE_CURRENT_LIST_DIR}/model.json)
run("bake for this device" 0 ${COMMAND_LINE} bake ${everything} ${device} --output ${OUT}/results/device.kernels)
run("bake for any device" 0 ${COMMAND_LINE} bake ${everything} --profile baseline --output ${OUT}/results/baseline.kernels)
run("bake the policy alone" 0 ${COMMAND_LINE} bake --model ${model} --batch 4 ${device} --output ${OUT}/results/policy.kernels)

run("with a compiler" 0 ${HOST} ${PLUGIN} none ${model} ${OUT}/results/compiled)
run("with a compiler, which compiles nothing" 0 ${HOST} ${PLUGIN} ${OUT}/results/device.kernels ${model} ${OUT}/results/asked)
run("without a compiler" 0 ${HOST} ${without} ${OUT}/results/device.kernels ${model} ${OUT}/results/baked)
foreach(results asked baked)
  file(SHA256 ${OUT}/results/compiled expected)
  file(SHA256 ${OUT}/results/${results} found)
  if(NOT found STREQUAL expected)
    message(FATAL_ERROR "the results of '${results}' differ from those of compiled kernels")
  endif()
endforeach()

run("without a compiler, by the baseline" 0 ${HOST} ${without} ${OUT}/results/baseline.kernels ${model} ${OUT}/results/baseline)
expect("are those baked for 'baseline'")

# A table that the game ships. If its variants were baked, the game runs them as with a compiler. The log
# shows that the table is read.
set(table ${OUT}/results/table.json)
run("measuring" 0 ${HOST} ${PLUGIN} none ${model} ${OUT}/results/none ${table} 3000)
run("bake the measured variants" 0 ${COMMAND_LINE} bake ${everything} ${device} --tuning ${table} --output ${OUT}/results/tuned.kernels)
run("with a compiler and the table" 0 ${HOST} ${PLUGIN} none ${model} ${OUT}/results/compiled ${table})
run("without a compiler, with the table" 0 ${HOST} ${without} ${OUT}/results/tuned.kernels ${model} ${OUT}/results/tuned ${table})
if(output MATCHES "tuning table")
  message(FATAL_ERROR "the table is not followed:\n${output}")
endif()
file(SHA256 ${OUT}/results/compiled expected)
file(SHA256 ${OUT}/results/tuned found)
if(NOT found STREQUAL expected)
  message(FATAL_ERROR "the results with the table differ from those of compiled kernels")
endif()
file(READ ${table} text)
string(REGEX REPLACE "(\"[^\"]+ [0-9a-f]+[^\"]*\"): \"[^\"]*\"" "\\1: \"no such\"" text "${text}")
file(WRITE ${table} "${text}")
run("without a compiler, with a table of another library" 0 ${HOST} ${without} ${OUT}/results/tuned.kernels ${model} ${OUT}/results/tuned ${table})
expect("the tuning table has 'no such'")

run("a kernel that was not baked" 3 ${HOST} ${without} ${OUT}/results/policy.kernels ${model} ${OUT}/results/none)
expect("warmup.*IMP_ERROR_NOT_FOUND: kernel 'pet infer.0' \\([0-9a-f]+\\): found it neither in the kernel archive.*Bake again")
run("no archive" 3 ${HOST} ${without} none ${model} ${OUT}/results/none)
expect("IMP_ERROR_NOT_FOUND: kernel 'policy infer.0' .*nor a kernel archive.*imprint bake")
file(WRITE ${OUT}/results/damaged "imp-kern, but not really: it is too short to be one")
run("a damaged archive" 3 ${HOST} ${without} ${OUT}/results/damaged ${model} ${OUT}/results/none)
expect("context_create_standalone.*IMP_ERROR_(CORRUPT_FILE|UNSUPPORTED): context_create_standalone: '.*damaged': kernel archive: ")
run("an archive that is not there" 3 ${HOST} ${without} ${OUT}/results/nowhere ${model} ${OUT}/results/none)
expect("IMP_ERROR_NOT_FOUND: context_create_standalone: cannot read")
