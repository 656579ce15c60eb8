#ifndef IMPRINT_IMPRINT_HPP_
#define IMPRINT_IMPRINT_HPP_
// Imprint in C++20: owners for the handles, descriptors without pointers, enum classes, spans.
// Header-only; no state, no exceptions, and no allocation except of lists that it returns.
// Contracts, threads and units are those of the C function of the same name.
//
//   using namespace imprint::game;
//   const Library library(imp_get_api);
//   Made<Context> context = Context::create(library, device);
//   Made<Brain> brain = context->create_brain(BrainDesc::of(DqnOptions(), 28, {10}));
//   Made<Agent> agent = brain->create_agent();
//   if (!agent) return fail(agent.outcome.message());     // names the call that failed first
//   if (const Outcome warm = context->warmup(); !warm) return fail(warm.message());
//   Frames clock(2);                                      // frames in flight
//
//   Frame frame(*context, clock.next(1.0 / 60));          // in each frame of the game
//   const Action action = frame.act(*agent);
//   if (action.is_new) {                                  // a decision is due: carry it out
//     frame.keep(agent->reward(world.step(action.choices()[0])));
//     if (world.over()) frame.keep(agent->end_episode(EpisodeEnd::terminated));
//   }
//   if (action.wants_observation) frame.keep(agent->observe(world.look()));
//   frame.record(commands);                               // or frame.submit()
//   if (const Outcome outcome = frame.end(); !outcome) return fail(outcome.message());
//
//   context->close();                                     // when the GPU has completed all of it
//
// Every call returns an Outcome or a Made<T>. Owners destroy what they hold: declare them in the
// order context, tensor, brain or model, agent. Only an Agent may begin and end in an open frame:
// the object of another owner then stays until the context goes. Parameters of a C struct take its
// C++ form.

#include <vector>

#include "imprint_descs.hpp"
#include "imprint_models.hpp"
#include "imprint_owner.hpp"
#include "imprint_types.hpp"

namespace imprint::game {

// imp_action with spans over what it holds.
struct Action : imp_action {
  Action() : imp_action(imp_action_init()) {}

  bool wants_observation = false;  // no answer is on its way: observe now

  std::span<const std::uint32_t> choices() const { return {branches, branch_count}; }
  std::span<const float> numbers() const { return {continuous, continuous_count}; }
  std::span<const float> outputs() const { return {values, value_count}; }
};

class Agent : public detail::Owner<imp_agent, &imp_api::agent_destroy> {
 public:
  using Owner::Owner;

  Outcome set_mode(Mode mode) {
    return call(&imp_api::agent_set_mode, static_cast<imp_mode>(mode));
  }
  Outcome set_goal(std::uint32_t goal) { return call(&imp_api::agent_set_goal, goal); }
  // An empty mask is refused: allow_all() allows all.
  Outcome set_mask(std::span<const std::uint8_t> allowed) {
    constexpr std::uint8_t kNothing = 0;
    return call(&imp_api::agent_set_mask, allowed.empty() ? &kNothing : allowed.data(),
                detail::count_of(allowed.size()));
  }
  Outcome allow_all() { return call(&imp_api::agent_set_mask, nullptr, 0u); }

  Outcome observe(std::span<const float> observation) {
    return call(&imp_api::agent_observe, observation.data(), detail::count_of(observation.size()));
  }
  Outcome observe_in_place(std::uint64_t first) {
    return call(&imp_vulkan_api::agent_observe_in_place, first);
  }
  // False also while the answer is not due: outcome.code() is then Code::not_ready.
  Made<Action> act() {
    Made<Action> made;
    made.outcome = call(&imp_api::agent_act, &made.value);
    made.value.wants_observation = made.outcome.ready() || made.outcome.code() == Code::not_found;
    return made;
  }
  // Acts by other weights: an entry of the brain's pool, or IMP_OPPONENT_*. Returns what was drawn.
  Made<std::uint32_t> set_opponent(std::uint32_t opponent = IMP_OPPONENT_DRAWN) {
    return fill(std::uint32_t{}, &imp_api::agent_set_opponent, opponent);
  }
  // 1: this agent won, 0.5: a draw, 0: it lost.
  Outcome report_match(const Agent& against, float score) {
    return call(&imp_api::match_report, against.handle(), score);
  }
  Outcome set_group(std::uint32_t group) { return call(&imp_api::agent_set_group, group); }
  Outcome group_reward(float reward) { return call(&imp_api::agent_group_reward, reward); }
  Outcome end_group_episode(EpisodeEnd end) {
    return call(&imp_api::agent_end_group_episode, static_cast<imp_episode_end>(end));
  }
  Outcome act_by_heuristic(std::span<const std::uint32_t> branches,
                           std::span<const float> continuous = {}) {
    return call(&imp_api::agent_heuristic, branches.data(), detail::count_of(branches.size()),
                continuous.data(), detail::count_of(continuous.size()));
  }

