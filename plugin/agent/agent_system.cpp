#include "plugin/agent/agent_system.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "compute/base/text.h"
#include "engine-bridge/own/device_link.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

constexpr std::uint64_t kFramesBetweenMemoryChecks = 30;  // of the cap and the driver's memory budget
constexpr std::uint32_t kLastDrainMs = 10'000;
constexpr std::uint32_t kSilentFrames = 60;                         // before a warning
constexpr std::uint64_t kLastFrame = (std::uint64_t{1} << 63) - 1;  // leaves room for latencies and periods

}  // namespace

Result<std::unique_ptr<AgentSystem>> AgentSystem::create(vk::DeviceOptions& options,
                                                         const bridge::Budget& budget) {
  if (!options.jobs) {
    IMPRINT_ASSIGN(options.jobs, JobQueue::create({options.compile_threads, {}, options.log}));
  }
  std::unique_ptr<AgentSystem> world(new AgentSystem(options.log, options.jobs));
  world->may_learn_ = budget.gpu_us_per_frame > 0;
  world->memory_cap_bytes_ = options.memory.cap_bytes;
  return world;
}

Result<std::unique_ptr<AgentSystem>> AgentSystem::adopt(const bridge::ContextDescription& description) {
  bridge::ContextDescription adopted = description;
  IMPRINT_ASSIGN(std::unique_ptr<AgentSystem> world, create(adopted.options, adopted.budget));
  IMPRINT_ASSIGN(world->adopted_, bridge::Context::adopt(adopted));
  world->context_ = world->adopted_.get();
  world->tuning_ = std::make_unique<Tuning>(*world->context_, world->log_);
  return world;
}

Result<std::unique_ptr<AgentSystem>> AgentSystem::open(const bridge::StandaloneOptions& options) {
  bridge::StandaloneOptions own = options;
  IMPRINT_ASSIGN(std::unique_ptr<AgentSystem> world, create(own.options, own.budget));
  IMPRINT_ASSIGN(world->standalone_, bridge::Standalone::open(own));
  world->context_ = &world->standalone_->context();
  if (own.beside) world->log_(LogLevel::info, world->link_text());
  world->tuning_ = std::make_unique<Tuning>(*world->context_, world->log_);
  return world;
}

Result<std::unique_ptr<AgentSystem>> AgentSystem::open_on_cpu(const vk::DeviceOptions& options,
                                                              const bridge::Budget& budget,
                                                              const CpuThreads& threads) {
  vk::DeviceOptions own = options;
  IMPRINT_ASSIGN(std::unique_ptr<AgentSystem> world, create(own, budget));
  world->adopted_ = bridge::Context::on_cpu(own.log, budget, threads);
  world->context_ = world->adopted_.get();
  world->set_memory_cap(own.memory.cap_bytes);
  world->tuning_ = std::make_unique<Tuning>(*world->context_, world->log_);
  return world;
}

AgentSystem::~AgentSystem() {
  // Files first: the writer reads from the brains.
  files_.flush();
  for (const auto& brain : brains_) brain->cancel();  // its owner may outlive the context
  brains_.clear();
  for (const auto& model : models_) model->cancel();
}

std::string AgentSystem::report() const {
  std::string report = context_->report();
  vk::Device* device = context_->vulkan();
  if (!device) return report;
  if (standalone_) report += standalone_->link_text().empty() ? "" : link_text() + "\n";
  const vk::MemoryStats memory = device->memory().stats();
  report +=
      text("memory: ", memory.bytes_reserved, " bytes in ", memory.block_count,
           " allocations; the device allows ", device->capabilities().max_memory_allocation_count, "\n");
  if (memory_pressure_)
    report += text("memory pressure: learning pauses and has given up about ", evicted_bytes_.load(),
                   " bytes until there is room\n");
  return report;
}

std::string AgentSystem::link_text() const {
  return text("a device of Imprint's own beside the host's: ",
              standalone_->link() ? standalone_->link_text()
                                  : text("observations and actions pass through host memory, and no tensors "
                                         "are shared, because ",
                                         standalone_->link_text()));
}

