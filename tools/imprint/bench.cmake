imprint_require_header(IMPRINT_NLOHMANN_INCLUDE nlohmann/json.hpp nlohmann-json3-dev)

add_library(imprint_bench STATIC
  bench.cpp
  bench_floor.cpp
  bench_frame.cpp
  bench_learn.cpp
  bench_ops.cpp
  bench_pet.cpp
  bench_policy.cpp
  bench_timer.cpp
  bench_worlds.cpp
  computer.cpp
  explain.cpp
  explain_floors.cpp
  tune.cpp
  workloads.cpp)
imprint_defaults(imprint_bench)
target_include_directories(imprint_bench SYSTEM PRIVATE ${IMPRINT_CLI11_INCLUDE} ${IMPRINT_NLOHMANN_INCLUDE})
target_link_libraries(imprint_bench PRIVATE imprint_plugin imprint_agent imprint_engine_bridge)
