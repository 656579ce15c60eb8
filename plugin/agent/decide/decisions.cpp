#include "plugin/agent/decide/decisions.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <ranges>
#include <utility>

#include "compute/base/text.h"

namespace imprint::agent {

Decisions::Decisions(const BrainServices& services, const BrainSpec& spec, const SharedTensors& shared,
                     BrainCounts& counts, AgentSlot::Keeps keeps)
    : services_(services),
      spec_(spec),
      shared_(shared),
      counts_(counts),
      noise_seed_(spec.seed),
      latency_(spec.action_latency_frames > 0 ? spec.action_latency_frames : kFirstLatency),
      resets_(spec.agent_capacity(), 1),
      decided_(spec.brain_count, 0) {
  if (shared.observations.buffer && spec.learner != LearnerKind::none) captured_ = CopyLedger(spec);
  agents_.reserve(spec.agent_capacity());
  for (std::uint32_t i = 0; i < spec.agent_capacity(); ++i)
    agents_.emplace_back(spec.action, latency_, spec.decision_period_frames > 1, keeps);
  for (AgentSlot& agent : agents_) agent.stack_observations(spec.observation.count, spec.observation.stack);
  // Several goals are commands, and a command stands while the situation changes.
  if (spec.goal_count == 1)
    for (AgentSlot& agent : agents_) agent.end_bans_with_situation(spec.observation.scale);
}

Result<> Decisions::compile() {
  IMPRINT_CHECK(inference_->compile(services_.context.runtime()));
  ran_ = false;
  counts_.infer_dispatches = inference_->stats()->dispatches;
  counts_.infer_barriers = inference_->stats()->barriers;
  return services_.context.measure(inference_->program());
}

Result<> Decisions::run_once(RunOnce& runs) {
  if (ran_ || !check_owned() || !runs.wants(inference_->program())) return {};
  ran_ = true;
  inference_->begin(0);
  InferenceRun& run = inference_->run(0);
  run.asked.clear();
  run.frame = services_.clock.count;  // choose_latency() counts from it
  run.in_flight = true;
  Result<> ran = runs.run(inference_->program(), [this] { inference_->run(0).in_flight = false; });
  if (!ran.ok()) run.in_flight = false;
  return ran;
}

void Decisions::cancel() {
  if (inference_ && inference_->compiled()) services_.context.cancel(inference_->program());
}

bool Decisions::decides(std::uint32_t agent) const {
  return agents_[agent].wants_decision() && agents_[agent].asks_brain() && has_turn(agent);
}

bool Decisions::asks() const {
  return std::ranges::any_of(
      agents_, [](const AgentSlot& agent) { return agent.wants_decision() && agent.asks_brain(); });
}

bool Decisions::copies(std::uint32_t agent) const {
  return agents_[agent].pending_copy() && (!agents_[agent].asks_brain() || has_turn(agent));
}

// The brain may use a tensor only while Imprint's queue family owns it.
Result<> Decisions::check_owned() const {
  for (const SharedTensor* tensor : {&shared_.observations, &shared_.actions})
    if (tensor->buffer && !tensor->buffer->owned_by_imprint())
      return make_error(ErrorCode::wrong_state,
                        text("frame_submit: tensor '", tensor->name, "' of brain '", spec_.name,
                             "': found with the host's queue family, expected with Imprint's. Call "
                             "tensor_acquire in this frame first."));
  return {};
}

Result<> Decisions::enqueue() {
  const auto all = std::views::iota(0u, static_cast<std::uint32_t>(agents_.size()));
  if (std::ranges::none_of(all, [&](std::uint32_t i) { return decides(i) || copies(i); })) {
    turn_taken_ = true;
    return {};
  }
  IMPRINT_CHECK(check_owned());
  const std::optional<std::uint32_t> slot = inference_->free_slot();
  if (!slot) return {};  // the GPU is far behind: the next frame asks again, and answers late
  ran_ = true;
  fill(*slot);
  turn_taken_ = true;
  bridge::FrameJob job;
  job.program = &inference_->program();
  job.slot = *slot;
  // Two words, which a std::function holds without memory. cancel() comes before the destructor.
  job.on_complete = [this, slot = *slot](std::uint64_t) { finish(slot); };
  InferenceRun& run = inference_->run(*slot);
  run.in_flight = true;
  Result<> enqueued = services_.context.enqueue(std::move(job));
  if (!enqueued.ok()) run.in_flight = false;
  return enqueued;
}

// -1: it is stacked on none, or too many came since for that one to be there.
std::int32_t Decisions::stacked_row(std::uint32_t agent, const AgentSlot::PendingCopy& copy) const {
  const bool there = copy.before > 0 && copy.number - copy.before < kept_copies(spec_);
  return there ? copy_row(spec_, {agent, copy.before}) : -1;
}

void Decisions::fill(std::uint32_t slot) {
  inference_->begin(slot);
  InferenceRun& run = inference_->run(slot);
  run.frame = services_.clock.count;
  run.asked.clear();
  count_decisions();
  for (std::uint32_t i = 0; i < agents_.size(); ++i) {
    AgentSlot& agent = agents_[i];
    if (copies(i)) {
      const AgentSlot::PendingCopy copy = agent.take_pending_copy();
      captured_.capture(i, copy.number);
      inference_->copy_observation(slot, i, copy.offset, copy_row(spec_, {i, copy.number}),
                                   stacked_row(i, copy));
    }
    if (!decides(i)) continue;
    const std::uint64_t version = hooks_.version ? hooks_.version(i / spec_.agents_per_brain) : 0;
    const AgentSlot::TakenRequest taken = agent.take(services_.clock.frame, version);
    if (spec_.group_size > 0) see_group(i, false, agent.taken_group());
    note_bans(agent);
    const bool pooled = agent.opponent() < spec_.pool_size;
    inference_->put(slot, i, *taken.choice, pooled ? static_cast<std::int32_t>(agent.opponent()) : -1);
    const std::span<std::int32_t> mask = inference_->mask(slot, i);
    if (!mask.empty()) agent.write_mask(mask);
    const DecisionDraw draw = draw_of(i, taken.draw);
    explore(inference_->noise(slot, i), mask, explores(i), draw);
    if (const std::span<float> random_choice = inference_->random_choice(slot, i); !random_choice.empty())
      std::ranges::copy(explores(i) ? draw_random_choice(mask, draw) : draw_random_choice({}, {}),
                        random_choice.begin());
    fill_noise(inference_->drift(slot, i), explores(i) ? 1.0f : 0.0f, draw, kDriftWords);
    if (resets_[i]) inference_->set_reset(slot, i);
    resets_[i] = 0;
    run.asked.push_back({i, taken.ticket, draw, explores(i)});
  }
  counts_.decisions += run.asked.size();
  counts_.inference_decisions += static_cast<std::uint64_t>(
      std::ranges::count_if(run.asked, [](const InferenceRun::Asked& one) { return !one.explores; }));
}

void Decisions::see_group(std::uint32_t agent, bool leaves, std::vector<float>& into) const {
  const std::size_t width = spec_.observation.width();
  into.assign(spec_.group_width(), 0.0f);
  const std::uint32_t first = agent / spec_.agents_per_brain * spec_.agents_per_brain,
                      group = agents_[agent].group();
  std::size_t count = 0;
  for (std::uint32_t i = first; i < first + spec_.agents_per_brain && count < spec_.group_size; ++i) {
    const bool belongs = i == agent ? !leaves : group != 0 && agents_[i].group() == group;
    const std::vector<float>* seen = belongs && agents_[i].occupied() ? agents_[i].sees() : nullptr;
    if (!seen || seen->size() != width) continue;
    std::ranges::copy(*seen, into.begin() + static_cast<std::ptrdiff_t>(1 + count * width));
    ++count;
  }
  into[0] = static_cast<float>(count);
}

// From the agents' own counts, which files hold.
void Decisions::count_decisions() {
  std::ranges::fill(decided_, std::uint64_t{0});
  for (std::uint32_t i = 0; i < agents_.size(); ++i)
    decided_[i / spec_.agents_per_brain] += agents_[i].draws();
}

DecisionDraw Decisions::draw_of(std::uint32_t agent, std::uint64_t decision) const {
  const std::uint32_t brain = agent / spec_.agents_per_brain;
  return {noise_seed_ + brain, agent % spec_.agents_per_brain, decision, decided_[brain],
          spec_.slow_noise || (hooks_.slow && hooks_.slow(brain))};
}

void Decisions::explore(std::span<float> noise, std::span<const std::int32_t> allowed, bool learning,
                        const DecisionDraw& draw) const {
  if (learning && hooks_.explore) return hooks_.explore(draw, allowed, noise);
  fill_noise(noise, learning ? spec_.exploration : 0.0f, draw);
}

Drawn Decisions::drawn(const Inference::AgentAnswer& answer, const InferenceRun::Asked& asked) {
  if (answer.log_deviation.empty()) return {};
  const std::size_t count = answer.log_deviation.size();
  drift_.resize(count);
  drawn_.resize(count);
  fill_noise(drift_, asked.explores ? 1.0f : 0.0f, asked.draw, kDriftWords);
  double log_density = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double log_deviation = double{answer.log_deviation[i]}, drift = double{drift_[i]};
    const double mean = double{answer.values[spec_.action.choice_count() + i]};
    drawn_[i] = static_cast<float>(mean + std::exp(log_deviation) * drift);
    log_density -= 0.5 * drift * drift + log_deviation + 0.5 * std::log(2 * std::numbers::pi);
  }
  return {drawn_, static_cast<float>(log_density)};
}

