// Which actions praise and scolding reach, and what an agent is asked, answered and forbidden.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "plugin/agent/decide/agent_slot.h"
#include "plugin/agent/decide/noise.h"
#include "plugin/agent/learn/credit.h"

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

TEST(Credit, LeavesOutWhatIsNoiseAndWhatHadNotBegun) {
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
  EXPECT_EQ(credits[0].index, 1u) << "of equal onsets the later one";
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

TEST(Noise, DependsOnWhoseDecisionItIsAndOnNothingElse) {
  std::vector<float> a(10), b(10), single(10), part(3);
  fill_noise(a, 0.2f, 7, 3, 41);
  fill_noise(b, 0.2f, 7, 3, 41);
  EXPECT_EQ(a, b);
  fill_noise(part, 0.2f, 7, 3, 41);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), a.begin()));
  fill_noise(single, 0.2f, 7, 4, 41);
  EXPECT_NE(a, single);
  fill_noise(single, 0.2f, 7, 3, 42);
  EXPECT_NE(a, single);
  fill_noise(single, 0.0f, 7, 3, 41);
  EXPECT_THAT(single, ::testing::Each(0.0f));
}

TEST(Noise, IsNormal) {
  double sum = 0, squares = 0;
  constexpr int draws = 20000;
  std::vector<float> noise(10);
  for (int i = 0; i < draws / 10; ++i) {
    fill_noise(noise, 2.0f, 1, 0, static_cast<std::uint64_t>(i));
    for (const float value : noise) sum += value, squares += double{value} * value;
  }
  EXPECT_NEAR(sum / draws, 0.0, 0.05);
  EXPECT_NEAR(squares / draws, 4.0, 0.15);
}

class SeatTest : public ::testing::Test {
 protected:
  SeatTest() : seat({{4}, 0}, 2) { seat.sit(); }

  std::uint64_t ask(std::uint64_t frame) {
    seat.request(frame, std::vector<float>{static_cast<float>(frame)});
    return seat.take(frame).ticket;
  }
  bool answer(std::uint64_t ticket, std::uint32_t choice) {
    return seat.answer(ticket, std::vector<std::uint32_t>{choice}, {}, std::vector<float>{0, 0, 0, 0});
  }
  std::vector<std::int32_t> mask() const {
    std::vector<std::int32_t> flags(4);
    seat.write_mask(flags);
    return flags;
  }

  Seat seat;
};

TEST_F(SeatTest, AnswersAfterTheLatencyAndNotBefore) {
  EXPECT_EQ(seat.act(0, 0), Seat::Outcome::nothing);
  const auto ticket = ask(10);
  EXPECT_TRUE(answer(ticket, 3));
  EXPECT_EQ(seat.act(10, 1.0), Seat::Outcome::not_ready);
  EXPECT_EQ(seat.act(11, 1.1), Seat::Outcome::not_ready);
  EXPECT_EQ(seat.act(12, 1.2), Seat::Outcome::fresh);
  EXPECT_THAT(seat.last_answer().choice.branches, ElementsAre(3u));
  EXPECT_THAT(seat.onsets(), ElementsAre(1.2));
  EXPECT_EQ(seat.act(13, 1.3), Seat::Outcome::repeated);
  EXPECT_EQ(seat.onsets().size(), 1u) << "an onset is marked once";
}

TEST_F(SeatTest, ALateAnswerIsNotReadyUntilItComes) {
  const auto ticket = ask(10);
  EXPECT_EQ(seat.act(14, 1.4), Seat::Outcome::not_ready);
  answer(ticket, 1);
  EXPECT_EQ(seat.act(15, 1.5), Seat::Outcome::fresh);
}

TEST_F(SeatTest, RequestsOfEveryFrameAreAnsweredInEveryFrame) {
  std::vector<std::uint64_t> tickets(20);
  for (std::uint64_t frame = 0; frame < 20; ++frame) {
    if (frame >= 1) answer(tickets[frame - 1], static_cast<std::uint32_t>(frame % 4));
    tickets[frame] = ask(frame);
    const Seat::Outcome outcome = seat.act(frame, static_cast<double>(frame));
    EXPECT_EQ(outcome, frame < 2 ? Seat::Outcome::not_ready : Seat::Outcome::fresh);
    EXPECT_EQ(seat.last_answer().requested_frame, frame < 2 ? 0 : frame - 2);
  }
}

TEST_F(SeatTest, WhereAgentsTakeTurnsTheLastAnswerStands) {
  Seat patient({{4}, 0}, 2, true);
  patient.sit();
  const auto look = [&](std::uint64_t frame) {
    patient.request(frame, std::vector<float>{static_cast<float>(frame)});
  };
  const auto answer_with = [&](std::uint64_t ticket, std::uint32_t choice) {
    patient.answer(ticket, std::vector<std::uint32_t>{choice}, {}, std::vector<float>{0, 0, 0, 0});
  };
  look(1);
  EXPECT_EQ(patient.act(1, 0.1), Seat::Outcome::not_ready) << "there is none yet that could stand";
  look(2);
  const Seat::Taken first = patient.take(3);  // its turn
  EXPECT_EQ(first.choice->observation, std::vector<float>{2}) << "what it saw last";
  answer_with(first.ticket, 1);
  EXPECT_EQ(patient.act(4, 0.4), Seat::Outcome::not_ready);
  EXPECT_EQ(patient.act(5, 0.5), Seat::Outcome::fresh) << "two frames after its turn";
  EXPECT_EQ(patient.last_answer().requested_frame, 3u);
  look(5);
  EXPECT_EQ(patient.act(5, 0.5), Seat::Outcome::repeated);
  const std::uint64_t second = patient.take(6).ticket;
  EXPECT_EQ(patient.act(7, 0.7), Seat::Outcome::repeated);
  EXPECT_EQ(patient.act(9, 0.9), Seat::Outcome::repeated) << "late, and the last one goes on";
  answer_with(second, 2);
  EXPECT_EQ(patient.act(10, 1.0), Seat::Outcome::fresh);
  EXPECT_THAT(patient.onsets(), ElementsAre(0.5, 1.0));
}

