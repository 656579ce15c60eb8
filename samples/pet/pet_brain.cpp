#include "samples/pet/pet_brain.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace pet {
namespace {

using imprint::game::Agent;
using imprint::game::Brain;
using imprint::game::Context;
using imprint::game::Credit;
using imprint::game::EpisodeEnd;
using imprint::game::Made;
using imprint::game::Mode;
using imprint::game::Status;

void expect(const Status& status, const char* what) {
  if (!status) throw std::runtime_error(std::string(what) + ": " + status.name() + ": " + status.message());
}

template <class T>
T expect(Made<T> made, const char* what) {
  expect(made.status, what);
  return std::move(made.value);
}

class AgentMind : public Mind {
 public:
  AgentMind(Brain& brain, uint32_t index, Mode mode) : agent_(expect(brain.create_agent(index), "create_agent")) {
    expect(agent_.set_mode(mode), "set_mode");
  }

  void set_goal(Cue cue) override { expect(agent_.set_goal(static_cast<uint32_t>(cue)), "set_goal"); }

  void ask(const Observation& observation, const Mask& mask) override {
    expect(agent_.set_mask(mask), "set_mask");
    expect(agent_.observe(observation), "observe");
  }

  std::optional<Answer> answer() override {
    const Made<imp_action> made = agent_.act();
    expect(made.status, "act");
    if (!made.status.ready()) return std::nullopt;
    Answer answer;
    answer.action = static_cast<Action>(made.value.branches[0]);
    std::copy_n(made.value.values, kActionCount, answer.expected.begin());
    return answer;
  }

  void feedback(float value, float weight, bool exact, double time_s) override {
    expect(agent_.feedback(value, time_s, exact ? Credit::current : Credit::by_onset, weight), "feedback");
  }

  void reward(float value) override { expect(agent_.reward(value), "reward"); }

  void demonstrate(const Observation& observation, Cue cue, Action action) override {
    imp_demonstration demonstration = imp_demonstration_init();
    demonstration.observation = observation.data();
    demonstration.observation_count = kObservationCount;
    demonstration.goal = static_cast<uint32_t>(cue);
    demonstration.branches[0] = static_cast<uint32_t>(action);
    expect(agent_.demonstrate(demonstration), "demonstrate");
  }

  void end_episode() override { expect(agent_.end_episode(EpisodeEnd::truncated), "end_episode"); }

 private:
  Agent agent_;
};

uint32_t snapshots_of(uint32_t pets) { return pets <= 16 ? 8 : 2; }

Brain make_brain(Context& context, const PetBrain::Setup& setup) {
  const uint32_t choices = kActionCount;
  imp_brain_desc desc = imp_brain_desc_init();
  desc.name = setup.name.c_str();
  desc.observation_count = kObservationCount;
  desc.observation_scale = observation_scale().data();
  desc.goal_count = kCueCount;
  desc.branch_count = 1;
  desc.branch_sizes = &choices;
  desc.brain_count = setup.pets;
  desc.agents_per_brain = 1 + setup.probes;
  desc.seed = setup.seed;
  desc.learner = IMP_LEARNER_FEEDBACK;
  desc.credit_delay_s = static_cast<float>(setup.reaction_s);
  // A big kennel shares the memory of 64 pets, so that its replay stays one buffer that every device can bind, and keeps fewer snapshots.
  constexpr uint32_t kKennelSamples = 64 * 4096;
  desc.replay_capacity = std::min(desc.replay_capacity, kKennelSamples / setup.pets);
  desc.snapshot_count = snapshots_of(setup.pets);
  // The rest as it comes: two hidden layers of 64, a minibatch of 32 every 6 frames, 4,096 samples remembered, noise 0.2, answers after 2 frames.
  return expect(context.create_brain(desc), "create_brain");
}

}  // namespace

// ---- context -------------------------------------------------------------------------------------------------------------------------------

