#include "engine-bridge/context.h"

#include <chrono>
#include <limits>
#include <utility>

#include "compute/base/text.h"
#include "compute/vk/capabilities/optional_features.h"
#include "engine-bridge/context_impl.h"
#include "engine-bridge/frame/cpu_issuer.h"
#include "engine-bridge/host/lost_device.h"

namespace imprint::bridge {
namespace {

constexpr std::uint64_t kShutdownTimeoutNs = 10ull * 1000 * 1000 * 1000;

DeviceKind kind_of(VkPhysicalDeviceType type) {
  if (type == VK_PHYSICAL_DEVICE_TYPE_CPU) return DeviceKind::software;
  return type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ? DeviceKind::discrete : DeviceKind::integrated;
}

Error unsupported_on_cpu(const char* call, const char* what) {
  return make_error(ErrorCode::unsupported,
                    text(call, ": this context runs on the CPU, which has no ", what));
}

}  // namespace

// ---- life ----

Result<std::unique_ptr<Context>> Context::adopt(const ContextDescription& description) {
  return ContextImpl::adopt(description);
}

std::unique_ptr<Context> Context::on_cpu(const LogSink& log, const Budget& budget,
                                         const CpuThreads& threads) {
  return ContextImpl::on_cpu(log, budget, threads);
}

Result<std::unique_ptr<Context>> ContextImpl::adopt(const ContextDescription& description) {
  IMPRINT_CHECK(check_queue_access(description.queue));
  std::unique_ptr<ContextImpl> context(new ContextImpl);
  vk::DeviceDescription adopted = description.device;
  adopted.queue_family = description.queue.family;
  IMPRINT_ASSIGN(context->device_, vk::Device::adopt(adopted, description.options));
  vk::Device& device = *context->device_;
  IMPRINT_ASSIGN(context->in_flight_, InFlight::create(device));
  InFlight& in_flight = *context->in_flight_;
  device.completion().set_poll([&in_flight] { return in_flight.poll(); });
  if (description.queue.queue) {
    context->queue_ = std::make_unique<HostQueue>(device, in_flight, description.queue);
    IMPRINT_CHECK(context->queue_->start());
    context->exclusive_ = description.queue.exclusive;
  }
  IMPRINT_ASSIGN(context->runtime_, Runtime::create(device));
  IMPRINT_ASSIGN(context->gpu_frame_,
                 GpuFrame::create(device, *context->runtime_, description.queue.exclusive));
  GpuFrame& frame = *context->gpu_frame_;
  if (context->queue_)
    context->submit_ = std::make_unique<SubmitIssuer>(device, in_flight, frame, *context->queue_);
  context->record_ = std::make_unique<RecordIssuer>(device, in_flight, frame);
  context->engine_ =
      std::make_unique<FrameEngine>(&device, rates_of(kind_of(device.capabilities().device_type)));
  context->set_budget(description.budget);
  return std::unique_ptr<Context>(std::move(context));
}

std::unique_ptr<Context> ContextImpl::on_cpu(const LogSink& log, const Budget& budget,
                                             const CpuThreads& threads) {
  std::unique_ptr<ContextImpl> context(new ContextImpl);
  context->runtime_ = Runtime::create_on_cpu(log, 0, threads);
  context->submit_ = std::make_unique<CpuIssuer>();
  context->engine_ = std::make_unique<FrameEngine>(nullptr, rates_of(DeviceKind::cpu));
  context->set_budget(budget);
  return context;
}

void ContextImpl::stop_submitting() {
  if (queue_) queue_->stop_submitting();
}

void ContextImpl::finish() {
  if (!device_ || std::exchange(finished_, true)) return;
  in_flight_->set_safe_frame(std::numeric_limits<std::uint64_t>::max());
  if (!device_->lost() && queue_) (void)in_flight_->wait(device_->last_ticket(), kShutdownTimeoutNs);
}

ContextImpl::~ContextImpl() {
  if (!in_flight_) return;  // on the CPU, or adoption failed before anything could be submitted
  finish();
  vk::Completion& completion = device_->completion();
  completion.set_poll({});
  completion.completed(completion.last());
  device_->collect();  // while the runtime lives, which owns some of it
}

// ---- what it is ----

CompletedBy ContextImpl::completed_by() const {
  if (!device_) return CompletedBy::calls;
  if (!can_wait()) return CompletedBy::frames;
  return in_flight_->timeline() ? CompletedBy::timeline : CompletedBy::fences;
}

Result<HostSemaphore> ContextImpl::semaphore() const {
  if (!device_) return unsupported_on_cpu("context_get_semaphore", "semaphores.");
  if (completed_by() != CompletedBy::timeline)
    return make_error(
        ErrorCode::unsupported,
        queue_ ? "context_get_semaphore: the device's features do not declare timelineSemaphore. Declare it."
               : "context_get_semaphore: this context only records. Use the semaphore of your submission.");
  const vk::Ticket last = device_->last_ticket();
  if (last.value == 0)
    return make_error(ErrorCode::not_ready, "context_get_semaphore: nothing was submitted yet.");
  return HostSemaphore{in_flight_->timeline(), true, last.value};
}

std::string ContextImpl::queue_report() const {
  constexpr const char* kCompletion[] = {"timeline semaphore", "fences",
                                         "frame numbers that the host reports as safe"};
  const vk::Capabilities& c = device_->capabilities();
  const char* queue = exclusive_ ? "Imprint's own, submitted to from its own thread"
                      : queue_   ? "the declared one, submitted to by Imprint"
                                 : "none; records into the host's command buffers only";
  return text("queue: ", queue, "\ncompletion: ", kCompletion[static_cast<std::size_t>(completed_by())],
              "\ngpu time: ", c.timestamp_valid_bits ? "timestamps" : "estimated", "\n");
}

std::string ContextImpl::missing_report() const {
  std::string used, lines;
  for (const vk::OptionalFeature& feature : vk::optional_features())
    if (device_->capabilities().*feature.member)
      used += text(used.empty() ? "" : ", ",
                   feature.core_since == vk::kNeverCore ? feature.extension : feature.feature);
  lines = text("optional features in use: ", used.empty() ? "none" : used, "\n");
  if (!device_->missing_features().empty()) lines += "missing, the costliest first:\n";
  std::size_t number = 0;
  for (const vk::MissingFeature& missing : device_->missing_features())
    lines += text("  ", ++number, ". without ", missing.item, " (", missing.cause, "): ", missing.cost,
                  "; remedy: ", missing.remedy, "\n");
  for (const vk::UnusedFeature& unused : vk::unused_features())
    lines += text("not used, declared or not: ", unused.item, ": ", unused.reason, "\n");
  return lines;
}

std::string ContextImpl::report() const {
  if (!device_) return cpu_report();
  const vk::Capabilities& c = device_->capabilities();
  return text("device: ", c.device_name, ", ", c.driver_name, ", vulkan ",
              VK_API_VERSION_MAJOR(c.api_version), ".", VK_API_VERSION_MINOR(c.api_version),
              ", queue family ", device_->queue_family(), "\n", queue_report(), missing_report());
}

// ---- create-time ----

Result<> ContextImpl::run_now(const Commands& commands) {
  IMPRINT_CHECK(engine_->check_running("run_now"));
  return issuer().run_now(commands);
}

Result<> ContextImpl::run_now(Program& program) {
  IMPRINT_CHECK(engine_->check_running("run_now"));
  return issuer().run_now(program);
}

Result<> ContextImpl::measure(Program& program) {
  IMPRINT_CHECK(engine_->check_closed("measure"));
  FrameJobs& jobs = engine_->jobs();
  if (jobs.has_jobs_of(program))
    return make_error(
        ErrorCode::wrong_state,
        text("measure: '", program.name(), "' has jobs that are not complete. Call context_drain first."));
  ProgramCost& cost = jobs.cost_of(program);
  IMPRINT_ASSIGN(std::vector<float> us, issuer().measure(program));
  if (us.size() <= 1 && us.size() != program.piece_count()) return {};  // the guess stays
  // The other pieces write variables and cannot be tried. They are expected to take the mean of the
  // dispatches before them; piece 0 is no dispatch.
  float sum = 0;
  for (std::size_t i = 1; i < us.size(); ++i) sum += us[i];
  us.resize(program.piece_count(), us.size() > 1 ? sum / static_cast<float>(us.size() - 1) : 0.0f);
  cost = ProgramCost::measured(us);
  return {};
}

Result<> ContextImpl::drain(std::uint64_t timeout_ns) {
  IMPRINT_CHECK(engine_->check_closed("context_drain"));
  if (!can_wait())
    return make_error(
        ErrorCode::unsupported,
        text("context_drain: ", queue_ ? "the host's submit passes no fence" : "this context only records",
             ", so only frames tell what is complete. Run frames until all is."));
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end =
      Clock::now() + std::chrono::nanoseconds(std::min<std::uint64_t>(timeout_ns, 1ull << 60));
  for (;;) {
    IMPRINT_CHECK(engine_->issue_everything(*submit_));
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now()).count();
    IMPRINT_CHECK(submit_->wait(left > 0 ? static_cast<std::uint64_t>(left) : 0));
    engine_->call_completed(*submit_);
    engine_->publish_stats();
    if (engine_->jobs().empty() && !runtime_->has_uploads()) return {};
    if (Clock::now() >= end)
      return make_error(ErrorCode::not_ready,
                        "context_drain: completed jobs kept enqueueing new ones until the timeout.");
  }
}