AgentSystemStats AgentSystem::stats() const {
  AgentSystemStats stats;
  stats.context = context_->stats();
  stats.waiting_jobs = jobs_->waiting();
  vk::Device* device = context_->vulkan();
  if (!device) return stats;
  const vk::Counters& counters = device->counters();
  stats.memory = device->memory().stats();
  stats.memory_pressure = memory_pressure_;
  stats.evicted_bytes = evicted_bytes_;
  stats.compiles = counters.compiles;
  stats.allocations = counters.allocations;
  stats.waits = counters.waits;
  stats.frame_compiles = counters.frame_compiles - base_compiles_;
  stats.frame_allocations = counters.frame_allocations - base_allocations_;
  stats.frame_waits = counters.frame_waits - base_waits_;
  return stats;
}

Result<std::shared_ptr<Brain>> AgentSystem::add_brain(const BrainSpec& spec, const SharedTensors& shared) {
  IMPRINT_ASSIGN(std::shared_ptr<Brain> brain, Brain::create(services(), spec, shared));
  brains_.push_back(brain);
  return brain;
}

Result<std::shared_ptr<Brain>> AgentSystem::add_policy(const PolicySpec& given, const SharedTensors& shared) {
  PolicySpec spec = given;
  if (memory_cap_bytes_ > 0) spec.state_limit_bytes = std::min(spec.state_limit_bytes, memory_cap_bytes_);
  IMPRINT_ASSIGN(std::unique_ptr<PolicyModel> model,
                 make_policy(spec, {shared.observations.parts, shared.actions.parts, {}}));
  const std::string parts = text("brain '", spec.name, "': policy by ", model->parts);
  IMPRINT_ASSIGN(std::shared_ptr<Brain> brain, Brain::create_policy(services(), std::move(model), shared));
  log_(LogLevel::info, parts);
  brains_.push_back(brain);
  return brain;
}

void AgentSystem::remove_brain(const std::shared_ptr<Brain>& brain) {
  files_.flush();
  brain->cancel();
  std::erase(brains_, brain);
}

Result<std::shared_ptr<Model>> AgentSystem::add_model(const ModelSpec& spec) {
  IMPRINT_ASSIGN(std::shared_ptr<Model> model, Model::create(services(), spec));
  models_.push_back(model);
  return model;
}

void AgentSystem::remove_model(const std::shared_ptr<Model>& model) {
  model->cancel();
  std::erase(models_, model);
}

// Reports progress between 0 and 1, rising. A program that is measured counts by the measured share.
Result<> AgentSystem::warm_brains(const std::function<void(float)>& progress) {
  std::size_t total = 0, done = 0;
  float newest = 0;
  for (const auto& brain : brains_) total += brain->programs_to_compile();
  for (const auto& model : models_) total += model->compiled() ? 0 : 1;
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
  for (const auto& model : models_) {
    if (model->compiled()) continue;
    IMPRINT_CHECK(model->compile());
    ++done;
    advance(0);
  }
  return {};
}

Result<> AgentSystem::warmup(const std::function<void(float)>& progress) {
  if (context_->lost())
    return make_error(ErrorCode::device_lost,
                      "context_warmup: the device was lost. Make a new context on a new device.");
  files_.flush();
  progress(0.0f);
  const Result<> warm = warm_brains(progress);
  tuning_->finish();
  IMPRINT_CHECK(warm);
  // Last, and optional: saving in a frame must not take memory that the brains need.
  for (const auto& brain : brains_) IMPRINT_CHECK(brain->state().prepare_saving());
  IMPRINT_CHECK(run_programs_once());
  progress(1.0f);
  count_frames_from_here();
  return {};
}