BrainContext::BrainContext(const imp_vk_device_info& device, const Setup& setup) : setup_(setup) {
  imp_host host = imp_host_init();
  host.log = &BrainContext::on_log;
  host.user = this;
  host.shader_cache_directory = setup_.shader_cache.empty() ? nullptr : setup_.shader_cache.c_str();
  imp_limits limits = imp_limits_init();
  limits.gpu_us_per_frame = setup_.budget_us;
  limits.max_slice_us = setup_.slice_us;
  limits.memory_cap_bytes = uint64_t{1} << 30;
  const imp_api* api = imprint::game::load(imp_get_api);
  if (setup_.access == Access::kCpu) {
    imp_standalone_info none = imp_standalone_info_init();
    none.device = "cpu";
    context_ = expect(Context::create_standalone(api, none, &host, &limits), "imprint");
  } else {
    context_ = expect(Context::create(api, device, &host, &limits), "imprint");
  }
  driver_ = expect(context_.report(), "report").driver;
}

void IMP_CALL BrainContext::on_log(void* user, imp_log_level level, const char* message) {
  const BrainContext* self = static_cast<const BrainContext*>(user);
  if (level >= IMP_LOG_WARNING && self->setup_.log) self->setup_.log(message);
}

void BrainContext::warmup(const std::function<void(float)>& progress) {
  const auto tell = [](void* user, float fraction) {
    const auto& function = *static_cast<const std::function<void(float)>*>(user);
    if (function) function(fraction);
  };
  expect(context_.warmup(tell, const_cast<std::function<void(float)>*>(&progress)), "warmup");
}

void BrainContext::begin_frame(uint64_t frame, uint64_t safe_frame, double time_s) {
  expect(context_.frame_begin(frame, time_s, safe_frame), "frame_begin");
}

void BrainContext::send_work(VkCommandBuffer commands) {
  if (setup_.access == Access::kRecord) {
    expect(context_.record(commands).status, "record");
  } else {
    expect(context_.submit(), "submit");
  }
}

void BrainContext::end_frame() { expect(context_.frame_end(), "frame_end"); }

void BrainContext::close(uint64_t last_frame, double time_s) {
  if (setup_.access != Access::kRecord) return;  // Imprint waits for its own submits
  // With record, frame numbers are all that it goes by. A frame that cannot begin leaves the context as it is.
  if (context_.frame_begin(last_frame + 1, time_s, last_frame)) (void)context_.frame_end();
}

imp_context_stats BrainContext::stats() const { return expect(context_.stats(), "stats"); }

// ---- brain -----------------------------------------------------------------------------------------------------------------------------------

PetBrain::PetBrain(BrainContext& context, const Setup& setup) : setup_(setup), brain_(make_brain(context.context(), setup)) {
  for (uint32_t pet = 0; pet < setup_.pets; ++pet) pets_.push_back(std::make_unique<AgentMind>(brain_, pet, Mode::learning));
  for (uint32_t pet = 0; pet < setup_.pets; ++pet) {
    for (uint32_t i = 0; i < setup_.probes; ++i) probes_.push_back(std::make_unique<AgentMind>(brain_, pet, Mode::inference));
  }
}

PetBrain::~PetBrain() = default;

void PetBrain::set_learning(bool on) {
  expect(brain_.set_learning(on), "set_learning");
  learning_ = on;
}

void PetBrain::save(const std::string& path) { expect(brain_.save(path.c_str()), "save"); }

bool PetBrain::saved() const {
  const Status status = brain_.save_status();
  expect(status, "save");
  return status.ready();
}

void PetBrain::load(const std::string& path) {
  const Status status = brain_.load(path.c_str());
  if (!status) throw LoadError(path + ": " + status.name() + ": " + status.message());
}

size_t PetBrain::snapshots_kept() const { return snapshots_of(setup_.pets); }

uint64_t PetBrain::snapshot() { return expect(brain_.snapshot(), "snapshot"); }

void PetBrain::restore(uint64_t snapshot) { expect(brain_.restore(snapshot), "restore"); }

std::string PetBrain::hash() const {
  const imprint::game::BrainHash hash = expect(brain_.hash(), "hash");
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high), static_cast<unsigned long long>(hash.low));
  return text;
}

imp_brain_stats PetBrain::stats() const { return expect(brain_.stats(), "stats"); }

uint64_t PetBrain::parameter_count() const { return expect(brain_.info(), "info").parameter_count; }

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