Result<> ContextImpl::quiesce(std::uint64_t timeout_ns) {
  IMPRINT_CHECK(engine_->check_alive("context_quiesce"));
  IMPRINT_CHECK(check_frame_closed(engine_->state(), "context_quiesce"));
  if (can_wait()) {
    const Result<> waited = submit_->wait(timeout_ns);
    // The host waits for what it recorded.
    const bool host_waits =
        !waited && waited.error().code == ErrorCode::not_ready && in_flight_->oldest_needs_safe_frame();
    if (!waited && !host_waits) return waited;
  }
  engine_->set_quiesced(true);
  return {};
}

Result<> ContextImpl::resume() {
  IMPRINT_CHECK(engine_->check_alive("context_resume"));
  if (!engine_->quiesced())
    return make_error(ErrorCode::wrong_state,
                      "context_resume: the context is not quiesced. Call context_quiesce first.");
  engine_->set_quiesced(false);
  return {};
}

Result<> ContextImpl::device_idle() {
  IMPRINT_CHECK(engine_->check_alive("context_device_idle"));
  IMPRINT_CHECK(check_frame_closed(engine_->state(), "context_device_idle"));
  if (in_flight_) in_flight_->set_device_idle();
  engine_->call_completed(issuer());
  engine_->publish_stats();
  return engine_->check_alive("context_device_idle");
}

