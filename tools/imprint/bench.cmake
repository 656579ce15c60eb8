# imprint bench, explain and tune, as part of the program whose headers they share.
target_sources(imprint_cli PRIVATE
  bench.cpp
  bench_floor.cpp
  bench_frame.cpp
  bench_learn.cpp
  bench_learners.cpp
  bench_models.cpp
  bench_nets.cpp
  bench_nets_layers.cpp
  bench_nets_parts.cpp
  bench_nets_sequences.cpp
  bench_ops.cpp
  bench_order.cpp
  bench_pet.cpp
  bench_plan.cpp
  bench_policy.cpp
  bench_timer.cpp
  bench_worlds.cpp
  explain.cpp
  explain_floors.cpp
  graph_picture.cpp
  large_graphs.cpp
  model_shapes.cpp
  profile_table.cpp
  slow_step.cpp
  tune.cpp
  workloads.cpp)
