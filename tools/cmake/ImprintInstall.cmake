# cmake --install: the plugin, the libraries with their headers, the command line, and a package for find_package(imprint).
#   include/imprint/imprint.h, imprint.hpp      the plugin's faces
#   include/imprint/compute.h                   the library's face; its rooms lie in include/imprint/compute and include/imprint/engine-bridge
#   lib/cmake/imprint                           components plugin (shared, needs nothing) and compute (static)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(NOT TARGET imprint_plugin OR NOT TARGET imprint_engine_bridge)
  return()
endif()

set(imprint_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/imprint)
set(imprint_header_dir ${CMAKE_INSTALL_INCLUDEDIR}/imprint)

install(TARGETS imprint_plugin EXPORT imprint-plugin
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY plugin/include/imprint/ DESTINATION ${imprint_header_dir} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

install(TARGETS imprint_compute imprint_engine_bridge imprint_vulkan_headers EXPORT imprint-compute
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${imprint_header_dir})
install(DIRECTORY compute/include/imprint/ DESTINATION ${imprint_header_dir} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY compute engine-bridge DESTINATION ${imprint_header_dir} FILES_MATCHING PATTERN "*.h" PATTERN "include" EXCLUDE)

if(TARGET imprint_cli)
  install(TARGETS imprint_cli)
endif()

foreach(component plugin compute)
  install(EXPORT imprint-${component} NAMESPACE imprint:: FILE imprint-${component}.cmake DESTINATION ${imprint_package_dir})
endforeach()
configure_package_config_file(tools/cmake/imprint-config.cmake.in ${PROJECT_BINARY_DIR}/imprint-config.cmake
  INSTALL_DESTINATION ${imprint_package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/imprint-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/imprint-config.cmake ${PROJECT_BINARY_DIR}/imprint-config-version.cmake
  DESTINATION ${imprint_package_dir})
