#include "plugin/agent/learn/learning.h"

#include "compute/base/text.h"
#include "plugin/agent/learn/registry.h"

namespace imprint::agent {

Learning::Learning(const BrainServices& services, const BrainSpec& spec, LearnGraph graph,
                   BrainCounts& counts)
    : services_(services),
      spec_(spec),
      counts_(counts),
      learner_(learner_of(spec)),
      training_(spec, std::move(graph)),
      experience_(spec, training_) {}

Result<> Learning::compile() {
  IMPRINT_ASSIGN(std::unique_ptr<Program> program, training_.compile(services_.context.runtime()));
  training_.install(std::move(program));
  counts_.learn_dispatches = training_.stats()->dispatches;
  counts_.learn_barriers = training_.stats()->barriers;
  return services_.context.measure(training_.program());
}

Result<> Learning::run_once(RunOnce& runs) {
  training_.begin_empty();
  return runs.run(training_.program(), [this] { training_.release(0); });
}

void Learning::cancel() {
  if (training_.compiled()) services_.context.cancel(training_.program());
}

void Learning::drop_step() {
  if (!training_.compiled()) return;
  services_.context.cancel(training_.program());
  training_.end();
  vk::Device* device = services_.context.vulkan();
  for (const std::uint32_t slot : training_.slots_in_flight()) {
    if (!device) {  // on the CPU nothing is in flight
      training_.release(slot);
      continue;
    }
    device->retire(device->last_ticket(), [weak = weak_from_this(), slot] {
      if (const auto learning = weak.lock()) learning->training_.release(slot);
    });
  }
}

Result<bool> Learning::start_step(std::span<const std::uint64_t> captured) {
  if (!training_.compiled() || !experience_.enabled() || training_.stepping() || !training_.has_work())
    return false;
  const std::optional<std::uint32_t> slot = training_.free_slot();
  if (!slot) return false;  // the GPU is far behind: the step begins later
  const std::uint64_t deadline = services_.clock.frame + spec_.learn_period_frames;
  if (training_.begin(*slot, deadline, captured)) counts_.minibatches += training_.minibatches_per_step();
  bridge::FrameJob job;
  job.program = &training_.program();
  job.slot = *slot;
  job.kind = bridge::FrameJobKind::learn;
  job.deadline_frame = deadline;
  job.stream = services_.stream;
  job.on_complete = [this, slot = *slot](std::uint64_t) { finish_step(slot); };
  publish();
  IMPRINT_CHECK(services_.context.enqueue(std::move(job)));
  return true;
}

void Learning::finish_step(std::uint32_t slot) {
  const Training::Outcome outcome = training_.finish(slot);
  if (outcome.learned > 0) counts_.last_loss = outcome.loss;
  if (outcome.stopped > 0)
    services_.log(LogLevel::error,
                  text("brain '", spec_.name, "': loss: found a number that is not finite in ",
                       outcome.stopped, " of ", spec_.brain_count,
                       " brains. They stop learning and keep their last finite weights. Lower learning_rate, "
                       "and restore a snapshot or load a file to continue"));
  publish();
}

void Learning::publish() {
  counts_.samples = training_.replay().sample_count();
  counts_.dropped = training_.replay().waiting.dropped();
  counts_.stopped = training_.stopped_brains();
}

}  // namespace imprint::agent