  Outcome feedback(float value, double time_s, Credit credit = Credit::by_onset,
                   float weight = 1.0f) {
    imp_feedback feedback = imp_feedback_init();
    feedback.value = value;
    feedback.weight = weight;
    feedback.credit = static_cast<imp_credit>(credit);
    feedback.time_s = time_s;
    return call(&imp_api::agent_feedback, &feedback);
  }
  Outcome demonstrate(const imp_demonstration& demonstration) {
    return call(&imp_api::agent_demonstrate, &demonstration);
  }
  Outcome demonstrate(const Demonstration& demonstration) {
    return demonstrate(static_cast<imp_demonstration>(demonstration));
  }
  Outcome reward(float reward) { return call(&imp_api::agent_reward, reward); }
  Outcome end_episode(EpisodeEnd end) {
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
    const Made<imp_agent> made = fill(imp_agent{}, &imp_api::agent_create, brain_index);
    return {Agent(api_, made.value), made.outcome};
  }
  // All of them, or none.
  Made<std::vector<Agent>> create_agents(std::uint32_t count, std::uint32_t brain_index = 0) {
    Made<std::vector<Agent>> made{{}, {api_, api_ ? IMP_OK : IMP_ERROR_WRONG_STATE}};
    for (std::uint32_t i = 0; i < count && made; ++i) {
      Made<Agent> agent = create_agent(brain_index);
      made.outcome = agent.outcome;
      made->push_back(std::move(*agent));
    }
    if (!made) made->clear();
    return made;
  }
  Made<imp_brain_info> info() const {
    return fill(imp_brain_info_init(), &imp_api::brain_get_info);
  }
  Outcome set_learning(bool enabled) {
    return call(&imp_api::brain_set_learning, enabled ? 1u : 0u);
  }

  Outcome save(Text path) { return call(&imp_api::brain_save, path.c_str()); }
  Outcome save_status() const { return call(&imp_api::brain_save_status); }
  Outcome load(Text path) { return call(&imp_api::brain_load, path.c_str()); }
  Outcome load_weights(Text path) { return call(&imp_api::brain_load_weights, path.c_str()); }
  // Demonstrations of a file, added to one brain of a kennel or to all. Returns how many it has.
  Made<std::uint32_t> load_demonstrations(Text path, std::uint32_t brain_index = UINT32_MAX) {
    return fill(std::uint32_t{}, &imp_tools_api::brain_load_demonstrations, path.c_str(),
                brain_index);
  }
  Outcome save_demonstrations(Text path, std::uint32_t brain_index = 0) const {
    return call(&imp_tools_api::brain_save_demonstrations, path.c_str(), brain_index);
  }
  Outcome keep_opponent(std::uint32_t brain_index = 0) {
    return call(&imp_api::brain_keep_opponent, brain_index);
  }
  Made<imp_opponent> opponent(std::uint32_t index, std::uint32_t brain_index = 0) const {
    return fill(imp_opponent_init(), &imp_api::brain_get_opponent, brain_index, index);
  }
  Outcome clear_demonstrations() { return call(&imp_tools_api::brain_clear_demonstrations); }
  Made<std::uint64_t> snapshot() { return fill(std::uint64_t{}, &imp_api::brain_snapshot); }
  Outcome restore(std::uint64_t snapshot) { return call(&imp_api::brain_restore, snapshot); }

