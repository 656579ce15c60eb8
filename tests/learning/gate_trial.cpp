#include "tests/learning/gate_trial.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <numeric>
#include <stdexcept>

#include <imprint/imprint.hpp>

#include "tests/must.h"
#include "tools/trials/environments.h"

namespace imprint::trials {
namespace gate {
namespace {

using namespace imprint::game;

constexpr std::uint32_t kArenas = 8, kMembers = 3;
constexpr int kCells = 5, kSteps = 12;

struct Member {
  Agent agent;
  int cell = 0, move = 0;
  bool there = false, asked = false;
};

struct Arena {
  std::array<Member, kMembers> members;
  bool open = false;
  int steps = 0;
  double earned = 0;

  std::uint32_t count() const {
    return static_cast<std::uint32_t>(std::ranges::count_if(members, &Member::there));
  }
};

class GateGame {
 public:
  explicit GateGame(const AbiTrial& trial) : groups_(trial.groups), draws_(trial.seed, 3) {
    StandaloneDesc device;
    device.device = "cpu";
    imp_limits limits = imp_limits_init();
    limits.gpu_us_per_frame = 1'000'000'000;
    context_ = must(Context::create_standalone(Library(imp_get_api), device, HostDesc(), limits));
    BrainDesc desc = BrainDesc::of(PpoOptions(), kCells + 3, {3}, kArenas * kMembers);
    desc.seed = trial.seed;
    desc.action_latency_frames = 1;
    if (groups_) desc.groups.emplace().group_size = kMembers;
    brain_ = must(context_.create_brain(desc));
    for (std::uint32_t i = 0; i < kArenas; ++i) {
      for (Member& member : arenas_[i].members) {
        member.agent = must(brain_.create_agent());
        if (groups_) must(member.agent.set_group(1 + i));
      }
      begin(arenas_[i]);
    }
    must(context_.warmup());
  }

  void frame() {
    ++frame_;
    must(context_.frame_begin(frame_, static_cast<double>(frame_) / 60));
    for (Arena& arena : arenas_) {
      bool ready = true;
      for (Member& member : arena.members) {
        if (!member.there || !member.asked) continue;
        const Made<Action> made = member.agent.act();
        must(made.outcome);
        ready = ready && made.outcome.ready() && made.value.is_new;
        if (made.outcome.ready()) member.move = static_cast<int>(made.value.branches[0]) - 1;
      }
      const bool is_asked = arena.members[0].asked || arena.members[1].asked || arena.members[2].asked;
      if (ready && is_asked) move(arena);
      for (Member& member : arena.members)
        if (ready && member.there) observe(arena, member);
    }
    must(context_.submit());
    must(context_.frame_end());
  }

  imp_brain_stats stats() const { return must(brain_.stats()); }

  std::int64_t steps = 0;
  std::deque<double> earned;

 private:
  void begin(Arena& arena) {
    arena.open = false;
    arena.steps = 0;
    arena.earned = 0;
    for (Member& member : arena.members) {
      member.cell = 1 + static_cast<int>(draws_.between(0, kCells - 2));
      member.there = true;
      member.asked = false;
    }
  }
  void observe(const Arena& arena, Member& member) {
    std::array<float, kCells + 3> seen{};
    seen[static_cast<std::size_t>(member.cell)] = 1;
    seen[kCells] = arena.open ? 1.0f : 0.0f;
    seen[kCells + 1] = static_cast<float>(arena.steps) / kSteps;
    seen[kCells + 2] = static_cast<float>(arena.count() - 1) / 2;
    must(member.agent.observe(seen));
    member.asked = true;
  }
  void leave(Member& member) {
    must(member.agent.end_episode(EpisodeEnd::terminated));
    member.there = member.asked = false;
  }
  void earn(Arena& arena, Member& by) {
    ++arena.earned;
    if (groups_) return must(by.agent.group_reward(1));
    for (Member& member : arena.members)
      if (member.there) must(member.agent.reward(1));
  }

  void move(Arena& arena) {
    ++arena.steps;
    for (Member& member : arena.members) {
      if (!member.there) continue;
      ++steps;
      member.cell = std::clamp(member.cell + member.move, 0, kCells - 1);
      const bool pulls = member.cell == 0 && !arena.open, out = member.cell == kCells - 1 && arena.open;
      arena.open = arena.open || pulls;
      if (out) earn(arena, member);
      if (pulls || out) leave(member);
    }
    if (arena.steps < kSteps && arena.count() > 0) return;
    for (Member& member : arena.members) {
      if (!member.there) continue;
      // The time is seen, so its end is no cut.
      if (groups_)
        must(member.agent.end_group_episode(EpisodeEnd::terminated));
      else
        must(member.agent.end_episode(EpisodeEnd::terminated));
      if (groups_) break;
    }
    earned.push_back(arena.earned);
    if (earned.size() > 200) earned.pop_front();
    begin(arena);
  }

  bool groups_;
  Draws draws_;
  Context context_;
  Brain brain_;
  std::array<Arena, kArenas> arenas_;
  std::uint64_t frame_ = 0;
};

}  // namespace
}  // namespace gate

AbiCurve run_gate_trial(const AbiTrial& trial) {
  const auto began = std::chrono::steady_clock::now();
  gate::GateGame game(trial);
  AbiCurve curve;
  for (std::int64_t next = trial.check_every; game.steps < trial.steps;) {
    game.frame();
    if (game.steps < std::min(next, trial.steps)) continue;
    next += trial.check_every;
    const double earned = std::accumulate(game.earned.begin(), game.earned.end(), 0.0) /
                          static_cast<double>(game.earned.size());
    curve.checks.push_back({game.steps, earned, earned});
  }
  const imp_brain_stats stats = game.stats();
  curve.used = stats.used_samples;
  curve.dropped = stats.dropped_samples;
  curve.late = stats.late_actions;
  curve.minibatches = stats.minibatches;
  curve.last_loss = stats.last_loss;
  curve.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return curve;
}

}  // namespace imprint::trials
