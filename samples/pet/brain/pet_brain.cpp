#include "samples/pet/brain/pet_brain.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace pet {
namespace {

using imprint::game::Agent;
using imprint::game::Brain;
using imprint::game::BrainDesc;
using imprint::game::CoachOptions;
using imprint::game::Context;
using imprint::game::Credit;
using imprint::game::Demonstration;
using imprint::game::DqnOptions;
using imprint::game::EpisodeEnd;
using imprint::game::FeedbackOptions;
using imprint::game::FrameScope;
using imprint::game::HostDesc;
using imprint::game::Library;
using imprint::game::Limits;
using imprint::game::LogLevel;
using imprint::game::Made;
using imprint::game::Mode;
using imprint::game::Outcome;
using imprint::game::PpoOptions;
using imprint::game::StandaloneDesc;

Error error_of(const Outcome& status, const char* what) {
  return {std::string(what) + ": " + status.name() + ": " + status.message()};
}

Result<> status_of(const Outcome& status, const char* what) {
  if (!status) return error_of(status, what);
  return {};
}

template <class T>
Result<T> result_of(Made<T> made, const char* what) {
  if (!made.outcome) return error_of(made.outcome, what);
  return std::move(made.value);
}

}  // namespace

class AgentMind : public Mind {
 public:
  AgentMind(BrainContext& context, Agent agent, Learner learner)
      : context_(&context), agent_(std::move(agent)), learner_(learner) {}

  void set_goal(Cue cue) override {
    context_->good(agent_.set_goal(static_cast<std::uint32_t>(cue)), "set_goal");
  }

  void ask(const Observation& observation, const Mask& mask) override {
    context_->good(agent_.set_mask(mask), "set_mask");
    context_->good(agent_.observe(observation), "observe");
  }

  std::optional<Answer> answer() override {
    const Made<imprint::game::Action> made = agent_.act();
    if (!context_->good(made.outcome, "act") || !made.outcome.ready()) return std::nullopt;
    Answer answer;
    answer.action = static_cast<Action>(made.value.branches[0]);
    // Scales logits to the other learners' values, so that the screen shows how likely each action is.
    const float scale = learner_ == Learner::coach || learner_ == Learner::ppo ? 0.2f : 1.0f;
    for (std::size_t i = 0; i < kActionCount; ++i) answer.expected[i] = scale * made.value.values[i];
    return answer;
  }

  void feedback(float value, float weight, bool exact, double time_s) override {
    context_->good(agent_.feedback(value, time_s, exact ? Credit::current : Credit::by_onset, weight),
                   "feedback");
  }

  void reward(float value) override { context_->good(agent_.reward(value), "reward"); }

  void demonstrate(const Observation& observation, Cue cue, Action action) override {
    if (learner_ != Learner::feedback) return;  // the other learners ignore demonstrations
    Demonstration demonstration;
    demonstration.observation = observation;
    demonstration.goal = static_cast<std::uint32_t>(cue);
    demonstration.branches = {static_cast<std::uint32_t>(action)};
    context_->good(agent_.demonstrate(demonstration), "demonstrate");
  }

  // A reward belongs to its command: nothing after it counts.
  void end_episode() override { context_->good(agent_.end_episode(EpisodeEnd::terminated), "end_episode"); }

 private:
  BrainContext* context_;
  Agent agent_;
  Learner learner_;
};