  Made<imp_brain_stats> stats() const {
    return fill(imp_brain_stats_init(), &imp_tools_api::brain_get_stats);
  }
  Made<BrainHash> hash() const {
    Made<BrainHash> made;
    made.outcome = call(&imp_tools_api::brain_hash, &made.value.low, &made.value.high);
    return made;
  }
  Made<imp_state_array> state_array(std::uint32_t index) const {
    return fill(imp_state_array_init(), &imp_tools_api::brain_get_state_array, index);
  }
  Made<std::size_t> state(std::span<std::byte> into = {}) const {
    return copy_out(&imp_tools_api::brain_get_state, into);
  }
  Made<imp_curves> curves(std::uint64_t row = UINT64_MAX) const {
    return fill(imp_curves_init(), &imp_tools_api::brain_get_curves, row);
  }
  Outcome write_curves(Text path) const {
    return call(&imp_tools_api::brain_write_curves, path.c_str());
  }
  Outcome set_state(std::span<const std::byte> data) {
    return call(&imp_tools_api::brain_set_state, data.data(), data.size());
  }
  Made<std::size_t> take_experience(std::span<std::byte> into = {}) {
    return copy_out(&imp_tools_api::brain_take_experience, into);
  }
  Outcome give_experience(std::uint32_t source, std::span<const std::byte> data) {
    return call(&imp_tools_api::brain_give_experience, source, data.data(), data.size());
  }
  Outcome forget_returns() { return call(&imp_tools_api::brain_forget_returns); }
};

// Must outlive the brains that use it.
class Tensor : public detail::Owner<imp_tensor, &imp_vulkan_api::tensor_destroy> {
 public:
  using Owner::Owner;

  // Where it is; families is empty.
  Made<BufferDesc> buffer() const {
    const Made<imp_vk_buffer> made = fill(imp_vk_buffer_init(), &imp_vulkan_api::tensor_export_vk);
    return {detail::cpp_form(made.value), made.outcome};
  }
  Outcome acquire() { return call(&imp_vulkan_api::tensor_acquire); }
  Outcome release_to_host() { return call(&imp_vulkan_api::tensor_release); }
};

class Context : public detail::Owner<imp_context, &imp_api::context_destroy> {
 public:
  using Owner::Owner;
  Context() = default;
  Context(Context&&) noexcept = default;
  Context& operator=(Context&& other) noexcept {
    if (this != &other) {
      reset();
      Owner::operator=(std::move(other));
      wait_ = other.wait_;
      wait_user_ = other.wait_user_;
    }
    return *this;
  }
  ~Context() { reset(); }

  static Made<Context> create(const Library& library, const imp_vk_device_info& device,
                              const imp_host& host = HostDesc(),
                              const imp_limits& limits = Limits()) {
    if (!library) return {};
    imp_context context{};
    const imp_result result = library.api()->context_create(&device, &host, &limits, &context);
    return {Context(library.api(), context), {library.api(), result}};
  }
  static Made<Context> create_standalone(const Library& library, const imp_standalone_info& device,
                                         const imp_host& host = HostDesc(),
                                         const imp_limits& limits = Limits()) {
    if (!library) return {};
    imp_context context{};
    const imp_result result =
        library.api()->tools->context_create_standalone(&device, &host, &limits, &context);
    return {Context(library.api(), context), {library.api(), result}};
  }
  // Destroys now and tells the outcome; on failure the context stays.
  Outcome destroy() {
    const Outcome destroyed = call(&imp_api::context_destroy);
    if (destroyed) handle_ = {};
    return destroyed;
  }
  // Destroys now, even if a save fails. Where recorded frames may still run it first calls the
  // function of wait_idle_with(); without one the context stays. The log has each failure.
  void reset() {
    if (handle_.id == 0) return;
    bool gone = destroy().ok();
    if (!gone && wait_) {
      wait_(wait_user_);
      gone = device_idle() && destroy();
    }
    if (!gone) (void)destroy();  // a lost save is said once
    handle_ = {};
  }
  // wait(), for the destructor: waits until the host's device is idle, as vkDeviceWaitIdle does.
  // It must live as long as the context.
  template <class Wait>
  void wait_idle_with(Wait& wait) {
    wait_ = [](void* user) { (*static_cast<Wait*>(user))(); };
    wait_user_ = detail::user_of(wait);
  }
  // The host waited until its device is idle: all recorded frames count as complete.
  Outcome device_idle() { return call(&imp_vulkan_api::context_device_idle); }
  // Waits for saves, then destroys; on failure the context stays. A host that records first waits
  // until its device is idle. A context that submits, or is standalone, waits for the GPU itself.
  Outcome close() {
    const Outcome idle = device_idle();
    if (!idle && idle.code() != Code::device_lost) return idle;
    return destroy();
  }

