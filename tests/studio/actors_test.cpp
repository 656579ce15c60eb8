// Actors and their learner over a connection: order, damage, refusals, a learner without room, and the end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tools/studio/actors.h"

namespace imprint::studio {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> bytes_of(const std::string& words) {
  const auto raw = std::as_bytes(std::span(words));
  return {raw.begin(), raw.end()};
}
// As bytes of 100 steps or more, of which none takes less than one.
std::vector<std::byte> hundred_of(const std::string& words) {
  return bytes_of(words + std::string(100, '.'));
}
std::string words_of(std::span<const std::byte> bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::string(all.substr(0, all.find('.')));
}

class ActorsTest : public ::testing::Test {
 protected:
  ActorsTest()
      : learner_(Door::open("127.0.0.1").value(), hello(0),
                 {[this](std::uint32_t source, std::span<const std::byte> steps, std::string& why) {
                    why = "sample 3 is damaged";
                    if (room_ == 0) return LearnerEnd::Offer::full;
                    if (words_of(steps) == "damaged") return LearnerEnd::Offer::damaged;
                    --room_;
                    taken_.push_back(std::to_string(source) + ":" + words_of(steps));
                    return LearnerEnd::Offer::taken;
                  },
                  [this](const std::string& line) { told_ += line + "\n"; }}) {
    learner_.send({.exchanges = 1, .steps = 10}, bytes_of("weights 1"));
  }

  static Hello hello(std::uint32_t actor) { return {.schema_low = 5, .schema_high = 6, .actor = actor}; }
  ActorEnd actor_of(const Hello& hello) {
    return ActorEnd(hello, [this] { return learner_.address(); });
  }
  // The learner's turns until another thread's work is done.
  void serve(const std::function<void()>& work) {
    std::atomic<bool> done = false;
    std::thread other([&] {
      work();
      done = true;
    });
    while (!done) {
      learner_.turn();
      learner_.wait(1);
      if (on_turn_) on_turn_();
    }
    other.join();
    learner_.turn();
  }

  int room_ = 1000;
  std::function<void()> on_turn_;
  std::vector<std::string> taken_;
  std::string told_;
  LearnerEnd learner_;
};

TEST_F(ActorsTest, StepsArriveInOrderAndWeightsComeBack) {
  serve([&] {
    ActorEnd one = actor_of(hello(0)), two = actor_of(hello(1));
    const ActorEnd::News first = one.first([] {});
    ASSERT_TRUE(first.state);
    EXPECT_EQ(words_of(*first.state), "weights 1");
    EXPECT_EQ(first.head.steps, 10u);
    two.first([] {});
    for (const char* steps : {"a", "b", "c"}) one.exchange({2, 1, 1}, bytes_of(steps), [] {});
    two.exchange({5, 1, 1}, bytes_of("d"), [] {});
    // Wait until all were taken: the window is smaller than this message.
    two.exchange({0, 0, 100}, hundred_of("e"), [] {});
  });
  std::vector<std::string> of_one;
  for (const std::string& taken : taken_)
    if (taken.starts_with("1:")) of_one.push_back(taken);
  EXPECT_THAT(of_one, ::testing::ElementsAre("1:a", "1:b", "1:c"));
  EXPECT_THAT(taken_, ::testing::Contains("2:d"));
  const LearnerEnd::Scores scores = learner_.take_scores();
  EXPECT_EQ(scores.score_sum, 11);
  EXPECT_EQ(scores.episodes, 4);
}

TEST_F(ActorsTest, AnActorWaitsForRoom) {
  room_ = 0;
  std::atomic<int> waited = 0;
  on_turn_ = [&] { room_ += waited > 1 ? 1 : 0; };
  serve([&] {
    ActorEnd actor = actor_of(hello(0));
    actor.first([] {});
    actor.exchange({0, 0, 100}, hundred_of("many"), [&] { ++waited; });
  });
  EXPECT_GT(waited, 1);
  EXPECT_THAT(taken_, ::testing::ElementsAre("1:many"));
}

TEST_F(ActorsTest, DamageEndsAConnectionAndNotTheRun) {
  serve([&] {
    Wire stranger = Wire::connect(learner_.address()).value();
    const std::string noise(100, 'x');
    ::send(stranger.socket(), noise.data(), noise.size(), MSG_NOSIGNAL);
    Wire talker = Wire::connect(learner_.address()).value();  // would be kept whole as its hello
    talker.send(MessageKind::hello, bytes_of(std::string(1 << 20, 'x')));
    ActorEnd actor = actor_of(hello(4));
    actor.first([] {});
    // Comes back by another connection, which brings weights again, perhaps within this call.
    if (!actor.exchange({0, 0, 100}, hundred_of("damaged"), [] {}).state) actor.first([] {});
    if (!actor.exchange({NAN, 0, 100}, hundred_of("unscored"), [] {}).state) actor.first([] {});
    if (!actor.exchange({0, 0, 1e15}, hundred_of("few"), [] {}).state) actor.first([] {});
    actor.exchange({0, 0, 100}, hundred_of("good"), [] {});
    while (talker.open()) talker.flush(), talker.receive();
    EXPECT_THAT(talker.why_closed(), ::testing::Not(HasSubstr("no message")));  // the learner hung up
  });
  EXPECT_THAT(told_, HasSubstr("is gone: sent 103 bytes for 1e+15 steps; the run goes on"));
  EXPECT_THAT(told_, HasSubstr("is gone: sent a score or a count that is no number; the run goes on"));
  EXPECT_EQ(learner_.take_scores().score_sum, 0);
  EXPECT_THAT(told_, HasSubstr("actor 4 (process 0 on ) is gone: sample 3 is damaged; the run goes on"));
  EXPECT_THAT(taken_, ::testing::ElementsAre("4:good"));
}

TEST_F(ActorsTest, AnotherBrainIsRefused) {
  Hello other = hello(2);
  other.schema_high = 7;
  other.arrays = 3;
  serve([&] {
    ActorEnd actor = actor_of(other);
    EXPECT_THAT(actor.first([] {}).refused, HasSubstr("actor 2: found 3 arrays"));
  });
  EXPECT_THAT(told_, HasSubstr("is refused"));
  EXPECT_TRUE(taken_.empty());
}

TEST_F(ActorsTest, TheEndReachesAllActors) {
  bool over = false;
  std::thread other([&] {
    ActorEnd actor = actor_of(hello(0));
    actor.first([] {});
    while (!over) over = actor.exchange({0, 1, 0}, {}, [] {}).over;
  });
  while (learner_.take_scores().episodes == 0) learner_.turn();
  learner_.end();
  other.join();
  EXPECT_TRUE(over);
}

}  // namespace
}  // namespace imprint::studio
