// The sofa: an idle pet likes it, and learns to stay away. Each mind here is a few lines long.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "samples/pet/kept/kept_beside.h"
#include "samples/pet/kept/life_file.h"
#include "samples/pet/yard/lessons.h"
#include "samples/pet/yard/life.h"
#include "samples/pet/yard/teacher.h"
#include "tests/learning/rule_mind.h"

namespace pet {
namespace {

// Walks until the action is over; the highest that the pet was.
float carry_out(World& world, Action action) {
  float highest = 0.0f;
  world.begin_action(action);
  for (int steps = 0; world.acting() && steps < 600; ++steps) {
    world.step();
    highest = std::max(highest, world.view().pet.height);
    const Vec2 at = world.view().pet.position, sofa = world.view().sofa;
    if (std::abs(at.x - sofa.x) > 0.5f) EXPECT_LT(at.y, sofa.y - kSofaHalf.y) << "through its side";
  }
  EXPECT_TRUE(world.completed());
  return highest;
}

TEST(Sofa, UnaskedItLiesThereAndComesDownAgain) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    World world;
    world.redraw(random);
    EXPECT_GT(carry_out(world, kSofaAction), 0.5f);
    EXPECT_TRUE(world.sofa_bound());
    EXPECT_TRUE(world.lies_on_sofa());
    EXPECT_EQ(world.view().pet.height, kSofaSeat);
    for (const float value : world.observe()) EXPECT_LE(std::abs(value), 1.0f);
    carry_out(world, Action::jump);
    EXPECT_EQ(world.view().pet.height, kSofaSeat);
    EXPECT_FALSE(world.lies_on_sofa());
    carry_out(world, Action::go_ball);
    EXPECT_EQ(world.view().pet.height, 0.0f);
    EXPECT_TRUE(world.holding());
  }
}

TEST(Sofa, AskedToDoAnythingItLiesDownOnTheSpot) {
  Random random(1);
  World world;
  world.redraw(random);
  world.set_cue(Cue::sit);
  const Vec2 before = world.view().pet.position;
  carry_out(world, Action::lie);
  EXPECT_FALSE(world.sofa_bound());
  EXPECT_EQ(world.view().pet.position.x, before.x);
  EXPECT_EQ(world.view().pet.pose, Pose::lie);
}

TEST(Sofa, CalledOffHalfWayUpItComesDown) {
  Random random(1);
  World world;
  world.redraw(random);
  world.begin_action(kSofaAction);
  while (world.view().pet.height == 0.0f) world.step();
  world.step();
  world.interrupt();
  for (int i = 0; i < 60; ++i) world.step();
  EXPECT_EQ(world.view().pet.height, 0.0f);
  EXPECT_FALSE(world.lies_on_sofa());
}

// A pet left alone. Its mind always chooses the same action and expects the same reward.
struct Alone {
  Alone(Action action, float expected, const LifeOptions& options = idle())
      : mind([action](const Observation&, const Mask&) { return action; }, expected), life(mind, 1, options) {
    life.on_idle = [this](double, Action, bool sofa) { ++ideas, visits += sofa ? 1 : 0; };
    life.on_onset = [](double, Action, bool) { ADD_FAILURE() << "nothing was asked"; };
  }
  static LifeOptions idle() {
    LifeOptions options;
    options.idle = true;
    return options;
  }
  void pass() {
    life.act(++frame);
    life.step();
    life.ask(frame);
  }
  void until_it_lies() {
    for (int i = 0; i < 1000 && !life.world().lies_on_sofa(); ++i) pass();
    ASSERT_TRUE(life.world().lies_on_sofa());
  }
  RuleMind mind;
  Life life;
  std::uint64_t frame = 0;
  int ideas = 0, visits = 0;
};

TEST(Sofa, SurprisingRewardsAreRemembered) {
  Alone new_to_it(kSofaAction, 0.0f - kComfort), knows(kSofaAction, kComfort);
  new_to_it.until_it_lies();
  knows.until_it_lies();
  EXPECT_EQ(new_to_it.mind.rewards, std::vector<float>{kComfort});
  EXPECT_TRUE(knows.mind.rewards.empty());
  EXPECT_EQ(new_to_it.visits, 1);
  Alone disappointed(Action::bark, 0.6f), used_to_it(Action::bark, 0.0f);
  for (int i = 0; i < 240; ++i) disappointed.pass(), used_to_it.pass();
  ASSERT_GT(disappointed.ideas, 0);
  EXPECT_EQ(disappointed.visits, 0);
  ASSERT_FALSE(disappointed.mind.rewards.empty());
  EXPECT_EQ(disappointed.mind.rewards[0], kEffort);
  EXPECT_TRUE(used_to_it.mind.rewards.empty());
  EXPECT_EQ(disappointed.mind.praised + disappointed.mind.scolded, 0) << "the player gave no feedback";
}

