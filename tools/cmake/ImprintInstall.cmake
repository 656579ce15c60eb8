# cmake --install: the plugin, the libraries with their headers, the command line, and a package for find_package(imprint).
#   include/imprint/imprint.h, imprint.hpp      the plugin's faces
#   include/imprint/compute.h                   the library's face; its rooms lie in include/imprint/compute and include/imprint/engine-bridge
#   include/imprint/studio.h, studio_compute.h  for training builds, where MPI is
#   lib/cmake/imprint                           components plugin (shared, needs nothing), compute (static) and studio (static, needs MPI)
#   include/imprint/adapters                    how to declare the devices of engines
#   share/doc/imprint                           the pages, the licence, and licences/: those of what the plugin contains
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(imprint_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/imprint)
set(imprint_header_dir ${CMAKE_INSTALL_INCLUDEDIR}/imprint)

install(TARGETS imprint_plugin EXPORT imprint-plugin
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY plugin/include/imprint/ DESTINATION ${imprint_header_dir} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

install(DIRECTORY samples/adapters/ DESTINATION ${imprint_header_dir}/adapters FILES_MATCHING PATTERN "*.h")
# The pages, their pictures and the samples' sources, as they lie in the tree.
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(folder plugin/docs compute/docs tools/docs)
  install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder}
    FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "figures" EXCLUDE)
endforeach()
foreach(page engine-bridge/README.md samples/README.md samples/06-adaptive-enemy/curve.png samples/07-steering-body/curve.png
    samples/08-maze-with-memory/curve.png samples/09-swarm/curve.png samples/10-two-sides/curve.png samples/15-eyes/curve.png samples/02-run-policy/models/README.md samples/pet/README.md samples/pet/pet.png)
  get_filename_component(folder ${page} DIRECTORY)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()

install(DIRECTORY samples/11-networks/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/samples/11-networks FILES_MATCHING PATTERN "*.png")
install(DIRECTORY samples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/samples
  FILES_MATCHING PATTERN "*.cpp" PATTERN "*.h" PATTERN "CMakeLists.txt" PATTERN adapters EXCLUDE)

install(TARGETS imprint_compute imprint_engine_bridge imprint_vulkan_headers EXPORT imprint-compute
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${imprint_header_dir})
install(DIRECTORY compute/include/imprint/ DESTINATION ${imprint_header_dir} FILES_MATCHING PATTERN "*.h")
# Only the headers that imprint/compute.h and the two headers of the engine bridge include, directly or
# indirectly.
set(imprint_library_headers
  compute/base/hash.h compute/base/host_jobs.h compute/base/log.h compute/base/result.h compute/base/shared_bytes.h
  compute/graph/gradients/autodiff.h compute/graph/gradients/checkpoint.h compute/graph/schedule/variants.h
  compute/model/onnx/export.h compute/model/onnx/import.h compute/model/onnx/format/proto.h compute/model/policy.h compute/model/quantise.h compute/model/files/safetensors.h compute/model/state_dict.h compute/model/weights/weights.h
  compute/nn/optimisers/grouped_moments.h compute/nn/learners/reward_signals.h compute/nn/learners/action_distribution.h compute/nn/modules/activation.h compute/nn/learners/advantage.h compute/nn/initialise.h compute/nn/modules/linear.h compute/nn/optimisers/loss_scaler.h compute/nn/losses/losses.h
  compute/nn/modules/normalisation.h compute/nn/optimisers/optimiser.h compute/nn/parameter.h compute/nn/learners/ppo.h compute/nn/learners/ppo_loss.h compute/nn/learners/rollout_ppo.h compute/nn/learners/running_moments.h compute/nn/learners/rollout_pqn.h compute/nn/learners/sac.h compute/nn/learners/linear_bandit.h
  compute/nn/modules/attention.h compute/nn/optimisers/averaging.h compute/nn/modules/convolution.h compute/nn/modules/deformable.h compute/nn/modules/dropout.h compute/nn/dtype_policy.h compute/nn/modules/embedding.h compute/nn/module.h compute/nn/modules/norms.h compute/nn/pass.h
  compute/nn/losses/losses_sequences.h compute/nn/lora.h compute/nn/modules/pooling.h compute/nn/quantised_parameters.h compute/nn/modules/recurrent.h compute/nn/optimisers/schedule.h compute/nn/modules/transformer.h compute/nn/weight_form.h
  compute/nn/learners/classic_environments.h compute/nn/modules/sequential.h compute/nn/learners/environment.h
  compute/program/bake.h compute/program/program.h compute/program/program_sequence.h compute/program/run.h compute/program/runtime.h
  compute/program/schedule_figures.h compute/program/variant_tuner.h compute/tuning/tuner.h compute/tuning/tuning_table.h
  compute/tensor/ops/associative_scan.h compute/tensor/axis_name.h compute/tensor/dtype.h compute/tensor/extent.h compute/tensor/loop.h compute/tensor/node.h compute/tensor/op.h compute/tensor/op_rows.h compute/tensor/pages/page.h compute/tensor/shape.h compute/tensor/composites/composites.h compute/tensor/ops/detection.h compute/tensor/functions.h compute/tensor/composites/images.h compute/tensor/ops/linear_algebra.h compute/tensor/ops/quantised.h compute/tensor/composites/signals.h compute/tensor/tensor.h
  compute/training/augment.h compute/training/curves.h compute/training/dashboard.h compute/training/dataset.h compute/training/loader.h compute/training/metrics.h compute/training/picture.h compute/training/predict.h compute/training/report.h compute/training/stop_signal.h compute/training/trainer.h
  compute/vk/capabilities/capabilities.h compute/vk/pipelines/capability_profile.h compute/vk/completion.h compute/vk/counters.h compute/vk/debug_label.h
  compute/vk/device.h compute/vk/device_options.h compute/vk/functions.h compute/vk/pipelines/kernel_archive.h compute/vk/memory/memory_pool.h
  compute/vk/capabilities/missing_feature.h compute/vk/capabilities/newer_vulkan.h compute/vk/pipelines/pipeline_store.h compute/vk/queue.h compute/vk/vulkan_error.h
  engine-bridge/context.h engine-bridge/frame/frame.h engine-bridge/frame/governor.h engine-bridge/host/host_semaphore.h
  engine-bridge/host/queue_access.h engine-bridge/host/shared_buffer.h engine-bridge/own/standalone.h)
