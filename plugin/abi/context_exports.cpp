#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string_view>
#include <tuple>
#include <vector>

#include "compute/base/amount.h"
#include "compute/base/job_queue.h"
#include "compute/base/quote.h"
#include "compute/base/sha256.h"
#include "compute/model/files/file.h"
#include "compute/vk/pipelines/kernel_archive.h"
#include "engine-bridge/host/queue_access.h"
#include "plugin/abi/calls.h"
#include "plugin/abi/convert.h"
#include "plugin/abi/exports.h"
#include "plugin/abi/stderr_log.h"

namespace imprint::abi {
namespace {

constexpr std::size_t kDigestDigits = 2 * std::tuple_size_v<Sha256>;

Result<> check_digest_text(const char* call, const imp_host& host) {
  const char* field = "host.kernel_archive_sha256: found ";
  if (!host.kernel_archive_sha256) return {};
  if (!host.kernel_archive && !host.kernel_archive_path)
    return refuse(call, text(field, "a digest without an archive, expected both"));
  // Reads no further than a digest goes, whatever the pointer leads to.
  std::string given;
  while (given.size() <= kDigestDigits && host.kernel_archive_sha256[given.size()] != '\0')
    given += host.kernel_archive_sha256[given.size()];
  constexpr std::string_view kHex = "0123456789abcdefABCDEF";
  if (given.size() == kDigestDigits && given.find_first_not_of(kHex) == std::string::npos) return {};
  return refuse(call, text(field, quote(given), ", expected ", kDigestDigits, " hex digits"));
}

// Checks the digest before anything else reads the bytes.
Result<std::shared_ptr<const vk::KernelArchive>> parse_kernels(const imp_host& host,
                                                               std::span<const std::byte> bytes) {
  if (host.kernel_archive_sha256) {
    std::string expected(host.kernel_archive_sha256, kDigestDigits);
    for (char& digit : expected)
      if (digit >= 'A' && digit <= 'F') digit = static_cast<char>(digit - 'A' + 'a');
    if (const std::string found = hex(sha256(bytes)); found != expected)
      return make_error(ErrorCode::corrupt_file, text("kernel archive: SHA-256: found ", found, ", expected ",
                                                      expected, ". Use the archive that the game shipped."));
  }
  return vk::KernelArchive::parse(bytes);
}

Result<std::shared_ptr<const vk::KernelArchive>> to_kernels(const char* call, const imp_host& host) {
  IMPRINT_CHECK(
      check_array(call, "host.kernel_archive", host.kernel_archive, host.kernel_archive_size, SIZE_MAX));
  IMPRINT_CHECK(check_digest_text(call, host));
  if (!host.kernel_archive && !host.kernel_archive_path) return std::shared_ptr<const vk::KernelArchive>();
  if (host.kernel_archive && host.kernel_archive_path)
    return refuse(call, "host.kernel_archive, kernel_archive_path: both given, expected one or none");
  if (host.kernel_archive)
    return parse_kernels(host,
                         {static_cast<const std::byte*>(host.kernel_archive), host.kernel_archive_size});
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(host.kernel_archive_path));
  auto archive = parse_kernels(host, bytes);
  if (!archive)
    return make_error(archive.error().code,
                      "'" + std::string(host.kernel_archive_path) + "': " + archive.error().message);
  return archive;
}

Result<> take_host(const char* call, const imp_host& host, const Limits& limits, ContextEntry& entry,
                   vk::DeviceOptions& options) {
  entry.log = {host.log, host.user, host.log ? LogSink() : stderr_log()};
  entry.device.lost = host.device_lost;
  entry.device.user = host.user;
  IMPRINT_ASSIGN(options.kernels, to_kernels(call, host));
  options.log = entry.log.sink();
  IMPRINT_ASSIGN(options.jobs,
                 JobQueue::create({limits.worker_threads, {host.job_submit, host.user}, options.log}));
  return {};
}

Result<> take_memory(const char* call, const imp_vk_device_info& device, ContextEntry& entry,
                     vk::DeviceOptions& options) {
  if (!device.allocate_device_memory != !device.free_device_memory)
    return refuse(call,
                  "device.allocate_device_memory, free_device_memory: found one, expected both or neither");
  entry.device.allocate = device.allocate_device_memory;
  entry.device.free = device.free_device_memory;
  entry.device.memory_user = device.memory_user;
  options.memory.calls = entry.device.memory();
  return {};
}

// A context destroys what lives on it, which is legal. The log tells a host that counts its objects.
void name_what_is_left(ContextEntry& entry) {
  struct Kind {
    std::size_t count = 0;
    std::string names;
    void add(const std::string& name) { names += (count++ ? ", '" : "'") + name + "'"; }
    std::string text(const char* kind) const {
      return amount(count, kind) + (count ? " (" + names + ")" : "");
    }
  } brains, tensors;
  std::size_t agent_count = 0;
  entry.brains.each([&](const std::shared_ptr<agent::Brain>& brain) { brains.add(brain->spec().name); });
  entry.tensors.each([&](const agent::SharedTensor& tensor) { tensors.add(tensor.name); });
  entry.agents.each([&](const AgentPlace&) { ++agent_count; });
  if (brains.count + tensors.count + agent_count == 0) return;
  entry.log.sink()(LogLevel::info, "context_destroy: destroyed with it: " + brains.text("brain") + ", " +
                                       tensors.text("tensor") + " and " + amount(agent_count, "agent"));
}

// Destructors of games do not look at the code, so the log has each failure of context_destroy once.
void log_failed_destroy(ContextEntry& entry, const std::string& message) {
  if (std::exchange(entry.close_error, message) != message) entry.log.sink()(LogLevel::error, message);
}

// A device that replaces the host's. On the same GPU if that serves, else on any GPU, else the CPU. The
// host's memory callbacks serve only the host's device.
Result<std::unique_ptr<agent::AgentSystem>> open_own_device(const bridge::ContextDescription& description) {
  bridge::StandaloneOptions own;
  own.beside = &description.device;
  own.options = description.options;
  own.options.memory.calls = {};
  own.budget = description.budget;
  auto world = agent::AgentSystem::open(own);
  if (world) return world;
  own.options.log(LogLevel::warning,
                  "no device of Imprint's own either, so the CPU computes: " + world.error().message);
  return agent::AgentSystem::open_on_cpu(own.options, own.budget);
}

// Most of what a create does knows no function of the table.
imp_result translate_of(const char* call, const Result<>& made) {
  if (made || made.error().message.starts_with(call)) return translate(made);
  return fail(make_error(made.error().code, text(call, ": ", made.error().message)));
}

Result<> finish_entry(std::unique_ptr<ContextEntry> entry, const Limits& limits,
                      Result<std::unique_ptr<agent::AgentSystem>> world, imp_context* context) {
  IMPRINT_ASSIGN(entry->world, std::move(world));
  entry->world->set_host_copy_period(limits.host_copy_period_frames);
  entry->world->tuning().set_deterministic(limits.deterministic);
  entry->world->tuning().set_measure_ms(limits.tuning_ms);
  IMPRINT_ASSIGN(*context, publish(std::move(entry)));
  return {};
}

Result<> check_record_state(std::uint32_t state) {
  struct Refusal {
    std::uint32_t bit;
    ErrorCode code;
    const char* text;
  };
  constexpr Refusal kRefusals[] = {
      {IMP_RECORD_IN_RENDER_PASS, ErrorCode::invalid_argument,
       "found one inside a render pass or dynamic rendering, where compute is not allowed. End it first."},
      {IMP_RECORD_SECONDARY, ErrorCode::unsupported,
       "found a secondary one. Give the primary one that executes it."},
      {IMP_RECORD_PROTECTED, ErrorCode::unsupported, "found a protected one. Give one that is not."},
      {IMP_RECORD_REUSED, ErrorCode::unsupported,
       "found one that is submitted more than once, but each frame's work differs. Record again in every "
       "frame."},
      {IMP_RECORD_OTHER_FAMILY, ErrorCode::unsupported,
       "found one of another queue family, expected imp_vk_queue::family. Take it from a pool of that "
       "family."},
  };
  std::uint32_t known = 0;
  for (const Refusal& refusal : kRefusals) {
    if (state & refusal.bit)
      return make_error(refusal.code, text("frame_record: info.command_buffer: ", refusal.text));
    known |= refusal.bit;
  }
  if ((state & ~known) == 0) return {};
  return refuse("frame_record", text("info.state: found ", state, ", expected bits of imp_record_state"));
}

Result<> to_semaphores(const char* name, const imp_vk_semaphore* given, std::uint32_t count,
                       std::vector<bridge::HostSemaphore>& semaphores) {
  constexpr std::uint32_t kMost = 1024;
  semaphores.clear();
  constexpr const char* call = "frame_submit_with";
  IMPRINT_CHECK(check_array(call, name, given, count, kMost));
  for (std::uint32_t i = 0; i < count; ++i) {
    IMPRINT_CHECK(check_flag(call, text(name, "[", i, "].timeline").c_str(), given[i].timeline));
    bridge::HostSemaphore semaphore;
    std::memcpy(&semaphore.semaphore, &given[i].semaphore, sizeof semaphore.semaphore);
    semaphore.timeline = given[i].timeline != 0;
    semaphore.value = given[i].value;
    semaphores.push_back(semaphore);
  }
  return {};
}

}  // namespace