  Made<Brain> create_brain(const imp_brain_desc& desc) {
    const Made<imp_brain> made = fill(imp_brain{}, &imp_api::brain_create, &desc);
    return {Brain(api_, made.value), made.outcome};
  }
  Made<Brain> create_brain(const BrainDesc& desc) {
    if (!desc.observation_scale.empty() && desc.observation_scale.size() != desc.observation_count)
      return {{},
              {api_, IMP_ERROR_INVALID_ARGUMENT,
               "brain_create: observation_scale: expected observation_count factors, or none"}};
    return create_brain(static_cast<imp_brain_desc>(desc));
  }
  Made<Brain> create_brain_from_onnx(const imp_policy_desc& desc) {
    const Made<imp_brain> made = fill(imp_brain{}, &imp_api::brain_create_from_onnx, &desc);
    return {Brain(api_, made.value), made.outcome};
  }
  Made<Model> create_model(const imp_model_desc& desc) {
    const Made<imp_model> made = fill(imp_model{}, &imp_models_api::model_create, &desc);
    return {Model(api_, made.value), made.outcome};
  }
  Made<Tensor> import_tensor(const imp_tensor_desc& desc, const imp_vk_buffer& buffer) {
    const Made<imp_tensor> made =
        fill(imp_tensor{}, &imp_vulkan_api::tensor_import_vk, &desc, &buffer);
    return {Tensor(api_, made.value), made.outcome};
  }
  Made<Tensor> create_tensor(const imp_tensor_desc& desc, const imp_vk_buffer& wish) {
    const Made<imp_tensor> made =
        fill(imp_tensor{}, &imp_vulkan_api::tensor_create_vk, &desc, &wish);
    return {Tensor(api_, made.value), made.outcome};
  }

  Outcome warmup() { return call(&imp_api::context_warmup, nullptr, nullptr); }
  // progress(float fraction), from 0 to 1.
  template <class Progress>
  Outcome warmup(Progress&& progress) {
    using Called = std::remove_reference_t<Progress>;
    const auto tell = [](void* user, float fraction) { (*static_cast<Called*>(user))(fraction); };
    return call(&imp_api::context_warmup, +tell, detail::user_of(progress));
  }
  Outcome set_limits(const imp_limits& limits) {
    return call(&imp_api::context_set_limits, &limits);
  }
  Outcome drain(std::uint32_t timeout_ms) { return call(&imp_api::context_drain, timeout_ms); }
  Outcome quiesce(std::uint32_t timeout_ms) { return call(&imp_api::context_quiesce, timeout_ms); }
  Outcome resume() { return call(&imp_api::context_resume); }
  // The bytes given back.
  Made<std::uint64_t> trim() { return fill(std::uint64_t{}, &imp_api::context_trim); }
  Outcome notify_device_lost() { return call(&imp_api::context_notify_device_lost); }

