# cmake -D BUILD=... -D PREFIX=... -P install.cmake: installs into an empty folder, so that leftovers of an
# earlier install cannot hide a missing file.
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX} COMMAND_ERROR_IS_FATAL ANY)