imp_result IMP_CALL context_create(const imp_vk_device_info* device, const imp_host* host,
                                   const imp_limits* limits, imp_context* context) {
  return guarded([&]() -> imp_result {
    return translate_of("context_create", [&]() -> Result<> {
      constexpr const char* call = "context_create";
      IMPRINT_CHECK(check_pointer(call, "context", context));
      IMPRINT_ASSIGN(const Limits checked, to_limits(call, limits));
      IMPRINT_ASSIGN(const imp_host lent, to_host(call, host));
      auto entry = std::make_unique<ContextEntry>();
      IMPRINT_ASSIGN(const imp_vk_device_info given, read_struct(call, "device", device));
      IMPRINT_ASSIGN(bridge::ContextDescription description,
                     to_context(call, given, lent, checked, entry->queue));
      IMPRINT_CHECK(take_host(call, lent, checked, *entry, description.options));
      IMPRINT_CHECK(take_memory(call, given, *entry, description.options));
      IMPRINT_CHECK(bridge::check_queue_access(description.queue));
      IMPRINT_ASSIGN(entry->claim, QueueClaim::take(description.queue));
      auto world = agent::AgentSystem::adopt(description);
      if (!world && world.error().code == ErrorCode::unsupported && given.allow_own_device) {
        entry->log.sink()(LogLevel::warning, std::string(call) + ": takes a device of its own, because " +
                                                 world.error().message);
        entry->claim = {};
        world = open_own_device(description);
      }
      return finish_entry(std::move(entry), checked, std::move(world), context);
    }());
  });
}

