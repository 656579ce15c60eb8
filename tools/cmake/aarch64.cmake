# Toolchain: Linux on 64-bit Arm, from x86-64 (Debian: g++-aarch64-linux-gnu). IMPRINT_ARM64_ROOT is a folder
# with Debian's arm64 packages, which tools/arm64 fills. Programs run by qemu-aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES IMPRINT_ARM64_ROOT)
set(CMAKE_FIND_ROOT_PATH ${IMPRINT_ARM64_ROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
# Libraries that those packages need themselves, such as libX11, are there too.
set(imprint_arm64_libraries ${IMPRINT_ARM64_ROOT}/usr/lib/aarch64-linux-gnu)
foreach(kind EXE SHARED)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-L${imprint_arm64_libraries} -Wl,-rpath-link,${imprint_arm64_libraries}")
endforeach()
# Headers of one architecture, such as libjpeg's configuration.
foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_INIT "-isystem ${IMPRINT_ARM64_ROOT}/usr/include/aarch64-linux-gnu")
endforeach()
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu
  -E LD_LIBRARY_PATH=${imprint_arm64_libraries})
