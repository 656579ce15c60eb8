#ifndef IMPRINT_IMPRINT_HPP_
#define IMPRINT_IMPRINT_HPP_
// A C++20 coat over imprint.h: owners for the handles, enum classes, spans. Header-only; no state, no
// allocation, no exception of its own.
//
// Every call gives a Status (an imp_result that can be asked), every maker a Made<T>. Contracts, threads and
// units are those of the C function of the same name. Structs stay the C ones: make them with their
// imp_*_init function.
//
//   using namespace imprint::game;
//   const imp_api* api = load(imp_get_api);                        // or the function that dlsym /
//   GetProcAddress found Made<Context> context = Context::create(api, device_info); if (!context) return
//   fail(context.status.message()); Made<Brain> brain = context->create_brain(desc); Made<Agent> agent =
//   brain->create_agent(0);
//
// Owners destroy what they hold, so declare them in the order context, tensor, brain, agent: an agent must
// not outlive its brain's context.

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
#error \
    "imprint.hpp needs C++20, in CMake target_compile_features(game PRIVATE cxx_std_20); imprint.h, the C interface, needs C11 or C++11"
#endif

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "imprint.h"

namespace imprint::game {

enum class Code : std::int32_t {
  ok = IMP_OK,
  not_ready = IMP_NOT_READY,
  invalid_argument = IMP_ERROR_INVALID_ARGUMENT,
  shape_mismatch = IMP_ERROR_SHAPE_MISMATCH,
  dtype_mismatch = IMP_ERROR_DTYPE_MISMATCH,
  unsupported = IMP_ERROR_UNSUPPORTED,
  out_of_device_memory = IMP_ERROR_OUT_OF_DEVICE_MEMORY,
  out_of_host_memory = IMP_ERROR_OUT_OF_HOST_MEMORY,
  device_lost = IMP_ERROR_DEVICE_LOST,
  io = IMP_ERROR_IO,
  corrupt_file = IMP_ERROR_CORRUPT_FILE,
  compile_failed = IMP_ERROR_COMPILE_FAILED,
  wrong_state = IMP_ERROR_WRONG_STATE,
  not_found = IMP_ERROR_NOT_FOUND,
  internal = IMP_ERROR_INTERNAL,
  invalid_handle = IMP_ERROR_INVALID_HANDLE
};

enum class Mode : std::uint32_t {
  learning = IMP_MODE_LEARNING,
  inference = IMP_MODE_INFERENCE,
  heuristic = IMP_MODE_HEURISTIC,
  record = IMP_MODE_RECORD
};
enum class Credit : std::uint32_t { by_onset = IMP_CREDIT_BY_ONSET, current = IMP_CREDIT_CURRENT };
enum class EpisodeEnd : std::uint32_t {
  terminated = IMP_EPISODE_TERMINATED,
  truncated = IMP_EPISODE_TRUNCATED
};

// The outcome of a call. ok() also for a success with a remark (not_ready).
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(const imp_api* api, imp_result result) : api_(api), result_(result) {}

  bool ok() const { return result_ >= IMP_OK; }
  bool ready() const { return result_ == IMP_OK; }
  explicit operator bool() const { return ok(); }
  Code code() const { return static_cast<Code>(result_); }
  imp_result result() const { return result_; }
  const char* name() const { return api_ ? api_->result_name(result_) : "no table"; }
  // The text of the newest failure on this thread: ask before the next call that fails.
  const char* message() const {
    return ok()   ? ""
           : api_ ? api_->last_error()
                  : "what should have been made for this was not, or the library does not serve this ABI "
                    "version";
  }

 private:
  const imp_api* api_ = nullptr;
  imp_result result_ = IMP_ERROR_WRONG_STATE;
};

// Something made, or why not.
template <class T>
struct [[nodiscard]] Made {
  T value{};
  Status status{};

  explicit operator bool() const { return status.ok(); }
  T& operator*() { return value; }
  T* operator->() { return &value; }
};

// The table of a library; null when it does not serve this header's version.
inline const imp_api* load(imp_get_api_function get_api) {
  const imp_api* api = nullptr;
  return get_api && get_api(IMP_ABI_VERSION, &api) == IMP_OK && api->size >= sizeof(imp_api) ? api : nullptr;
}