imp_result IMP_CALL context_create_standalone(const imp_standalone_info* device, const imp_host* host,
                                              const imp_limits* limits, imp_context* context) {
  return guarded([&]() -> imp_result {
    return translate_of("context_create_standalone", [&]() -> Result<> {
      constexpr const char* call = "context_create_standalone";
      IMPRINT_CHECK(check_pointer(call, "context", context));
      IMPRINT_ASSIGN(const Limits checked, to_limits(call, limits));
      IMPRINT_ASSIGN(const imp_host lent, to_host(call, host));
      IMPRINT_ASSIGN(bridge::StandaloneOptions options, to_standalone(call, device, lent, checked));
      auto entry = std::make_unique<ContextEntry>();
      IMPRINT_CHECK(take_host(call, lent, checked, *entry, options.options));
      if (bridge::names_cpu(options.device))
        return finish_entry(
            std::move(entry), checked,
            agent::AgentSystem::open_on_cpu(options.options, options.budget, options.cpu_threads), context);
      auto world = agent::AgentSystem::open(options);
      return finish_entry(std::move(entry), checked, std::move(world), context);
    }());
  });
}

imp_result IMP_CALL context_destroy(imp_context context) {
  return guarded([&]() -> imp_result {
    constexpr const char* call = "context_destroy";
    const ContextHold hold(context);  // to the end: no other call may enter in between
    if (const imp_result refused = enter(hold, Tag::create, call, "context", AfterLoss::serves);
        refused != IMP_OK) {
      if (hold.entry()) log_failed_destroy(*hold.entry(), last_error());
      return refused;
    }
    {
      // Closing may find the device lost. The pass tells the host while the context still exists.
      GatePass pass(*hold.entry(), Tag::create);
      const Result<> closed = hold.entry()->world->close();
      if (!closed) log_failed_destroy(*hold.entry(), closed.error().message);
      if (const imp_result result = pass.finish(closed); result != IMP_OK) return result;
    }
    name_what_is_left(*hold.entry());
    const std::unique_ptr<ContextEntry> last = withdraw(*hold.entry());
    return IMP_OK;
  });
}

imp_result IMP_CALL context_warmup(imp_context context, void (*progress)(void* user, float fraction),
                                   void* user) {
  return with_context(context, Tag::create, "context_warmup", [&](ContextEntry& entry) {
    return entry.world->warmup([&](float fraction) {
      if (progress) progress(user, fraction);
    });
  });
}

