// The player's hand leads the pet to something, which is a demonstration.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "samples/pet/yard/life.h"
#include "samples/pet/yard/temperament.h"
#include "tests/learning/rule_mind.h"

namespace pet {
namespace {

// A pet that would only bark, and the player's hand.
struct Led {
  explicit Led(const LifeOptions& options = {})
      : mind([](const Observation&, const Mask&) { return Action::bark; }), life(mind, 3, options) {
    life.on_led = [this](Action action) { led.push_back(action); };
    life.on_trial_end = [this](const Trial& trial, bool shown) { ends.push_back({trial.state(), shown}); };
  }
  void pass() {
    life.act(++frame);
    life.step();
    life.ask(frame);
  }
  void lead(Vec2 to) {
    for (int i = 0; i < 240; ++i) life.apply(move(SignalKind::lure, to)), pass();
  }
  void lead_and_let_go(Vec2 to) {
    lead(to);
    life.apply(signal(SignalKind::let_go));
    for (int i = 0; i < 600 && life.world().acting(); ++i) pass();
  }
  const WorldView& view() const { return life.world().view(); }

  struct End {
    Trial::State state;
    bool shown;
  };
  RuleMind mind;
  Life life;
  std::uint64_t frame = 0;
  std::vector<Action> led;
  std::vector<End> ends;
};

float apart(Vec2 a, Vec2 b) { return std::hypot(a.x - b.x, a.y - b.y); }

TEST(Lure, LeadsToAThingAndDemonstratesFromTheStart) {
  for (const auto& [cue, action] : {std::pair{Cue::come, Action::go_player}, {Cue::bed, Action::go_bed}}) {
    Led pet;
    pet.life.apply(give_cue(cue));
    const Observation before = pet.life.world().observe();
    const Vec2 thing = cue == Cue::come ? pet.view().player.position : pet.view().bed;
    pet.lead(thing);
    EXPECT_TRUE(pet.view().lure.active && pet.view().lure.leads);
    EXPECT_EQ(pet.view().lure.action, action);
    EXPECT_LT(apart(pet.view().pet.position, thing), cue == Cue::come ? 1.0f : 0.4f);
    EXPECT_FALSE(pet.life.world().acting()) << "following a hand is no action";
    EXPECT_EQ(pet.mind.asked, 0) << "a led pet decides nothing";
    EXPECT_TRUE(pet.mind.shown.empty());
    pet.lead_and_let_go(thing);
    ASSERT_EQ(pet.mind.shown.size(), 1u);
    EXPECT_EQ(pet.mind.shown[0].first, cue);
    EXPECT_EQ(pet.mind.shown[0].second, action);
    for (std::size_t i = 0; i < kObservationCount - 3; ++i) EXPECT_EQ(pet.mind.last_seen[i], before[i]) << i;
    EXPECT_EQ(pet.led, std::vector<Action>{action});
    ASSERT_EQ(pet.ends.size(), 1u);
    EXPECT_EQ(pet.ends[0].state, Trial::State::success);
    EXPECT_TRUE(pet.ends[0].shown) << "it is not counted as its own";
    const FeedbackMarker& marker = pet.view().markers.back();
    EXPECT_EQ(marker.kind, FeedbackKind::demonstration);
    EXPECT_TRUE(marker.credited);
    EXPECT_EQ(marker.action, action);
  }
}

TEST(Lure, FetchIsThreeWays) {
  Led pet;
  pet.life.apply(give_cue(Cue::fetch));
  pet.lead_and_let_go(pet.view().ball);
  EXPECT_TRUE(pet.life.world().holding());
  pet.lead_and_let_go(pet.view().player.position);
  EXPECT_TRUE(pet.life.world().holding());
  pet.lead_and_let_go(pet.view().player.position);
  EXPECT_FALSE(pet.life.world().holding());
  EXPECT_EQ(pet.led, (std::vector<Action>{Action::go_ball, Action::go_player, Action::give}));
  ASSERT_EQ(pet.ends.size(), 1u);
  EXPECT_EQ(pet.ends[0].state, Trial::State::success);
}

TEST(Lure, LetGoAwayFromThingsItContinuesByItself) {
  Led pet;
  pet.life.apply(give_cue(Cue::sit));
  Vec2 nowhere{-4.0f, -4.0f};
  for (; nowhere.x < 4.0f; nowhere.x += 0.5f) {
    float nearest = 10.0f;
    for (const Vec2 thing : {pet.view().player.position, pet.view().ball, pet.view().bed, pet.view().bowl})
      nearest = std::min(nearest, apart(thing, nowhere));
    if (nearest > 1.5f) break;
  }
  pet.lead(nowhere);
  EXPECT_FALSE(pet.view().lure.leads);
  EXPECT_LT(apart(pet.view().pet.position, nowhere), 0.4f);
  pet.life.apply(signal(SignalKind::let_go));
  EXPECT_TRUE(pet.mind.shown.empty());
  for (int i = 0; i < 60; ++i) pet.pass();
  EXPECT_GT(pet.mind.asked, 0);
  EXPECT_FALSE(pet.life.trial().over());
}

TEST(Lure, ToTheWrongThingIsShownAllTheSame) {
  Led pet;
  pet.life.apply(give_cue(Cue::bed));
  pet.lead_and_let_go(pet.view().bowl);
  ASSERT_EQ(pet.mind.shown.size(), 1u);
  EXPECT_EQ(pet.mind.shown[0].second, Action::go_bowl);
  EXPECT_FALSE(pet.life.trial().over()) << "that was not the command";
}

TEST(Lure, WithoutACommandItDemonstratesIdleActions) {
  LifeOptions idle;
  idle.idle = true;
  Led pet(idle);
  pet.lead_and_let_go(pet.view().bed);
  ASSERT_EQ(pet.mind.shown.size(), 1u);
  EXPECT_EQ(pet.mind.shown[0].first, Cue::none);
  EXPECT_EQ(pet.mind.shown[0].second, Action::go_bed);
  EXPECT_TRUE(pet.mind.rewards.empty()) << "it did not choose this itself";
}

TEST(Lure, ACommandGivenOnTheWayIsDemonstrated) {
  Led pet;
  pet.life.apply(give_cue(Cue::sit));
  const Vec2 bed = pet.view().bed;
  pet.lead(bed);
  pet.life.apply(give_cue(Cue::bed));
  pet.lead_and_let_go(bed);
  ASSERT_EQ(pet.mind.shown.size(), 1u);
  EXPECT_EQ(pet.mind.shown[0].first, Cue::bed);
  ASSERT_EQ(pet.ends.size(), 1u);
  EXPECT_EQ(pet.ends[0].state, Trial::State::success);
}

TEST(Lure, EndsWithANewYardAndReachesOnlyTaughtPets) {
  Led pet;
  pet.life.apply(give_cue(Cue::bed));
  pet.lead(pet.view().bed);
  pet.life.apply(signal(SignalKind::redraw, 9));
  EXPECT_FALSE(pet.view().lure.active);
  pet.life.apply(signal(SignalKind::let_go));
  EXPECT_TRUE(pet.mind.shown.empty());
  LifeOptions untaught;
  untaught.taught = false;
  Led ghost(untaught);
  const Vec2 at = ghost.view().pet.position;
  ghost.lead_and_let_go(ghost.view().bed);
  EXPECT_TRUE(ghost.mind.shown.empty());
  EXPECT_EQ(ghost.view().pet.position.x, at.x);
}

TEST(Lure, TakesItOffTheSofa) {
  Random random(1);
  World world;
  world.redraw(random);
  world.begin_action(kSofaAction);
  while (world.acting()) world.step();
  ASSERT_EQ(world.view().pet.height, kSofaSeat);
  const Vec2 player = world.view().player.position;
  for (int i = 0; i < 600; ++i) {
    world.lead(player);
    world.step();
    const Vec2 at = world.view().pet.position, sofa = world.view().sofa;
    if (std::abs(at.x - sofa.x) > 0.5f) EXPECT_LT(at.y, sofa.y - kSofaHalf.y) << "through its side";
  }
  EXPECT_EQ(world.view().pet.height, 0.0f);
  EXPECT_LT(apart(world.view().pet.position, player), 1.0f);
  world.let_go();
  EXPECT_TRUE(world.view().lure.active == false && !world.acting());
}

TEST(Temperament, DependsOnTheSeedAndOnActions) {
  float shortest = 2.0f, longest = 0.0f;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const float pace = pace_of(seed);
    EXPECT_EQ(pace, pace_of(seed));
    shortest = std::min(shortest, pace), longest = std::max(longest, pace);
  }
  EXPECT_GE(shortest, 0.6f);
  EXPECT_LE(longest, 1.5f);
  EXPECT_GT(longest - shortest, 0.6f);
  std::vector<IdleDecision> idle(7, {0.0, Action::spin});
  EXPECT_EQ(temperament(idle, 1.0f), "") << "too early to tell";
  EXPECT_EQ(temperament(idle, 0.7f), "lively");
  idle.push_back({0.0, Action::bark});
  EXPECT_EQ(temperament(idle, 1.0f), "likes to spin");
  for (int i = 0; i < 40; ++i) idle.push_back({0.0, static_cast<Action>(i % 4)});
  EXPECT_EQ(temperament(idle, 1.4f), "calm") << "recently it did a bit of everything";
  idle.insert(idle.end(), 30, {0.0, kSofaAction});
  EXPECT_EQ(temperament(idle, 1.0f), "likes to lie on the sofa");
}

}  // namespace
}  // namespace pet