namespace {

std::uint32_t snapshots_of(std::uint32_t pets) { return pets <= 16 ? 8 : 2; }

// Options of each learner for this game: its reaction time, its memory, and rates that suit it.
template <class Options>
Options tuned(const PetBrain::Setup& setup) {
  Options options;
  options.credit_delay_s = static_cast<float>(setup.reaction_s);
  // A big kennel shares the memory of 64 pets, so that its replay stays one buffer that every device can
  // bind.
  constexpr std::uint32_t kSamples = 4096, kKennelSamples = 64 * kSamples;
  if constexpr (requires { options.replay_capacity; })
    options.replay_capacity = std::min(kSamples, kKennelSamples / setup.pets);
  return options;
}

void tune(BrainDesc& desc, const PetBrain::Setup& setup, Learner learner) {
  switch (learner) {
    case Learner::feedback:
      desc.learner = tuned<FeedbackOptions>(setup);
      break;
    case Learner::dqn: {
      auto options = tuned<DqnOptions>(setup);
      options.learning_rate = 1e-3f;
      options.discount = 0.9f;
      options.exploration = 0.2f;  // instead of epsilon's random choices
      options.epsilon = 0;
      options.epsilon_decisions = 0;
      desc.learner = options;
      break;
    }
    case Learner::coach: {
      auto options = tuned<CoachOptions>(setup);
      options.learning_rate = 0.1f;
      desc.learner = options;
      break;
    }
    case Learner::ppo: {
      auto options = tuned<PpoOptions>(setup);
      options.learning_rate = 1e-3f;
      options.batch_size = 32;
      options.discount = 0.9f;
      options.rollout_steps = 64;
      options.learn_period_frames = 6;
      desc.learner = options;
      break;
    }
  }
}

Result<Brain> make_brain(Context& context, const PetBrain::Setup& setup, Learner learner) {
  BrainDesc desc;
  desc.name = setup.name.c_str();
  desc.observation_count = kObservationCount;
  desc.observation_scale = observation_scale();
  desc.goal_count = kCueCount;
  desc.branch_sizes = {kActionCount};
  desc.brain_count = setup.pets;
  desc.agents_per_brain = 1 + setup.probes;
  desc.seed = setup.seed;
  tune(desc, setup, learner);
  desc.snapshot_count = snapshots_of(setup.pets);
  // Defaults for the rest: two hidden layers of 64, answers after 2 frames.
  if (!setup.describe) return result_of(context.create_brain(desc), "create_brain");
  imp_brain_desc changed = desc;
  setup.describe(changed);
  return result_of(context.create_brain(changed), "create_brain");
}

}  // namespace

Result<std::unique_ptr<BrainContext>> BrainContext::create(const imp_vk_device_info& device,
                                                           const Setup& setup) {
  std::unique_ptr<BrainContext> made(new BrainContext(setup));
  HostDesc host(*made);
  host.shader_cache_directory =
      made->setup_.shader_cache.empty() ? nullptr : made->setup_.shader_cache.c_str();
  Limits limits;
  limits.gpu_us_per_frame = setup.budget_us;
  limits.max_slice_us = setup.slice_us;
  limits.memory_cap_bytes = std::uint64_t{1} << 30;
  const Library library(imp_get_api);
  if (setup.access == Access::cpu) {
    StandaloneDesc none;
    none.device = "cpu";
    PET_ASSIGN(made->context_, result_of(Context::create_standalone(library, none, host, limits), "imprint"));
  } else {
    PET_ASSIGN(made->context_, result_of(Context::create(library, device, host, limits), "imprint"));
  }
  PET_ASSIGN(const auto report, result_of(made->context_.report(), "report"));
  made->driver_ = report.driver;
  return made;
}

bool BrainContext::good(const Outcome& status, const char* what) {
  if (!status && failure_) failure_ = error_of(status, what);
  return static_cast<bool>(status);
}

void BrainContext::log(LogLevel level, const char* message) {
  if (level >= LogLevel::warning && setup_.log) setup_.log(message);
}

Result<> BrainContext::warmup(const std::function<void(float)>& progress) {
  const auto tell = [&](float fraction) {
    if (progress) progress(fraction);
  };
  scope_ = FrameScope::warmup;
  return status_of(context_.warmup(tell), "warmup");
}

Result<> BrainContext::begin_frame(std::uint64_t frame, std::uint64_t safe_frame, double time_s) {
  return status_of(context_.frame_begin(frame, time_s, safe_frame), "frame_begin");
}

Result<> BrainContext::send_work(VkCommandBuffer commands) {
  const FrameScope scope = std::exchange(scope_, FrameScope::frame);
  if (setup_.access == Access::record) return status_of(context_.record(commands, scope).outcome, "record");
  return status_of(context_.submit(scope), "submit");
}

