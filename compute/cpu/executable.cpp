#include "compute/cpu/executable.h"

#include <algorithm>

#include "compute/cpu/lowering.h"

namespace imprint::cpu {

using namespace graph;

FusionOptions fusion_options(bool fuse) {
  FusionOptions options;
  options.row_folds = false;
  options.fill_groups = options.fill_invocations = 1;  // tasks run one after the other
  options.fuse = fuse;
  options.regions = false;
  options.expand = Expand::compose;
  options.recompute_limit = 0;
  options.arranges_constants = false;  // the lowering does, within the memory cap
  return options;
}

Result<std::unique_ptr<Executable>> Executable::compile(const Graph& graph, const Schedule& schedule,
                                                        std::uint64_t memory_limit,
                                                        std::shared_ptr<ThreadPool> pool) {
  const auto lower = [&](bool few_copies) -> Result<std::unique_ptr<Executable>> {
    auto executable = std::make_unique<Executable>();
    if (pool && pool->threads() > 1) executable->pool_ = pool;
    for (const RunExtent& extent : schedule.extents) {
      executable->extent_inputs_.push_back(extent.input);
      executable->extent_values_.push_back(extent.bound);
    }
    IMPRINT_CHECK(Lowering(graph, schedule, *executable, few_copies).run(memory_limit));
    return executable;
  };
  auto made = lower(false);
  // Copies of constants only save time.
  if (!made && made.error().code == ErrorCode::out_of_device_memory) made = lower(true);
  return made;
}

void Executable::bind(const Bindings& bindings) {
  const auto set = [&](const std::vector<Bound>& bound, std::span<std::byte* const> pointers) {
    for (const Bound& entry : bound) buffers_[at(entry.buffer)] = pointers[at(entry.position)];
  };
  set(inputs_, bindings.inputs);
  set(outputs_, bindings.outputs);
  set(variables_, bindings.variables);
  for (std::size_t i = 0; i < extent_inputs_.size(); ++i)
    extent_values_[i] = *reinterpret_cast<const std::int32_t*>(bindings.inputs[at(extent_inputs_[i])]);
}

void Executable::run(std::size_t kernel) const {
  for (std::size_t step = kernels_[kernel].begin; step < kernels_[kernel].end; ++step) run(*steps_[step]);
}

std::int64_t Executable::shares_of(const Step& step) const {
  // A share is worth the time of a thread that looks at it. There are more than threads, since another
  // process may take a core, except of a small step: data of a share that another thread takes would go to
  // its core.
  constexpr std::int64_t kLeastShare = 8192, kSmallStep = 49152;  // the work of one thread
  if (!is_shared_) return 1;
  const std::int64_t threads = pool_->threads(),
                     shares_per_thread = step.work() < kSmallStep * threads ? 1 : 4,
                     most = std::min({step.part_count(), step.work() / kLeastShare,
                                      shares_per_thread * threads, std::int64_t{ThreadPool::kMostParts}});
  return most < threads ? most : most / threads * threads;  // as many for each thread
}

void Executable::run(const Step& step) const {
  const std::int64_t parts = step.part_count(), shares = shares_of(step);
  if (shares < 2) return step.run(memory_of(0), {0, parts});
  pool_->each(static_cast<std::uint32_t>(shares), [&](std::uint32_t share, std::uint32_t thread) {
    step.run(memory_of(thread), {parts * share / shares, parts * (share + 1) / shares});
  });
}

Executable::Division Executable::division() const {
  Division found;
  double divided = 0, all = 0;
  for (const std::unique_ptr<Step>& step : steps_) {
    const auto work = static_cast<double>(step->work());
    all += work;
    if (shares_of(*step) < 2) continue;
    ++found.steps;
    divided += work;
  }
  found.work = all > 0 ? divided / all : 0;
  return found;
}

}  // namespace imprint::cpu