// ---- shared buffers ----

Result<> ContextImpl::check_buffers(const char* call) const {
  IMPRINT_CHECK(engine_->check_alive(call));
  if (!device_) return unsupported_on_cpu(call, "buffers to share.");
  return {};
}

Result<std::shared_ptr<SharedBuffer>> ContextImpl::import_buffer(const HostBuffer& host) {
  IMPRINT_CHECK(check_buffers("import_buffer"));
  IMPRINT_ASSIGN(std::shared_ptr<SharedBuffer> buffer, SharedBuffer::import(*device_, host));
  IMPRINT_CHECK(gpu_frame_->share(buffer));
  return buffer;
}

Result<std::shared_ptr<SharedBuffer>> ContextImpl::create_buffer(const SharedBufferRequest& request) {
  IMPRINT_CHECK(check_buffers("create_buffer"));
  IMPRINT_ASSIGN(std::shared_ptr<SharedBuffer> buffer, SharedBuffer::create(*device_, request));
  IMPRINT_CHECK(gpu_frame_->share(buffer));
  return buffer;
}

void ContextImpl::forget(const std::shared_ptr<SharedBuffer>& buffer) {
  if (gpu_frame_) gpu_frame_->sync().forget(buffer);
}

Result<> ContextImpl::acquire(const std::shared_ptr<SharedBuffer>& buffer) {
  IMPRINT_CHECK(engine_->check_open("tensor_acquire"));
  IMPRINT_CHECK(check_buffers("tensor_acquire"));
  return gpu_frame_->sync().acquire(buffer);
}

Result<> ContextImpl::release(const std::shared_ptr<SharedBuffer>& buffer) {
  IMPRINT_CHECK(engine_->check_open("tensor_release"));
  IMPRINT_CHECK(check_buffers("tensor_release"));
  return gpu_frame_->sync().release(buffer);
}

// ---- the frame's work ----

Result<> ContextImpl::submit(const SubmitInfo& info) {
  IMPRINT_CHECK(engine_->check_open("frame_submit"));
  if (!submit_)
    return make_error(ErrorCode::unsupported,
                      "frame_submit: this context only records, as it has no queue. Call frame_record.");
  FrameCall call(*this);
  if (gpu_frame_)
    IMPRINT_CHECK(gpu_frame_->sync().add_semaphores(info.waits, info.completions));
  else if (!info.waits.empty() || !info.completions.empty())
    return unsupported_on_cpu("frame_submit", "semaphores.");
  const auto left = engine_->issue(*submit_, info.budget_us, FrameState::submitted, info.more);
  return left ? Result<>() : Result<>(left.error());
}

Result<std::uint32_t> ContextImpl::record(VkCommandBuffer command_buffer, std::uint32_t budget_us,
                                          const EnqueueMore& more) {
  IMPRINT_CHECK(engine_->check_open("frame_record"));
  if (!record_) return unsupported_on_cpu("frame_record", "command buffers. Call frame_submit.");
  if (exclusive_)
    return make_error(
        ErrorCode::unsupported,
        "frame_record: the queue is Imprint's alone, and nothing orders it with the host's command "
        "buffers. Call frame_submit.");
  if (!command_buffer)
    return make_error(ErrorCode::invalid_argument, "frame_record: command_buffer: found null, expected one.");
  record_->set_command_buffer(command_buffer);
  return engine_->issue(*record_, budget_us, FrameState::recorded, more);
}

}  // namespace imprint::bridge
