#include "plugin/agent/world.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "engine-bridge/own/device_link.h"

namespace imprint::agent {
namespace {

constexpr std::uint64_t kFramesBetweenLooks = 30;  // at the cap and the driver's memory budget
constexpr std::uint64_t kLastFrame =
    (std::uint64_t{1} << 63) - 1;  // room for latencies and periods behind it

}  // namespace

Result<std::unique_ptr<World>> World::create(vk::DeviceOptions& options, const bridge::Budget& budget) {
  if (!options.jobs) {
    IMPRINT_ASSIGN(options.jobs, JobQueue::create({options.compile_threads, {}, options.log}));
  }
  std::unique_ptr<World> world(new World(options.log, options.jobs));
  world->may_learn_ = budget.gpu_us_per_frame > 0;
  return world;
}

Result<std::unique_ptr<World>> World::adopt(const bridge::ContextDescription& description) {
  bridge::ContextDescription adopted = description;
  IMPRINT_ASSIGN(std::unique_ptr<World> world, create(adopted.options, adopted.budget));
  IMPRINT_ASSIGN(world->adopted_, bridge::Context::adopt(adopted));
  world->context_ = world->adopted_.get();
  world->tuning_ = std::make_unique<Tuning>(*world->context_, world->log_);
  return world;
}

Result<std::unique_ptr<World>> World::open(const bridge::StandaloneOptions& options) {
  bridge::StandaloneOptions own = options;
  IMPRINT_ASSIGN(std::unique_ptr<World> world, create(own.options, own.budget));
  IMPRINT_ASSIGN(world->standalone_, bridge::Standalone::open(own));
  world->context_ = &world->standalone_->context();
  if (own.beside) world->log_(LogLevel::info, world->link_text());
  world->tuning_ = std::make_unique<Tuning>(*world->context_, world->log_);
  return world;
}

Result<std::unique_ptr<World>> World::open_on_cpu(const vk::DeviceOptions& options,
                                                  const bridge::Budget& budget) {
  vk::DeviceOptions own = options;
  IMPRINT_ASSIGN(std::unique_ptr<World> world, create(own, budget));
  world->adopted_ = bridge::Context::on_cpu(own.log, budget);
  world->context_ = world->adopted_.get();
  world->tuning_ = std::make_unique<Tuning>(*world->context_, world->log_);
  return world;
}

World::~World() {
  // Files first: what is being written reads from the brains.
  files_.flush();
  for (const auto& brain : brains_) brain->give_up();  // somebody may hold it longer than the context lives
  brains_.clear();
}

std::string World::report() const {
  std::string text = context_->report();
  vk::Device* device = context_->vulkan();
  if (!device) return text;
  if (standalone_) text += standalone_->link_text().empty() ? "" : link_text() + "\n";
  const vk::MemoryStats memory = device->memory().stats();
  text += "memory: " + std::to_string(memory.bytes_reserved) + " bytes in " +
          std::to_string(memory.block_count) + " allocations, of " +
          std::to_string(device->capabilities().max_memory_allocation_count) + " that the device allows\n";
  if (memory_pressure_)
    text += "memory pressure: learning pauses, and has given up about " + std::to_string(bytes_away_) +
            " bytes until there is room for them\n";
  return text;
}

std::string World::link_text() const {
  return "a device of Imprint's own beside the host's: " +
         (standalone_->link()
              ? standalone_->link_text()
              : "observations and actions pass through host memory, and no tensors are shared, because " +
                    standalone_->link_text());
}

WorldStats World::stats() const {
  WorldStats stats;
  stats.context = context_->stats();
  stats.waiting_jobs = jobs_->waiting();
  vk::Device* device = context_->vulkan();
  if (!device) return stats;
  const vk::Counters& counters = device->counters();
  stats.memory = device->memory().stats();
  stats.memory_pressure = memory_pressure_;
  stats.bytes_away = bytes_away_;
  stats.compiles = counters.compiles;
  stats.allocations = counters.allocations;
  stats.waits = counters.waits;
  stats.frame_compiles = counters.frame_compiles - base_compiles_;
  stats.frame_allocations = counters.frame_allocations - base_allocations_;
  stats.frame_waits = counters.frame_waits - base_waits_;
  return stats;
}

Result<std::shared_ptr<Brain>> World::add_brain(const BrainSpec& spec, const SharedTensors& shared) {
  IMPRINT_ASSIGN(std::shared_ptr<Brain> brain, Brain::create(surroundings(), spec, shared));
  brains_.push_back(brain);
  return brain;
}

Result<std::shared_ptr<Brain>> World::add_policy(const PolicySpec& spec, const SharedTensors& shared) {
  IMPRINT_ASSIGN(std::unique_ptr<PolicyModel> model,
                 make_policy(spec, {shared.observations.parts, shared.actions.parts, {}}));
  IMPRINT_ASSIGN(std::shared_ptr<Brain> brain,
                 Brain::create_policy(surroundings(), std::move(model), shared));
  brains_.push_back(brain);
  return brain;
}

void World::remove_brain(const std::shared_ptr<Brain>& brain) {
  files_.flush();
  brain->give_up();
  std::erase(brains_, brain);
}

// Between 0 and 1, rising; a program that is measured counts by what of it has been.
Status World::warm_brains(const std::function<void(float)>& progress) {
  std::size_t total = 0, done = 0;
  float newest = 0;
  for (const auto& brain : brains_) total += brain->programs_to_compile();
  const auto advance = [&](float part) {
    const float fraction =
        (static_cast<float>(done) + part) / static_cast<float>(std::max<std::size_t>(1, total));
    if (fraction > newest && fraction < 1) progress(newest = fraction);
  };
  tuning_->start(advance);
  for (const auto& brain : brains_)
    IMPRINT_CHECK(brain->warmup([&] {
      ++done;
      advance(0);
    }));
  return {};
}

Status World::warmup(const std::function<void(float)>& progress) {
  if (context_->lost())
    return make_error(ErrorCode::device_lost,
                      "warmup: the device was lost; make a new context on a new device");
  files_.flush();
  progress(0.0f);
  const Status warm = warm_brains(progress);
  tuning_->finish();
  IMPRINT_CHECK(warm);
  // Last, and without insisting: what a game can do without never stands in the way of what it cannot.
  for (const auto& brain : brains_) IMPRINT_CHECK(brain->prepare_saving());
  progress(1.0f);
  if (!context_->vulkan()) return {};
  const vk::Counters& counters = context_->device().counters();
  base_compiles_ = counters.frame_compiles.load();
  base_allocations_ = counters.frame_allocations.load();
  base_waits_ = counters.frame_waits.load();
  return {};
}

void World::set_budget(const bridge::Budget& budget) {
  may_learn_ = budget.gpu_us_per_frame > 0;
  context_->set_budget(budget);
}

std::uint64_t World::trim() {
  if (!context_->vulkan()) return 0;
  context_->device().collect();
  return context_->device().memory().trim();
}

Status World::drain(std::uint32_t timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  const auto left_ns = [&]() -> std::uint64_t {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now()).count();
    return left > 0 ? static_cast<std::uint64_t>(left) : 0;
  };
  IMPRINT_CHECK(context_->drain(left_ns()));
  for (const auto& brain : brains_) IMPRINT_CHECK(brain->settle());
  if (!files_.flush(left_ns()))
    return make_error(ErrorCode::not_ready, "drain: files were still being written when the time was over");
  return {};
}

