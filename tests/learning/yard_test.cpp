// The yard, its people and its papers, without a brain from Imprint: minds here are a few lines each.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "samples/pet/kept/kept_beside.h"
#include "samples/pet/kept/life_file.h"
#include "samples/pet/kept/session_log.h"
#include "samples/pet/report.h"
#include "samples/pet/yard/checkup.h"
#include "samples/pet/yard/lessons.h"
#include "samples/pet/yard/life.h"
#include "samples/pet/yard/teacher.h"
#include "tests/learning/rule_mind.h"

namespace pet {
namespace {

// What a pet that knows everything would do, from what it sees alone.
Action know(const Observation& o, const Mask&) {
  if (o[static_cast<std::size_t>(Cue::spin)] > 0.5f) return Action::spin;
  if (o[static_cast<std::size_t>(Cue::come)] > 0.5f) return Action::go_player;
  if (o[static_cast<std::size_t>(Cue::bed)] > 0.5f) return Action::go_bed;
  if (o[static_cast<std::size_t>(Cue::fetch)] > 0.5f)
    return o[24] < 0.5f ? Action::go_ball : o[11] > 0.5f ? Action::give : Action::go_player;
  return Action::sit;
}

TEST(Yard, IsDrawnTheSameFromTheSameSeedAndKeepsThingsApart) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random one(seed), two(seed);
    World a, b;
    a.redraw(one);
    b.redraw(two);
    const Observation seen = a.observe();
    EXPECT_EQ(seen, b.observe());
    for (const float value : seen) EXPECT_LE(std::abs(value), 1.0f);
    for (std::size_t thing = 0; thing < 4; ++thing)
      EXPECT_EQ(seen[8 + 4 * thing + 3], 0.0f) << "starts near thing " << thing;
  }
}

TEST(Yard, WalksArriveAndAreNear) {
  const std::array<std::pair<Action, std::size_t>, 4> walks = {
      {{Action::go_player, 0}, {Action::go_ball, 1}, {Action::go_bed, 2}, {Action::go_bowl, 3}}};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const auto& [action, thing] : walks) {
      Random random(seed);
      World world;
      world.redraw(random);
      world.begin_action(action);
      int steps = 0;
      while (world.acting() && steps < 600) world.step(), ++steps;
      EXPECT_TRUE(world.completed());
      EXPECT_LT(steps, 240);
      EXPECT_EQ(world.observe()[8 + 4 * thing + 3], 1.0f);
      EXPECT_FALSE(world.ready()) << "it looks at the player first";
    }
  }
}

TEST(Yard, ThePlayerStandsBesideThingsNotInThem) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    World world;
    world.redraw(random);
    const WorldView& yard = world.view();
    for (const Vec2 thing : {yard.bed, yard.bowl}) {
      for (const Vec2 wanted : {thing, Vec2{thing.x + 0.2f, thing.y - 0.1f}, Vec2{thing.x - 0.3f, thing.y},
                                Vec2{thing.x, thing.y + 0.3f}}) {
        world.move_player(standing_place(yard, wanted));
        const Vec2 at = yard.player.position;
        EXPECT_GT(std::hypot(at.x - yard.bed.x, at.y - yard.bed.y), kBedRadius + 0.2f) << seed;
        EXPECT_GT(std::hypot(at.x - yard.bowl.x, at.y - yard.bowl.y), kBowlRadius) << seed;
        EXPECT_LT(std::hypot(at.x - wanted.x, at.y - wanted.y), 3.0f) << seed;
      }
    }
    const Vec2 free = {yard.bed.x > 0.0f ? -4.0f : 4.0f, -4.1f};
    if (std::hypot(free.x - yard.bowl.x, free.y - yard.bowl.y) < 1.0f) continue;
    EXPECT_EQ(standing_place(yard, free).x, free.x);
    EXPECT_EQ(standing_place(yard, free).y, free.y);
  }
}

TEST(Yard, GivingNeedsTheBall) {
  Random random(1);
  World world;
  world.redraw(random);
  EXPECT_EQ(world.mask()[static_cast<std::size_t>(Action::give)], 0);
  world.begin_action(Action::go_ball);
  while (world.acting()) world.step();
  EXPECT_TRUE(world.holding());
  EXPECT_EQ(world.mask()[static_cast<std::size_t>(Action::give)], 1);
}

