#include "plugin/agent/learn/replay.h"

#include <algorithm>
#include <numeric>

namespace imprint::agent {

SampleLayout SampleLayout::of(const BrainSpec& spec) {
  SampleLayout layout;
  std::uint32_t column = 0;
  const auto columns = [&](std::uint32_t& field, std::uint32_t count) {
    field = column;
    column += count;
  };
  columns(layout.observation, spec.observation.count);
  columns(layout.goal, 1);
  columns(layout.branches, static_cast<std::uint32_t>(spec.action.branch_sizes.size()));
  columns(layout.continuous, spec.action.continuous_count);
  switch (spec.learner) {
    case LearnerKind::none:
    case LearnerKind::cloning:
      columns(layout.weight, 1);
      break;
    case LearnerKind::feedback:
      columns(layout.target, 1);
      columns(layout.weight, 1);
      columns(layout.margin, 1);
      break;
    case LearnerKind::dqn:
      columns(layout.reward, 1);
      columns(layout.continues, 1);
      columns(layout.next_observation, spec.observation.count);
      columns(layout.next_goal, 1);
      columns(layout.allowed, spec.action.choice_count());
      break;
    case LearnerKind::coach:
      columns(layout.reward, 1);
      columns(layout.begins, 1);
      columns(layout.allowed, spec.action.choice_count());
      break;
    case LearnerKind::ppo:
      columns(layout.reward, 1);
      columns(layout.begins, 1);
      columns(layout.allowed, spec.action.choice_count());
      columns(layout.continues, 1);
      columns(layout.next_observation, spec.observation.count);
      columns(layout.next_goal, 1);
      break;
  }
  layout.width = column;
  return layout;
}

SampleQueue::SampleQueue(std::uint32_t brain_count, std::uint32_t width, std::uint32_t capacity)
    : queues_(brain_count), width_(width), capacity_(capacity) {}

std::span<float> SampleQueue::push(std::uint32_t brain, const Sight& sight) {
  Ring& ring = queues_[brain];
  if (ring.count == capacity_) drop(brain);
  if (ring.count == row_count(ring)) grow(ring);
  const std::uint32_t slot = (ring.first + ring.count) % row_count(ring);
  ring.sights[slot] = sight;
  ++ring.count;
  ++total_;
  return std::span(ring.rows).subspan(std::size_t{slot} * width_, width_);
}

void SampleQueue::grow(Ring& ring) const {
  const std::uint32_t before = row_count(ring);
  const std::size_t count = std::min(std::max(2 * before, kRowsPerStep), capacity_);
  std::vector<float> rows(count * width_);
  std::vector<Sight> sights(count);
  for (std::uint32_t i = 0; i < ring.count; ++i) {
    sights[i] = ring.sights[(ring.first + i) % before];
    std::copy_n(
        ring.rows.begin() + static_cast<std::ptrdiff_t>(std::size_t{(ring.first + i) % before} * width_),
        width_, rows.begin() + static_cast<std::ptrdiff_t>(std::size_t{i} * width_));
  }
  ring.sights = std::move(sights);
  ring.rows = std::move(rows);
  ring.first = 0;
}

std::span<const float> SampleQueue::row(std::uint32_t brain, std::uint32_t index) const {
  const Ring& ring = queues_[brain];
  return std::span(ring.rows).subspan(std::size_t{(ring.first + index) % row_count(ring)} * width_, width_);
}

const Sight& SampleQueue::sight(std::uint32_t brain, std::uint32_t index) const {
  const Ring& ring = queues_[brain];
  return ring.sights[(ring.first + index) % row_count(ring)];
}

void SampleQueue::drop(std::uint32_t brain) {
  pop(brain, 1);
  ++dropped_;
}

void SampleQueue::drop_sights() {
  for (std::uint32_t brain = 0; brain < queues_.size(); ++brain) {
    // Once round: what stays goes behind what was there.
    for (std::uint32_t left = size(brain); left > 0; --left) {
      if (sight(brain, 0).number == 0) {
        const std::vector<float> kept(row(brain, 0).begin(), row(brain, 0).end());
        pop(brain, 1);
        std::ranges::copy(kept, push(brain).begin());
      } else {
        pop(brain, 1);
      }
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
  state.waiting = SampleQueue(spec.brain_count, SampleLayout::of(spec).width, waiting_capacity(spec));
  return state;
}

std::uint64_t ReplayState::sample_count() const {
  return std::accumulate(filled.begin(), filled.end(), std::uint64_t{0});
}

std::uint32_t rows_per_step(const BrainSpec& spec) {
  const LearnerTraits& learner = traits_of(spec.learner);
  if (learner.rollouts) return spec.rollout_steps;
  const std::uint32_t rows = learner.follows ? std::max(kRowsPerStep, spec.batch_size) : kRowsPerStep;
  return learner.replays ? std::min(rows, spec.replay_capacity) : rows;
}

std::uint32_t waiting_capacity(const BrainSpec& spec) {
  return std::max(kWaitingSamples, 4 * rows_per_step(spec));
}

void take_samples(const BrainSpec& spec, ReplayState& state, const TakenSamples& into) {
  const std::uint32_t per_step = rows_per_step(spec);
  const std::uint32_t width = SampleLayout::of(spec).width;
  const bool replays = traits_of(spec.learner).replays;
  const auto capacity = static_cast<std::int32_t>(spec.replay_capacity);
  std::ranges::fill(into.rows, -1);
  std::ranges::fill(into.sights, -1);
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
    for (std::uint32_t k = 0; k < per_step && state.waiting.size(p) > 0;) {
      const Sight sight = state.waiting.sight(p, 0);
      if (sight.number > 0) {
        const std::uint64_t captured = into.captured[sight.seat];
        if (sight.number > captured) break;
        if (captured - sight.number >= kSightsKept) {
          state.waiting.drop(p);
          continue;
        }
      }
      const std::size_t at = std::size_t{p} * per_step + k;
      std::ranges::copy(state.waiting.row(p, 0),
                        into.values.begin() + static_cast<std::ptrdiff_t>(at * width));
      if (sight.number > 0) into.sights[at] = sight_row(spec, sight);
      into.rows[at] =
          replays ? static_cast<std::int32_t>(p) * capacity + state.next[p] : static_cast<std::int32_t>(at);
      if (replays) {
        state.next[p] = (state.next[p] + 1) % capacity;
        state.filled[p] = std::min(state.filled[p] + 1, capacity);
      }
      state.waiting.pop(p, 1);
      ++k;
    }
  }
}

void take_rollouts(const BrainSpec& spec, ReplayState& state, const TakenSamples& into) {
  const SampleLayout layout = SampleLayout::of(spec);
  const std::uint32_t steps = spec.rollout_steps;
  std::ranges::fill(into.rows, -1);
  std::vector<std::uint32_t> order(steps);
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
    if (state.waiting.size(p) < steps) continue;
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t k) { return state.waiting.sight(p, k).seat; });
    for (std::uint32_t k = 0; k < steps; ++k) {
      const std::size_t at = std::size_t{p} * steps + k;
      std::ranges::copy(state.waiting.row(p, order[k]),
                        into.values.begin() + static_cast<std::ptrdiff_t>(at * layout.width));
      if (k == 0 || state.waiting.sight(p, order[k]).seat != state.waiting.sight(p, order[k - 1]).seat)
        into.values[at * layout.width + layout.begins] = 1;
      into.rows[at] = static_cast<std::int32_t>(at);
    }
    state.waiting.pop(p, state.waiting.size(p));
  }
}

}  // namespace imprint::agent