foreach(header IN LISTS imprint_library_headers)
  get_filename_component(room ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${imprint_header_dir}/${room})
endforeach()

# OPTIONAL: a build of some targets only has no studio, and the package then says so.
set(imprint_components plugin compute)
if(TARGET imprint_studio)
  list(APPEND imprint_components studio)
  install(TARGETS imprint_studio imprint_studio_compute imprint_studio_files sample_picture EXPORT imprint-studio OPTIONAL
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY tools/studio/include/imprint/ DESTINATION ${imprint_header_dir} FILES_MATCHING PATTERN "*.h")
endif()

if(TARGET imprint_cli)
  file(RELATIVE_PATH lib_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  # finds the plugin wherever the install folder is
  set_target_properties(imprint_cli PROPERTIES INSTALL_RPATH $ORIGIN/${lib_from_bin})
  install(TARGETS imprint_cli OPTIONAL)  # OPTIONAL: tools/play, for example, does not build it
endif()

# Binary copies must carry these licences: Imprint's, and those of the libraries linked into the plugin, as
# the system's packages provide them.
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
set(imprint_linked_packages libvulkan-dev nlohmann-json3-dev libprotozero-dev)
if(IMPRINT_RUNTIME_COMPILER)
  list(APPEND imprint_linked_packages glslang-dev spirv-tools)
endif()
foreach(package IN LISTS imprint_linked_packages)
  install(FILES /usr/share/doc/${package}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR}/licences RENAME ${package}.txt OPTIONAL)
endforeach()

foreach(component IN LISTS imprint_components)
  install(EXPORT imprint-${component} NAMESPACE imprint:: FILE imprint-${component}.cmake DESTINATION ${imprint_package_dir})
endforeach()
set(imprint_studio_library ${CMAKE_INSTALL_LIBDIR}/${CMAKE_STATIC_LIBRARY_PREFIX}imprint_studio${CMAKE_STATIC_LIBRARY_SUFFIX})
configure_package_config_file(tools/cmake/imprint-config.cmake.in ${PROJECT_BINARY_DIR}/imprint-config.cmake
  INSTALL_DESTINATION ${imprint_package_dir} PATH_VARS imprint_studio_library NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/imprint-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/imprint-config.cmake ${PROJECT_BINARY_DIR}/imprint-config-version.cmake
  DESTINATION ${imprint_package_dir})

# pkg-config: the plugin. The static library has dependencies that only find_package tells right.
file(RELATIVE_PATH IMPRINT_PREFIX_FROM_PC ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(tools/cmake/imprint.pc.in ${PROJECT_BINARY_DIR}/imprint.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/imprint.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(imprint_installed "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}")
install(CODE "execute_process(COMMAND \${CMAKE_COMMAND} -D \"FOLDER=${imprint_installed}/${CMAKE_INSTALL_DOCDIR}\" -D \"INCLUDE=${imprint_installed}/${imprint_header_dir}\"
  -P ${PROJECT_SOURCE_DIR}/tools/cmake/install_pages.cmake COMMAND_ERROR_IS_FATAL ANY)")

# cpack in the build folder: imprint-VERSION-SYSTEM.tar.gz, and imprint_VERSION_ARCH.deb where dpkg is.
set(CPACK_PACKAGE_NAME imprint)
set(CPACK_PACKAGE_VENDOR Imprint)
set(CPACK_PACKAGE_CONTACT "The maintainers of Imprint <maintainers@imprint.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Game agents that learn on the player's GPU: plugin, library, headers, command line")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR TGZ)
find_program(IMPRINT_DPKG dpkg)
if(IMPRINT_DPKG)
  list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)                # libc6 and libstdc++6, in the versions that the build used
set(CPACK_DEBIAN_PACKAGE_DEPENDS libvulkan1)          # the command line and standalone contexts load it at run time
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libvulkan-dev, glslang-dev, libopenmpi-dev, openmpi-bin")  # to link the static libraries
include(CPack)
