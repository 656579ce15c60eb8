#include "samples/pet/pet_brain.h"

#include <cstdio>
#include <stdexcept>

namespace pet {

// ---- context -------------------------------------------------------------------------------------------------------------------------------

BrainContext::BrainContext(const imp_vk_device_info& device, const Setup& setup) : setup_(setup) {
  if (imp_get_api(IMP_ABI_VERSION, &api_) < 0) throw std::runtime_error("libimprint is of another version than this game was built with");
  imp_host host = imp_host_init();
  host.log = &BrainContext::on_log;
  host.user = this;
  host.shader_cache_directory = setup_.shader_cache.empty() ? nullptr : setup_.shader_cache.c_str();
  imp_limits limits = imp_limits_init();
  limits.gpu_us_per_frame = setup_.budget_us;
  limits.max_slice_us = setup_.slice_us;
  limits.memory_cap_bytes = uint64_t{1} << 30;
  check(api_->context_create(&device, &host, &limits, &context_), "context_create");
}

BrainContext::~BrainContext() { api_->context_destroy(context_); }

void IMP_CALL BrainContext::on_log(void* user, imp_log_level level, const char* message) {
  const BrainContext* self = static_cast<const BrainContext*>(user);
  if (level >= IMP_LOG_WARNING && self->setup_.log) self->setup_.log(message);
}

void BrainContext::check(imp_result result, const char* call) const {
  if (result >= 0) return;
  throw std::runtime_error(std::string("imprint ") + call + ": " + api_->result_name(result) + ": " + api_->last_error());
}

void BrainContext::warmup(const std::function<void(float)>& progress) {
  const auto tell = [](void* user, float fraction) {
    const auto& function = *static_cast<const std::function<void(float)>*>(user);
    if (function) function(fraction);
  };
  check(api_->warmup(context_, tell, const_cast<std::function<void(float)>*>(&progress)), "warmup");
}

void BrainContext::begin_frame(uint64_t frame, uint64_t safe_frame, double time_s) {
  imp_frame_info info = imp_frame_info_init();
  info.frame = frame;
  info.safe_frame = safe_frame;
  info.time_s = time_s;
  check(api_->frame_begin(context_, &info), "frame_begin");
}

void BrainContext::send_work(VkCommandBuffer commands) {
  if (setup_.access == Access::kSubmit) {
    check(api_->submit(context_, UINT32_MAX), "submit");
    return;
  }
  imp_record_info info = imp_record_info_init();
  info.command_buffer = commands;
  check(api_->record(context_, &info, nullptr), "record");
}

void BrainContext::end_frame() { check(api_->frame_end(context_), "frame_end"); }

void BrainContext::close(uint64_t last_frame, double time_s) {
  if (setup_.access == Access::kSubmit) return;
  // With record the library learns from frame numbers alone that the GPU is done.
  imp_frame_info info = imp_frame_info_init();
  info.frame = last_frame + 1;
  info.safe_frame = last_frame;
  info.time_s = time_s;
  api_->frame_begin(context_, &info);
  api_->frame_end(context_);
}

imp_context_stats BrainContext::stats() const {
  imp_context_stats stats = imp_context_stats_init();
  check(api_->context_get_stats(context_, &stats), "context_get_stats");
  return stats;
}

// ---- one agent -------------------------------------------------------------------------------------------------------------------------------

class PetBrain::AgentMind : public Mind {
 public:
  AgentMind(BrainContext& context, imp_brain brain, uint32_t index, imp_mode mode) : context_(context) {
    context_.check(api().agent_create(brain, index, &agent_), "agent_create");
    context_.check(api().agent_set_mode(agent_, mode), "agent_set_mode");
  }
  ~AgentMind() override { api().agent_destroy(agent_); }

  void set_goal(Cue cue) override { context_.check(api().agent_set_goal(agent_, static_cast<uint32_t>(cue)), "agent_set_goal"); }

  void ask(const Observation& observation, const Mask& mask) override {
    context_.check(api().agent_set_mask(agent_, mask.data(), kActionCount), "agent_set_mask");
    context_.check(api().agent_observe(agent_, observation.data(), kObservationCount), "agent_observe");
  }

  std::optional<Answer> answer() override {
    imp_action action = imp_action_init();
    const imp_result result = api().agent_act(agent_, &action);
    if (result == IMP_NOT_READY) return std::nullopt;
    context_.check(result, "agent_act");
    Answer answer;
    answer.action = static_cast<Action>(action.branches[0]);
    std::copy_n(action.values, kActionCount, answer.expected.begin());
    return answer;
  }

