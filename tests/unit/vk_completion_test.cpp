#include "compute/vk/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace imprint::vk {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Completion, HandsOutRisingTickets) {
  Completion completion;
  EXPECT_EQ(completion.last(), Ticket{0});
  EXPECT_EQ(completion.upcoming(), Ticket{1});
  EXPECT_EQ(completion.next(), Ticket{1});
  EXPECT_EQ(completion.next(), Ticket{2});
  EXPECT_EQ(completion.last(), Ticket{2});
}

TEST(Completion, NeverGoesBack) {
  Completion completion;
  completion.completed(Ticket{5});
  completion.completed(Ticket{3});
  EXPECT_EQ(completion.completed_through(), Ticket{5});
}

TEST(Completion, AsksThePollOnlyWhenPolled) {
  Completion completion;
  int asked = 0;
  completion.set_poll([&] {
    ++asked;
    return Ticket{7};
  });
  EXPECT_EQ(completion.completed_through(), Ticket{0});
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(completion.poll(), Ticket{7});
  EXPECT_EQ(asked, 1);
  completion.set_poll({});
  EXPECT_EQ(completion.poll(), Ticket{7});
  EXPECT_EQ(asked, 1);
}

TEST(Completion, TakesTheNewestOfSeveralSources) {
  Completion completion;
  completion.set_poll([] { return Ticket{2}; });
  completion.completed(Ticket{4});
  EXPECT_EQ(completion.poll(), Ticket{4});
}

TEST(Completion, DestroysInTheOrderOfTicketsThenOfRetirement) {
  Completion completion;
  std::vector<int> order;
  completion.retire(Ticket{3}, [&] { order.push_back(31); });
  completion.retire(Ticket{1}, [&] { order.push_back(11); });
  completion.retire(Ticket{3}, [&] { order.push_back(32); });
  completion.retire(Ticket{2}, [&] { order.push_back(21); });
  EXPECT_EQ(completion.retired(), 4u);
  EXPECT_EQ(completion.collect(), 0u);
  completion.completed(Ticket{2});
  EXPECT_THAT(order, IsEmpty()) << "only collect runs them";
  EXPECT_EQ(completion.collect(), 2u);
  EXPECT_THAT(order, ElementsAre(11, 21));
  completion.completed(Ticket{9});
  EXPECT_EQ(completion.collect(), 2u);
  EXPECT_THAT(order, ElementsAre(11, 21, 31, 32));
  EXPECT_EQ(completion.retired(), 0u);
}

TEST(Completion, DestroysCompleteWorkAtOnce) {
  Completion completion;
  bool gone = false;
  completion.retire(Ticket{0}, [&] { gone = true; });
  EXPECT_TRUE(gone);
  completion.completed(Ticket{4});
  gone = false;
  completion.retire(Ticket{4}, [&] { gone = true; });
  EXPECT_TRUE(gone);
}

TEST(Completion, WaitsForATicketNotHandedOutYet) {
  Completion completion;
  bool gone = false;
  completion.retire(completion.upcoming(), [&] { gone = true; });
  EXPECT_EQ(completion.collect(), 0u);
  completion.completed(completion.next());
  completion.collect();
  EXPECT_TRUE(gone);
}

TEST(Completion, LetsADeleterRetireMore) {
  std::vector<int> order;  // outlives the completion, whose destructor runs the rest
  Completion completion;
  completion.retire(Ticket{1}, [&] {
    order.push_back(1);
    completion.retire(Ticket{1}, [&] { order.push_back(2); });  // complete already
    completion.retire(Ticket{2}, [&] { order.push_back(3); });
  });
  completion.completed(Ticket{1});
  completion.collect();
  EXPECT_THAT(order, ElementsAre(1, 2));
  EXPECT_EQ(completion.retired(), 1u);
}

TEST(Completion, RunsTheRestWhenItEnds) {
  std::vector<int> order;
  {
    Completion completion;
    completion.retire(Ticket{8}, [&] { order.push_back(8); });
    completion.retire(Ticket{5}, [&, c = &completion] {
      order.push_back(5);
      c->retire(Ticket{6}, [&] { order.push_back(6); });
    });
  }
  EXPECT_THAT(order, ElementsAre(5, 6, 8));
}

TEST(Completion, KeepsEveryDeleterAmongThreads) {
  Completion completion;
  std::atomic<std::uint64_t> gpu{0};
  std::atomic<int> ran{0};
  completion.set_poll([&] { return Ticket{gpu.load()}; });
  constexpr int kThreads = 4, kEach = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        const Ticket ticket = completion.next();
        completion.retire(ticket, [&, ticket] {
          EXPECT_LE(ticket, completion.completed_through());
          ++ran;
        });
        gpu.fetch_add(1);
        completion.poll();
        completion.collect();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  completion.poll();
  completion.collect();
  EXPECT_EQ(ran, kThreads * kEach);
  EXPECT_EQ(completion.last(), Ticket{kThreads * kEach});
}

}  // namespace
}  // namespace imprint::vk
