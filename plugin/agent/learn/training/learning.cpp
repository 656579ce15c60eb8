#include "plugin/agent/learn/training/learning.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/training/sent_experience.h"

namespace imprint::agent {
namespace {

constexpr const char* kSpreadRemedy =
    "Call agent_observe once per 1 to 2 s, or use agent_reward or IMP_CREDIT_CURRENT.";

}  // namespace

Learning::Learning(const BrainServices& services, const BrainSpec& spec, LearnGraph graph,
                   BrainCounts& counts)
    : services_(services),
      spec_(spec),
      counts_(counts),
      learner_(learner_of(spec)),
      training_(spec, std::move(graph)),
      experience_(spec, training_) {
  if (spec.pool_size > 0) counts_.rating = training_.replay().opponents.rating(0);
  experience_.returns().heard = [this](double sum, std::uint32_t steps) { curves_.earned(sum, steps); };
}

Result<> Learning::compile() {
  IMPRINT_ASSIGN(std::unique_ptr<Program> program, training_.compile(services_.context.runtime()));
  training_.install(std::move(program));
  counts_.learn_dispatches = training_.stats()->dispatches;
  counts_.learn_barriers = training_.stats()->barriers;
  return services_.context.measure(training_.program());
}

Result<> Learning::run_once(RunOnce& runs) {
  training_.begin_empty();
  Result<> ran = runs.run(training_.program(), [this] { training_.release(0); });
  if (!ran.ok()) training_.release(0);
  return ran;
}

void Learning::cancel() {
  if (training_.compiled()) services_.context.cancel(training_.program());
}

void Learning::drop_step() {
  if (!training_.compiled()) return;
  services_.context.cancel(training_.program());
  if (training_.take_back()) counts_.minibatches -= training_.minibatches_per_step();
  vk::Device* device = services_.context.vulkan();
  for (const std::uint32_t slot : training_.slots_in_flight()) {
    if (!device) {  // on the CPU nothing is in flight
      training_.release(slot);
      continue;
    }
    device->retire(device->last_ticket(), [weak = weak_from_this(), slot] {
      if (const auto learning = weak.lock()) learning->training_.release(slot);
    });
  }
}

Result<bool> Learning::start_step(const CopyLedger& captured) {
  if (spec_.sends_experience) return false;
  if (!training_.compiled() || !experience_.enabled() || training_.stepping() ||
      !training_.has_work(captured))
    return false;
  if (!has_news()) return false;
  const std::optional<std::uint32_t> slot = training_.free_slot();
  if (!slot) return false;  // the GPU is far behind: the step begins later
  const std::uint64_t deadline = services_.clock.frame + spec_.learn_period_frames;
  if (training_.begin(*slot, deadline, captured, counts_.decisions / spec_.brain_count))
    counts_.minibatches += training_.minibatches_per_step();
  bridge::FrameJob job;
  job.program = &training_.program();
  job.slot = *slot;
  job.kind = bridge::FrameJobKind::learn;
  job.deadline_frame = deadline;
  job.stream = services_.stream;
  job.on_complete = [this, slot = *slot](std::uint64_t) { finish_step(slot); };
  publish();
  IMPRINT_CHECK(services_.context.enqueue(std::move(job)));
  return true;
}

std::uint64_t Learning::sent_bytes() const { return waiting_bytes(spec_, training_.replay().waiting); }

void Learning::take_sent(std::span<std::byte> into) { take_waiting(spec_, training_.replay().waiting, into); }

// The steps of actors are decisions of this brain: has_news() and rates count them. A label is none.
Result<bool> Learning::receive(std::uint32_t source, std::span<const std::byte> from) {
  IMPRINT_ASSIGN(const std::optional<std::uint64_t> taken,
                 put_waiting(spec_, training_.replay().waiting, source, from));
  if (taken && learner_.records_steps()) counts_.decisions += *taken;
  return taken.has_value();
}

// Each remembered sample is worth a few minibatches. More would learn it by heart, mistakes included, while
// an agent waits or a person says nothing.
bool Learning::has_news() const {
  constexpr std::uint64_t kFirstMinibatches = 500, kMinibatchesPerWord = 10;
  constexpr std::uint64_t kMinibatchesPerStep = 4;
  if (!learner_.replays() || !training_.has_no_waiting() || training_.pretrains()) return true;
  if (learner_.takes_feedback() && !learner_.records_steps()) {
    const std::uint64_t samples = training_.replay().sample_count();
    if (samples >= std::uint64_t{spec_.brain_count} * spec_.replay_capacity) return true;
    return counts_.minibatches <= kFirstMinibatches + kMinibatchesPerWord * samples / spec_.brain_count;
  }
  if (!learner_.records_steps()) return true;
  return counts_.minibatches * spec_.brain_count <= kMinibatchesPerStep * counts_.decisions;
}

void Learning::finish_step(std::uint32_t slot) {
  const Training::Outcome outcome = training_.finish(slot);
  if (outcome.learned > 0) {
    counts_.last_loss = outcome.loss;
    std::array<float, kMetricCount> metrics = outcome.metrics;
    float& rate = metrics[static_cast<std::size_t>(Metric::learning_rate)];
    if (std::isnan(rate)) rate = spec_.learning_rate;  // it does not fall
    curves_.learned(outcome.loss, metrics);
    curves_.close_row(training_.minibatches_per_step(), counts_);
    const float reliability = metrics[static_cast<std::size_t>(Metric::reliability)];
    if (!std::isnan(reliability)) counts_.reliability = reliability;
  }
  if (outcome.stopped > 0) counts_.raise(Alarm::not_finite);
  if (outcome.stopped > 0)
    services_.log(
        LogLevel::error,
        text("brain '", spec_.name, "': loss: found a number that is not finite in ", outcome.stopped, " of ",
             amount(spec_.brain_count, "brain"),
             ". Each such brain stops learning and keeps its last finite weights. Lower learning_rate, "
             "and restore a snapshot or load a file to continue"));
  publish();
}

void Learning::publish() {
  counts_.samples = training_.replay().sample_count();
  if (spec_.pool_size > 0) counts_.rating = training_.replay().opponents.rating(0);
  counts_.kept_demonstrations = static_cast<std::uint32_t>(training_.replay().demonstrations.count());
  counts_.stopped = training_.stopped_brains();
}

void Learning::watch() {
  LostExperience lost = experience_.lost();
  // The queue's own count goes back with a snapshot.
  const std::uint64_t dropped = training_.replay().waiting.dropped();
  intake_ += dropped - std::min(dropped, queue_dropped_);
  queue_dropped_ = dropped;
  lost.intake = intake_;
  const std::uint64_t used = training_.used_samples();
  counts_.set_lost(lost);
  counts_.used = used;
  if (first_frame_ == 0 && (used > 0 || !training_.replay().waiting.empty()))
    first_frame_ = services_.clock.frame;
  warn_of_losses(lost, used);
  warn_of_diagnostics();
}

// A person's word is meant for one or two actions.
bool Learning::words_spread() const {
  constexpr std::uint64_t kFeedbacks = 16, kActionsPerFeedback = 8;
  const Experience::Diagnostics& diagnostics = experience_.diagnostics();
  return diagnostics.feedbacks >= kFeedbacks &&
         diagnostics.credited_actions >= kActionsPerFeedback * diagnostics.feedbacks;
}

// A learn step takes in rows_per_step samples of each brain. A shorter period takes in more, as long as
// samples and not GPU time are what there is too much of.
std::string Learning::intake_remedy(std::uint64_t samples) const {
  if (words_spread()) return kSpreadRemedy;
  if (spec_.sends_experience) return "Call brain_take_experience in each frame.";
  const double frames = static_cast<double>(services_.clock.frame - first_frame_ + 1);
  const double per_frame = static_cast<double>(samples) / (frames * spec_.brain_count);
  const auto period = static_cast<std::uint32_t>(rows_per_step(spec_) / std::max(per_frame, 1e-3));
  if (period >= 1 && period < spec_.learn_period_frames)
    return text("Set learn_period_frames to ", period, " or less.");
  if (period == 0)
    return text("Set decision_period_frames to ", 2 * spec_.decision_period_frames, " or more.");
  return "Learning lacks GPU time: raise imp_limits::gpu_us_per_frame, or lower batch_size.";
}

void Learning::warn(const std::string& what) {
  services_.log(LogLevel::warning, text("brain '", spec_.name, "': ", what));
}

void Learning::warn_of_losses(const LostExperience& lost, std::uint64_t used) {
  constexpr std::uint64_t kMany = 64;  // and a tenth of all
  constexpr std::uint64_t kFramesOfIntake = 60;
  const std::uint64_t all = used + lost.samples();
  const auto is_news = [&](std::uint64_t count, Alarm alarm) {
    return count >= kMany && count * 10 >= all && counts_.raise(alarm);
  };
  const auto say = [&](const char* field, std::uint64_t found, const std::string& remedy) {
    warn(text(field, ": found ", found, " of ", all, " samples, expected none. ", remedy));
  };
  // Only frames tell how fast samples come.
  const bool long_enough = services_.clock.frame >= first_frame_ + kFramesOfIntake;
  if (long_enough && is_news(lost.intake, Alarm::dropped_intake))
    say("dropped_intake", lost.intake, intake_remedy(all));
  if (is_news(lost.stale, Alarm::dropped_stale))
    say("dropped_stale", lost.stale, text("Set rollout_steps to ", 2 * spec_.rollout_steps, " or more."));
  if (is_news(lost.unfollowed, Alarm::dropped_unfollowed))
    say("dropped_unfollowed", lost.unfollowed,
        "Call agent_observe with the last state before agent_end_episode(IMP_EPISODE_TRUNCATED).");
  if (is_news(lost.uncredited, Alarm::uncredited))
    warn(text(
        "uncredited: found ", lost.uncredited,
        " rewards or words that reached no action, expected none. Give them between agent_act and "
        "agent_end_episode. Give agent_feedback a time_s of the frames' clock, imp_frame_info::time_s."));
}

// Only feedback is learned by comparing actions: what COACH is told moves the policy as it is.
void Learning::warn_of_one_value() {
  constexpr std::uint64_t kMany = 200;
  const Experience::Diagnostics& diagnostics = experience_.diagnostics();
  if (diagnostics.equals < kMany || diagnostics.compares || !counts_.raise(Alarm::one_value)) return;
  warn(text("agent_feedback, agent_reward: found the value ", diagnostics.value, " in all of ",
            diagnostics.equals,
            " words and rewards, expected others too, because the learner compares actions by them. ",
            diagnostics.value > 0
                ? "Scold what is wrong, or call agent_reward with 0 for an action that earned nothing."
                : "Praise what is right."));
}

// A reward that tells how things stand differs little from one action to the next, and exploration hides that
// little. Asked once, of the first rewards: a creature that acts well earns the best reward again and again.
void Learning::warn_of_flat_rewards() {
  constexpr std::uint64_t kMany = 300;
  const Experience::Diagnostics& diagnostics = experience_.diagnostics();
  if (diagnostics.loaded || flat_asked_ || diagnostics.rewards < kMany || diagnostics.reward_changes == 0)
    return;
  flat_asked_ = true;
  // Half the mean square of differences is the variance of independent numbers: von Neumann, 1941.
  const double spread =
      std::sqrt(diagnostics.squared_changes / static_cast<double>(2 * diagnostics.reward_changes));
  if (spread >= double{spec_.exploration} || 2 * diagnostics.best_rewards >= diagnostics.rewards) return;
  if (diagnostics.squared_changes == 0 || !counts_.raise(Alarm::flat_rewards)) return;
  warn(text("agent_reward: found rewards that differ by about ", spread,
            " from action to action, expected more than exploration, ", spec_.exploration,
            ", because the feedback learner looks no further than one action. Use the DQN learner, "
            "IMP_LEARNER_DQN or DqnOptions. Or reward each action with 1 or -1 for whether it was right."));
}

// The game may have become harder, or its player better. Only the game knows.
void Learning::warn_of_fall() {
  const Returns& returns = experience_.returns();
  for (std::uint32_t p = 0; p < spec_.brain_count; ++p) {
    if (p > 0 && !learner_.improves_each_brain()) break;
    if (!returns.fell(p) || !counts_.raise(Alarm::falling_returns)) continue;
    const Returns::Fall fall = returns.fall(p);
    warn(text("returns: found ", static_cast<float>(fall.now), " on average of the last ", Returns::kCount,
              returns.has_episodes() ? " episodes" : " spans", " of brain ", p, ", expected about ",
              static_cast<float>(fall.best),
              ", the best so far. If the game has not changed, set learning_rate to ",
              spec_.learning_rate / 3, " or less, and imp_brain_desc::fall_back to 1."));
  }
}

bool Learning::wants_back() const {
  return spec_.fall_back && (experience_.returns().fell(0) || training_.stopped_brains() > 0);
}

void Learning::went_back() {
  Returns& returns = experience_.returns();
  const Returns::Fall fall = returns.fall(0);
  ++counts_.fall_backs;
  services_.log(LogLevel::info, text("brain '", spec_.name, "': goes back to its best weights: they earned ",
                                     fall.best, " on average, and the newest earned ", fall.now));
  returns.went_back(0);
}

// A game that reports 0 may have rare rewards. One that never calls agent_reward has more likely forgotten
// it.
void Learning::warn_of_no_reward() {
  constexpr std::uint64_t kRareSteps = 5000, kForgottenSteps = 1000, kZeros = 500;
  const Experience::Diagnostics& diagnostics = experience_.diagnostics();
  const bool no_step = diagnostics.steps >= (diagnostics.calls_reward ? kRareSteps : kForgottenSteps) &&
                       diagnostics.largest_reward == 0;
  const bool no_label = diagnostics.zeros >= kZeros && diagnostics.feedbacks == 0 &&
                        diagnostics.equals == 0 && !diagnostics.compares;
  if ((!no_step && !no_label) || spec_.has_signals() || !counts_.raise(Alarm::no_reward)) return;
  const std::uint64_t steps = std::max(diagnostics.steps, diagnostics.zeros);
  if (no_step && diagnostics.calls_reward)
    warn(text("agent_reward: found only rewards of 0 in ", steps,
              " steps, expected others. If the game pays so seldom, reward progress too, or set "
              "imp_signal_options::curiosity_strength (DQN, SAC, PPO)."));
  else
    warn(text("agent_reward: found no reward in ", steps,
              " steps, expected some. Call agent_reward for what the agent did, before agent_act begins its "
              "next action."));
}

// Networks begin with outputs of about 1, and a minibatch moves them by about the learning rate: sums of
// thousands take longer to reach than a player stays. Small ones drown in SAC's entropy and in noise.
void Learning::warn_of_reward_size() {
  constexpr std::uint64_t kSteps = 1000, kPaid = 100;
  constexpr double kMost = 50;
  const Experience::Diagnostics& diagnostics = experience_.diagnostics();
  const double least = learner_.least_reward();
  if (least == 0 || spec_.has_signals() || diagnostics.steps < kSteps || diagnostics.paid < kPaid) return;
  const double size = std::sqrt(diagnostics.squared_rewards / static_cast<double>(diagnostics.paid));
  if ((size >= least && size <= kMost) || !counts_.raise(Alarm::reward_size)) return;
  warn(text(
      "agent_reward: found rewards of about ", static_cast<float>(size),
      " in size, expected about 1, because the learner predicts their sums as they are. Multiply each by ",
      std::pow(10.0, -std::round(std::log10(size))), "."));
}

void Learning::warn_of_diagnostics() {
  warn_of_one_value();
  warn_of_flat_rewards();
  warn_of_fall();
  if (words_spread() && counts_.raise(Alarm::spread_words))
    warn(text("agent_feedback: found ",
              experience_.diagnostics().credited_actions / experience_.diagnostics().feedbacks,
              " actions that a word is for, expected one or two. ", kSpreadRemedy));
  warn_of_no_reward();
  warn_of_reward_size();
  constexpr std::uint32_t kDecisionsBeyond = 200;  // one after the other
  const Experience::Diagnostics& diagnostics = experience_.diagnostics();
  if (diagnostics.beyond >= kDecisionsBeyond && counts_.raise(Alarm::diverging_values))
    warn(text("values: found ", diagnostics.highest_value, ", expected at most ",
              experience_.highest_return(),
              ", the largest reward divided by 1 - discount. Set learning_rate to ", spec_.learning_rate / 3,
              " or less, or target_rate to ", spec_.target_rate / 3, " or less."));
}

}  // namespace imprint::agent
