# Readers of users' files and the choice of a device, which tests and other tools take too.
imprint_require_header(IMPRINT_NLOHMANN_INCLUDE nlohmann/json.hpp nlohmann-json3-dev)
set(files brain_file computer model_file profiles)
list(TRANSFORM files PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM files APPEND .cpp)
add_library(imprint_cli_files STATIC EXCLUDE_FROM_ALL ${files})
imprint_defaults(imprint_cli_files)
target_include_directories(imprint_cli_files PRIVATE ${PROJECT_SOURCE_DIR}/plugin/include)
target_include_directories(imprint_cli_files SYSTEM PUBLIC ${IMPRINT_NLOHMANN_INCLUDE})
# compiling with optimisation takes longer than running
target_compile_options(imprint_cli_files PRIVATE $<$<CONFIG:Release>:-O0>)
target_link_libraries(imprint_cli_files PUBLIC imprint_agent)