Result<> BrainContext::end_frame() {
  PET_CHECK(status_of(context_.frame_end(), "frame_end"));
  return failure_;
}

void BrainContext::close(std::uint64_t last_frame, double time_s) {
  if (setup_.access != Access::record) return;  // Imprint waits for its own submits
  // With record, Imprint learns only from frame numbers what the GPU has finished.
  if (context_.frame_begin(last_frame + 1, time_s, last_frame)) (void)context_.frame_end();
}

imp_context_stats BrainContext::stats() const { return context_.stats().value; }

// A brain with its agents.
struct PetBrain::LearnerBrain {
  static Result<std::unique_ptr<LearnerBrain>> create(BrainContext& context, const Setup& setup,
                                                      Learner learner) {
    auto made = std::make_unique<LearnerBrain>();
    made->learner = learner;
    PET_ASSIGN(made->brain, make_brain(context.context(), setup, learner));
    const auto add = [&](std::uint32_t pet, Mode mode) -> Result<> {
      PET_ASSIGN(Agent agent, result_of(made->brain.create_agent(pet), "create_agent"));
      PET_CHECK(status_of(agent.set_mode(mode), "set_mode"));
      made->agents.push_back(std::make_unique<AgentMind>(context, std::move(agent), learner));
      return {};
    };
    for (std::uint32_t pet = 0; pet < setup.pets; ++pet) PET_CHECK(add(pet, Mode::learning));
    for (std::uint32_t pet = 0; pet < setup.pets; ++pet)
      for (std::uint32_t i = 0; i < setup.probes; ++i) PET_CHECK(add(pet, Mode::inference));
    return made;
  }

  Learner learner = Learner::feedback;
  Brain brain;
  std::vector<std::unique_ptr<AgentMind>> agents;  // pets, then probes
};

// One body's mind, in whichever brain is in use. A brain that comes into use gets the command in force and
// the open question.
class PetBrain::BodyMind : public Mind {
 public:
  BodyMind(PetBrain& brain, std::size_t index) : brain_(&brain), index_(index) {}

  void set_goal(Cue cue) override { agent().set_goal(cue_ = cue); }
  void ask(const Observation& observation, const Mask& mask) override {
    question_ = {observation, mask};
    agent().ask(observation, mask);
  }
  std::optional<Answer> answer() override {
    std::optional<Answer> answer = agent().answer();
    if (answer) question_.reset();
    return answer;
  }
  void feedback(float value, float weight, bool exact, double time_s) override {
    agent().feedback(value, weight, exact, time_s);
  }
  void reward(float value) override { agent().reward(value); }
  void demonstrate(const Observation& observation, Cue cue, Action action) override {
    agent().demonstrate(observation, cue, action);
  }
  void end_episode() override {
    question_.reset();
    agent().end_episode();
  }

  void leave() { agent().end_episode(); }
  void arrive() {
    agent().set_goal(cue_);
    if (question_) agent().ask(question_->observation, question_->mask);
  }

 private:
  struct Question {
    Observation observation;
    Mask mask;
  };

  AgentMind& agent() { return *brain_->used().agents[index_]; }

  PetBrain* brain_;
  std::size_t index_;
  Cue cue_ = Cue::none;
  std::optional<Question> question_;
};

PetBrain::PetBrain(BrainContext& context, const Setup& setup) : context_(&context), setup_(setup) {}

Result<std::unique_ptr<PetBrain>> PetBrain::create(BrainContext& context, const Setup& setup) {
  std::unique_ptr<PetBrain> made(new PetBrain(context, setup));
  for (const Learner learner : setup.learners) {
    PET_ASSIGN(auto brain, LearnerBrain::create(context, setup, learner));
    made->brains_.push_back(std::move(brain));
  }
  for (std::size_t i = 0; i < made->used().agents.size(); ++i)
    made->bodies_.push_back(std::make_unique<BodyMind>(*made, i));
  for (std::size_t i = 1; i < made->brains_.size(); ++i)
    PET_CHECK(status_of(made->brains_[i]->brain.set_learning(false), "set_learning"));
  return made;
}

