#include "samples/pet/yard/temperament.h"

#include <algorithm>
#include <array>

#include "samples/pet/yard/random.h"

namespace pet {
namespace {

constexpr std::size_t kOfLate = 40, kAFew = 8;
constexpr float kFavourite = 0.3f;  // share of its idle actions
constexpr float kLively = 0.85f, kCalm = 1.2f;
constexpr std::uint64_t kPaceStream = 1u << 21;

}  // namespace

float pace_of(std::uint64_t seed) { return Random(seed, kPaceStream).uniform(0.6f, 1.5f); }

std::string temperament(const std::vector<IdleDecision>& idle, float pace) {
  std::string words = pace < kLively ? "lively" : pace > kCalm ? "calm" : "";
  const std::size_t count = std::min(idle.size(), kOfLate);
  if (count < kAFew) return words;
  std::array<std::size_t, kActionCount> times{};
  for (std::size_t i = idle.size() - count; i < idle.size(); ++i)
    ++times[static_cast<std::size_t>(idle[i].action)];
  const auto most = std::max_element(times.begin(), times.end());
  if (static_cast<float>(*most) < kFavourite * static_cast<float>(count)) return words;
  return words + (words.empty() ? "likes to " : ", likes to ") +
         name(static_cast<Action>(most - times.begin()), true);
}

}  // namespace pet
