// The snippet of README.md in a small game: it opens, one action is rewarded and the others are not, and it
// prefers that action in the end.

#include <array>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "declare.h"
#include "host.h"
#include "readme.inc"

namespace {

constexpr std::uint64_t kFrames = 1200;
constexpr std::uint32_t kWanted = 3;

struct Game {
  std::array<float, 28> seen{};
  int steps = 0, judged = 0, right = 0;

  std::span<const float> look() const { return seen; }
  float step(std::uint32_t action) {
    if (++steps > 400) ++judged, right += action == kWanted;
    seen[0] = static_cast<float>(steps % 10) / 10;
    return action == kWanted ? 1.0f : -1.0f;
  }
  bool over() const { return steps % 10 == 0; }
};

int fail(const char* what, const std::string& why) {
  return std::fprintf(stderr, "readme: %s: %s\n", what, why.c_str()), 1;
}

}  // namespace

int main(int argc, char** argv) {
  ::Host host;
  if (!host.open(argc > 1 ? argv[1] : "")) return fail("no device", host.error());
  Pet pet;
  if (const Outcome opened = pet.open(declare(host)); !opened) return fail("open", opened.message());
  Game game;
  for (std::uint64_t number = 1; number <= kFrames; ++number) {
    const VkCommandBuffer commands = host.begin_frame(number);
    if (!commands) return fail("begin_frame", host.error());
    if (const Outcome outcome = pet.frame(game, commands); !outcome) return fail("frame", outcome.message());
    if (!host.end_frame()) return fail("end_frame", host.error());
  }
  host.wait_for_all();
  if (const Outcome closed = pet.close(); !closed) return fail("close", closed.message());
  std::printf("%s: %d of the last %d actions were the rewarded one\n", host.device_name(), game.right,
              game.judged);
  return game.judged > 100 && game.right * 10 >= game.judged * 8
             ? 0
             : fail("learning", "the rewarded action should be chosen");
}