TEST(Sofa, ScoldedOnItsWayItStopsAndThereAndHereExactlyThatIsMeant) {
  Alone pet(kSofaAction, 0.0f);
  while (!pet.life.world().acting()) pet.pass();
  for (int i = 0; i < 10; ++i) pet.pass();
  pet.life.apply(signal(SignalKind::scold));
  EXPECT_FALSE(pet.life.world().acting());
  EXPECT_TRUE(pet.mind.last_exact);
  EXPECT_TRUE(pet.mind.rewards.empty()) << "it never arrived";
  pet.until_it_lies();
  for (int i = 0; i < 30; ++i) pet.life.step();  // too late for the onset
  pet.life.apply(signal(SignalKind::scold));
  EXPECT_TRUE(pet.mind.last_exact);
  const FeedbackMarker& marker = pet.life.world().view().markers.back();
  EXPECT_TRUE(marker.credited);
  EXPECT_STREQ(name(marker.action, marker.unasked), "lie on the sofa");
}

TEST(Sofa, WhereItWasScoldedItIsUneasyUntilItIsPraisedThereOrTimeHasHealedIt) {
  // The reward of lying there, without feedback.
  const auto felt = [](Alone& pet) {
    pet.mind.rewards.clear();
    const int scolded = pet.mind.scolded;
    pet.life.apply(signal(SignalKind::redraw, 5));
    pet.until_it_lies();
    if (!pet.mind.rewards.empty()) return pet.mind.rewards.back();
    EXPECT_EQ(pet.mind.scolded, scolded + 1);
    EXPECT_TRUE(pet.mind.last_exact);
    return pet.mind.last_value;
  };
  Alone pet(kSofaAction, -3.0f);  // any feeling is a surprise
  EXPECT_EQ(felt(pet), kComfort);
  pet.life.apply(signal(SignalKind::scold));
  EXPECT_EQ(pet.mind.last_weight, kCaughtWeight);
  EXPECT_NEAR(felt(pet), kDread, 0.05f);
  for (int i = 0; i < 60 * 60 * 60 * 2; ++i) pet.life.step();
  EXPECT_NEAR(felt(pet), kComfort, 0.01f);
  pet.life.apply(signal(SignalKind::scold));
  pet.life.apply(signal(SignalKind::praise));
  EXPECT_EQ(felt(pet), kComfort);

  LifeOptions older = Alone::idle();
  older.uneasy = false;
  Alone careless(kSofaAction, -3.0f, older);
  EXPECT_EQ(felt(careless), kComfort);
  careless.life.apply(signal(SignalKind::scold));
  EXPECT_EQ(careless.mind.last_weight, 1.0f);
  EXPECT_EQ(felt(careless), kComfort) << "as it was when that log was written";
}