  Outcome frame_begin(const imp_frame_info& info) { return call(&imp_api::frame_begin, &info); }
  Outcome frame_begin(std::uint64_t frame, double time_s, std::uint64_t safe_frame = 0,
                      std::uint32_t host_gpu_us = 0) {
    imp_frame_info info = imp_frame_info_init();
    info.frame = frame;
    info.safe_frame = safe_frame;
    info.time_s = time_s;
    info.host_gpu_us = host_gpu_us;
    return frame_begin(info);
  }
  Outcome submit(std::uint32_t budget_us = kWholeBudget) {
    return call(&imp_api::frame_submit, budget_us);
  }
  Outcome submit(FrameScope scope) {
    imp_submit_info info = imp_submit_info_init();
    info.scope = static_cast<imp_frame_scope>(scope);
    return call(&imp_vulkan_api::frame_submit_with, &info);
  }
  Outcome submit(std::span<const imp_vk_semaphore> waits,
                 std::span<const imp_vk_semaphore> completions,
                 std::uint32_t budget_us = kWholeBudget) {
    imp_submit_info info = imp_submit_info_init();
    info.budget_us = budget_us;
    info.wait_count = detail::count_of(waits.size());
    info.waits = waits.data();
    info.completion_count = detail::count_of(completions.size());
    info.completions = completions.data();
    return call(&imp_vulkan_api::frame_submit_with, &info);
  }
  // The estimated microseconds of learning that did not fit.
  Made<std::uint32_t> record(const imp_record_info& info) {
    return fill(std::uint32_t{}, &imp_vulkan_api::frame_record, &info);
  }
  Made<std::uint32_t> record(VkCommandBuffer command_buffer, FrameScope scope) {
    imp_record_info info = imp_record_info_init();
    info.command_buffer = command_buffer;
    info.scope = static_cast<imp_frame_scope>(scope);
    return record(info);
  }
  // state: imp_record_state bits that hold.
  Made<std::uint32_t> record(VkCommandBuffer command_buffer, std::uint32_t budget_us = kWholeBudget,
                             std::uint32_t state = 0) {
    imp_record_info info = imp_record_info_init();
    info.command_buffer = command_buffer;
    info.budget_us = budget_us;
    info.state = state;
    return record(info);
  }
  Outcome frame_end() { return call(&imp_api::frame_end); }
  // Imprint's own, for the host's queues to wait for.
  Made<imp_vk_semaphore> semaphore() {
    return fill(imp_vk_semaphore{}, &imp_vulkan_api::context_get_semaphore);
  }

  Made<imp_report> report() const {
    return fill(imp_report_init(), &imp_tools_api::context_get_report);
  }
  // The bytes of the text, with its NUL.
  Made<std::size_t> report_text(std::span<char> into = {}) const {
    return copy_out(&imp_tools_api::context_get_report_text, into);
  }
  Made<imp_missing_feature> missing_feature(std::uint32_t index) const {
    return fill(imp_missing_feature_init(), &imp_tools_api::context_get_missing_feature, index);
  }
  Made<const char*> missing_feature_remedy(std::uint32_t index, Engine engine = Engine::own) const {
    return fill(static_cast<const char*>(""), &imp_tools_api::missing_feature_remedy, index,
                static_cast<imp_engine>(engine));
  }
  Made<imp_context_stats> stats() const {
    return fill(imp_context_stats_init(), &imp_tools_api::context_get_stats);
  }
  Made<imp_estimate> estimate() const {
    return fill(imp_estimate_init(), &imp_tools_api::frame_estimate);
  }
  // The jobs that still wait.
  Made<std::uint32_t> run_jobs(std::uint32_t budget_us = UINT32_MAX) {
    return fill(std::uint32_t{}, &imp_tools_api::context_run_jobs, budget_us);
  }
  Made<std::size_t> pipeline_cache(std::span<std::byte> into = {}) const {
    return copy_out(&imp_tools_api::pipeline_cache_get, into);
  }
  Outcome set_pipeline_cache(std::span<const std::byte> data) {
    return call(&imp_tools_api::pipeline_cache_set, data.data(), data.size());
  }
  Made<std::size_t> tuning(std::span<char> into = {}) const {
    return copy_out(&imp_tools_api::tuning_get, into);
  }
  Outcome set_tuning(std::span<const char> text) {
    return call(&imp_tools_api::tuning_set, text.data(), text.size());
  }
  Outcome stop_tuning() { return call(&imp_tools_api::tuning_stop); }

