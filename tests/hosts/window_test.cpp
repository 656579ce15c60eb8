// Plain Vulkan in a window of GLFW and of SDL2, through the adapter samples/adapters/vulkan.h: a creature
// learns, the window is resized meanwhile, each picture is the one without Imprint, and validation is silent.

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/hosts/creature.h"
#include "tests/hosts/engine.h"

namespace imprint::hosts {
namespace {

constexpr std::uint64_t kFrames = 1500, kResizeAt = 300;

struct Case {
  const char* name;
  WindowLibrary window;
  Access access;
};

EngineOptions options_of(const Case& way) {
  EngineOptions options;
  options.window = way.window;
  return options;
}

Place place_of(const Meadow& meadow) { return {4 * meadow.creature[0], 4 * meadow.creature[1]}; }

class T8WindowHost : public testing::TestWithParam<Case> {};

std::string play(Engine& engine, Access access, Meadow& meadow, std::vector<Place>& places) {
  const bool records = access == Access::record;
  // imprint: begin
  game::Made<game::Context> context =
      game::Context::create(game::Library(imp_get_api), engine.declare(access));
  game::Made<game::Brain> brain = context->create_brain(game::BrainDesc::of(game::FeedbackOptions(), 2, {4}));
  game::Made<game::Agent> agent = brain->create_agent();
  if (!agent || !context->warmup()) return game::Library(imp_get_api).last_error();
  game::Frames clock(2);  // frames in flight
  // imprint: end
  while (engine.newest_frame() < kFrames) {
    const Engine::Frame host = engine.begin_frame();
    // imprint: begin
    game::Frame frame(*context, clock.next(1.0 / 60));
    const game::Action action = frame.act(*agent);
    if (action.is_new) frame.keep(agent->reward(meadow.step(action.choices()[0])));
    if (action.is_new && meadow.ended()) frame.keep(agent->end_episode(game::EpisodeEnd::terminated));
    if (action.wants_observation) frame.keep(agent->observe(meadow.look()));
    records ? frame.record(host.commands) : frame.submit();
    if (const game::Outcome outcome = frame.end(); !outcome) return outcome.message();
    // imprint: end
    places.push_back(place_of(meadow));
    engine.end_frame(places.back());
    if (host.number == kResizeAt) engine.resize();
  }
  engine.finish_frames();
  // imprint: begin
  return context->close().message();
  // imprint: end
}

TEST_P(T8WindowHost, ACreatureLearnsAndThePictureIsTheSame) {
  std::vector<Place> places;
  std::vector<std::uint64_t> pictures;
  Meadow meadow;
  {
    Engine engine(options_of(GetParam()));
    ASSERT_TRUE(engine.ok());
    ASSERT_EQ(play(engine, GetParam().access, meadow, places), "");
    pictures = engine.pictures();
  }
  std::printf("%s: %.0f %% of the last 100 of %zu steps led to the light\n", GetParam().name,
              static_cast<double>(100 * meadow.success()), meadow.rewards.size());
  EXPECT_GE(meadow.success(), 0.9f);
  Engine engine(options_of(GetParam()));
  ASSERT_TRUE(engine.ok());
  for (const Place& place : places) engine.begin_frame(), engine.end_frame(place);
  engine.finish_frames();
  EXPECT_EQ(pictures, engine.pictures());
}

INSTANTIATE_TEST_SUITE_P(Of, T8WindowHost,
                         testing::Values(
#ifdef HOST_HAS_SDL
                             Case{"sdl_record", WindowLibrary::sdl, Access::record},
                             Case{"sdl_lock", WindowLibrary::sdl, Access::lock},
#endif
                             Case{"glfw_record", WindowLibrary::glfw, Access::record}),
                         [](const auto& way) { return std::string(way.param.name); });

}  // namespace
}  // namespace imprint::hosts
