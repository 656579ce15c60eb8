#include "plugin/agent/learn/samples/samples.h"

#include <algorithm>
#include <numeric>

#include "plugin/agent/learn/registry.h"

namespace imprint::agent {

SampleQueue::SampleQueue(std::uint32_t brain_count, std::uint32_t width, std::uint32_t capacity)
    : queues_(brain_count), width_(width), capacity_(capacity) {}

std::span<float> SampleQueue::push(std::uint32_t brain, const ObservationCopy& copy) {
  Ring& ring = queues_[brain];
  if (ring.count == capacity_) drop(brain);
  if (ring.count == row_count(ring)) grow(ring);
  const std::uint32_t slot = (ring.first + ring.count) % row_count(ring);
  ring.copies[slot] = copy;
  ++ring.count;
  ++total_;
  return std::span(ring.rows).subspan(std::size_t{slot} * width_, width_);
}

void SampleQueue::make_room(std::uint64_t samples) {
  constexpr std::uint64_t kMost = UINT32_MAX / 2;
  capacity_ = std::max(capacity_, static_cast<std::uint32_t>(std::min(samples, kMost)));
}

void SampleQueue::grow(Ring& ring) const {
  const std::uint32_t before = row_count(ring);
  const std::size_t count = std::min(std::max(2 * before, kRowsPerStep), capacity_);
  std::vector<float> rows(count * width_);
  std::vector<ObservationCopy> copies(count);
  for (std::uint32_t i = 0; i < ring.count; ++i) {
    copies[i] = ring.copies[(ring.first + i) % before];
    std::copy_n(
        ring.rows.begin() + static_cast<std::ptrdiff_t>(std::size_t{(ring.first + i) % before} * width_),
        width_, rows.begin() + static_cast<std::ptrdiff_t>(std::size_t{i} * width_));
  }
  ring.copies = std::move(copies);
  ring.rows = std::move(rows);
  ring.first = 0;
}

std::span<const float> SampleQueue::row(std::uint32_t brain, std::uint32_t index) const {
  const Ring& ring = queues_[brain];
  return std::span(ring.rows).subspan(std::size_t{(ring.first + index) % row_count(ring)} * width_, width_);
}

const ObservationCopy& SampleQueue::copy(std::uint32_t brain, std::uint32_t index) const {
  const Ring& ring = queues_[brain];
  return ring.copies[(ring.first + index) % row_count(ring)];
}

void SampleQueue::drop(std::uint32_t brain) {
  pop(brain, 1);
  ++dropped_;
}

void SampleQueue::drop_observation_copies() {
  for (std::uint32_t brain = 0; brain < queues_.size(); ++brain) {
    // One turn around the ring: what stays is pushed after what was there.
    for (std::uint32_t left = size(brain); left > 0; --left) {
      if (!copy(brain, 0).any()) {
        const std::vector<float> kept(row(brain, 0).begin(), row(brain, 0).end());
        pop(brain, 1);
        std::ranges::copy(kept, push(brain).begin());
      } else {
        pop(brain, 1);
      }
    }
  }
}

void SampleQueue::put_back(const SampleQueue& taken) {
  for (std::uint32_t brain = 0; brain < queues_.size(); ++brain) {
    const std::uint32_t waiting = size(brain), all = taken.size(brain);
    const std::uint32_t kept = std::min(all, capacity_ - waiting);
    dropped_ += all - kept;
    for (std::uint32_t k = all - kept; k < all; ++k)
      std::ranges::copy(taken.row(brain, k), push(brain, taken.copy(brain, k)).begin());
    for (std::uint32_t left = kept > 0 ? waiting : 0; left > 0; --left) {
      const std::vector<float> row_before(row(brain, 0).begin(), row(brain, 0).end());
      const ObservationCopy copy_before = copy(brain, 0);
      pop(brain, 1);
      std::ranges::copy(row_before, push(brain, copy_before).begin());
    }
  }
}

void SampleQueue::pop(std::uint32_t brain, std::uint32_t count) {
  Ring& ring = queues_[brain];
  count = std::min(count, ring.count);
  if (count == 0) return;
  ring.first = (ring.first + count) % row_count(ring);
  ring.count -= count;
  total_ -= count;
}

void SampleQueue::clear() {
  for (Ring& ring : queues_) ring.first = ring.count = 0;
  total_ = 0;
}

ReplayState ReplayState::empty(const BrainSpec& spec) {
  ReplayState state;
  state.next.assign(spec.brain_count, 0);
  state.filled.assign(spec.brain_count, 0);
  state.sparsity.resize(spec.brain_count);
  state.demonstrations = DemonstrationMemory(spec);
  state.opponents = Opponents(spec);
  state.waiting = SampleQueue(spec.brain_count, learner_of(spec).layout(spec).width, waiting_capacity(spec));
  return state;
}

std::uint64_t ReplayState::sample_count() const {
  return std::accumulate(filled.begin(), filled.end(), std::uint64_t{0});
}

std::uint32_t rows_per_step(const BrainSpec& spec) {
  const Learner& learner = learner_of(spec);
  if (learner.collects_rollouts()) return spec.rollout_steps;
  const std::uint64_t crowd = std::uint64_t{spec.agents_per_turn()} * spec.learn_period_frames;
  const auto rows =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(crowd, kRowsPerStep, kMostRowsPerStep));
  const std::uint32_t wanted =
      learner.records_steps() && !learner.learns_one_by_one() ? std::max(rows, spec.batch_size) : rows;
  return learner.replays() ? std::min(wanted, spec.replay_capacity) : wanted;
}