Status World::close() {
  if (any_record_ && safe_frame_ < last_record_ && !context_->lost())
    return make_error(ErrorCode::wrong_state,
                      "context_destroy: work recorded in frame " + std::to_string(last_record_) +
                          " may still run; the newest safe_frame was " + std::to_string(safe_frame_) +
                          ". Wait for the GPU, then call frame_begin with safe_frame " +
                          std::to_string(last_record_) + ", and frame_end");
  context_->finish();
  return {};
}

Status World::frame_begin(const bridge::FrameInfo& info, double time_s) {
  if (!std::isfinite(time_s))
    return make_error(ErrorCode::invalid_argument, "frame_begin: time_s is not a finite number");
  if (info.frame > kLastFrame)
    return make_error(ErrorCode::invalid_argument, "frame_begin: frame " + std::to_string(info.frame) +
                                                       " is above the last one, " +
                                                       std::to_string(kLastFrame));
  if (any_frame_ && info.frame <= clock_.frame)
    return make_error(ErrorCode::invalid_argument, "frame_begin: frame " + std::to_string(info.frame) +
                                                       " after frame " + std::to_string(clock_.frame) +
                                                       "; frames rise by one");
  if (any_frame_ && time_s < clock_.time_s)
    return make_error(ErrorCode::invalid_argument, "frame_begin: time_s " + std::to_string(time_s) +
                                                       " after " + std::to_string(clock_.time_s) +
                                                       "; the game's time never falls");
  if (any_record_ && info.safe_frame >= info.frame)
    return make_error(
        ErrorCode::invalid_argument,
        "frame_begin: safe_frame is " + std::to_string(info.safe_frame) + " in frame " +
            std::to_string(info.frame) +
            ", of which nothing is recorded yet; it is the newest frame that has completed on the GPU");
  const FrameClock before = clock_;
  clock_ = {info.frame, time_s,
            true};  // completions of earlier frames arrive inside the call below and ask for it
  if (Status begun = context_->frame_begin(info); !begun.ok()) {
    clock_ = before;
    return begun;
  }
  any_frame_ = true;
  safe_frame_ = std::max(safe_frame_, info.safe_frame);
  return {};
}