// Where Imprint cannot wait for the GPU, a frame with FrameScope::warmup does this.
Result<> AgentSystem::run_programs_once() {
  const bool can_wait = context_->submits() && context_->completed_by() != bridge::CompletedBy::frames;
  if (!context_->vulkan() || !can_wait || record_runs()) return {};
  for (const auto& brain : brains_) IMPRINT_CHECK(brain->run_once(false, ran_));
  for (const auto& model : models_) IMPRINT_CHECK(model->run_once(false, ran_));
  (void)trim();  // the copies beside the brains
  return {};
}

void AgentSystem::count_frames_from_here() {
  if (!context_->vulkan()) return;
  const vk::Counters& counters = context_->device().counters();
  base_compiles_ = counters.frame_compiles.load();
  base_allocations_ = counters.frame_allocations.load();
  base_waits_ = counters.frame_waits.load();
}

void AgentSystem::set_budget(const bridge::Budget& budget) {
  may_learn_ = budget.gpu_us_per_frame > 0;
  context_->set_budget(budget);
}

std::uint64_t AgentSystem::trim() {
  if (!context_->vulkan()) return 0;
  context_->device().collect();
  return context_->device().memory().trim();
}

Result<> AgentSystem::drain(std::uint32_t timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  const auto left_ns = [&]() -> std::uint64_t {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now()).count();
    return left > 0 ? static_cast<std::uint64_t>(left) : 0;
  };
  IMPRINT_CHECK(context_->drain(left_ns()));
  for (const auto& brain : brains_) IMPRINT_CHECK(brain->settle());
  if (!files_.flush(left_ns()))
    return make_error(ErrorCode::not_ready,
                      "context_drain: timeout: found files still being written. Call context_drain again.");
  return {};
}

Result<> AgentSystem::device_idle() {
  IMPRINT_CHECK(context_->device_idle());
  idle_since_record_ = true;
  records_since_safe_ = 0;
  return {};
}

Result<> AgentSystem::close() {
  if (record_runs() && !context_->lost())
    return make_error(ErrorCode::wrong_state,
                      text("context_destroy: safe_frame: found ", safe_frame_, ", expected ",
                           std::max<std::uint64_t>(last_record_, 1),
                           ", because work recorded in that frame may still run. Wait until your device is "
                           "idle, then call context_device_idle."));
  IMPRINT_CHECK(close_saves());
  context_->finish();
  return {};
}

// A save that was not read back is completed here where Imprint can wait for the GPU.
Result<> AgentSystem::close_saves() {
  const auto waits_for_gpu = [](const auto& brain) { return brain->state().save_waits_for_gpu(); };
  const bool can_wait =
      context_->submits() && context_->completed_by() != bridge::CompletedBy::frames && !context_->lost();
  if (can_wait && std::ranges::any_of(brains_, waits_for_gpu)) {
    if (!context_->check_running("context_destroy")) IMPRINT_CHECK(context_->resume());
    const Result<> drained = drain(kLastDrainMs);
    if (!drained)
      log_(LogLevel::warning, text("context_destroy: saves wait for the GPU: ", drained.error().message));
  }
  files_.flush();
  for (const auto& brain : brains_) IMPRINT_CHECK(brain->state().close_save());
  return {};
}

Result<> AgentSystem::check_frame(const bridge::FrameInfo& info, double time_s) const {
  constexpr const char* call = "frame_begin";
  if (!std::isfinite(time_s)) return bad_field(call, "time_s", text(time_s), "a finite number");
  if (info.frame > kLastFrame)
    return bad_field(call, "frame", text(info.frame), text("at most ", kLastFrame));
  if (any_frame_ && info.frame <= clock_.frame)
    return bad_field(call, "frame", text(info.frame), text("above the last frame, ", clock_.frame));
  if (any_frame_ && time_s < clock_.time_s)
    return bad_field(call, "time_s", text(time_s), text("at least the last frame's, ", clock_.time_s));
  // Nothing of this frame is recorded yet, so the GPU cannot have completed it.
  if (any_record_ && info.safe_frame >= info.frame)
    return make_error(ErrorCode::invalid_argument,
                      text(call, ": safe_frame: found ", info.safe_frame, " in frame ", info.frame,
                           ", expected an earlier frame. Pass the newest one that the GPU has completed."));
  return {};
}