PetBrain::~PetBrain() = default;

Mind& PetBrain::pet(std::size_t index) { return *bodies_[index]; }

Mind& PetBrain::probe(std::size_t pet, std::size_t index) {
  return *bodies_[setup_.pets + pet * setup_.probes + index];
}

Learner PetBrain::learner() const { return used().learner; }

bool PetBrain::use(Learner learner) {
  const auto found = std::find_if(brains_.begin(), brains_.end(),
                                  [&](const auto& each) { return each->learner == learner; });
  if (found == brains_.end()) return false;
  const auto wanted = static_cast<std::size_t>(found - brains_.begin());
  if (wanted == used_) return true;
  for (const auto& body : bodies_) body->leave();
  context_->good(used().brain.set_learning(false), "set_learning");
  used_ = wanted;
  context_->good(used().brain.set_learning(learning_), "set_learning");
  for (const auto& body : bodies_) body->arrive();
  return true;
}

void PetBrain::set_learning(bool on) {
  context_->good(used().brain.set_learning(on), "set_learning");
  learning_ = on;
}

Result<> PetBrain::save(const std::string& path, Which which) {
  const std::size_t index = which == Which::first ? 0 : used_;
  PET_CHECK(status_of(brains_[index]->brain.save(path.c_str()), "save"));
  saving_ = index;
  return {};
}

Result<bool> PetBrain::saved() const {
  const Outcome status = brains_[saving_]->brain.save_status();
  if (!status) return error_of(status, "save");
  return status.ready();
}

Result<> PetBrain::load(const std::string& path) {
  const Outcome status = brains_[0]->brain.load(path.c_str());
  if (!status) return Error{path + ": " + status.name() + ": " + status.message(), true};
  return {};
}

std::size_t PetBrain::snapshots_kept() const { return snapshots_of(setup_.pets); }

// Each brain counts its snapshots from 1. The remainder of the number says which brain it is.
std::uint64_t PetBrain::snapshot() {
  const auto made = used().brain.snapshot();
  context_->good(made.outcome, "snapshot");
  return made.value * brains_.size() + used_;
}

void PetBrain::restore(std::uint64_t snapshot) {
  const std::size_t index = snapshot % brains_.size();
  use(brains_[index]->learner);
  context_->good(used().brain.restore(snapshot / brains_.size()), "restore");
}

Result<std::string> PetBrain::hash() const {
  PET_ASSIGN(const imprint::game::BrainHash hash, result_of(brains_[0]->brain.hash(), "hash"));
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high),
                static_cast<unsigned long long>(hash.low));
  return std::string(text);
}

void PetBrain::each_brain(
    const std::function<void(const std::string& name, const imprint::game::Brain& brain)>& visit) const {
  for (const auto& one : brains_) visit(setup_.name + ": " + pet::name(one->learner), one->brain);
}

imp_brain_stats PetBrain::stats() const {
  imp_brain_stats stats = used().brain.stats().value;
  for (std::size_t i = 0; i < brains_.size(); ++i) {
    if (i == used_) continue;
    const imp_brain_stats other = brains_[i]->brain.stats().value;
    stats.decisions += other.decisions;
    stats.feedbacks += other.feedbacks;
    stats.demonstrations += other.demonstrations;
    stats.minibatches += other.minibatches;
    stats.late_actions += other.late_actions;
  }
  return stats;
}

std::uint64_t PetBrain::parameter_count() const { return used().brain.info().value.parameter_count; }

Result<std::string> hash_of_saved(const imp_vk_device_info& submit_device, const PetBrain::Setup& setup,
                                  const std::string& path) {
  BrainContext::Setup quiet;
  quiet.access = Access::submit;
  PET_ASSIGN(const auto context, BrainContext::create(submit_device, quiet));
  PetBrain::Setup first = setup;
  first.learners.resize(1);
  PET_ASSIGN(const auto brain, PetBrain::create(*context, first));
  PET_CHECK(context->warmup({}));
  PET_CHECK(brain->load(path));
  return brain->hash();
}

}  // namespace pet