void World::stand_still() {
  constexpr std::chrono::milliseconds kTheirTime{200};
  context_->stop_submitting();
  jobs_->stand_still(kTheirTime);
}

void World::set_memory_cap(std::uint64_t bytes) {
  if (!context_->vulkan()) return;
  context_->device().memory().set_cap(bytes);
  next_look_ = 0;
}

// The driver's budget shrinks and grows with what other programs take, the cap with what the game wants for
// itself. What learning needs is ours to give up first; where it goes, and that nothing of it is lost:
// retreat.h.
void World::watch_memory() {
  if (!context_->vulkan() || context_->lost() || clock_.frame < next_look_) return;
  next_look_ = clock_.frame + kFramesBetweenLooks;
  vk::MemoryPool& memory = context_->device().memory();
  const vk::MemoryPressure found =
      memory.pressure(memory_pressure_ ? std::max<std::uint64_t>(bytes_away_, 1) : 0);
  if (found.over)
    files_.add([&memory] { memory.trim(); });  // what has come free since the last look, off the frame
  if (found.over != memory_pressure_) {
    memory_pressure_ = found.over;
    if (found.over)
      log_(LogLevel::warning, "learning pauses and gives its memory back: in use are " + found.numbers);
    else
      log_(LogLevel::info, "learning goes on: there is room for what it needs");
  }
  for (const auto& brain : brains_) brain->ask_to_retreat(memory_pressure_);
}

Status World::enqueue_brains() {
  watch_memory();
  std::uint64_t away = 0;
  for (const auto& brain : brains_) {
    IMPRINT_CHECK(brain->enqueue_frame(may_learn_ && !memory_pressure_));
    away += brain->bytes_away();
  }
  bytes_away_ = away;
  return {};
}

Result<std::shared_ptr<bridge::SharedBuffer>> World::import_buffer(const bridge::HostBuffer& host) {
  if (owns_device())
    return make_error(
        ErrorCode::unsupported,
        "tensor_import_vk: the context has a device of its own, of which no buffer of yours is; " +
            std::string(link() ? "tensor_create_vk makes one that both devices have"
                               : "hand numbers in by agent_observe"));
  return context_->import_buffer(host);
}

Result<std::shared_ptr<bridge::SharedBuffer>> World::create_buffer(
    const bridge::SharedBufferRequest& request) {
  if (!owns_device() || standalone_->link_text().empty())
    return context_->create_buffer(request);  // the latter without a host's device at all
  if (!link())
    return make_error(
        ErrorCode::unsupported,
        "tensor_create_vk: the context has a device of its own, which shares no memory with yours (" +
            standalone_->link_text() + "); hand numbers in by agent_observe");
  return link()->create_buffer(request);
}

Result<bridge::HostSemaphore> World::semaphore() {
  if (!owns_device()) return context_->semaphore();
  return make_error(ErrorCode::unsupported,
                    "context_get_semaphore: the context has a device of its own, whose semaphores no queue "
                    "of yours can wait for");
}

Status World::submit(const bridge::SubmitInfo& info) {
  // Asked before anything is enqueued, so that the frame can still be recorded.
  if (!context_->submits())
    return make_error(ErrorCode::unsupported,
                      "submit: the context was created without a queue, for recording only; call record");
  if (owns_device() && !(info.waits.empty() && info.signals.empty()))
    return make_error(ErrorCode::unsupported,
                      "submit: the context has a device of its own, which can wait for no semaphore of yours "
                      "and signal none");
  IMPRINT_CHECK(enqueue_brains());
  if (context_->completed_by() == bridge::CompletedBy::frames) {
    any_record_ = true;
    last_record_ = clock_.frame;
  }
  return context_->submit(info);
}

Result<bridge::FrameEstimate> World::estimate() {
  if (clock_.open) IMPRINT_CHECK(enqueue_brains());
  return context_->estimate();
}

Result<std::uint32_t> World::record(VkCommandBuffer command_buffer, std::uint32_t budget_us) {
  if (context_->exclusive())
    return make_error(ErrorCode::unsupported,
                      "record: the context has a queue of its own, which no command buffer of the host's is "
                      "ordered with; call "
                      "submit");
  if (owns_device())
    return make_error(
        ErrorCode::unsupported,
        "record: the context has a device of its own, which no command buffer of yours is for; call submit");
  IMPRINT_CHECK(enqueue_brains());
  IMPRINT_ASSIGN(const std::uint32_t left, context_->record(command_buffer, budget_us));
  any_record_ = true;
  last_record_ = clock_.frame;
  return left;
}

Status World::frame_end() {
  clock_.open = false;
  return context_->frame_end();
}

}  // namespace imprint::agent
