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
using imprint::game::HostDesc;
using imprint::game::Library;
using imprint::game::Limits;
using imprint::game::LogLevel;
using imprint::game::Made;
using imprint::game::Mode;
using imprint::game::Outcome;
using imprint::game::PpoOptions;
using imprint::game::StandaloneDesc;

void expect(const Outcome& status, const char* what) {
  if (!status) throw std::runtime_error(std::string(what) + ": " + status.name() + ": " + status.message());
}

template <class T>
T expect(Made<T> made, const char* what) {
  expect(made.outcome, what);
  return std::move(made.value);
}

}  // namespace

class AgentMind : public Mind {
 public:
  AgentMind(Brain& brain, std::uint32_t index, Mode mode, Learner learner)
      : agent_(expect(brain.create_agent(index), "create_agent")), learner_(learner) {
    expect(agent_.set_mode(mode), "set_mode");
  }

  void set_goal(Cue cue) override { expect(agent_.set_goal(static_cast<std::uint32_t>(cue)), "set_goal"); }

  void ask(const Observation& observation, const Mask& mask) override {
    expect(agent_.set_mask(mask), "set_mask");
    expect(agent_.observe(observation), "observe");
  }

  std::optional<Answer> answer() override {
    const Made<imprint::game::Action> made = agent_.act();
    expect(made.outcome, "act");
    if (!made.outcome.ready()) return std::nullopt;
    Answer answer;
    answer.action = static_cast<Action>(made.value.branches[0]);
    // Logits on the scale of the others' values, so that what is shown of them is how likely it acts.
    const float scale = learner_ == Learner::coach || learner_ == Learner::ppo ? 0.2f : 1.0f;
    for (std::size_t i = 0; i < kActionCount; ++i) answer.expected[i] = scale * made.value.values[i];
    return answer;
  }

  void feedback(float value, float weight, bool exact, double time_s) override {
    expect(agent_.feedback(value, time_s, exact ? Credit::current : Credit::by_onset, weight), "feedback");
  }

  void reward(float value) override { expect(agent_.reward(value), "reward"); }

  void demonstrate(const Observation& observation, Cue cue, Action action) override {
    if (learner_ != Learner::feedback) return;  // it is led through the trick, and makes nothing of it
    Demonstration demonstration;
    demonstration.observation = observation;
    demonstration.goal = static_cast<std::uint32_t>(cue);
    demonstration.branches = {static_cast<std::uint32_t>(action)};
    expect(agent_.demonstrate(demonstration), "demonstrate");
  }

  // Whatever was rewarded, nothing of it comes after the command that it was for.
  void end_episode() override { expect(agent_.end_episode(EpisodeEnd::terminated), "end_episode"); }

 private:
  Agent agent_;
  Learner learner_;
};

namespace {

std::uint32_t snapshots_of(std::uint32_t pets) { return pets <= 16 ? 8 : 2; }

// What each learner needs to be good at this, with the reaction time and the memory of this game.
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
      desc.learner = options;
      break;
    }
  }
}

Brain make_brain(Context& context, const PetBrain::Setup& setup, Learner learner) {
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
  // The rest as it comes: two hidden layers of 64, answers after 2 frames.
  return expect(context.create_brain(desc), "create_brain");
}

}  // namespace

// ---- context
// -------------------------------------------------------------------------------------------------------------------------------

BrainContext::BrainContext(const imp_vk_device_info& device, const Setup& setup) : setup_(setup) {
  HostDesc host(*this);
  host.shader_cache_directory = setup_.shader_cache.empty() ? nullptr : setup_.shader_cache.c_str();
  Limits limits;
  limits.gpu_us_per_frame = setup_.budget_us;
  limits.max_slice_us = setup_.slice_us;
  limits.memory_cap_bytes = std::uint64_t{1} << 30;
  const Library library(imp_get_api);
  if (setup_.access == Access::cpu) {
    StandaloneDesc none;
    none.device = "cpu";
    context_ = expect(Context::create_standalone(library, none, host, limits), "imprint");
  } else {
    context_ = expect(Context::create(library, device, host, limits), "imprint");
  }
  driver_ = expect(context_.report(), "report").driver;
}

void BrainContext::log(LogLevel level, const char* message) {
  if (level >= LogLevel::warning && setup_.log) setup_.log(message);
}

void BrainContext::warmup(const std::function<void(float)>& progress) {
  const auto tell = [&](float fraction) {
    if (progress) progress(fraction);
  };
  expect(context_.warmup(tell), "warmup");
}

void BrainContext::begin_frame(std::uint64_t frame, std::uint64_t safe_frame, double time_s) {
  expect(context_.frame_begin(frame, time_s, safe_frame), "frame_begin");
}

void BrainContext::send_work(VkCommandBuffer commands) {
  if (setup_.access == Access::record) {
    expect(context_.record(commands).outcome, "record");
  } else {
    expect(context_.submit(), "submit");
  }
}

void BrainContext::end_frame() { expect(context_.frame_end(), "frame_end"); }

void BrainContext::close(std::uint64_t last_frame, double time_s) {
  if (setup_.access != Access::record) return;  // Imprint waits for its own submits
  // With record, frame numbers are all that it goes by. A frame that cannot begin leaves the context as it
  // is.
  if (context_.frame_begin(last_frame + 1, time_s, last_frame)) (void)context_.frame_end();
}