TEST_F(SeatTest, AnAnswerThatWasNeverFetchedGivesWayToANewRequest) {
  answer(ask(10), 1);
  const auto ticket = ask(50);
  EXPECT_EQ(seat.act(50, 5.0), Seat::Outcome::not_ready);
  answer(ticket, 2);
  EXPECT_EQ(seat.act(52, 5.2), Seat::Outcome::fresh);
  EXPECT_EQ(seat.last_answer().decision, 2u);
}

TEST_F(SeatTest, AskingAgainBeforeItIsTakenReplacesTheRequest) {
  seat.request(5, std::vector<float>{1});
  seat.request(5, std::vector<float>{2});
  const Seat::Taken taken = seat.take(11);
  EXPECT_THAT(taken.choice->observation, ElementsAre(2.0f));
  EXPECT_FALSE(seat.wants_decision());
  EXPECT_EQ(taken.draw, 0u);
  ask(6);
  EXPECT_EQ(seat.draws(), 2u);
}

TEST_F(SeatTest, ALeftSeatHearsNoAnswerAndDrawsOn) {
  const auto ticket = ask(1);
  seat.leave();
  seat.sit();
  EXPECT_FALSE(answer(ticket, 1));
  EXPECT_EQ(seat.act(9, 0.9), Seat::Outcome::nothing);
  seat.request(10, std::vector<float>{0});
  EXPECT_EQ(seat.take(11).draw, 1u);
}

TEST_F(SeatTest, ForgetfulGamesDoNotMakeItGrow) {
  for (std::uint64_t frame = 0; frame < 10000; ++frame) ask(frame);
  EXPECT_EQ(seat.act(20000, 1), Seat::Outcome::not_ready);
}

TEST_F(SeatTest, ScoldingForbidsForTheRestOfTheCommand) {
  seat.set_goal(1);
  answer(ask(0), 2);
  seat.act(2, 0.1);
  const std::uint64_t command = seat.past(0).command;
  seat.scold(2, command);
  EXPECT_THAT(mask(), ElementsAre(1, 1, 0, 1));
  seat.set_goal(1);
  EXPECT_THAT(mask(), ElementsAre(1, 1, 1, 1)) << "a new command, even for the same goal";
  seat.scold(2, command);
  EXPECT_THAT(mask(), ElementsAre(1, 1, 1, 1)) << "that command is over";
}

TEST_F(SeatTest, TheLastAllowedChoiceCannotBeForbidden) {
  const std::vector<std::uint8_t> two{1, 0, 1, 0};
  seat.set_mask(two);
  const std::uint64_t command = [&] {
    answer(ask(0), 0);
    seat.act(2, 0);
    return seat.past(0).command;
  }();
  seat.scold(0, command);
  EXPECT_THAT(mask(), ElementsAre(0, 0, 1, 0));
  seat.scold(2, command);
  EXPECT_THAT(mask(), ElementsAre(0, 0, 1, 0));
  const std::vector<std::uint8_t> only_scolded{1, 0, 0, 0};
  seat.set_mask(only_scolded);
  EXPECT_THAT(mask(), ElementsAre(1, 0, 0, 0)) << "scolding yields when it would leave nothing";
}

TEST_F(SeatTest, EpisodesEndWhatCanBeCredited) {
  answer(ask(0), 2);
  seat.act(2, 0.1);
  seat.scold(2, seat.past(0).command);
  seat.end_episode();
  EXPECT_TRUE(seat.onsets().empty());
  EXPECT_THAT(mask(), ElementsAre(1, 1, 1, 1));
}

TEST_F(SeatTest, EpisodesEndQuestionsAndAnswers) {
  answer(ask(0), 2);
  seat.request(1, std::vector<float>{1});
  const std::uint64_t under_way = seat.take(11).ticket;
  seat.request(2, std::vector<float>{2});
  seat.end_episode();
  EXPECT_FALSE(seat.wants_decision());
  EXPECT_FALSE(seat.answer(under_way, std::vector<std::uint32_t>{1}, {}, {}));
  EXPECT_EQ(seat.act(9, 0.2), Seat::Outcome::nothing);
}

TEST_F(SeatTest, HeuristicActionsBeginAtOnce) {
  seat.set_mode(Mode::heuristic);
  EXPECT_FALSE(seat.act_by_heuristic(1.0, std::vector<std::uint32_t>{1}, {}));
  seat.request(7, std::vector<float>{3});
  EXPECT_TRUE(seat.act_by_heuristic(1.0, std::vector<std::uint32_t>{1}, {}));
  EXPECT_EQ(seat.act(7, 1.0), Seat::Outcome::repeated);
  EXPECT_THAT(seat.last_answer().choice.branches, ElementsAre(1u));
  EXPECT_THAT(seat.onsets(), ElementsAre(1.0));
  EXPECT_THAT(seat.past(0).observation, ElementsAre(3.0f));
}

TEST_F(SeatTest, RemembersABoundedPast) {
  for (std::uint64_t frame = 0; frame < 3 * Seat::kHistory; ++frame) {
    answer(ask(frame), 0);
    seat.act(frame + 2, static_cast<double>(frame));
  }
  EXPECT_EQ(seat.onsets().size(), Seat::kHistory);
  EXPECT_EQ(seat.onsets().back(), 3.0 * Seat::kHistory - 1);
}

}  // namespace
}  // namespace imprint::agent
