// Credit of praise and scolding; requests, answers and masks of an agent slot.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "plugin/agent/decide/agent_slot.h"
#include "plugin/agent/decide/noise.h"
#include "plugin/agent/learn/samples/credit.h"

namespace imprint::agent {
namespace {

using ::testing::ElementsAre;

constexpr CreditShape kShape{0.8, 0.6};

TEST(Credit, IsATriangleAroundTheReactionTime) {
  const std::vector<double> onsets{0.0, 0.5, 1.0, 1.5, 2.0, 2.5};
  std::vector<Credit> credits;
  credit_by_onset(onsets, 2.3, kShape, credits);  // 0.8 s after 1.5
  ASSERT_EQ(credits.size(), 3u);
  EXPECT_EQ(credits[0].index, 2u);
  EXPECT_NEAR(credits[0].weight, 1 - 0.5 / 0.6, 1e-6);
  EXPECT_EQ(credits[1].index, 3u);
  EXPECT_NEAR(credits[1].weight, 1.0, 1e-6);
  EXPECT_EQ(credits[2].index, 4u);
  EXPECT_NEAR(credits[2].weight, 1 - 0.5 / 0.6, 1e-6);
  EXPECT_EQ(most_credited(credits, onsets), 3);
}

TEST(Credit, LeavesOutNoiseAndLaterActions) {
  std::vector<Credit> credits;
  credit_by_onset(std::vector<double>{0.0}, 1.38, kShape, credits);  // 1 - 0.58 / 0.6 = 0.033
  EXPECT_TRUE(credits.empty());
  credit_by_onset(std::vector<double>{5.0}, 1.0, {0.0, 10.0}, credits);
  EXPECT_TRUE(credits.empty());
  EXPECT_EQ(most_credited(credits, {}), -1);
}

TEST(Credit, CurrentIsTheNewestThatHadBegun) {
  std::vector<Credit> credits;
  credit_current(std::vector<double>{1.0, 3.0, 2.0, 9.0}, 4.0, credits);
  ASSERT_EQ(credits.size(), 1u);
  EXPECT_EQ(credits[0].index, 1u);
  EXPECT_EQ(credits[0].weight, 1.0f);
  credit_current(std::vector<double>{1.0, 1.0}, 1.0, credits);
  EXPECT_EQ(credits[0].index, 1u) << "the later one of two equal onsets";
  credit_current(std::vector<double>{2.0}, 1.0, credits);
  EXPECT_TRUE(credits.empty());
}

TEST(Credit, TiesGoToTheNewest) {
  const std::vector<double> onsets{1.0, 1.4, 1.4};
  const std::vector<Credit> even{{0, 0.5f}, {1, 0.5f}};
  EXPECT_EQ(most_credited(even, onsets), 1);
  const std::vector<Credit> same_onset{{1, 0.5f}, {2, 0.5f}};
  EXPECT_EQ(most_credited(same_onset, onsets), 2);
}

TEST(Noise, DependsOnlyOnTheDecision) {
  std::vector<float> a(10), b(10), single(10), part(3);
  fill_noise(a, 0.2f, {7, 3, 41});
  fill_noise(b, 0.2f, {7, 3, 41});
  EXPECT_EQ(a, b);
  fill_noise(part, 0.2f, {7, 3, 41});
  EXPECT_TRUE(std::equal(part.begin(), part.end(), a.begin()));
  fill_noise(single, 0.2f, {7, 4, 41});
  EXPECT_NE(a, single);
  fill_noise(single, 0.2f, {7, 3, 42});
  EXPECT_NE(a, single);
  fill_noise(single, 0.0f, {7, 3, 41});
  EXPECT_THAT(single, ::testing::Each(0.0f));
}

TEST(Noise, IsNormal) {
  double sum = 0, squares = 0;
  constexpr int draws = 20000;
  std::vector<float> noise(10);
  for (int i = 0; i < draws / 10; ++i) {
    fill_noise(noise, 2.0f, {1, 0, static_cast<std::uint64_t>(i)});
    for (const float value : noise) sum += value, squares += double{value} * value;
  }
  EXPECT_NEAR(sum / draws, 0.0, 0.05);
  EXPECT_NEAR(squares / draws, 4.0, 0.15);
}

class AgentSlotTest : public ::testing::Test {
 protected:
  AgentSlotTest() : agent({{4}, 0}, 2) { agent.occupy(); }