namespace detail {

inline std::uint32_t count_of(std::size_t size) {
  return size > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(size);
}

// One handle and the table it came from: move-only, null after a move, release() gives the handle away.
template <class Handle, imp_result (IMP_CALL* imp_api::*destroy)(Handle)>
class Owner {
 public:
  Owner() = default;
  Owner(const imp_api* api, Handle handle) : api_(api), handle_(handle) {}
  Owner(Owner&& other) noexcept : api_(other.api_), handle_(std::exchange(other.handle_, Handle{})) {}
  Owner& operator=(Owner&& other) noexcept {
    if (this != &other) {
      reset();
      api_ = other.api_;
      handle_ = std::exchange(other.handle_, Handle{});
    }
    return *this;
  }
  ~Owner() { reset(); }

  Handle handle() const { return handle_; }
  const imp_api* api() const { return api_; }
  explicit operator bool() const { return handle_.id != 0; }
  Handle release() { return std::exchange(handle_, Handle{}); }
  void reset() {
    if (handle_.id != 0) (void)(api_->*destroy)(std::exchange(handle_, Handle{}));
  }

 protected:
  // An object that was never made has no table to ask.
  template <class... Taken, class... Given>
  Status call(imp_result (IMP_CALL* imp_api::*function)(Handle, Taken...), Given... given) const {
    return api_ ? Status(api_, (api_->*function)(handle_, given...)) : Status();
  }

  const imp_api* api_ = nullptr;
  Handle handle_{};
};

}  // namespace detail

// The bytes of a kernel archive for contexts made with this host; borrowed until then.
inline void set_kernels(imp_host& host, std::span<const std::byte> archive) {
  host.kernel_archive = archive.data();
  host.kernel_archive_size = archive.size();
}

class Agent : public detail::Owner<imp_agent, &imp_api::agent_destroy> {
 public:
  using Owner::Owner;

  Status set_mode(Mode mode) { return call(&imp_api::agent_set_mode, static_cast<imp_mode>(mode)); }
  Status set_goal(std::uint32_t goal) { return call(&imp_api::agent_set_goal, goal); }
  Status set_mask(std::span<const std::uint8_t> allowed) {
    return call(&imp_api::agent_set_mask, allowed.data(), detail::count_of(allowed.size()));
  }
  Status allow_all() { return call(&imp_api::agent_set_mask, nullptr, 0); }
  Status observe(std::span<const float> observation) {
    return call(&imp_api::agent_observe, observation.data(), detail::count_of(observation.size()));
  }
  Status observe_in_place(std::uint64_t place) { return call(&imp_api::agent_observe_in_place, place); }
  // status.ready() tells an answer from one that is still on its way.
  Made<imp_action> act() {
    Made<imp_action> made{imp_action_init(), {}};
    made.status = call(&imp_api::agent_act, &made.value);
    return made;
  }
  Status act_by_heuristic(std::span<const std::uint32_t> branches, std::span<const float> continuous = {}) {
    return call(&imp_api::agent_heuristic, branches.data(), continuous.data());
  }
  Status feedback(float value, double time_s, Credit credit = Credit::by_onset, float weight = 1.0f) {
    imp_feedback feedback = imp_feedback_init();
    feedback.value = value;
    feedback.weight = weight;
    feedback.credit = static_cast<imp_credit>(credit);
    feedback.time_s = time_s;
    return call(&imp_api::agent_feedback, &feedback);
  }
  Status demonstrate(const imp_demonstration& demonstration) {
    return call(&imp_api::agent_demonstrate, &demonstration);
  }
  Status reward(float reward) { return call(&imp_api::agent_reward, reward); }
  Status end_episode(EpisodeEnd end) {
    return call(&imp_api::agent_end_episode, static_cast<imp_episode_end>(end));
  }
};

struct BrainHash {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const BrainHash&, const BrainHash&) = default;
};

class Brain : public detail::Owner<imp_brain, &imp_api::brain_destroy> {
 public:
  using Owner::Owner;

