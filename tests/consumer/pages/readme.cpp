// The snippet of README.md in a small game. The creature hears a command, is praised for one action and
// scolded for the others, and prefers the praised one in the end.

#include <array>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "host.h"
#include "readme.inc"

namespace {

constexpr std::uint64_t kFrames = 1200;
constexpr std::uint32_t kWanted = 3;

int fail(const char* what, const std::string& why) {
  return std::fprintf(stderr, "readme: %s: %s\n", what, why.c_str()), 1;
}
std::string reason() { return Library(imp_get_api).last_error(); }

}  // namespace

int main(int argc, char** argv) {
  ::Host host;
  if (!host.open(argc > 1 ? argv[1] : "")) return fail("no device", host.error());
  Pet pet;
  if (!pet.open(host.declare())) return fail("open", reason());
  if (!pet.body.set_goal(1)) return fail("set_goal", reason());

  std::array<float, 28> seen{};
  imp_frame_info now = imp_frame_info_init();
  std::uint32_t action = 0;
  float praise = 0;
  int right = 0, asked = 0;
  for (now.frame = 1; now.frame <= kFrames; ++now.frame) {
    const VkCommandBuffer commands = host.begin_frame(now.frame);
    if (!commands) return fail("begin_frame", host.error());
    now.safe_frame = host.safe_frame();
    now.time_s = static_cast<double>(now.frame) / 60;
    // One second: the creature is asked and acts. The player reacts 0.8 s later.
    const std::uint64_t moment = now.frame % 60;
    seen[0] = static_cast<float>(now.frame) / kFrames;
    const bool asks = moment == 1;
    if (!pet.frame(now, commands, asks ? std::span<const float>(seen) : std::span<const float>(), praise,
                   action))
      return fail("frame", reason());
    praise = moment == 50 ? (action == kWanted ? 1.0f : -1.0f) : 0;
    if (moment == 50 && now.frame > kFrames / 2) right += action == kWanted, ++asked;
    if (!host.end_frame()) return fail("end_frame", host.error());
  }
  host.wait_for_all();
  now.safe_frame = host.safe_frame();
  if (!pet.context.frame_begin(now) || !pet.context.frame_end() || !pet.context.destroy())
    return fail("close", reason());
  std::printf("%s: %d of the last %d actions were the praised one\n", host.device_name(), right, asked);
  return right * 10 >= asked * 8 ? 0 : fail("learning", "the praised action should be chosen");
}