imp_context_stats BrainContext::stats() const { return expect(context_.stats(), "stats"); }

// ---- brain
// -----------------------------------------------------------------------------------------------------------------------------------

// A brain with its agents.
struct PetBrain::Self {
  Self(Context& context, const Setup& setup, Learner learns)
      : learner(learns), brain(make_brain(context, setup, learns)) {
    for (std::uint32_t pet = 0; pet < setup.pets; ++pet)
      agents.push_back(std::make_unique<AgentMind>(brain, pet, Mode::learning, learner));
    for (std::uint32_t pet = 0; pet < setup.pets; ++pet) {
      for (std::uint32_t i = 0; i < setup.probes; ++i)
        agents.push_back(std::make_unique<AgentMind>(brain, pet, Mode::inference, learner));
    }
  }

  Learner learner;
  Brain brain;
  std::vector<std::unique_ptr<AgentMind>> agents;  // pets, then probes
};

// One body's mind in whichever brain is in use. A brain that comes into use in the middle of a command hears
// it, and the question under way.
class PetBrain::Body : public Mind {
 public:
  Body(PetBrain& brain, std::size_t index) : brain_(&brain), index_(index) {}

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

  AgentMind& agent() { return *brain_->self().agents[index_]; }

  PetBrain* brain_;
  std::size_t index_;
  Cue cue_ = Cue::none;
  std::optional<Question> question_;
};

PetBrain::PetBrain(BrainContext& context, const Setup& setup) : setup_(setup) {
  for (const Learner learner : setup_.learners)
    selves_.push_back(std::make_unique<Self>(context.context(), setup_, learner));
  for (std::size_t i = 0; i < self().agents.size(); ++i) bodies_.push_back(std::make_unique<Body>(*this, i));
  for (std::size_t i = 1; i < selves_.size(); ++i)
    expect(selves_[i]->brain.set_learning(false), "set_learning");
}

PetBrain::~PetBrain() = default;

Mind& PetBrain::pet(std::size_t index) { return *bodies_[index]; }

Mind& PetBrain::probe(std::size_t pet, std::size_t index) {
  return *bodies_[setup_.pets + pet * setup_.probes + index];
}

Learner PetBrain::learner() const { return self().learner; }

bool PetBrain::use(Learner learner) {
  const auto found = std::find_if(selves_.begin(), selves_.end(), [&](const std::unique_ptr<Self>& each) {
    return each->learner == learner;
  });
  if (found == selves_.end()) return false;
  const auto wanted = static_cast<std::size_t>(found - selves_.begin());
  if (wanted == used_) return true;
  for (const auto& body : bodies_) body->leave();
  expect(self().brain.set_learning(false), "set_learning");
  used_ = wanted;
  expect(self().brain.set_learning(learning_), "set_learning");
  for (const auto& body : bodies_) body->arrive();
  return true;
}

void PetBrain::set_learning(bool on) {
  expect(self().brain.set_learning(on), "set_learning");
  learning_ = on;
}

void PetBrain::save(const std::string& path, Which which) {
  const std::size_t index = which == Which::first ? 0 : used_;
  expect(selves_[index]->brain.save(path.c_str()), "save");
  saving_ = index;
}

bool PetBrain::saved() const {
  const Outcome status = selves_[saving_]->brain.save_status();
  expect(status, "save");
  return status.ready();
}

void PetBrain::load(const std::string& path) {
  const Outcome status = selves_[0]->brain.load(path.c_str());
  if (!status) throw LoadError(path + ": " + status.name() + ": " + status.message());
}

std::size_t PetBrain::snapshots_kept() const { return snapshots_of(setup_.pets); }

// A brain counts its own from 1: which brain it is goes into what is left over.
std::uint64_t PetBrain::snapshot() {
  return expect(self().brain.snapshot(), "snapshot") * selves_.size() + used_;
}

void PetBrain::restore(std::uint64_t snapshot) {
  const std::size_t index = snapshot % selves_.size();
  use(selves_[index]->learner);
  expect(self().brain.restore(snapshot / selves_.size()), "restore");
}

std::string PetBrain::hash() const {
  const imprint::game::BrainHash hash = expect(selves_[0]->brain.hash(), "hash");
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high),
                static_cast<unsigned long long>(hash.low));
  return text;
}

imp_brain_stats PetBrain::stats() const {
  imp_brain_stats stats = expect(self().brain.stats(), "stats");
  for (std::size_t i = 0; i < selves_.size(); ++i) {
    if (i == used_) continue;
    const imp_brain_stats other = expect(selves_[i]->brain.stats(), "stats");
    stats.decisions += other.decisions;
    stats.feedbacks += other.feedbacks;
    stats.demonstrations += other.demonstrations;
    stats.minibatches += other.minibatches;
    stats.late_actions += other.late_actions;
  }
  return stats;
}

std::uint64_t PetBrain::parameter_count() const {
  return expect(self().brain.info(), "info").parameter_count;
}

std::string hash_of_saved(const imp_vk_device_info& submit_device, const PetBrain::Setup& setup,
                          const std::string& path) {
  BrainContext::Setup quiet;
  quiet.access = Access::submit;
  BrainContext context(submit_device, quiet);
  PetBrain::Setup first = setup;
  first.learners.resize(1);
  PetBrain brain(context, first);
  context.warmup({});
  brain.load(path);
  return brain.hash();
}

}  // namespace pet
