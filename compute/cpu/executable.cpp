#include "compute/cpu/executable.h"

#include "compute/cpu/lowering.h"

namespace imprint::cpu {

using namespace graph;

FusionOptions fusion_options(bool fuse) {
  FusionOptions options;
  options.row_folds = false;
  options.fill_groups = options.fill_invocations = 1;  // tasks run one after the other
  options.fuse = fuse;
  options.regions = false;
  options.expand = false;  // pages have CPU functions
  options.recompute_limit = 0;
  return options;
}

Result<std::unique_ptr<Executable>> Executable::compile(const Graph& graph, const Schedule& schedule,
                                                        std::uint64_t memory_limit) {
  auto executable = std::make_unique<Executable>();
  IMPRINT_CHECK(Lowering(graph, schedule, *executable).run(memory_limit));
  return executable;
}

void Executable::bind(const Bindings& bindings) {
  const auto set = [&](const std::vector<Bound>& bound, std::span<std::byte* const> pointers) {
    for (const Bound& entry : bound) memory_.buffers[at(entry.buffer)] = pointers[at(entry.position)];
  };
  set(inputs_, bindings.inputs);
  set(outputs_, bindings.outputs);
  set(variables_, bindings.variables);
}

void Executable::run(std::size_t kernel) const {
  for (std::size_t step = kernels_[kernel].begin; step < kernels_[kernel].end; ++step)
    steps_[step]->run(memory_);
}

}  // namespace imprint::cpu
