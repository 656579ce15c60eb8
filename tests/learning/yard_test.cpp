// The yard, the pet and its teachers, without a brain of Imprint. Each mind here is a few lines long.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "samples/pet/yard/checkup.h"
#include "samples/pet/yard/lessons.h"
#include "samples/pet/yard/life.h"
#include "samples/pet/yard/teacher.h"
#include "tests/learning/rule_mind.h"

namespace pet {
namespace {

// The right action, from the observation alone.
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

TEST(No, StopsTheActionAndBlamesExactlyIt) {
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
  // The quickest and the slowest player that the brain supports.
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

TEST(Examination, GivesFullMarksForKnowledgeAndOneTrickForSitting) {
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

TEST(Lesson, ATeacherShowsEachTrickOnceAndPraisesRightActions) {
  RuleMind mind(know);
  const Evening evening(mind, TeacherKind::demo, 300.0);
  EXPECT_EQ(evening.demonstrations, 5);
  EXPECT_EQ(mind.shown.size(), 7u);  // fetching takes three actions
  // A command that was followed at once can still be wrongly scolded and broken off, but it cannot fail.
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

// Commands given at once, to a pet that knows all tricks and to one that only sits.
TEST(Chain, IsFollowedCommandByCommandAndGoodIfAllAre) {
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

}  // namespace
}  // namespace pet
