#include "engine-bridge/context.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine-bridge/frame/context_impl.h"
#include "engine-bridge/frame/measure.h"

namespace imprint::bridge {
namespace {

constexpr std::uint64_t kRunNowTimeoutNs = 60ull * 1000 * 1000 * 1000;
constexpr std::uint64_t kShutdownTimeoutNs = 10ull * 1000 * 1000 * 1000;

DeviceKind kind_of(VkPhysicalDeviceType type) {
  if (type == VK_PHYSICAL_DEVICE_TYPE_CPU) return DeviceKind::software;
  return type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ? DeviceKind::discrete : DeviceKind::integrated;
}

ProgramCost guess(const Program& program, const vk::Device& device) {
  const ProgramStats& stats = program.stats();
  return ProgramCost::guess({program.piece_count(), stats.bytes_moved, stats.flops},
                            rates_of(kind_of(device.capabilities().device_type)));
}

}  // namespace

Result<std::unique_ptr<Context>> Context::adopt(const ContextDescription& description) {
  return ContextImpl::adopt(description);
}

Result<std::unique_ptr<Context>> ContextImpl::adopt(const ContextDescription& description) {
  IMPRINT_CHECK(check_queue_access(description.queue));
  std::unique_ptr<ContextImpl> context(new ContextImpl);
  vk::DeviceDescription device = description.device;
  device.queue_family = description.queue.family;
  IMPRINT_ASSIGN(context->device_, vk::Device::adopt(device, description.options));
  IMPRINT_ASSIGN(context->in_flight_, InFlight::create(*context->device_));
  context->device_->completion().set_poll(
      [in_flight = context->in_flight_.get()] { return in_flight->poll(); });
  if (description.queue.queue) {
    context->queue_ = std::make_unique<HostQueue>(*context->device_, *context->in_flight_, description.queue);
    IMPRINT_CHECK(context->queue_->start());
    context->exclusive_ = description.queue.exclusive;
  }
  IMPRINT_ASSIGN(context->runtime_, Runtime::create(*context->device_));
  IMPRINT_ASSIGN(context->timer_, GpuTimer::create(*context->device_));
  IMPRINT_ASSIGN(context->commands_, CommandSet::create(*context->device_));
  IMPRINT_ASSIGN(context->border_,
                 FrameBorder::create(*context->device_, *context->commands_, description.queue.exclusive));

  context->set_budget(description.budget);
  context->immediate_.reserve(64);
  context->learn_.reserve(64);
  context->issued_.reserve(64);
  context->owed_.reserve(16);
  context->list_.reserve(512);
  context->plan_.steps.reserve(256);
  context->plan_.slices.reserve(64);
  for (Note& note : context->notes_) note.shares.reserve(64);
  return std::unique_ptr<Context>(std::move(context));
}

void ContextImpl::set_budget(const Budget& budget) {
  budget_ = budget;
  governor_.set(budget.preference, budget.frame_gpu_us);
}

void ContextImpl::finish() {
  if (std::exchange(finished_, true)) return;
  in_flight_->safe_frame(
      std::numeric_limits<std::uint64_t>::max());  // the host destroys us when what we recorded is complete
  if (!device_->lost() && queue_) (void)in_flight_->wait(device_->last_ticket(), kShutdownTimeoutNs);
}

ContextImpl::~ContextImpl() {
  if (!in_flight_) return;  // adoption failed before anything could be submitted
  finish();
  vk::Completion& completion = device_->completion();
  completion.set_poll({});
  completion.completed(completion.last());
  device_->collect();  // while the runtime, which some of it belongs to, is still there
}

CompletedBy ContextImpl::completed_by() const {
  if (!waits()) return CompletedBy::frames;
  return in_flight_->timeline() ? CompletedBy::timeline : CompletedBy::fences;
}

Result<HostSemaphore> ContextImpl::semaphore() const {
  if (completed_by() != CompletedBy::timeline)
    return make_error(ErrorCode::unsupported,
                      std::string("semaphore: ") +
                          (queue_ ? "timelineSemaphore was not declared among the device's features"
                                  : "the context records only, and the host's own submission tells"));
  const vk::Ticket last = device_->last_ticket();
  if (last.value == 0) return make_error(ErrorCode::not_ready, "semaphore: nothing was submitted yet");
  return HostSemaphore{in_flight_->timeline(), true, last.value};
}

std::string ContextImpl::report() const {
  constexpr const char* kCompletion[] = {"timeline semaphore", "fences",
                                         "frame numbers that the host reports as safe"};
  const vk::Capabilities& c = device_->capabilities();
  std::string text = "device: " + c.device_name + ", " + c.driver_name + ", vulkan " +
                     std::to_string(VK_API_VERSION_MAJOR(c.api_version)) + "." +
                     std::to_string(VK_API_VERSION_MINOR(c.api_version)) + ", queue family " +
                     std::to_string(device_->queue_family()) + "\n";
  const char* queue = exclusive_ ? "of its own; a thread of Imprint's submits to it"
                      : queue_   ? "submits to the host's queue"
                                 : "none; records into the host's command buffers only";
  text += std::string("queue: ") + queue + "\n";
  text += std::string("completion: ") + kCompletion[static_cast<std::size_t>(completed_by())] + "\n";
  text += std::string("gpu time: ") + (c.timestamp_valid_bits ? "timestamps" : "estimated") + "\n";
  for (const vk::MissingFeature& loss : device_->missing_features()) {
    text +=
        "without " + loss.item + " (" + loss.cause + "): " + loss.cost + "; remedy: " + loss.remedy + "\n";
  }
  for (const vk::UnusedFeature& bonus : vk::unused_features())
    text += std::string("not used, declared or not: ") + bonus.item + ": " + bonus.reason + "\n";
  return text;
}

ContextStats ContextImpl::stats() const {
  const std::lock_guard lock(stats_mutex_);
  return published_;
}

void ContextImpl::publish_stats() {
  const std::lock_guard lock(stats_mutex_);
  published_ = counted_;
}

Status ContextImpl::check_alive(const char* call) const {
  if (!device_->lost()) return {};
  return make_error(ErrorCode::device_lost,
                    std::string(call) + ": the device was lost; make a new context on a new device");
}

Status ContextImpl::check_loud(const char* call) const {
  IMPRINT_CHECK(check_alive(call));
  if (!quiet_) return {};
  return make_error(ErrorCode::wrong_state,
                    std::string(call) + ": the context is quiet since quiesce: call resume first");
}

Status ContextImpl::quiesce(std::uint64_t timeout_ns) {
  IMPRINT_CHECK(check_alive("quiesce"));
  if (state_ != State::closed)
    return make_error(ErrorCode::wrong_state, "quiesce: a frame is open: call frame_end first");
  if (waits()) {
    Status waited = in_flight_->wait(device_->last_ticket(), timeout_ns);
    // What the host recorded is the host's to wait for.
    if (!waited && !(waited.error().code == ErrorCode::not_ready && in_flight_->recorded_in_front()))
      return waited;
  }
  quiet_ = true;
  return {};
}

Status ContextImpl::resume() {
  IMPRINT_CHECK(check_alive("resume"));
  if (!quiet_)
    return make_error(ErrorCode::wrong_state, "resume: the context is not quiet: call quiesce first");
  quiet_ = false;
  return {};
}

ProgramCost& ContextImpl::cost_of(const Program& program) {
  const auto [entry, added] = known_.try_emplace(&program);
  KnownProgram& known = entry->second;
  if (added || known.cost.piece_count() != program.piece_count() || known.name != program.name()) {
    known.name = program.name();
    known.cost = guess(program, *device_);
  }
  return known.cost;
}

Status ContextImpl::run_now(const Commands& commands) {
  if (!waits())
    return make_error(ErrorCode::unsupported,
                      "this context only records into the host's command buffers and cannot wait for the "
                      "GPU; give it a queue");
  IMPRINT_CHECK(check_loud("run_now"));
  std::vector<VkCommandBuffer> list;
  IMPRINT_ASSIGN(const Commands uploads, runtime_->take_uploads());
  if (uploads.primary) list.push_back(uploads.primary);
  list.push_back(runtime_->barrier().primary);
  list.push_back(commands.primary);
  const Result<vk::Ticket> ticket = queue_->submit(list);
  if (!ticket) {
    runtime_->put_back_uploads(uploads);
    return ticket.error();
  }
  return queue_->wait(*ticket, kRunNowTimeoutNs);
}

Status ContextImpl::run_now(Program& program) {
  return run_now(Commands{program.whole(0, VK_COMMAND_BUFFER_LEVEL_PRIMARY), VK_NULL_HANDLE});
}

Status ContextImpl::measure(Program& program) {
  IMPRINT_CHECK(check_loud("measure"));
  if (state_ != State::closed)
    return make_error(ErrorCode::wrong_state, "measure: a frame is open: measure between frames");
  const auto runs = [&](const auto& job) { return job.program == &program; };
  if (std::ranges::any_of(learn_, runs) || std::ranges::any_of(immediate_, runs) ||
      std::ranges::any_of(issued_, runs)) {
    return make_error(
        ErrorCode::wrong_state,
        "measure: '" + program.name() + "' has jobs that are not complete: measure before, or drain");
  }
  ProgramCost& cost = cost_of(program);
  if (!waits() || device_->capabilities().timestamp_valid_bits == 0) return {};
  if (runtime_->has_uploads()) {
    IMPRINT_ASSIGN(const Commands uploads, runtime_->take_uploads());
    const Result<vk::Ticket> submitted = queue_->submit(std::span(&uploads.primary, 1));
    if (!submitted) {
      runtime_->put_back_uploads(uploads);
      return submitted.error();
    }
  }
  auto measured = measure_pieces(*device_, *queue_, *runtime_, program);
  // Work that the host has recorded and not called safe stands in front: the guess stays, and frames correct
  // it.
  if (!measured && measured.error().code == ErrorCode::not_ready) return {};
  if (!measured) return std::move(measured).error();
  std::vector<float> pieces = std::move(*measured);
  if (pieces.size() > 1 || pieces.size() == program.piece_count()) {
    // The rest writes variables and cannot be tried: taken to be as long as the dispatches before (piece 0 is
    // a copy).
    float sum = 0;
    for (std::size_t i = 1; i < pieces.size(); ++i) sum += pieces[i];
    pieces.resize(program.piece_count(),
                  pieces.size() > 1 ? sum / static_cast<float>(pieces.size() - 1) : 0.0f);
    cost = ProgramCost::measured(pieces);
  }
  return {};
}

Status ContextImpl::drain(std::uint64_t timeout_ns) {
  IMPRINT_CHECK(check_loud("drain"));
  if (state_ != State::closed)
    return make_error(ErrorCode::wrong_state, "drain: a frame is open: call frame_end first");
  if (!waits()) {
    const std::string cause = queue_ ? "the host's submit passes no fence on" : "the context is record only";
    return make_error(ErrorCode::unsupported,
                      "drain: " + cause + ", so only frames tell what is complete: run frames until all is");
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end =
      Clock::now() + std::chrono::nanoseconds(std::min<std::uint64_t>(timeout_ns, 1ull << 60));
  for (;;) {
    frame_budget_us_ = std::numeric_limits<float>::infinity();
    IMPRINT_CHECK(submit_all(frame_budget_us_, true));
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now()).count();
    IMPRINT_CHECK(in_flight_->wait(device_->last_ticket(), left > 0 ? static_cast<std::uint64_t>(left) : 0));
    const vk::Ticket complete = device_->completion().poll();
    read_times(complete);
    device_->collect();
    call_completed(complete);
    publish_stats();
    if (immediate_.empty() && schedule_.empty() && issued_.empty() && !runtime_->has_uploads()) return {};
    if (Clock::now() >= end)
      return make_error(ErrorCode::not_ready,
                        "drain: completed jobs kept enqueueing further ones until the time was over");
  }
}

Status ContextImpl::share(const std::shared_ptr<SharedBuffer>& buffer) {
  IMPRINT_CHECK(border_->add(buffer));
  return timer_->set_host_use(border_->host_use());
}

Result<std::shared_ptr<SharedBuffer>> ContextImpl::import_buffer(const HostBuffer& host) {
  IMPRINT_CHECK(check_alive("import_buffer"));
  IMPRINT_ASSIGN(std::shared_ptr<SharedBuffer> buffer, SharedBuffer::import(*device_, host));
  IMPRINT_CHECK(share(buffer));
  return buffer;
}

Result<std::shared_ptr<SharedBuffer>> ContextImpl::create_buffer(const SharedBufferRequest& request) {
  IMPRINT_CHECK(check_alive("create_buffer"));
  IMPRINT_ASSIGN(std::shared_ptr<SharedBuffer> buffer, SharedBuffer::create(*device_, request));
  IMPRINT_CHECK(share(buffer));
  return buffer;
}

void ContextImpl::cancel(const Program& program) {
  const auto runs = [&](const auto& job) { return job.program == &program; };
  std::erase_if(immediate_, runs);
  std::erase_if(learn_, runs);
  schedule_.cancel(reinterpret_cast<std::uintptr_t>(&program));
  for (Issued& issued : issued_) {
    if (issued.program != &program) continue;
    issued.program = nullptr;
    issued.on_complete = nullptr;
  }
  known_.erase(&program);
}

void ContextImpl::cancel(const Commands& commands) {
  if (!commands.primary) return;
  std::erase_if(immediate_, [&](const Immediate& job) { return job.commands.primary == commands.primary; });
  for (Issued& issued : issued_) {
    if (issued.commands != commands.primary) continue;
    issued.commands = VK_NULL_HANDLE;
    issued.on_complete = nullptr;
  }
}

}  // namespace imprint::bridge