Result<> AgentSystem::frame_begin(const bridge::FrameInfo& info, double time_s) {
  IMPRINT_CHECK(check_frame(info, time_s));
  const FrameClock before = clock_;
  const bool next = any_frame_ && info.frame == before.frame + 1;
  const std::uint64_t safe = std::max(safe_frame_, info.safe_frame);
  const std::uint64_t in_flight = next && safe > 0 && safe < info.frame ? info.frame - safe : 0;
  clock_ = {info.frame, time_s, clock_.count + 1,
            in_flight};  // completions of earlier frames arrive below and read it
  if (Result<> begun = context_->frame_begin(info); !begun.ok()) {
    clock_ = before;
    return begun;
  }
  any_frame_ = true;
  if (info.safe_frame > safe_frame_) records_since_safe_ = 0;
  safe_frame_ = std::max(safe_frame_, info.safe_frame);
  ++frames_since_issue_;
  for (const auto& brain : brains_) brain->begin_frame();
  return {};
}

void AgentSystem::stop_device_work() {
  constexpr std::chrono::milliseconds kTheirTime{200};
  context_->stop_submitting();
  jobs_->wait_for_running(kTheirTime);
}

void AgentSystem::set_memory_cap(std::uint64_t bytes) {
  memory_cap_bytes_ = bytes;
  if (!context_->vulkan()) return context_->runtime().set_cpu_memory_cap(bytes);
  context_->device().memory().set_cap(bytes);
  next_memory_check_ = 0;
}

// The driver's budget changes with what other programs take, the cap with what the game wants. Learning gives
// its memory up first; memory_eviction.h says where it goes.
void AgentSystem::watch_memory() {
  if (!context_->vulkan() || context_->lost() || clock_.frame < next_memory_check_) return;
  next_memory_check_ = clock_.frame + kFramesBetweenMemoryChecks;
  vk::MemoryPool& memory = context_->device().memory();
  const vk::MemoryPressure found =
      memory.pressure(memory_pressure_ ? std::max<std::uint64_t>(evicted_bytes_, 1) : 0);
  if (found.over) files_.add([&memory] { memory.trim(); });  // frees what became unused, off the frame thread
  if (found.over != memory_pressure_) {
    memory_pressure_ = found.over;
    if (found.over)
      log_(LogLevel::warning,
           text("memory pressure: learning pauses and gives its memory back. In use: ", found.numbers));
    else
      log_(LogLevel::info, "memory pressure is over: learning continues");
  }
  for (const auto& brain : brains_) brain->state().request_eviction(memory_pressure_);
}

Result<> AgentSystem::enqueue_brains(FrameScope scope) {
  watch_memory();
  std::uint64_t away = 0;
  const bool may_learn = may_learn_ && !memory_pressure_ && scope == FrameScope::work;
  for (const auto& brain : brains_) {
    if (scope == FrameScope::warmup) IMPRINT_CHECK(brain->run_once(true, ran_));
    IMPRINT_CHECK(brain->enqueue_frame(may_learn));
    away += brain->state().evicted_bytes();
  }
  evicted_bytes_ = away;
  if (scope != FrameScope::warmup) return {};
  for (const auto& model : models_) IMPRINT_CHECK(model->run_once(true, ran_));
  count_frames_from_here();
  return {};
}

// In a frame that carries everything out: the work that waits for a boundary, stage by stage.
bridge::EnqueueMore AgentSystem::rest_of(FrameScope scope) {
  if (scope != FrameScope::everything) return {};
  return [this]() -> Result<bool> {
    bool any = false;
    for (const auto& brain : brains_) {
      IMPRINT_ASSIGN(const bool more, brain->state().enqueue_rest());
      any |= more;
    }
    return any;
  };
}

void AgentSystem::recorded() {
  if (++records_since_safe_ == kSilentFrames)
    log_(LogLevel::warning,
         text("frame_begin: safe_frame: found ", safe_frame_, " in ", kSilentFrames,
              " recorded frames, expected the newest frame that the GPU has completed. Nothing that the GPU "
              "computes arrives before. Set it in each frame"));
  any_record_ = true;
  idle_since_record_ = false;
  last_record_ = clock_.frame;
}

