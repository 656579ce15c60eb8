# cmake -D SOURCE= -D OUT= -D GENERATOR= -D OBJDUMP= -D LAUNCHER= -D HEADERS="..." [-D WINE= -D XVFB=
# -D COMMAND_LINE= -D HOST= -D PLUGIN=] -P build.cmake
# Cross-compiles the plugin as a DLL and a consumer of its package, and checks the DLL's exports and imports.
# With WINE it runs both, and a game that infers and learns on Wine's Vulkan. Its results must equal those of
# HOST with PLUGIN, the native builds.
cmake_minimum_required(VERSION 3.25)

# System headers that are equal on all platforms, without those of the C library.
file(REMOVE_RECURSE ${OUT}/include ${OUT}/installed ${OUT}/consumer)
file(MAKE_DIRECTORY ${OUT}/include)
foreach(header IN LISTS HEADERS)
  cmake_path(GET header FILENAME name)
  file(CREATE_LINK ${header} ${OUT}/include/${name} SYMBOLIC)
endforeach()

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(common -G ${GENERATOR} -D CMAKE_TOOLCHAIN_FILE=${SOURCE}/tools/cmake/mingw-w64.cmake -D CMAKE_BUILD_TYPE=Debug
  -D CMAKE_C_COMPILER_LAUNCHER=${LAUNCHER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
foreach(package VULKAN VOLK NLOHMANN PROTOZERO)
  list(APPEND includes -D IMPRINT_${package}_INCLUDE=${OUT}/include)
endforeach()
# Optimised a little: mingw's linker takes longer than the compiler where every inline function is a section of its own.
run("configure the plugin" ${CMAKE_COMMAND} -S ${SOURCE} -B ${OUT}/plugin ${common} ${includes} -D CMAKE_CXX_FLAGS_DEBUG=-O1
  -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=16 -D IMPRINT_RUNTIME_COMPILER=OFF -D IMPRINT_PICTURES=OFF -D IMPRINT_WERROR=ON -D IMPRINT_BUILD_SAMPLES=OFF -D IMPRINT_BUILD_TESTS=OFF -D IMPRINT_BUILD_TOOLS=OFF)
run("build the plugin" ${CMAKE_COMMAND} --build ${OUT}/plugin)
run("install the plugin" ${CMAKE_COMMAND} --install ${OUT}/plugin --prefix ${OUT}/installed)
run("configure the consumer" ${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer/find_package_plugin -B ${OUT}/consumer ${common}
  -D imprint_DIR=${OUT}/installed/lib/cmake/imprint)
run("build the consumer" ${CMAKE_COMMAND} --build ${OUT}/consumer)

run("read the DLL" ${OBJDUMP} -p ${OUT}/installed/bin/libimprint.dll)
if(NOT output MATCHES "\\[Ordinal/Name Pointer\\] Table\n([^\n]*\n)([^\n]*)\n")
  message(FATAL_ERROR "the DLL exports nothing:\n${output}")
endif()
if(NOT CMAKE_MATCH_1 MATCHES "\\] imp_get_api\n" OR CMAKE_MATCH_2 MATCHES "\\]")
  message(FATAL_ERROR "the DLL exports '${CMAKE_MATCH_1}${CMAKE_MATCH_2}'; expected imp_get_api alone")
endif()
string(REGEX MATCHALL "DLL Name: [^\n]+" imported "${output}")
foreach(name IN LISTS imported)
  if(NOT name MATCHES "DLL Name: (KERNEL32|msvcrt)\\.dll")
    message(FATAL_ERROR "the DLL needs ${name}: a player's machine may not have it")
  endif()
endforeach()
run("read the consumer" ${OBJDUMP} -p ${OUT}/consumer/consumer.exe)
if(NOT output MATCHES "DLL Name: libimprint\\.dll")
  message(FATAL_ERROR "the consumer does not load libimprint.dll:\n${output}")
endif()

if(NOT WINE)
  message(STATUS "Wine was not found: the DLL and its consumer are not run")
  return()
endif()
# A separate Wine prefix, without Wine's optional packages.
set(ENV{WINEPREFIX} ${OUT}/wine)
set(ENV{WINEDEBUG} -all)
set(ENV{WINEDLLOVERRIDES} mscoree,mshtml=)
set(dll ${OUT}/installed/bin/libimprint.dll)
set(ENV{WINEPATH} ${OUT}/installed/bin)
set(model ${SOURCE}/tests/data/models/godot/BallChase.onnx)
run("compile a game" x86_64-w64-mingw32-gcc-posix -std=c11 -static -I ${OUT}/installed/include ${SOURCE}/tests/consumer/baked/main.c -o ${OUT}/game.exe)
run("bake its kernels" ${COMMAND_LINE} bake --model ${model} --batch 4 --agent ${SOURCE}/tests/consumer/baked/pet.json
  --game-model ${SOURCE}/tests/consumer/baked/model.json --profile baseline --output ${OUT}/baseline.kernels)
run("run the game natively" ${HOST} ${PLUGIN} ${OUT}/baseline.kernels ${model} ${OUT}/results.native)
# One display for both, because Wine's own processes keep using it.
run("run in Wine" ${XVFB} --auto-servernum sh -c
  "'${WINE}' '${OUT}/consumer/consumer.exe' && '${WINE}' '${OUT}/game.exe' '${dll}' '${OUT}/baseline.kernels' '${model}' '${OUT}/results.wine'")
message(STATUS "in Wine: ${output}")
if(NOT output MATCHES "imprint [0-9]+\\.[0-9]+")
  message(FATAL_ERROR "the consumer did not say which version it runs with:\n${output}")
endif()
file(SIZE ${OUT}/results.native native)
file(SIZE ${OUT}/results.wine wine)
if(NOT native EQUAL wine)
  message(FATAL_ERROR "the game in Wine wrote ${wine} bytes of results, the one here ${native}")
endif()