  void feedback(float value, float weight, bool exact, double time_s) override {
    imp_feedback feedback = imp_feedback_init();
    feedback.value = value;
    feedback.weight = weight;
    feedback.credit = exact ? IMP_CREDIT_CURRENT : IMP_CREDIT_BY_ONSET;
    feedback.time_s = time_s;
    context_.check(api().agent_feedback(agent_, &feedback), "agent_feedback");
  }

  void demonstrate(const Observation& observation, Cue cue, Action action) override {
    imp_demonstration demonstration = imp_demonstration_init();
    demonstration.observation = observation.data();
    demonstration.observation_count = kObservationCount;
    demonstration.goal = static_cast<uint32_t>(cue);
    demonstration.branches[0] = static_cast<uint32_t>(action);
    context_.check(api().agent_demonstrate(agent_, &demonstration), "agent_demonstrate");
  }

  void end_episode() override { context_.check(api().agent_end_episode(agent_, IMP_EPISODE_TRUNCATED), "agent_end_episode"); }

 private:
  const imp_api& api() const { return context_.api(); }

  BrainContext& context_;
  imp_agent agent_{};
};

// ---- brain -----------------------------------------------------------------------------------------------------------------------------------

PetBrain::PetBrain(BrainContext& context, const Setup& setup) : context_(&context), setup_(setup) {
  const uint32_t choices = kActionCount;
  imp_brain_desc desc = imp_brain_desc_init();
  desc.name = setup_.name.c_str();
  desc.observation_count = kObservationCount;
  desc.observation_scale = observation_scale().data();
  desc.goal_count = kCueCount;
  desc.branch_count = 1;
  desc.branch_sizes = &choices;
  desc.brain_count = setup_.pets;
  desc.agents_per_brain = 1 + setup_.probes;
  desc.seed = setup_.seed;
  desc.learner = IMP_LEARNER_FEEDBACK;
  desc.snapshot_count = 8;
  // Two hidden layers of 64, minibatches of 32 every 6 frames, 4,096 samples remembered, noise 0.2, answers after 2 frames: the defaults.
  context.check(context.api().brain_create(context.handle(), &desc, &brain_), "brain_create");
  for (uint32_t pet = 0; pet < setup_.pets; ++pet) pets_.push_back(std::make_unique<AgentMind>(context, brain_, pet, IMP_MODE_LEARNING));
  for (uint32_t pet = 0; pet < setup_.pets; ++pet) {
    for (uint32_t i = 0; i < setup_.probes; ++i) probes_.push_back(std::make_unique<AgentMind>(context, brain_, pet, IMP_MODE_INFERENCE));
  }
}

PetBrain::~PetBrain() {
  pets_.clear();
  probes_.clear();
  context_->api().brain_destroy(brain_);
}

void PetBrain::set_learning(bool on) {
  context_->check(context_->api().brain_set_learning(brain_, on ? 1 : 0), "brain_set_learning");
  learning_ = on;
}

void PetBrain::save(const std::string& path) { context_->check(context_->api().brain_save(brain_, path.c_str()), "brain_save"); }

bool PetBrain::saved() {
  const imp_result result = context_->api().brain_save_status(brain_);
  context_->check(result, "brain_save_status");
  return result != IMP_NOT_READY;
}

void PetBrain::load(const std::string& path) { context_->check(context_->api().brain_load(brain_, path.c_str()), "brain_load"); }

uint64_t PetBrain::snapshot() {
  uint64_t id = 0;
  context_->check(context_->api().brain_snapshot(brain_, &id), "brain_snapshot");
  return id;
}

void PetBrain::restore(uint64_t snapshot) { context_->check(context_->api().brain_restore(brain_, snapshot), "brain_restore"); }

std::string PetBrain::hash() const {
  uint64_t low = 0;
  uint64_t high = 0;
  context_->check(context_->api().brain_hash(brain_, &low, &high), "brain_hash");
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high), static_cast<unsigned long long>(low));
  return text;
}

imp_brain_stats PetBrain::stats() const {
  imp_brain_stats stats = imp_brain_stats_init();
  context_->check(context_->api().brain_get_stats(brain_, &stats), "brain_get_stats");
  return stats;
}

uint64_t PetBrain::parameter_count() const {
  imp_brain_info info = imp_brain_info_init();
  context_->check(context_->api().brain_get_info(brain_, &info), "brain_get_info");
  return info.parameter_count;
}

std::string hash_of_saved(const imp_vk_device_info& submit_device, const PetBrain::Setup& setup, const std::string& path) {
  BrainContext::Setup quiet;
  quiet.access = Access::kSubmit;
  BrainContext context(submit_device, quiet);
  PetBrain brain(context, setup);
  context.warmup({});
  brain.load(path);
  return brain.hash();
}

}  // namespace pet
