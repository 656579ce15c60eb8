#include "plugin/agent/decide/noise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "compute/base/philox.h"

namespace imprint::agent {
namespace {

// Above every value that a network can hold, far from infinity.
constexpr float kAboveAll = 1e30f;
// Element number of the draw that decides whether a choice is random. No noise has that many elements.
constexpr std::uint32_t kRandomChoice = 0xFFFFFFFF;

constexpr std::uint32_t kDrawnChoice = 0xFFFFFFFE;  // of draw_random_choice

// allowed.size() where nothing is allowed.
std::size_t random_choice(std::span<const std::int32_t> allowed, std::uint32_t word) {
  const auto count = static_cast<double>(std::ranges::count(allowed, 1));
  auto left = static_cast<std::ptrdiff_t>(uniform_of(word) * count);
  std::size_t found = 0;
  while (found < allowed.size() && (allowed[found] != 1 || left-- > 0)) ++found;
  return found;
}

// The last word keeps these draws apart from those of tensors, whose counters end in 0.
PhiloxCounter words_of(std::uint32_t element, const DecisionDraw& draw) {
  const PhiloxKey key{static_cast<std::uint32_t>(draw.brain_seed),
                      static_cast<std::uint32_t>(draw.brain_seed >> 32)};
  return philox({element, draw.agent, static_cast<std::uint32_t>(draw.decision),
                 static_cast<std::uint32_t>(draw.decision >> 32) + 1},
                key);
}

constexpr std::uint32_t kSlowWords = 1u << 29;         // of slow noise
constexpr std::uint32_t kGlide = 0xFFFFFFFD;           // of the draw of a glide's length
constexpr std::uint64_t kShortest = 4, kLongest = 32;  // glides, in decisions

// Decisions of the glide that this one lies in.
std::uint64_t glide_length(const DecisionDraw& draw) {
  DecisionDraw key = draw;
  key.decision = draw.decision / kLongest;
  return kShortest << (words_of(kGlide, key)[0] >> 30);
}

// From the normal numbers of two decisions, with weights whose squares add up to 1.
void fill_slow(std::span<float> noise, float deviation, const DecisionDraw& draw, std::uint32_t first_word) {
  DecisionDraw key = draw;
  const std::uint64_t length = glide_length(draw);
  key.slow = false;
  key.decision = draw.decision / length;
  const double way = static_cast<double>(draw.decision % length) / static_cast<double>(length);
  const auto words = static_cast<std::uint32_t>(kSlowWords + (length << 20)) + first_word;
  std::array<float, 32> later{};
  for (std::size_t i = 0; i < noise.size(); i += later.size()) {
    const std::span<float> some = noise.subspan(i, std::min(later.size(), noise.size() - i));
    const auto at = words + static_cast<std::uint32_t>(i / 4);
    ++key.decision;
    fill_noise(std::span(later).first(some.size()), deviation, key, at);
    --key.decision;
    fill_noise(some, deviation, key, at);
    const auto sine = static_cast<float>(std::sin(way * std::numbers::pi / 2)),
               cosine = static_cast<float>(std::cos(way * std::numbers::pi / 2));
    for (std::size_t k = 0; k < some.size(); ++k) some[k] = cosine * some[k] + sine * later[k];
  }
}

}  // namespace

void fill_noise(std::span<float> noise, float deviation, const DecisionDraw& draw, std::uint32_t first_word) {
  if (draw.slow) return fill_slow(noise, deviation, draw, first_word);
  for (std::size_t i = 0; i < noise.size(); i += 4) {
    const PhiloxCounter words = words_of(first_word + static_cast<std::uint32_t>(i / 4), draw);
    for (std::size_t pair = 0; pair < 2 && i + 2 * pair < noise.size(); ++pair) {
      const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform_of(words[2 * pair])));
      const double turn = 2.0 * std::numbers::pi * uniform_of(words[2 * pair + 1]);
      noise[i + 2 * pair] = deviation * static_cast<float>(radius * std::cos(turn));
      if (i + 2 * pair + 1 < noise.size())
        noise[i + 2 * pair + 1] = deviation * static_cast<float>(radius * std::sin(turn));
    }
  }
}

void fill_gumbel(std::span<float> noise, const DecisionDraw& draw) {
  constexpr double kLeast = 0x1p-25;
  if (draw.slow) {
    fill_noise(noise, 1, draw);
    for (float& number : noise) {
      const double uniform = 0.5 * std::erfc(-double{number} / std::numbers::sqrt2);
      number = static_cast<float>(-std::log(-std::log(std::clamp(uniform, kLeast, 1 - kLeast))));
    }
    return;
  }
  for (std::size_t i = 0; i < noise.size(); i += 4) {
    const PhiloxCounter words = words_of(static_cast<std::uint32_t>(i / 4), draw);
    for (std::size_t k = i; k < std::min(i + 4, noise.size()); ++k)
      noise[k] = static_cast<float>(
          -std::log(-std::log(uniform_of(words[k - i]) + kLeast)));  // half a grid step: never log of 0 or 1
  }
}

void add_random_choice(std::span<float> noise, std::span<const std::int32_t> allowed, float epsilon,
                       const DecisionDraw& draw) {
  DecisionDraw key = draw;
  if (draw.slow) key.decision = draw.decision / glide_length(draw);
  const PhiloxCounter words = words_of(kRandomChoice, key);
  if (uniform_of(words[0]) >= epsilon) return;
  if (const std::size_t found = random_choice(allowed, words[1]); found < noise.size())
    noise[found] = kAboveAll;
}

std::array<float, 2> draw_random_choice(std::span<const std::int32_t> allowed, const DecisionDraw& draw) {
  if (allowed.empty()) return {0, 1};
  const PhiloxCounter words = words_of(kDrawnChoice, draw);
  return {static_cast<float>(random_choice(allowed, words[1])), static_cast<float>(uniform_of(words[0]))};
}

}  // namespace imprint::agent