TEST(Yard, AnInterruptedWalkIsNotAnArrival) {
  Random random(3);
  World world;
  world.redraw(random);
  world.set_cue(Cue::bed);
  Trial trial;
  trial.begin(Cue::bed);
  EXPECT_TRUE(trial.decide(world, Action::go_bed));
  world.begin_action(Action::go_bed);
  world.step();
  world.interrupt();
  EXPECT_EQ(trial.after(world), Trial::State::running);
}

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

// A life that is left to itself, whose mind always does the same and expects that of it.
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

TEST(Sofa, WhatItFeelsIsRememberedWhenItIsASurprise) {
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
  EXPECT_EQ(disappointed.mind.praised + disappointed.mind.scolded, 0) << "nobody said anything";
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
  // What lying there brings it, without anybody's word.
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
  Alone pet(kSofaAction, -3.0f);  // whatever it feels is a surprise
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

TEST(Sofa, WhatItIsUneasyAboutIsKeptBesideThePet) {
  const std::string file = life_file(
      (std::filesystem::temp_directory_path() / ("imprint-life-" + std::to_string(getpid()))).string());
  EXPECT_TRUE(read_life(file).empty()) << "as beside the pets of older games";
  Alone pet(kSofaAction, -3.0f);
  pet.until_it_lies();
  EXPECT_EQ(pet.life.unease(), 0.0f);
  pet.life.apply(signal(SignalKind::scold));
  for (int i = 0; i < 60 * 200; ++i) pet.life.step();
  const float left = pet.life.unease();
  EXPECT_NEAR(left, std::exp(-200.0 / kUneaseSeconds), 1e-3);
  ASSERT_EQ(write_life(file, std::array{0.0f, left}), "");
  ASSERT_EQ(read_life(file), (std::vector{0.0f, left}));

  Alone again(kSofaAction, -3.0f);
  again.life.set_unease(read_life(file)[1]);
  EXPECT_EQ(again.life.unease(), left);
  again.until_it_lies();
  for (int i = 0; i < 600 && again.mind.scolded == 0; ++i) again.pass();
  EXPECT_EQ(again.mind.scolded, 1) << "it finds no comfort there, and nobody said a word";
  EXPECT_NEAR(again.mind.last_value, kComfort + left * (kDread - kComfort), 0.05f);

  ASSERT_EQ(write_life(file, std::array{0.0f, 0.0f}), "");
  EXPECT_FALSE(std::filesystem::exists(file)) << "a pet at ease needs none";
  EXPECT_NE(write_life("/nowhere/at/all.life", std::array{1.0f}), "");
  for (const char* wrong : {"", "x", "imprint-pet-life 2\nunease 1\n", "imprint-pet-life 1\nunease\n",
                            "imprint-pet-life 1\nunease 1.5\n", "imprint-pet-life 1\nunease nan\n",
                            "imprint-pet-life 1\nunease -0.5\n", "imprint-pet-life 1\nunease 0.5 0.5\n",
                            "imprint-pet-life 1\nsofa 1\n"}) {
    std::ofstream(file) << wrong;
    EXPECT_THROW(read_life(file), std::runtime_error) << wrong;
  }
  ASSERT_EQ(write_life(file, std::array{0.25f}), "");
  EXPECT_EQ(read_life(file), std::vector{0.25f});
  EXPECT_TRUE(std::filesystem::remove(file + ".unread")) << "what cannot be read is kept aside";
  std::filesystem::remove(file);
}

TEST(Sofa, UneasyAboutItItIsRelievedByWhateverElseItDoes) {
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

// A life whose mind always does the same, led until that action is under way.
struct Doing {
  explicit Doing(Action action, const LifeOptions& options = {})
      : mind([action](const Observation&, const Mask&) { return action; }), life(mind, 1, options) {
    life.apply(give_cue(Cue::come));
    for (std::uint64_t frame = 1; !life.world().acting(); ++frame) pass(frame);
    pass(100);
  }
  void pass(std::uint64_t frame) {
    life.act(frame);
    life.step();
    life.ask(frame);
  }
  RuleMind mind;
  Life life;
};

TEST(No, StopsWhatItDoesAndBlamesExactlyThat) {
  for (const Action action : {Action::sit, Action::spin, Action::jump, Action::go_bed}) {
    Doing pet(action);
    ASSERT_TRUE(pet.life.world().acting());
    pet.life.apply(signal(SignalKind::no));
    EXPECT_FALSE(pet.life.world().acting());
    EXPECT_FALSE(pet.life.world().completed());
    EXPECT_EQ(pet.life.world().view().pet.pose, Pose::stand);
    EXPECT_EQ(pet.life.world().view().pet.height, 0.0f);
    EXPECT_EQ(pet.mind.scolded, 1);
    EXPECT_TRUE(pet.mind.last_exact);
    EXPECT_EQ(pet.mind.last_feedback_s, pet.life.world().time_s());
    const FeedbackMarker& marker = pet.life.world().view().markers.back();
    EXPECT_TRUE(marker.credited);
    EXPECT_EQ(marker.action, action);
  }
}

TEST(No, IsAScoldWhenNothingIsUnderWay) {
  Doing pet(Action::sit);
  while (pet.life.world().acting()) pet.life.step();
  pet.life.apply(signal(SignalKind::no));
  EXPECT_EQ(pet.mind.scolded, 1);
  EXPECT_FALSE(pet.mind.last_exact);
}

TEST(No, AScoldStopsWalksOnlyAndIsNotExact) {
  Doing sits(Action::sit);
  sits.life.apply(signal(SignalKind::scold));
  EXPECT_TRUE(sits.life.world().acting());
  EXPECT_FALSE(sits.mind.last_exact);
}

TEST(Reaction, FeedbackOfASlowPlayerIsDatedBackAndAClickIsNot) {
  LifeOptions options;
  options.brain_reaction_s = kQuickestReaction;
  Doing pet(Action::sit, options);
  const double now = pet.life.world().time_s();
  pet.life.apply(signal(SignalKind::praise));
  EXPECT_NEAR(pet.mind.last_feedback_s, now - (kUsualReaction - kQuickestReaction), 1e-9);
  pet.life.apply(signal(SignalKind::reaction, 1400));
  pet.life.apply(signal(SignalKind::praise));
  EXPECT_NEAR(pet.mind.last_feedback_s, now - 0.8, 1e-9);
  pet.life.apply(signal(SignalKind::click));
  EXPECT_EQ(pet.mind.last_feedback_s, now);
  // The quickest that the brain reckons with, and the slowest.
  pet.life.apply(signal(SignalKind::reaction, 100));
  pet.life.apply(signal(SignalKind::scold));
  EXPECT_EQ(pet.mind.last_feedback_s, now);
  pet.life.apply(signal(SignalKind::reaction, 60000));
  pet.life.apply(signal(SignalKind::scold));
  EXPECT_NEAR(pet.mind.last_feedback_s, now - (kSlowestReaction - kQuickestReaction), 1e-9);
}

TEST(Reaction, ATreatMayComeLate) {
  Doing pet(Action::sit);
  const double onset = pet.life.world().onset_s();
  const auto at = [&](double seconds) {
    while (pet.life.world().time_s() < onset + seconds) pet.life.step();
  };
  at(1.0);
  pet.life.apply(signal(SignalKind::treat));
  EXPECT_EQ(pet.mind.last_feedback_s, pet.life.world().time_s());
  at(2.5);
  pet.life.apply(signal(SignalKind::treat));
  EXPECT_NEAR(pet.mind.last_feedback_s, onset + kUsualReaction, 1e-9);
  EXPECT_TRUE(pet.life.world().view().markers.back().credited);
  pet.life.apply(signal(SignalKind::praise));
  EXPECT_EQ(pet.mind.last_feedback_s, pet.life.world().time_s()) << "a word is meant for now";
  at(kSlowestTreat + 0.5);
  pet.life.apply(signal(SignalKind::treat));
  EXPECT_EQ(pet.mind.last_feedback_s, pet.life.world().time_s());
  EXPECT_FALSE(pet.life.world().view().markers.back().credited);
}

TEST(Reaction, AScriptedTeacherIsTakenAtItsTime) {
  Doing pet(Action::sit);
  pet.life.apply(signal(SignalKind::praise));
  EXPECT_EQ(pet.mind.last_feedback_s, pet.life.world().time_s());
}

TEST(Examination, GivesFullMarksToTheOneWhoKnowsAndOneTrickToTheOneWhoOnlySits) {
  RuleMind wise(know);
  RuleMind lazy([](const Observation&, const Mask&) { return Action::sit; });
  for (RuleMind* mind : {&wise, &lazy}) {
    Checkup checkup({{mind}});
    checkup.begin(5);
    std::uint64_t frame = 1;
    while (!checkup.step(frame)) ASSERT_LT(++frame, 5000u);
    if (mind == &wise) {
      EXPECT_EQ(success(checkup.marks()[0]), 1.0f);
    } else {
      EXPECT_EQ(success(checkup.marks()[0]), 0.2f);
      EXPECT_EQ(checkup.marks()[0][0], kTrialsPerTrick);
    }
    EXPECT_EQ(checkup.decisions().size(), kTrialsPerPet);
  }
}

// Plays a teacher against a mind for some simulated time.
struct Evening {
  Evening(RuleMind& mind, TeacherKind kind, double seconds, std::uint64_t seed = 1)
      : life(mind, seed, {}), teacher(teacher_style(kind), {}, seed, 0) {
    life.on_onset = [this](double now_s, Action, bool right) {
      teacher.see_onset(now_s, right);
      ++onsets;
    };
    life.on_trial_end = [this](const Trial& trial, bool shown) {
      shown ? ++demonstrations : trial.state() == Trial::State::success ? ++good : ++bad;
    };
    std::vector<Signal> signals;
    for (std::uint64_t frame = 1; life.world().time_s() < seconds; ++frame) {
      signals.clear();
      teacher.step(life.world(), life.trial(), signals);
      for (const Signal& signal : signals) life.apply(signal);
      life.act(frame);
      life.step();
      life.ask(frame);
    }
  }
  Life life;
  Teacher teacher;
  int onsets = 0, good = 0, bad = 0, demonstrations = 0;
};

TEST(Lesson, ATeacherShowsEachTrickOnceAndPraisesWhatIsRight) {
  RuleMind mind(know);
  const Evening evening(mind, TeacherKind::demo, 300.0);
  EXPECT_EQ(evening.demonstrations, 5);
  EXPECT_EQ(mind.shown.size(), 7u);  // fetching takes three actions
  // A command that was carried out at once can still be wrongly scolded and broken off, but never fail.
  EXPECT_EQ(evening.bad, 0);
  EXPECT_GT(evening.good, 80);
  const double heard = mind.praised + mind.scolded;
  EXPECT_NEAR(heard / evening.onsets, 0.8, 0.08);
  EXPECT_NEAR(mind.scolded / heard, 0.05, 0.04);
}

TEST(Lesson, ACarelessTeacherMissesHalfAndErrsOneTimeInSeven) {
  RuleMind mind(know);
  const Evening evening(mind, TeacherKind::careless, 900.0);
  EXPECT_EQ(evening.demonstrations, 10);
  const double heard = mind.praised + mind.scolded;
  EXPECT_NEAR(heard / evening.onsets, 0.5, 0.06);
  EXPECT_NEAR(mind.scolded / heard, 0.15, 0.05);
}

TEST(Lesson, OnePetDecidesAboutOnceASecond) {
  RuleMind mind([](const Observation&, const Mask&) { return Action::bark; });
  const Evening evening(mind, TeacherKind::praise, 120.0);
  EXPECT_GT(evening.onsets, 80);
  EXPECT_LT(evening.onsets, 130);
  EXPECT_EQ(evening.good, 0);
}

TEST(Lesson, IsLearnedWithFourOfFive) {
  Lessons lessons;
  EXPECT_EQ(lessons.next(), Cue::sit);
  Random random(1);
  World world;
  world.redraw(random);
  const auto command = [&](bool well) {
    Trial trial;
    world.set_cue(Cue::sit);
    trial.begin(Cue::sit);
    for (std::uint32_t i = 0; i < kMostDecisions && !trial.over(); ++i) {
      const Action action = well ? Action::sit : Action::bark;
      trial.decide(world, action);
      world.begin_action(action);
      while (world.acting()) world.step();
      trial.after(world);
    }
    return lessons.record(trial);
  };
  EXPECT_FALSE(command(true));
  EXPECT_FALSE(command(false));
  EXPECT_FALSE(command(true));
  EXPECT_FALSE(command(true));
  EXPECT_TRUE(command(true));
  EXPECT_EQ(lessons.next(), Cue::come);
  EXPECT_FLOAT_EQ(lessons.scores()[0].success, 0.8f);
}

std::string temporary_log() {
  return (std::filesystem::temp_directory_path() / ("imprint-yard-test-" + std::to_string(getpid()) + ".log"))
      .string();
}

// Commands given at once, to one who knows and to one who only sits.
TEST(Chain, IsFollowedCommandByCommandAndGoodWhenAllOfItIs) {
  struct Outcome {
    std::vector<Cue> ended;
    std::vector<bool> chains;
  };
  const auto ask = [](const RuleMind::Rule& rule, const std::vector<Cue>& cues) {
    RuleMind mind(rule);
    Life life(mind, 2, {});
    Outcome outcome;
    life.on_trial_end = [&](const Trial& trial, bool) { outcome.ended.push_back(trial.cue()); };
    life.on_chain_end = [&](bool success) { outcome.chains.push_back(success); };
    for (const Cue cue : cues) life.apply(then_cue(cue));
    EXPECT_EQ(life.world().view().cue, cues[0]) << "the first is given at once";
    for (std::uint64_t frame = 1; frame < 60 * 60; ++frame) {
      life.act(frame);
      life.step();
      life.ask(frame);
    }
    EXPECT_EQ(life.world().view().cue, Cue::none);
    EXPECT_TRUE(life.world().view().then.empty());
    EXPECT_EQ(mind.goal, Cue::none);
    return outcome;
  };
  const std::vector<Cue> cues = {Cue::sit, Cue::fetch, Cue::bed};
  const Outcome wise = ask(know, cues), alone = ask(know, {Cue::sit});
  EXPECT_EQ(wise.ended, cues);
  EXPECT_EQ(wise.chains, std::vector<bool>{true});
  EXPECT_TRUE(alone.chains.empty()) << "one command is no chain";
  const Outcome lazy = ask([](const Observation&, const Mask&) { return Action::sit; }, cues);
  EXPECT_EQ(lazy.ended, (std::vector<Cue>{Cue::sit, Cue::fetch})) << "it breaks off where it fails";
  EXPECT_EQ(lazy.chains, std::vector<bool>{false});
  // Told twice before it sat: a flawless end does not make the chain good.
  int barks = 1;
  const Outcome clumsy =
      ask([&](const Observation& o, const Mask& mask) { return barks-- > 0 ? Action::bark : know(o, mask); },
          {Cue::sit, Cue::spin});
  EXPECT_EQ(clumsy.ended, (std::vector<Cue>{Cue::sit, Cue::spin}));
  EXPECT_EQ(clumsy.chains, std::vector<bool>{false});
}

TEST(Chain, ANewCommandTakesItsPlace) {
  RuleMind mind(know);
  Life life(mind, 2, {});
  life.on_chain_end = [](bool) { ADD_FAILURE() << "it was called off"; };
  life.apply(give_cue(Cue::fetch));
  for (int i = 0; i < 9; ++i) life.apply(then_cue(Cue::bed));
  EXPECT_EQ(life.world().view().then.size() + 1, kLongestChain);
  life.apply(give_cue(Cue::spin));
  EXPECT_TRUE(life.world().view().then.empty());
  for (std::uint64_t frame = 1; frame < 600; ++frame) {
    life.act(frame);
    life.step();
    life.ask(frame);
  }
}

TEST(SessionLog, ComesBackAsItWasWritten) {
  const std::string path = temporary_log();
  std::vector<Signal> events = {signal(SignalKind::redraw, 0xffffffffffffffffull),
                                give_cue(Cue::fetch),
                                signal(SignalKind::praise),
                                signal(SignalKind::scold),
                                signal(SignalKind::treat),
                                signal(SignalKind::click),
                                signal(SignalKind::show),
                                move(SignalKind::move_player, {1.1f, -0.3f}),
                                move(SignalKind::move_ball, {0.1f, 1e-7f}),
                                signal(SignalKind::snapshot),
                                signal(SignalKind::undo, 2),
                                signal(SignalKind::learning, 1),
                                signal(SignalKind::no),
                                signal(SignalKind::reaction, 910),
                                then_cue(Cue::bed),
                                move(SignalKind::lure, {-1.5f, 2.25f}),
                                signal(SignalKind::let_go),
                                name_cue(Cue::bed, "go to your place")};
  {
    SessionLogWriter writer(path, {7, 3, true, TeacherKind::careless});
    for (std::size_t i = 0; i < events.size(); ++i) writer.write(10 + i / 4, i % 3, events[i]);
    writer.write_steps(20, 0);
    writer.write_end(21);
  }
  SessionLogReader reader(path);
  EXPECT_EQ(reader.header().seed, 7u);
  EXPECT_EQ(reader.header().pets, 3u);
  EXPECT_TRUE(reader.header().idle);
  EXPECT_EQ(reader.header().teacher, TeacherKind::careless);
  EXPECT_EQ(reader.end_frame(), 21u);
  EXPECT_EQ(reader.steps(19), 1u);
  EXPECT_EQ(reader.steps(20), 0u);
  std::vector<Signal> back;
  for (std::uint64_t frame = 1; frame < 21; ++frame) {
    for (std::size_t pet = 0; pet < 3; ++pet) reader.read(frame, pet, back);
  }
  ASSERT_EQ(back.size(), events.size());
  // Each pet's events come in order; between pets of one frame the order is that of the pets.
  for (const Signal& event : events) {
    EXPECT_NE(std::find_if(back.begin(), back.end(),
                           [&](const Signal& other) {
                             return other.kind == event.kind && other.cue == event.cue &&
                                    other.number == event.number && other.text == event.text &&
                                    other.position.x == event.position.x &&
                                    other.position.y == event.position.y;
                           }),
              back.end());
  }
  std::filesystem::remove(path);
}

TEST(SessionLog, NoticesWhatIsNotWritten) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no device that is full";
  EXPECT_THROW(SessionLogWriter("/dev/full", {7, 3, true, TeacherKind::careless}), std::runtime_error);
  const std::string path = (std::filesystem::temp_directory_path() / "imprint-log-written.txt").string();
  {
    SessionLogWriter writer(path, {7, 3, true, TeacherKind::careless});
    writer.write_end(9);
    EXPECT_EQ(writer.problem(), "");
  }
  std::filesystem::remove(path);
}

TEST(SessionLog, SaysWhichLineIsWrong) {
  const std::string path = temporary_log();
  const std::string head = "imprint-pet-log 3\nseed 1 pets 1 idle 0\n";
  const std::vector<std::string> wrong = {"",
                                          "imprint-pet-log 3\n",
                                          "imprint-pet-log 4\nseed 1 pets 1 idle 0\n",
                                          "imprint-pet-log 1\nseed x pets 1 idle 0\n",
                                          "imprint-pet-log 1\nseed 1 pets 0 idle 0\n",
                                          "imprint-pet-log 1\nseed 1 pets 1 idle 0 teacher nobody\n",
                                          "imprint-pet-log 1\nseed 1 pets 1 idle 0 dance\n",
                                          head + "1 0 dance\n",
                                          head + "1 1 praise\n",
                                          head + "1 0 cue dance\n",
                                          head + "1 0 then dance\n",
                                          "imprint-pet-log 1\nseed 1 pets 1 idle 1\n",
                                          head + "5 0 praise\n4 0 praise\n",
                                          head + "1 steps 100000\n",
                                          head + "1 0 move_ball 1\n",
                                          head + "1 0 lure 1\n",
                                          head + "1 0 name dance x\n",
                                          head + "1 0 name sit bed\n",
                                          head + "one 0 praise\n",
                                          head + "1 -1 praise\n"};
  for (const std::string& text : wrong) {
    std::ofstream(path) << text;
    EXPECT_THROW(SessionLogReader{path}, std::runtime_error) << text;
  }
  std::ofstream(path) << head << "5 0 praise\n";
  EXPECT_EQ(SessionLogReader(path).header().teacher, TeacherKind::none)
      << "a log of before teachers were named";
  EXPECT_EQ(SessionLogReader(path).end_frame(), 6u) << "a log that was cut off ends after its last event";
  std::filesystem::remove(path);
  EXPECT_THROW(SessionLogReader{path}, std::runtime_error);
}

TEST(Report, HoldsNinetyPercentOnlyWithTwoChecksInARow) {
  const auto checks = [](std::vector<float> values) {
    std::vector<Check> made;
    for (std::size_t i = 0; i < values.size(); ++i) {
      Check check;
      check.seconds = 15.0 * static_cast<double>(i);
      check.success = values[i];
      made.push_back(check);
    }
    return made;
  };
  EXPECT_FALSE(held_90(checks({0.1f, 0.95f, 0.8f, 0.95f})));
  EXPECT_EQ(held_90(checks({0.1f, 0.95f, 0.9f})), 30.0);
  // The last check comes when the game ends, which may be soon after the one before.
  std::vector<Check> late = checks({0.1f, 0.2f, 0.95f, 0.95f});
  late[3].seconds = 32.0;
  EXPECT_FALSE(held_90(late));
  late.push_back(late.back());
  late.back().seconds = 45.0;
  EXPECT_EQ(held_90(late), 45.0);
  late[3].success = 0.5f;
  EXPECT_FALSE(held_90(late));
  EXPECT_EQ(success_at(checks({0.1f, 0.5f, 0.9f}), 29.0), 0.5f);
  EXPECT_FALSE(success_at({}, 10.0));
  EXPECT_EQ(spread({3.0f, 1.0f, 2.0f}).median, 2.0);
  EXPECT_EQ(spread({3.0f, 1.0f, 2.0f}).frames, 3u);
  EXPECT_EQ(spread({}).p99, 0.0);
}

TEST(Report, JudgesLearningByTheTeacher) {
  Report report;
  report.teacher = TeacherKind::demo;
  report.simulated_seconds = 180.0;
  report.minibatches = 100;
  report.final_success = 0.5f;
  EXPECT_EQ(learned(report), false);
  report.final_success = 0.9f;
  EXPECT_EQ(learned(report), true);
  // Success without a minibatch was not learned here.
  report.minibatches = 0;
  EXPECT_EQ(learned(report), false);
  EXPECT_NE(to_json(report).find("\"learned\": false"), std::string::npos);
  for (const TeacherKind nobody : {TeacherKind::off, TeacherKind::none}) {
    report.teacher = nobody;
    EXPECT_FALSE(learned(report).has_value());
    EXPECT_FALSE(lesson_seconds(nobody).has_value());
    EXPECT_NE(to_json(report).find("\"learned\": null"), std::string::npos);
  }
}

TEST(Report, DoesNotJudgeASessionTooShortToLearnIn) {
  Report report;
  report.minibatches = 20;
  for (const TeacherKind teacher : {TeacherKind::demo, TeacherKind::praise, TeacherKind::careless}) {
    report.teacher = teacher;
    const std::optional<double> needed = lesson_seconds(teacher);
    ASSERT_TRUE(needed.has_value());
    report.simulated_seconds = *needed - 1.0;
    report.final_success = 0.2f;
    EXPECT_FALSE(learned(report).has_value());
    report.final_success = 0.95f;
    EXPECT_EQ(learned(report), true) << "learned sooner";
    report.simulated_seconds = *needed;
    report.final_success = 0.2f;
    EXPECT_EQ(learned(report), false);
  }
}

}  // namespace
}  // namespace pet