Result<std::shared_ptr<bridge::SharedBuffer>> AgentSystem::import_buffer(const bridge::HostBuffer& host) {
  if (owns_device())
    return make_error(
        ErrorCode::unsupported,
        text("tensor_import_vk: found a context with its own device, which cannot use the host's "
             "buffers. ",
             link() ? "Call tensor_create_vk, whose buffers both devices have."
                    : "Hand numbers in by agent_observe."));
  return context_->import_buffer(host);
}

Result<std::shared_ptr<bridge::SharedBuffer>> AgentSystem::create_buffer(
    const bridge::SharedBufferRequest& request) {
  if (!owns_device() || standalone_->link_text().empty())
    return context_->create_buffer(request);  // no link text: there is no host's device
  if (!link())
    return make_error(
        ErrorCode::unsupported,
        text("tensor_create_vk: found a context with its own device, which shares no memory with "
             "the host's (",
             standalone_->link_text(), "). Hand numbers in by agent_observe."));
  return link()->create_buffer(request);
}

Result<bridge::HostSemaphore> AgentSystem::semaphore() {
  if (!owns_device()) return context_->semaphore();
  return make_error(ErrorCode::unsupported,
                    "context_get_semaphore: found a context with its own device, whose semaphores the host's "
                    "queues cannot wait for");
}

Result<> AgentSystem::submit(const bridge::SubmitInfo& info, FrameScope scope) {
  // Before anything is enqueued, so that the frame can still be recorded.
  if (!context_->submits())
    return make_error(
        ErrorCode::unsupported,
        "frame_submit: found a context without a queue, for recording only. Call frame_record.");
  if (owns_device() && !(info.waits.empty() && info.completions.empty()))
    return make_error(
        ErrorCode::unsupported,
        "frame_submit: found semaphores of the host, but the context has its own device, which can "
        "neither wait for nor signal them");
  IMPRINT_CHECK(enqueue_brains(scope));
  frames_since_issue_ = 0;
  if (context_->completed_by() == bridge::CompletedBy::frames) recorded();
  return context_->submit({info.budget_us, info.waits, info.completions, rest_of(scope)});
}

Result<bridge::FrameEstimate> AgentSystem::estimate() {
  if (context_->frame_state() == bridge::FrameState::open) IMPRINT_CHECK(enqueue_brains(FrameScope::work));
  return context_->estimate();
}

Result<std::uint32_t> AgentSystem::record(VkCommandBuffer command_buffer, std::uint32_t budget_us,
                                          FrameScope scope) {
  if (context_->exclusive())
    return make_error(
        ErrorCode::unsupported,
        "frame_record: found a context with an exclusive queue, which has no order with the host's "
        "command buffers. Call frame_submit.");
  if (owns_device())
    return make_error(
        ErrorCode::unsupported,
        "frame_record: found a context with its own device, which cannot run the host's command "
        "buffers. Call frame_submit.");
  IMPRINT_CHECK(enqueue_brains(scope));
  frames_since_issue_ = 0;
  const Result<std::uint32_t> left = context_->record(command_buffer, budget_us, rest_of(scope));
  if (left) recorded();
  return left;
}

// Warns a host that opens frames and has agents observe, but never has the work carried out.
void AgentSystem::watch_silence() {
  if (frames_since_issue_ != kSilentFrames) return;
  const auto asks = [](const auto& brain) { return brain->asks(); };
  if (std::ranges::none_of(brains_, asks)) return;
  log_(LogLevel::warning, text("frame_end: found ", kSilentFrames,
                               " frames without frame_submit or frame_record while agents wait for answers, "
                               "expected one of them in each frame. Call it before frame_end"));
}

Result<> AgentSystem::frame_end() {
  watch_silence();
  return context_->frame_end();
}

}  // namespace imprint::agent
