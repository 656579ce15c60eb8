#include "plugin/agent/learn/training/training.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "plugin/agent/learn/registry.h"

namespace imprint::agent {
namespace {

template <class T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace

Training::Training(const BrainSpec& spec, LearnGraph graph)
    : spec_(spec),
      learner_(learner_of(spec)),
      graph_(std::move(graph)),
      replay_(ReplayState::empty(spec)),
      begun_{replay_.next,
             replay_.filled,
             replay_.demonstrations.pretrained,
             replay_.opponents,
             SampleQueue(spec.brain_count, learner_.layout(spec).width, rows_per_step(spec)),
             0},
      runs_(graph_.slot_count()),
      stopped_(spec.brain_count, 0),
      versions_(spec.brain_count, 0),
      replaced_(spec.brain_count, 0),
      updating_(spec.brain_count, 0) {
  for (Run& run : runs_) {
    run.filled.resize(spec.brain_count);
    run.demonstrations.resize(spec.brain_count);
  }
}

Result<std::unique_ptr<Program>> Training::compile(Runtime& runtime) const {
  IMPRINT_ASSIGN(Program compiled, graph_.compile(runtime));
  auto program = std::make_unique<Program>(std::move(compiled));
  for (std::uint32_t slot = 0; slot < program->slot_count(); ++slot) {
    std::ranges::fill(program->input_bytes(slot, LearnGraph::kFilled), std::byte{0});
    std::ranges::fill(program->input_bytes(slot, LearnGraph::kValues), std::byte{0});
    if (graph_.next_row > 0) std::ranges::fill(program->input_bytes(slot, graph_.next_row), std::byte{0});
    if (graph_.kept > 0) std::ranges::fill(as<std::int32_t>(program->input_bytes(slot, graph_.kept)), -1);
    if (graph_.demonstrations > 0)
      for (const std::size_t of_shown : {graph_.demonstrations, graph_.demonstrations + 1})
        std::ranges::fill(program->input_bytes(slot, of_shown), std::byte{0});
    std::ranges::fill(as<std::int32_t>(program->input_bytes(slot, LearnGraph::kRows)), -1);
    if (graph_.has_observation_copies)
      std::ranges::fill(as<std::int32_t>(program->input_bytes(slot, LearnGraph::kCopyRows)), -1);
    if (graph_.has_next_copies)
      std::ranges::fill(as<std::int32_t>(program->input_bytes(slot, LearnGraph::kNextCopyRows)), -1);
  }
  return program;
}

bool Training::pretrains(std::uint32_t brain) const {
  const DemonstrationMemory& shown = replay_.demonstrations;
  return graph_.demonstrations > 0 && shown.filled()[brain] > 0 && !stopped_[brain] &&
         shown.pretrained[brain] < static_cast<std::int32_t>(spec_.pretraining);
}

bool Training::pretrains() const {
  for (std::uint32_t p = 0; p < spec_.brain_count; ++p)
    if (pretrains(p)) return true;
  return false;
}

// Without samples a brain learns from what was shown only while it pretrains: each step makes a version of
// the weights, and steps that agents take grow stale.
void Training::feed_shown(std::uint32_t slot) {
  Run& run = runs_[slot];
  std::ranges::fill(run.demonstrations, 0);
  if (graph_.demonstrations == 0) return;
  DemonstrationMemory& shown = replay_.demonstrations;
  begun_.pretrained = shown.pretrained;
  for (std::uint32_t p = 0; p < spec_.brain_count; ++p) {
    if (stopped_[p] || (run.filled[p] == 0 && !pretrains(p))) continue;
    run.demonstrations[p] = shown.filled()[p];
    if (pretrains(p)) shown.pretrained[p] += static_cast<std::int32_t>(minibatches_per_step());
  }
  std::ranges::copy(run.demonstrations,
                    as<std::int32_t>(program_->input_bytes(slot, graph_.demonstrations + 1)).begin());
  if (std::exchange(run.demonstration_version, shown.version()) == shown.version()) return;
  std::ranges::copy(shown.rows(), as<float>(program_->input_bytes(slot, graph_.demonstrations)).begin());
}

void Training::feed_kept(std::uint32_t slot, std::uint64_t decisions) {
  if (graph_.kept == 0) return;
  begun_.opponents = replay_.opponents;
  replay_.opponents.request_when_due(decisions);
  const std::span<std::int32_t> rows = as<std::int32_t>(program_->input_bytes(slot, graph_.kept));
  for (std::uint32_t p = 0; p < spec_.brain_count; ++p) rows[p] = replay_.opponents.keep(p, decisions);
}

bool Training::has_work(const CopyLedger& captured) {
  if (pretrains()) return true;
  if (learner_.collects_rollouts()) {
    bool has = false;
    for (std::uint32_t p = 0; p < spec_.brain_count; ++p)
      has = (!stopped_[p] && has_rollout(spec_, replay_, p, captured)) || has;
    return has;
  }
  if (!replay_.waiting.empty()) return true;
  for (std::uint32_t p = 0; p < spec_.brain_count; ++p)
    if (replay_.filled[p] > 0 && !stopped_[p]) return true;
  return false;
}

std::optional<std::uint32_t> Training::free_slot() const {
  for (std::uint32_t slot = 0; slot < runs_.size(); ++slot)
    if (!runs_[slot].in_flight) return slot;
  return std::nullopt;
}

bool Training::begin(std::uint32_t slot, std::uint64_t deadline, const CopyLedger& captured,
                     std::uint64_t decisions) {
  Run& run = runs_[slot];
  const bool replays = learner_.replays();
  if (replays) run.filled = replay_.filled;  // the draw does not see the new samples
  StepInputs into;
  into.values = as<float>(program_->input_bytes(slot, LearnGraph::kValues));
  into.rows = as<std::int32_t>(program_->input_bytes(slot, LearnGraph::kRows));
  if (graph_.has_observation_copies)
    into.copy_rows = as<std::int32_t>(program_->input_bytes(slot, LearnGraph::kCopyRows));
  if (graph_.has_next_copies)
    into.next_copy_rows = as<std::int32_t>(program_->input_bytes(slot, LearnGraph::kNextCopyRows));
  into.captured = &captured;
  if (graph_.next_row > 0)
    std::ranges::copy(replay_.next, as<std::int32_t>(program_->input_bytes(slot, graph_.next_row)).begin());
  begun_.next = replay_.next;
  begun_.filled = replay_.filled;
  begun_.taken.clear();
  begun_.used = learner_.collects_rollouts() ? take_rollouts(spec_, replay_, into)
                                             : take_samples(spec_, replay_, into, &begun_.taken);
  used_samples_ += begun_.used;
  if (!replays) {
    const std::size_t per_brain = into.rows.size() / spec_.brain_count;
    for (std::uint32_t p = 0; p < spec_.brain_count; ++p)
      run.filled[p] = static_cast<std::int32_t>(std::ranges::count_if(
          into.rows.subspan(p * per_brain, per_brain), [](std::int32_t row) { return row >= 0; }));
  }
  for (std::uint32_t p = 0; p < spec_.brain_count; ++p)
    if (stopped_[p]) run.filled[p] = 0;
  feed_shown(slot);
  feed_kept(slot, decisions);
  for (std::uint32_t p = 0; p < spec_.brain_count; ++p) {
    updating_[p] = learns(run, p) ? 1 : 0;
    versions_[p] += updating_[p];
  }
  std::ranges::copy(run.filled, as<std::int32_t>(program_->input_bytes(slot, LearnGraph::kFilled)).begin());
  run.in_flight = true;
  used_ = true;
  run.epoch = epoch_;
  stepping_ = true;
  deadline_ = deadline;
  return std::ranges::any_of(updating_, [](std::uint8_t learning) { return learning != 0; });
}

bool Training::take_back() {
  if (!std::exchange(stepping_, false)) return false;
  if (graph_.demonstrations > 0) replay_.demonstrations.pretrained = begun_.pretrained;
  if (graph_.kept > 0) replay_.opponents = begun_.opponents;
  if (!learner_.collects_rollouts()) {
    replay_.next = begun_.next;
    replay_.filled = begun_.filled;
    replay_.waiting.put_back(begun_.taken);
    used_samples_ -= begun_.used;
  }
  return std::ranges::any_of(updating_, [](std::uint8_t learns) { return learns != 0; });
}

void Training::begin_empty() {
  used_ = true;
  runs_[0].in_flight = true;
}

std::vector<std::uint32_t> Training::slots_in_flight() const {
  std::vector<std::uint32_t> slots;
  for (std::uint32_t slot = 0; slot < runs_.size(); ++slot)
    if (runs_[slot].in_flight) slots.push_back(slot);
  return slots;
}

Training::Outcome Training::finish(std::uint32_t slot) {
  Run& run = runs_[slot];
  run.in_flight = false;
  const std::span<const std::byte> bytes = program_->output_bytes(slot, LearnGraph::kLoss);
  const auto* losses = reinterpret_cast<const float*>(bytes.data());
  Outcome outcome;
  double sum = 0;
  for (std::uint32_t p = 0; p < spec_.brain_count; ++p) {
    if (!learns(run, p)) continue;
    ++outcome.learned;
    sum += losses[p];
    if (std::isfinite(losses[p]) || run.epoch != epoch_ || stopped_[p]) continue;
    stopped_[p] = 1;
    ++outcome.stopped;
  }
  read_metrics(slot, outcome);
  outcome.loss = outcome.learned > 0 ? static_cast<float>(sum / outcome.learned) : 0.0f;
  return outcome;
}

void Training::read_metrics(std::uint32_t slot, Outcome& outcome) const {
  outcome.metrics.fill(std::numeric_limits<float>::quiet_NaN());
  const std::size_t columns = graph_.metrics.size();
  if (columns == 0 || outcome.learned == 0) return;
  const std::span<const std::byte> bytes = program_->output_bytes(slot, LearnGraph::kMetrics);
  const auto* figures = reinterpret_cast<const float*>(bytes.data());
  for (std::size_t i = 0; i < columns; ++i) {
    double sum = 0;
    for (std::uint32_t p = 0; p < spec_.brain_count; ++p)
      if (learns(runs_[slot], p)) sum += double{figures[p * columns + i]};
    outcome.metrics[static_cast<std::size_t>(graph_.metrics[i])] = static_cast<float>(sum / outcome.learned);
  }
}

std::uint64_t Training::oldest_version(std::uint32_t brain) const {
  const std::uint64_t newest = versions_[brain];
  return std::max(replaced_[brain], newest - std::min<std::uint64_t>(newest, 1));
}

std::uint32_t Training::stopped_brains() const {
  return static_cast<std::uint32_t>(std::accumulate(stopped_.begin(), stopped_.end(), 0u));
}

void Training::weights_replaced() {
  for (std::uint64_t& version : versions_) ++version;
  replaced_ = versions_;
  std::ranges::fill(updating_, std::uint8_t{0});
}

void Training::weights_restored() {
  weights_replaced();
  if (learner_.collects_rollouts()) replay_.waiting.clear();
}

void Training::resume_all() {
  std::ranges::fill(stopped_, std::uint8_t{0});
  ++epoch_;
}

}  // namespace imprint::agent