  Made<Agent> create_agent(std::uint32_t brain_index = 0) {
    imp_agent agent{};
    const Status made = call(&imp_api::agent_create, brain_index, &agent);
    return {Agent(api_, agent), made};
  }
  Made<imp_brain_info> info() const {
    Made<imp_brain_info> made{imp_brain_info_init(), {}};
    made.status = call(&imp_api::brain_get_info, &made.value);
    return made;
  }
  Made<imp_brain_stats> stats() const {
    Made<imp_brain_stats> made{imp_brain_stats_init(), {}};
    made.status = call(&imp_api::brain_get_stats, &made.value);
    return made;
  }
  Status set_learning(bool enabled) { return call(&imp_api::brain_set_learning, enabled ? 1u : 0u); }
  Status save(const char* path) { return call(&imp_api::brain_save, path); }
  Status save_status() const { return call(&imp_api::brain_save_status); }
  Status load(const char* path) { return call(&imp_api::brain_load, path); }
  Status load_weights(const char* path) { return call(&imp_api::brain_load_weights, path); }
  Made<std::uint64_t> snapshot() {
    Made<std::uint64_t> made;
    made.status = call(&imp_api::brain_snapshot, &made.value);
    return made;
  }
  Status restore(std::uint64_t snapshot) { return call(&imp_api::brain_restore, snapshot); }
  Made<BrainHash> hash() const {
    Made<BrainHash> made;
    made.status = call(&imp_api::brain_hash, &made.value.low, &made.value.high);
    return made;
  }
};

// Must outlive the brains that use it.
class Tensor : public detail::Owner<imp_tensor, &imp_api::tensor_destroy> {
 public:
  using Owner::Owner;

  Made<imp_vk_buffer> export_vk() const {
    Made<imp_vk_buffer> made{imp_vk_buffer_init(), {}};
    made.status = call(&imp_api::tensor_export_vk, &made.value);
    return made;
  }
  Status acquire() { return call(&imp_api::tensor_acquire); }
  Status release_to_host() { return call(&imp_api::tensor_release); }
};

// Row-major extents.
inline imp_tensor_desc tensor_desc(const char* name, std::initializer_list<std::uint64_t> shape,
                                   imp_dtype dtype = IMP_DTYPE_FLOAT32) {
  imp_tensor_desc desc = imp_tensor_desc_init();
  desc.name = name;
  desc.dtype = dtype;
  desc.rank = detail::count_of(shape.size());
  for (std::size_t i = 0; i < shape.size() && i < IMP_MAX_RANK; ++i) desc.shape[i] = shape.begin()[i];
  return desc;
}

class Context : public detail::Owner<imp_context, &imp_api::context_destroy> {
 public:
  using Owner::Owner;

  static Made<Context> create(const imp_api* api, const imp_vk_device_info& device,
                              const imp_host* host = nullptr, const imp_limits* limits = nullptr) {
    if (!api) return {};
    imp_context context{};
    const imp_result result = api->context_create(&device, host, limits, &context);
    return {Context(api, context), {api, result}};
  }
  static Made<Context> create_standalone(const imp_api* api, const imp_standalone_info& device,
                                         const imp_host* host = nullptr, const imp_limits* limits = nullptr) {
    if (!api) return {};
    imp_context context{};
    const imp_result result = api->context_create_standalone(&device, host, limits, &context);
    return {Context(api, context), {api, result}};
  }