imp_result IMP_CALL context_set_limits(imp_context context, const imp_limits* limits) {
  return with_context(context, Tag::create, "context_set_limits", [&](ContextEntry& entry) -> Result<> {
    IMPRINT_CHECK(check_pointer("context_set_limits", "limits", limits));
    IMPRINT_ASSIGN(const Limits checked, to_limits("context_set_limits", limits));
    entry.world->set_budget(checked.budget);
    entry.world->set_host_copy_period(checked.host_copy_period_frames);
    entry.world->set_memory_cap(checked.memory_cap_bytes);
    entry.world->tuning().set_measure_ms(checked.tuning_ms);
    return {};
  });
}

imp_result IMP_CALL context_drain(imp_context context, uint32_t timeout_ms) {
  return with_context(context, Tag::create, "context_drain",
                      [&](ContextEntry& entry) { return entry.world->drain(timeout_ms); });
}

imp_result IMP_CALL context_get_stats(imp_context context, imp_context_stats* stats) {
  return with_context_any(context, "context_get_stats", [&](ContextEntry& entry) -> Result<> {
    IMPRINT_CHECK(check_filled_struct("context_get_stats", "stats", stats));
    const agent::AgentSystemStats found = entry.world->stats();
    const auto add = [](auto& field, auto value) {
      field = static_cast<std::remove_reference_t<decltype(field)>>(value);
    };
    fill_struct(stats, [&](imp_context_stats& filled) {
      add(filled.frames, found.context.frames);
      add(filled.submits, found.context.submits);
      add(filled.slices, found.context.slices);
      add(filled.bytes_in_use, found.memory.bytes_in_use);
      add(filled.bytes_reserved, found.memory.bytes_reserved);
      add(filled.bytes_peak, found.memory.bytes_peak);
      add(filled.largest_free, found.memory.largest_free);
      add(filled.blocks, found.memory.block_count);
      add(filled.compiles, found.compiles);
      add(filled.allocations, found.allocations);
      add(filled.waits, found.waits);
      add(filled.frame_compiles, found.frame_compiles);
      add(filled.frame_allocations, found.frame_allocations);
      add(filled.frame_waits, found.frame_waits);
      add(filled.over_budget_frames, found.context.over_budget_frames);
      add(filled.measured_frame, found.context.times.frame);
      add(filled.infer_gpu_us, found.context.times.immediate_us);
      add(filled.learn_gpu_us, found.context.times.learn_us);
      add(filled.frame_cpu_us, found.context.frame_cpu_us);
      add(filled.learn_share, found.context.learn_share);
      add(filled.memory_pressure, found.memory_pressure);
      add(filled.waiting_jobs, found.waiting_jobs);
      add(filled.cpu_deferred_frames, found.context.cpu_deferred_frames);
      add(filled.over_cpu_frames, found.context.over_cpu_frames);
      add(filled.evicted_bytes, found.evicted_bytes);
      add(filled.infer_gpu_sum_us, found.context.immediate_us);
      add(filled.learn_gpu_sum_us, found.context.learn_us);
    });
    return {};
  });
}

imp_result IMP_CALL context_notify_device_lost(imp_context context) {
  return with_context_any(context, "context_notify_device_lost", [&](ContextEntry& entry) -> Result<> {
    entry.device.loss_reported = true;  // by the host itself
    if (vk::Device* device = entry.world->context().vulkan()) device->mark_lost();
    // This call holds the registry, so it does not wait for jobs. The next call that reports the loss does.
    entry.world->context().stop_submitting();
    return {};
  });
}

imp_result IMP_CALL context_quiesce(imp_context context, uint32_t timeout_ms) {
  return with_context(context, Tag::create, "context_quiesce",
                      [&](ContextEntry& entry) { return entry.world->quiesce(timeout_ms); });
}

imp_result IMP_CALL context_resume(imp_context context) {
  return with_context(context, Tag::create, "context_resume",
                      [&](ContextEntry& entry) { return entry.world->resume(); });
}

imp_result IMP_CALL context_device_idle(imp_context context) {
  return with_context(context, Tag::create, "context_device_idle",
                      [&](ContextEntry& entry) { return entry.world->device_idle(); });
}

imp_result IMP_CALL context_trim(imp_context context, uint64_t* freed_bytes) {
  return with_context(context, Tag::create, "context_trim", [&](ContextEntry& entry) -> Result<> {
    const std::uint64_t freed = entry.world->trim();
    if (freed_bytes) *freed_bytes = freed;
    return {};
  });
}