 private:
  void (*wait_)(void* user) = nullptr;
  void* wait_user_ = nullptr;
};

// From frame_begin to frame_end, which the destructor calls if the host did not. Calls after a
// failure are made nevertheless; end() returns the first failure.
class [[nodiscard]] Frame {
 public:
  Frame(Context& context, const imp_frame_info& now) : context_(context) {
    open_ = keep(context.frame_begin(now));
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() { (void)end(); }

  // Notes a failure; the first one counts. Its text stays until this thread's next failed frame.
  bool keep(const Outcome& outcome) {
    if (!outcome && first_)
      first_ = {context_.api(), outcome.result(), detail::kept_text(outcome.message())};
    return outcome.ok();
  }
  // Without a due decision is_new is 0.
  Action act(Agent& agent) {
    const Made<Action> made = agent.act();
    if (made.outcome.code() != Code::not_found) keep(made.outcome);
    return made.value;
  }
  bool record(VkCommandBuffer commands, FrameScope scope = FrameScope::frame) {
    return keep(context_.record(commands, scope).outcome);
  }
  bool submit(FrameScope scope = FrameScope::frame) { return keep(context_.submit(scope)); }
  bool submit(std::span<const imp_vk_semaphore> waits,
              std::span<const imp_vk_semaphore> completions) {
    return keep(context_.submit(waits, completions));
  }
  Outcome end() {
    if (std::exchange(open_, false)) keep(context_.frame_end());
    return first_;
  }

 private:
  Context& context_;
  Outcome first_{nullptr, IMP_OK};
  bool open_ = false;
};

// The host's VkDeviceCreateInfo with the features that Imprint wishes for. Keep it until the
// context is made.
class MergedDevice {
 public:
  MergedDevice() = default;
  MergedDevice(const imp_api* api, const imp_vk_merged& merged) : api_(api), merged_(merged) {}
  MergedDevice(MergedDevice&& other) noexcept
      : api_(other.api_), merged_(std::exchange(other.merged_, imp_vk_merged_init())) {}
  MergedDevice& operator=(MergedDevice&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(merged_, other.merged_);
    return *this;
  }
  ~MergedDevice() {
    if (merged_.owner) api_->vulkan->merged_free(&merged_);
  }

  explicit operator bool() const { return merged_.owner != nullptr; }
  const VkDeviceCreateInfo& create_info() const {
    return *static_cast<const VkDeviceCreateInfo*>(merged_.create_info);
  }
  // The chain for DeviceDesc::features. DeviceDesc::enabled_features stay the host's.
  FeatureChain features() const { return FeatureChain(merged_.features); }
  Names device_extensions() const {
    return std::span(merged_.device_extensions, merged_.device_extension_count);
  }
  // Names of wishes that stay off: see imp_vk_merged::left_off.
  const char* left_off() const { return merged_.left_off ? merged_.left_off : ""; }

 private:
  const imp_api* api_ = nullptr;
  imp_vk_merged merged_ = imp_vk_merged_init();
};

// How many features Imprint would use; fills `into` unless it is empty.
inline Made<std::uint32_t> query_requirements(const Library& library, const imp_vk_plan& plan,
                                              std::span<imp_vk_wish> into = {}) {
  if (!library) return {};
  Made<std::uint32_t> made{detail::count_of(into.size()), {}};
  made.outcome = {library.api(), library.api()->vulkan->plan_query_requirements(
                                     &plan, &made.value, into.empty() ? nullptr : into.data())};
  return made;
}

// How many queue families would help; fills `into` unless it is empty.
inline Made<std::uint32_t> query_extra_queues(const Library& library, const imp_vk_plan& plan,
                                              std::span<imp_vk_extra_queue> into = {}) {
  if (!library) return {};
  Made<std::uint32_t> made{detail::count_of(into.size()), {}};
  made.outcome = {library.api(), library.api()->vulkan->plan_query_extra_queues(
                                     &plan, &made.value, into.empty() ? nullptr : into.data())};
  return made;
}

inline Made<MergedDevice> merge_device_create_info(const Library& library, const imp_vk_plan& plan,
                                                   const VkDeviceCreateInfo& create_info) {
  if (!library) return {};
  imp_vk_merged merged = imp_vk_merged_init();
  const imp_result result =
      library.api()->vulkan->plan_merge_device_create_info(&plan, &create_info, &merged);
  return {MergedDevice(library.api(), merged), {library.api(), result}};
}

}  // namespace imprint::game

#endif  // IMPRINT_IMPRINT_HPP_
