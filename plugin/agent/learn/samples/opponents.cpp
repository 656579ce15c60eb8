#include "plugin/agent/learn/samples/opponents.h"

#include <algorithm>
#include <cmath>

#include "compute/base/philox.h"

namespace imprint::agent {

namespace {

constexpr float kFirstRating = 1200;

}  // namespace

Opponents::Opponents(const BrainSpec& spec)
    : size_(spec.pool_size),
      period_(spec.pool_period),
      newest_share_(spec.newest_share),
      brains_(spec.pool_size > 0 ? spec.brain_count : 0) {
  for (OfBrain& brain : brains_) {
    brain.newest.rating = kFirstRating;
    brain.kept.resize(size_);
  }
}

std::uint32_t Opponents::draw(std::uint32_t brain, std::uint64_t seed) {
  OfBrain& own = brains_[brain];
  const auto number = [&](std::uint32_t stream) {
    return philox_uniform(static_cast<std::uint32_t>(own.draws), stream, brain,
                          static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  };
  constexpr std::uint32_t kWhether = 0x0e10, kWhich = 0x0e11;
  const bool newest = own.count == 0 || number(kWhether) < double{newest_share_};
  const auto which = static_cast<std::uint32_t>(number(kWhich) * own.count);
  ++own.draws;
  return newest ? kNewestOpponent : std::min(which, own.count - 1);
}

void Opponents::request_when_due(std::uint64_t decisions_of_brain) {
  if (period_ == 0) return;
  for (OfBrain& brain : brains_) brain.wanted |= decisions_of_brain >= brain.kept_at + period_;
}

bool Opponents::wanted() const { return std::ranges::any_of(brains_, &OfBrain::wanted); }

std::int32_t Opponents::keep(std::uint32_t brain, std::uint64_t decisions_of_brain) {
  OfBrain& own = brains_[brain];
  if (!own.wanted) return -1;
  own.wanted = false;
  own.kept_at = decisions_of_brain;
  const std::uint32_t entry = own.next;
  own.kept[entry] = {own.newest.rating, decisions_of_brain, 0};
  own.next = (entry + 1) % size_;
  own.count = std::min(own.count + 1, size_);
  return static_cast<std::int32_t>(brain * size_ + entry);
}

Opponent& Opponents::of(std::uint32_t brain, std::uint32_t who) {
  OfBrain& own = brains_[brain];
  return who < size_ ? own.kept[who] : own.newest;
}

void Opponents::rate(Opponent& first, Opponent& second, float score) {
  constexpr double kStep = 16, kScale = 400;  // points; ten times as likely to win
  const double expected = 1 / (1 + std::pow(10.0, (double{second.rating} - double{first.rating}) / kScale));
  const auto change = static_cast<float>(kStep * (double{score} - expected));
  ++first.matches;
  ++second.matches;
  if (&first == &second) return;
  first.rating += change;
  second.rating -= change;
}

std::vector<float> Opponents::ratings() const {
  std::vector<float> all;
  for (const OfBrain& brain : brains_) {
    all.push_back(brain.newest.rating);
    for (const Opponent& entry : brain.kept) all.push_back(entry.rating);
  }
  return all;
}

std::vector<std::int64_t> Opponents::numbers() const {
  std::vector<std::int64_t> all;
  const auto add = [&](std::uint64_t number) { all.push_back(static_cast<std::int64_t>(number)); };
  for (const OfBrain& brain : brains_) {
    for (const std::uint64_t number :
         {std::uint64_t{brain.next}, std::uint64_t{brain.count}, std::uint64_t{brain.wanted}, brain.draws,
          brain.kept_at, brain.newest.matches})
      add(number);
    for (const Opponent& entry : brain.kept) {
      add(entry.decisions);
      add(entry.matches);
    }
  }
  return all;
}

const char* Opponents::set(const std::vector<float>& ratings, const std::vector<std::int64_t>& numbers) {
  if (std::ranges::any_of(numbers, [](std::int64_t number) { return number < 0; })) return "a count below 0";
  const std::int64_t* number = numbers.data();
  const float* rating = ratings.data();
  for (OfBrain& brain : brains_) {
    if (number[0] >= size_ || number[1] > size_) return "more than the pool holds";
    brain.next = static_cast<std::uint32_t>(number[0]);
    brain.count = static_cast<std::uint32_t>(number[1]);
    brain.wanted = number[2] != 0;
    brain.draws = static_cast<std::uint64_t>(number[3]);
    brain.kept_at = static_cast<std::uint64_t>(number[4]);
    brain.newest = {*rating++, 0, static_cast<std::uint64_t>(number[5])};
    number += 6;
    for (Opponent& entry : brain.kept) {
      entry = {*rating++, static_cast<std::uint64_t>(number[0]), static_cast<std::uint64_t>(number[1])};
      number += 2;
    }
  }
  return nullptr;
}

}  // namespace imprint::agent