imp_result IMP_CALL frame_begin(imp_context context, const imp_frame_info* info) {
  return with_context(context, Tag::frame_begin, "frame_begin", [&](ContextEntry& entry) -> Result<> {
    IMPRINT_ASSIGN(const imp_frame_info given, read_struct("frame_begin", "info", info));
    return entry.world->frame_begin({given.frame, given.safe_frame, given.host_gpu_us}, given.time_s);
  });
}

imp_result IMP_CALL frame_submit(imp_context context, uint32_t budget_us) {
  return with_context(context, Tag::frame_submit, "frame_submit",
                      [&](ContextEntry& entry) { return entry.world->submit(budget_us); });
}

imp_result IMP_CALL frame_estimate(imp_context context, imp_estimate* estimate) {
  return with_context(context, Tag::frame_before, "frame_estimate", [&](ContextEntry& entry) -> Result<> {
    IMPRINT_CHECK(check_filled_struct("frame_estimate", "estimate", estimate));
    IMPRINT_ASSIGN(const bridge::FrameEstimate found, entry.world->estimate());
    const auto whole_us = [](float us) { return static_cast<uint32_t>(std::min(std::ceil(us), 4e9f)); };
    fill_struct(estimate, [&](imp_estimate& filled) {
      filled.due_us = whole_us(found.due_us);
      filled.later_us = whole_us(found.later_us);
    });
    return {};
  });
}

imp_result IMP_CALL frame_submit_with(imp_context context, const imp_submit_info* info) {
  return with_context(context, Tag::frame_submit, "frame_submit_with", [&](ContextEntry& entry) -> Result<> {
    IMPRINT_ASSIGN(const imp_submit_info given, read_struct("frame_submit_with", "info", info));
    std::vector<bridge::HostSemaphore>&waits = entry.waits, &completions = entry.completions;
    IMPRINT_CHECK(to_semaphores("info.waits", given.waits, given.wait_count, waits));
    IMPRINT_CHECK(to_semaphores("info.completions", given.completions, given.completion_count, completions));
    IMPRINT_CHECK(check_enum("frame_submit_with", "info.scope", given.scope, IMP_SCOPE_EVERYTHING));
    return entry.world->submit({given.budget_us, waits, completions},
                               static_cast<agent::FrameScope>(given.scope));
  });
}

imp_result IMP_CALL context_run_jobs(imp_context context, uint32_t budget_us, uint32_t* waiting) {
  return with_context(
      context, Tag::create, "context_run_jobs",
      [&](ContextEntry& entry) -> Result<> {
        const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(budget_us);
        JobQueue& jobs = entry.world->jobs();
        while (jobs.run_one() && std::chrono::steady_clock::now() < end) {
        }
        if (waiting) *waiting = static_cast<uint32_t>(jobs.waiting());
        return {};
      },
      AfterLoss::serves);  // a host copy's file may be among them
}

imp_result IMP_CALL context_get_semaphore(imp_context context, imp_vk_semaphore* semaphore) {
  return with_context(context, Tag::frame_or_create, "context_get_semaphore",
                      [&](ContextEntry& entry) -> Result<> {
                        IMPRINT_CHECK(check_pointer("context_get_semaphore", "semaphore", semaphore));
                        IMPRINT_ASSIGN(const bridge::HostSemaphore found, entry.world->semaphore());
                        imp_vk_semaphore filled{};
                        std::memcpy(&filled.semaphore, &found.semaphore, sizeof found.semaphore);
                        filled.value = found.value;
                        filled.timeline = 1;
                        *semaphore = filled;
                        return {};
                      });
}

imp_result IMP_CALL frame_record(imp_context context, const imp_record_info* info, uint32_t* remaining_us) {
  return with_context(context, Tag::frame_submit, "frame_record", [&](ContextEntry& entry) -> Result<> {
    IMPRINT_ASSIGN(const imp_record_info given, read_struct("frame_record", "info", info));
    IMPRINT_CHECK(check_pointer("frame_record", "info.command_buffer", given.command_buffer));
    IMPRINT_CHECK(check_record_state(given.state));
    IMPRINT_CHECK(check_enum("frame_record", "info.scope", given.scope, IMP_SCOPE_EVERYTHING));
    IMPRINT_ASSIGN(const std::uint32_t left,
                   entry.world->record(given.command_buffer, given.budget_us,
                                       static_cast<agent::FrameScope>(given.scope)));
    if (remaining_us) *remaining_us = left;
    return {};
  });
}

imp_result IMP_CALL frame_end(imp_context context) {
  return with_context(
      context, Tag::frame_end, "frame_end", [&](ContextEntry& entry) { return entry.world->frame_end(); },
      AfterLoss::serves);
}

}  // namespace imprint::abi