  Made<Brain> create_brain(const imp_brain_desc& desc) {
    imp_brain brain{};
    const Status made = call(&imp_api::brain_create, &desc, &brain);
    return {Brain(api_, brain), made};
  }
  Made<Brain> create_brain_from_onnx(const imp_policy_desc& desc) {
    imp_brain brain{};
    const Status made = call(&imp_api::brain_create_from_onnx, &desc, &brain);
    return {Brain(api_, brain), made};
  }
  Made<Tensor> import_tensor(const imp_tensor_desc& desc, const imp_vk_buffer& buffer) {
    imp_tensor tensor{};
    const Status made = call(&imp_api::tensor_import_vk, &desc, &buffer, &tensor);
    return {Tensor(api_, tensor), made};
  }
  Made<Tensor> create_tensor(const imp_tensor_desc& desc, const imp_vk_buffer& wish) {
    imp_tensor tensor{};
    const Status made = call(&imp_api::tensor_create_vk, &desc, &wish, &tensor);
    return {Tensor(api_, tensor), made};
  }
  // Destroys now and says how it went; when refused, the context stays.
  Status destroy() {
    const Status destroyed = call(&imp_api::context_destroy);
    if (destroyed) handle_ = {};
    return destroyed;
  }
  Status report(char* buffer, std::size_t* size) const {
    return call(&imp_api::context_report, buffer, size);
  }
  Made<imp_report> report() const {
    Made<imp_report> made{imp_report_init(), {}};
    made.status = call(&imp_api::context_get_report, &made.value);
    return made;
  }
  Made<imp_loss> loss(std::uint32_t index) const {
    Made<imp_loss> made{imp_loss_init(), {}};
    made.status = call(&imp_api::context_get_loss, index, &made.value);
    return made;
  }
  Status warmup(void (*progress)(void* user, float fraction) = nullptr, void* user = nullptr) {
    return call(&imp_api::warmup, progress, user);
  }
  Status pipeline_cache(void* data, std::size_t* size) const {
    return call(&imp_api::pipeline_cache_get, data, size);
  }
  Status set_pipeline_cache(std::span<const std::byte> data) {
    return call(&imp_api::pipeline_cache_set, data.data(), data.size());
  }
  Status set_limits(const imp_limits& limits) { return call(&imp_api::set_limits, &limits); }
  Status quiesce(std::uint32_t timeout_ms) { return call(&imp_api::quiesce, timeout_ms); }
  Status resume() { return call(&imp_api::resume); }
  Status notify_device_lost() { return call(&imp_api::notify_device_lost); }
  // The bytes given back.
  Made<std::uint64_t> trim() {
    Made<std::uint64_t> made;
    made.status = call(&imp_api::trim, &made.value);
    return made;
  }
  Status tuning(char* text, std::size_t* size) const { return call(&imp_api::tuning_get, text, size); }
  Status set_tuning(std::string_view text) { return call(&imp_api::tuning_set, text.data(), text.size()); }
  Status stop_tuning() { return call(&imp_api::tuning_stop); }
  // The jobs that still wait.
  Made<std::uint32_t> run_jobs(std::uint32_t budget_us = UINT32_MAX) {
    Made<std::uint32_t> made;
    made.status = call(&imp_api::run_jobs, budget_us, &made.value);
    return made;
  }
  Status drain(std::uint32_t timeout_ms) { return call(&imp_api::drain, timeout_ms); }
  Made<imp_context_stats> stats() const {
    Made<imp_context_stats> made{imp_context_stats_init(), {}};
    made.status = call(&imp_api::context_get_stats, &made.value);
    return made;
  }

  Status frame_begin(const imp_frame_info& info) { return call(&imp_api::frame_begin, &info); }
  Status frame_begin(std::uint64_t frame, double time_s, std::uint64_t safe_frame = 0) {
    imp_frame_info info = imp_frame_info_init();
    info.frame = frame;
    info.safe_frame = safe_frame;
    info.time_s = time_s;
    return frame_begin(info);
  }
  Status submit(std::uint32_t budget_us = UINT32_MAX) { return call(&imp_api::submit, budget_us); }
  Made<imp_estimate> estimate() {
    Made<imp_estimate> made{imp_estimate_init(), {}};
    made.status = call(&imp_api::estimate, &made.value);
    return made;
  }
  Status submit(std::span<const imp_vk_semaphore> waits, std::span<const imp_vk_semaphore> signals,
                std::uint32_t budget_us = UINT32_MAX) {
    imp_submit_info info = imp_submit_info_init();
    info.budget_us = budget_us;
    info.wait_count = detail::count_of(waits.size());
    info.waits = waits.data();
    info.completion_count = detail::count_of(signals.size());
    info.completions = signals.data();
    return call(&imp_api::submit_with, &info);
  }
  // The estimated microseconds of learning that did not fit.
  Made<std::uint32_t> record(const imp_record_info& info) {
    Made<std::uint32_t> made;
    made.status = call(&imp_api::record, &info, &made.value);
    return made;
  }
  Made<std::uint32_t> record(VkCommandBuffer command_buffer, std::uint32_t budget_us = UINT32_MAX) {
    imp_record_info info = imp_record_info_init();
    info.command_buffer = command_buffer;
    info.budget_us = budget_us;
    return record(info);
  }
  Status frame_end() { return call(&imp_api::frame_end); }
  // Imprint's own, for a queue of the host's to wait for what was submitted up to now.
  Made<imp_vk_semaphore> semaphore() {
    Made<imp_vk_semaphore> made;
    made.status = call(&imp_api::context_get_semaphore, &made.value);
    return made;
  }
};

}  // namespace imprint::game

#endif  // IMPRINT_IMPRINT_HPP_