void Decisions::begin_frame() {
  if (std::exchange(turn_taken_, false)) turn_ = (turn_ + 1) % spec_.decision_period_frames;
  choose_latency();
  note_overdue();
}

void Decisions::choose_latency() {
  const bool recorded = services_.context.completed_by() == bridge::CompletedBy::frames;
  if (spec_.action_latency_frames > 0 || latency_ >= kMostChosenLatency) return;
  std::uint64_t needed = latency_;
  // Where Imprint sees completion itself, only the host's word counts: it is the same on each GPU.
  if (!recorded) needed = std::max(needed, services_.clock.in_flight);
  for (std::uint32_t slot = 0; recorded && slot < inference_->run_count(); ++slot) {
    const InferenceRun& run = inference_->run(slot);
    if (run.in_flight) needed = std::max(needed, services_.clock.count - run.frame + 1);
  }
  if (needed == latency_) return;
  latency_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(needed, kMostChosenLatency));
  for (AgentSlot& agent : agents_) agent.set_latency(latency_);
}

// A few late answers are a hitch. Many in a row are a latency that is too short: the host's safe frame says
// so soon, a GPU that is too slow only in the long run.
void Decisions::note_lateness(std::uint64_t frames) {
  constexpr std::uint32_t kSoon = 16, kLong = 600;
  if (frames <= latency_) {
    late_runs_ = 0;
    most_frames_ = 0;
    return;
  }
  most_frames_ = std::max(most_frames_, frames);
  const bool recorded = services_.context.completed_by() == bridge::CompletedBy::frames;
  if (++late_runs_ < (recorded ? kSoon : kLong) || !counts_.raise(Alarm::late_answers)) return;
  services_.log(LogLevel::warning, text("brain '", spec_.name, "': action_latency_frames: found ", latency_,
                                        ", expected at least ", most_frames_, ", because ", late_runs_,
                                        " answers in a row arrived up to ", most_frames_,
                                        " frames after the question. Set it to ", most_frames_, "."));
}