std::uint32_t waiting_capacity(const BrainSpec& spec) {
  const Learner& learner = learner_of(spec);
  // A whole file of demonstrations may wait.
  const bool files = learner.takes_demonstrations() && !learner.takes_feedback();
  return std::max({kWaitingSamples, 4 * rows_per_step(spec), files ? spec.replay_capacity : 0u});
}

namespace {

const CopyLedger kNoCopies;

void clear_rows(const StepInputs& into) {
  for (const std::span<std::int32_t> rows : {into.rows, into.copy_rows, into.next_copy_rows})
    std::ranges::fill(rows, -1);
}

void name_copies(const BrainSpec& spec, const ObservationCopy& copy, std::size_t at, const StepInputs& into) {
  if (copy.number > 0) into.copy_rows[at] = copy_row(spec, copy);
  if (copy.next > 0) into.next_copy_rows[at] = copy_row(spec, {copy.agent, copy.next});
}

}  // namespace

std::uint64_t take_samples(const BrainSpec& spec, ReplayState& state, const StepInputs& into,
                           SampleQueue* taken_rows) {
  const std::uint32_t per_step = rows_per_step(spec);
  const std::uint32_t width = learner_of(spec).layout(spec).width;
  const bool replays = learner_of(spec).replays();
  const auto capacity = static_cast<std::int32_t>(spec.replay_capacity);
  std::uint64_t taken = 0;
  clear_rows(into);
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
    for (std::uint32_t k = 0; k < per_step && state.waiting.size(p) > 0;) {
      const ObservationCopy copy = state.waiting.copy(p, 0);
      if (copy.any()) {
        const CopyLedger::Found found = into.captured->find(copy);
        if (found == CopyLedger::Found::waiting) break;
        if (found == CopyLedger::Found::gone) {
          state.waiting.drop(p);
          continue;
        }
      }
      const std::size_t at = std::size_t{p} * per_step + k;
      std::ranges::copy(state.waiting.row(p, 0),
                        into.values.begin() + static_cast<std::ptrdiff_t>(at * width));
      if (taken_rows) std::ranges::copy(state.waiting.row(p, 0), taken_rows->push(p, copy).begin());
      name_copies(spec, copy, at, into);
      into.rows[at] =
          replays ? static_cast<std::int32_t>(p) * capacity + state.next[p] : static_cast<std::int32_t>(at);
      if (replays) {
        state.next[p] = (state.next[p] + 1) % capacity;
        state.filled[p] = std::min(state.filled[p] + 1, capacity);
      }
      state.waiting.pop(p, 1);
      ++k;
      ++taken;
    }
  }
  return taken;
}

bool has_rollout(const BrainSpec& spec, ReplayState& state, std::uint32_t brain, const CopyLedger& captured) {
  SampleQueue& waiting = state.waiting;
  bool there = true;
  for (std::uint32_t k = std::min(waiting.size(brain), spec.rollout_steps); k-- > 0;) {
    const ObservationCopy& copy = waiting.copy(brain, k);
    if (!copy.any()) continue;
    const CopyLedger::Found found = captured.find(copy);
    there = there && found != CopyLedger::Found::waiting;
    if (found != CopyLedger::Found::gone) continue;
    for (std::uint32_t gone = 0; gone <= k; ++gone) waiting.drop(brain);
    break;
  }
  return there && waiting.size(brain) >= spec.rollout_steps;
}

std::uint64_t take_rollouts(const BrainSpec& spec, ReplayState& state, const StepInputs& into) {
  const SampleLayout layout = learner_of(spec).layout(spec);
  const std::uint32_t steps = spec.rollout_steps;
  std::uint64_t taken = 0;
  clear_rows(into);
  std::vector<std::uint32_t> order(steps);
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
    if (!has_rollout(spec, state, p, into.captured ? *into.captured : kNoCopies)) continue;
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t k) { return state.waiting.copy(p, k).agent; });
    for (std::uint32_t k = 0; k < steps; ++k) {
      const std::size_t at = std::size_t{p} * steps + k;
      std::ranges::copy(state.waiting.row(p, order[k]),
                        into.values.begin() + static_cast<std::ptrdiff_t>(at * layout.width));
      if (k == 0 || state.waiting.copy(p, order[k]).agent != state.waiting.copy(p, order[k - 1]).agent)
        into.values[at * layout.width + layout.begins] = 1;
      into.rows[at] = static_cast<std::int32_t>(at);
      name_copies(spec, state.waiting.copy(p, order[k]), at, into);
    }
    state.waiting.pop(p, steps);
    taken += steps;
  }
  return taken;
}

}  // namespace imprint::agent