TEST(Sofa, UneaseIsKeptBesideThePet) {
  const std::string file = life_file(
      (std::filesystem::temp_directory_path() / ("imprint-life-" + std::to_string(getpid()))).string());
  EXPECT_TRUE(read_life(file)->empty()) << "as beside the pets of older games";
  Alone pet(kSofaAction, -3.0f);
  pet.until_it_lies();
  EXPECT_EQ(pet.life.unease(), 0.0f);
  pet.life.apply(signal(SignalKind::scold));
  for (int i = 0; i < 60 * 200; ++i) pet.life.step();
  const float left = pet.life.unease();
  EXPECT_NEAR(left, std::exp(-200.0 / kUneaseSeconds), 1e-3);
  ASSERT_EQ(write_life(file, std::array{0.0f, left}), "");
  ASSERT_EQ(*read_life(file), (std::vector{0.0f, left}));

  Alone again(kSofaAction, -3.0f);
  again.life.set_unease((*read_life(file))[1]);
  EXPECT_EQ(again.life.unease(), left);
  again.until_it_lies();
  for (int i = 0; i < 600 && again.mind.scolded == 0; ++i) again.pass();
  EXPECT_EQ(again.mind.scolded, 1) << "it finds no comfort there, without feedback";
  EXPECT_NEAR(again.mind.last_value, kComfort + left * (kDread - kComfort), 0.05f);

  ASSERT_EQ(write_life(file, std::array{0.0f, 0.0f}), "");
  EXPECT_FALSE(std::filesystem::exists(file)) << "a pet at ease needs none";
  EXPECT_NE(write_life("/nowhere/at/all.life", std::array{1.0f}), "");
  for (const char* wrong : {"", "x", "imprint-pet-life 2\nunease 1\n", "imprint-pet-life 1\nunease\n",
                            "imprint-pet-life 1\nunease 1.5\n", "imprint-pet-life 1\nunease nan\n",
                            "imprint-pet-life 1\nunease -0.5\n", "imprint-pet-life 1\nunease 0.5 0.5\n",
                            "imprint-pet-life 1\nsofa 1\n"}) {
    std::ofstream(file) << wrong;
    EXPECT_FALSE(read_life(file)) << wrong;
  }
  ASSERT_EQ(write_life(file, std::array{0.25f}), "");
  EXPECT_EQ(*read_life(file), std::vector{0.25f});
  EXPECT_TRUE(std::filesystem::remove(file + ".unread")) << "an unreadable file is kept under another name";
  std::filesystem::remove(file);
}

TEST(Sofa, UnderUneaseOtherActionsBringRelief) {
  Action action = kSofaAction;
  LifeOptions options = Alone::idle();
  RuleMind mind([&](const Observation&, const Mask&) { return action; }, -3.0f);
  Life life(mind, 1, options);
  std::uint64_t frame = 0;
  const auto pass = [&] { life.act(++frame), life.step(), life.ask(frame); };
  for (int i = 0; i < 1000 && !life.world().lies_on_sofa(); ++i) pass();
  life.apply(signal(SignalKind::scold));
  action = Action::bark;
  mind.rewards.clear();
  for (int i = 0; i < 600 && mind.rewards.empty(); ++i) pass();
  ASSERT_FALSE(mind.rewards.empty());
  EXPECT_NEAR(mind.rewards[0], kEffort + kRelief, 0.02f);
}

TEST(Sofa, ATeacherForbidsItTenTimesAndNothingElse) {
  TeacherStyle style = teacher_style(TeacherKind::praise);
  style.reacts = 1.0f, style.wrong = 0.0f;
  const auto heard = [&](Idle rule, Action action) {
    Alone pet(action, 0.0f);
    Teacher teacher(style, {{{}, 1e9, {}, rule}}, 1, 0);
    int scolds = 0;
    pet.life.on_idle = [&](double now_s, Action, bool sofa) { ++pet.ideas, teacher.see_idle(now_s, sofa); };
    std::vector<Signal> signals;
    for (int i = 0; i < 60 * 120; ++i) {
      signals.clear();
      teacher.step(pet.life.world(), pet.life.trial(), signals);
      for (const Signal& signal : signals) {
        EXPECT_TRUE(signal.kind == SignalKind::redraw || signal.kind == SignalKind::scold);
        scolds += signal.kind == SignalKind::scold ? 1 : 0;
        pet.life.apply(signal);
      }
      pet.pass();
    }
    EXPECT_GT(pet.ideas, 20);
    return scolds;
  };
  EXPECT_EQ(heard(Idle::forbidden, kSofaAction), static_cast<int>(kMostScolds));
  EXPECT_EQ(heard(Idle::free, kSofaAction), 0);
  EXPECT_EQ(heard(Idle::forbidden, Action::bark), 0);
}

TEST(Sofa, TheRuleIsLearnedWithFourOfFiveOnceItWasThere) {
  Lessons lessons;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(lessons.record_idle(false));
  EXPECT_EQ(lessons.rule().tries, 0u) << "not tempted yet";
  for (std::uint32_t i = 0; i < Lessons::kIdleTry; ++i) EXPECT_FALSE(lessons.record_idle(i == 0));
  EXPECT_EQ(lessons.rule().tries, 1u);
  EXPECT_EQ(lessons.rule().success, 0.0f);
  std::uint32_t needed = 0;
  while (!lessons.record_idle(false)) ASSERT_LT(++needed, 100u);
  EXPECT_EQ(needed + 1, 4 * Lessons::kIdleTry);
  EXPECT_TRUE(lessons.rule().mastered);
}

}  // namespace
}  // namespace pet