  std::uint64_t ask(std::uint64_t frame) {
    agent.request(frame, std::vector<float>{static_cast<float>(frame)});
    return agent.take(frame).ticket;
  }
  bool answer(std::uint64_t ticket, std::uint32_t choice) {
    return agent.answer(ticket, std::vector<std::uint32_t>{choice}, {}, std::vector<float>{0, 0, 0, 0});
  }
  void scold(std::uint32_t choice, std::uint64_t command, std::vector<float> seen = {}) {
    Choice meant;
    meant.branches = {choice};
    meant.command = command;
    meant.observation = std::move(seen);
    agent.scold(meant);
  }
  std::vector<std::int32_t> mask() const {
    std::vector<std::int32_t> flags(4);
    agent.write_mask(flags);
    return flags;
  }

  AgentSlot agent;
};

TEST_F(AgentSlotTest, AnswersAfterTheLatencyAndNotBefore) {
  EXPECT_EQ(agent.act(0, 0), AgentSlot::Outcome::nothing);
  const auto ticket = ask(10);
  EXPECT_TRUE(answer(ticket, 3));
  EXPECT_EQ(agent.act(10, 1.0), AgentSlot::Outcome::not_ready);
  EXPECT_EQ(agent.act(11, 1.1), AgentSlot::Outcome::not_ready);
  EXPECT_EQ(agent.act(12, 1.2), AgentSlot::Outcome::fresh);
  EXPECT_THAT(agent.last_answer().choice.branches, ElementsAre(3u));
  EXPECT_THAT(agent.onsets(), ElementsAre(1.2));
  EXPECT_EQ(agent.act(13, 1.3), AgentSlot::Outcome::repeated);
  EXPECT_EQ(agent.onsets().size(), 1u) << "an onset is marked once";
}

TEST_F(AgentSlotTest, ALateAnswerIsNotReadyUntilItComes) {
  const auto ticket = ask(10);
  EXPECT_EQ(agent.act(14, 1.4), AgentSlot::Outcome::not_ready);
  answer(ticket, 1);
  EXPECT_EQ(agent.act(15, 1.5), AgentSlot::Outcome::fresh);
}

TEST_F(AgentSlotTest, RequestsOfEveryFrameAreAnsweredInEveryFrame) {
  std::vector<std::uint64_t> tickets(20);
  for (std::uint64_t frame = 0; frame < 20; ++frame) {
    if (frame >= 1) answer(tickets[frame - 1], static_cast<std::uint32_t>(frame % 4));
    tickets[frame] = ask(frame);
    const AgentSlot::Outcome outcome = agent.act(frame, static_cast<double>(frame));
    EXPECT_EQ(outcome, frame < 2 ? AgentSlot::Outcome::not_ready : AgentSlot::Outcome::fresh);
    EXPECT_EQ(agent.last_answer().requested_frame, frame < 2 ? 0 : frame - 2);
  }
}

TEST_F(AgentSlotTest, WhereAgentsTakeTurnsTheLastAnswerStands) {
  AgentSlot patient({{4}, 0}, 2, true);
  patient.occupy();
  const auto look = [&](std::uint64_t frame) {
    patient.request(frame, std::vector<float>{static_cast<float>(frame)});
  };
  const auto answer_with = [&](std::uint64_t ticket, std::uint32_t choice) {
    patient.answer(ticket, std::vector<std::uint32_t>{choice}, {}, std::vector<float>{0, 0, 0, 0});
  };
  look(1);
  EXPECT_EQ(patient.act(1, 0.1), AgentSlot::Outcome::not_ready) << "there is no earlier action to keep";
  look(2);
  const AgentSlot::TakenRequest first = patient.take(3);  // its turn
  EXPECT_EQ(first.choice->observation, std::vector<float>{2}) << "its last observation";
  answer_with(first.ticket, 1);
  EXPECT_EQ(patient.act(4, 0.4), AgentSlot::Outcome::not_ready);
  EXPECT_EQ(patient.act(5, 0.5), AgentSlot::Outcome::fresh) << "two frames after its turn";
  EXPECT_EQ(patient.last_answer().requested_frame, 3u);
  look(5);
  EXPECT_EQ(patient.act(5, 0.5), AgentSlot::Outcome::repeated);
  const std::uint64_t second = patient.take(6).ticket;
  EXPECT_EQ(patient.act(7, 0.7), AgentSlot::Outcome::repeated);
  EXPECT_EQ(patient.act(9, 0.9), AgentSlot::Outcome::repeated) << "late: the last action continues";
  answer_with(second, 2);
  EXPECT_EQ(patient.act(10, 1.0), AgentSlot::Outcome::fresh);
  EXPECT_THAT(patient.onsets(), ElementsAre(0.5, 1.0));
}

TEST_F(AgentSlotTest, AnAnswerThatWasNeverFetchedGivesWayToANewRequest) {
  answer(ask(10), 1);
  const auto ticket = ask(50);
  EXPECT_EQ(agent.act(50, 5.0), AgentSlot::Outcome::not_ready);
  answer(ticket, 2);
  EXPECT_EQ(agent.act(52, 5.2), AgentSlot::Outcome::fresh);
  EXPECT_EQ(agent.last_answer().decision, 2u);
}

TEST_F(AgentSlotTest, AskingAgainBeforeItIsTakenReplacesTheRequest) {
  agent.request(5, std::vector<float>{1});
  agent.request(5, std::vector<float>{2});
  const AgentSlot::TakenRequest taken = agent.take(11);
  EXPECT_THAT(taken.choice->observation, ElementsAre(2.0f));
  EXPECT_FALSE(agent.wants_decision());
  EXPECT_EQ(taken.draw, 0u);
  ask(6);
  EXPECT_EQ(agent.draws(), 2u);
}

TEST_F(AgentSlotTest, ALeftSeatHearsNoAnswerAndDrawsOn) {
  const auto ticket = ask(1);
  agent.vacate();
  agent.occupy();
  EXPECT_FALSE(answer(ticket, 1));
  EXPECT_EQ(agent.act(9, 0.9), AgentSlot::Outcome::nothing);
  agent.request(10, std::vector<float>{0});
  EXPECT_EQ(agent.take(11).draw, 1u);
}

TEST_F(AgentSlotTest, ForgetfulGamesDoNotMakeItGrow) {
  for (std::uint64_t frame = 0; frame < 10000; ++frame) ask(frame);
  EXPECT_EQ(agent.act(20000, 1), AgentSlot::Outcome::not_ready);
}

TEST_F(AgentSlotTest, ScoldingForbidsForTheRestOfTheCommand) {
  agent.set_goal(1);
  answer(ask(0), 2);
  agent.act(2, 0.1);
  const std::uint64_t command = agent.past(0).command;
  scold(2, command);
  EXPECT_THAT(mask(), ElementsAre(1, 1, 0, 1));
  agent.set_goal(1);
  EXPECT_THAT(mask(), ElementsAre(1, 1, 1, 1)) << "a new command, even for the same goal";
  scold(2, command);
  EXPECT_THAT(mask(), ElementsAre(1, 1, 1, 1)) << "that command is over";
}

TEST_F(AgentSlotTest, ABanEndsWithItsSituation) {
  const std::vector<float> scale{0.1f};
  agent.end_bans_with_situation(scale);
  const auto see = [&](float seen) {
    agent.request(1, std::vector<float>{seen});
    agent.take(1);
  };
  answer(ask(10), 2);
  agent.act(12, 0.1);
  agent.scold(agent.past(0));
  see(10.4f);
  EXPECT_THAT(mask(), ElementsAre(1, 1, 0, 1)) << "the same, within a twentieth times its scale";
  see(10.6f);
  EXPECT_THAT(mask(), ElementsAre(1, 1, 1, 1));
  scold(1, agent.past(0).command, {5});
  scold(3, agent.past(0).command, {7});
  EXPECT_THAT(mask(), ElementsAre(1, 1, 1, 0)) << "each in its own situation";
  see(7);
  EXPECT_EQ(agent.cornered(), 0u);
}

TEST_F(AgentSlotTest, DecisionsWithOneChoiceLeftAreCounted) {
  const std::uint64_t command = [&] {
    answer(ask(0), 0);
    agent.act(2, 0);
    return agent.past(0).command;
  }();
  for (const std::uint32_t choice : {0u, 1u}) scold(choice, command);
  ask(3);
  EXPECT_EQ(agent.cornered(), 0u) << "two choices are left";
  scold(2, command);
  for (std::uint64_t frame = 4; frame < 7; ++frame) ask(frame);
  EXPECT_EQ(agent.cornered(), 3u);
  agent.set_goal(0);
  EXPECT_EQ(agent.cornered(), 0u);
}

TEST_F(AgentSlotTest, TheLastAllowedChoiceCannotBeForbidden) {
  const std::vector<std::uint8_t> two{1, 0, 1, 0};
  agent.set_mask(two);
  const std::uint64_t command = [&] {
    answer(ask(0), 0);
    agent.act(2, 0);
    return agent.past(0).command;
  }();
  scold(0, command);
  EXPECT_THAT(mask(), ElementsAre(0, 0, 1, 0));
  scold(2, command);
  EXPECT_THAT(mask(), ElementsAre(1, 0, 0, 0)) << "all were wrong: the others are tried again";
  const std::vector<std::uint8_t> only_scolded{0, 0, 1, 0};
  agent.set_mask(only_scolded);
  EXPECT_THAT(mask(), ElementsAre(0, 0, 1, 0)) << "scolding forbids no action if that would leave none";
}

TEST_F(AgentSlotTest, EpisodesLimitCredit) {
  answer(ask(0), 2);
  agent.act(2, 0.1);
  agent.scold(agent.past(0));
  agent.end_episode();
  EXPECT_TRUE(agent.onsets().empty());
  EXPECT_THAT(mask(), ElementsAre(1, 1, 1, 1));
}

TEST_F(AgentSlotTest, EpisodesEndQuestionsAndAnswers) {
  answer(ask(0), 2);
  agent.request(1, std::vector<float>{1});
  const std::uint64_t in_flight = agent.take(11).ticket;
  agent.request(2, std::vector<float>{2});
  agent.end_episode();
  EXPECT_FALSE(agent.wants_decision());
  EXPECT_FALSE(agent.answer(in_flight, std::vector<std::uint32_t>{1}, {}, {}));
  EXPECT_EQ(agent.act(9, 0.2), AgentSlot::Outcome::nothing);
}

TEST_F(AgentSlotTest, HeuristicActionsBeginAtOnce) {
  agent.set_mode(Mode::heuristic);
  EXPECT_FALSE(agent.act_by_heuristic(1.0, std::vector<std::uint32_t>{1}, {}));
  agent.request(7, std::vector<float>{3});
  EXPECT_TRUE(agent.act_by_heuristic(1.0, std::vector<std::uint32_t>{1}, {}));
  EXPECT_EQ(agent.act(7, 1.0), AgentSlot::Outcome::repeated);
  EXPECT_THAT(agent.last_answer().choice.branches, ElementsAre(1u));
  EXPECT_THAT(agent.onsets(), ElementsAre(1.0));
  EXPECT_THAT(agent.past(0).observation, ElementsAre(3.0f));
}

TEST_F(AgentSlotTest, RemembersABoundedPast) {
  for (std::uint64_t frame = 0; frame < 3 * AgentSlot::kHistory; ++frame) {
    answer(ask(frame), 0);
    agent.act(frame + 2, static_cast<double>(frame));
  }
  EXPECT_EQ(agent.onsets().size(), AgentSlot::kHistory);
  EXPECT_EQ(agent.onsets().back(), 3.0 * AgentSlot::kHistory - 1);
}

}  // namespace
}  // namespace imprint::agent