// A loop that submits as fast as it can outruns the GPU, and nothing that is late ever arrives to be counted.
// Where frames tell completion, AgentSystem asks for the safe frame.
void Decisions::note_overdue() {
  constexpr std::uint64_t kOverdue = 60;
  if (services_.context.completed_by() == bridge::CompletedBy::frames) return;
  for (std::uint32_t slot = 0; slot < inference_->run_count(); ++slot) {
    const InferenceRun& run = inference_->run(slot);
    const std::uint64_t frames = services_.clock.count - run.frame;
    if (!run.in_flight || run.asked.empty() || frames < kOverdue) continue;
    if (!counts_.raise(Alarm::overdue_answer)) return;
    services_.log(
        LogLevel::warning,
        text("brain '", spec_.name, "': agent_act: found no answer ", frames,
             " frames after the question, expected one after ", latency_,
             ". The GPU is behind the loop. Wait in each frame until it has completed an earlier one. "
             "Without pictures call context_quiesce and context_resume after each frame."));
    return;
  }
}

void Decisions::note_bans(const AgentSlot& agent) {
  constexpr std::uint32_t kMany = 64;
  if (agent.cornered() < kMany || !counts_.raise(Alarm::one_choice_left)) return;
  services_.log(LogLevel::warning,
                text("brain '", spec_.name, "': agent_feedback: found one choice left in ", kMany,
                     " decisions in a row, expected more, because a scolding bans its action until the next "
                     "command. Call agent_set_goal for each command, or agent_end_episode after each try."));
}

void Decisions::finish(std::uint32_t slot) {
  InferenceRun& run = inference_->run(slot);
  run.in_flight = false;
  if (services_.clock.in_flight > latency_) choose_latency();
  const std::uint64_t frames = services_.clock.count - run.frame;
  const bool late = frames > latency_;
  note_lateness(frames);
  for (const InferenceRun::Asked& asked : run.asked) {
    const Inference::AgentAnswer answer = inference_->answer(slot, asked.agent);
    const bool wanted = agents_[asked.agent].answer(asked.ticket, answer.branches, answer.continuous,
                                                    answer.values, drawn(answer, asked), answer.state);
    if (late && wanted) ++counts_.late_actions;
  }
}

}  // namespace imprint::agent
