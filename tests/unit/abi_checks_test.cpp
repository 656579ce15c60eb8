// The parts of the interface that need no device: handles and the gate that keeps calls in order.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "compute/base/utf8.h"
#include "plugin/abi/contexts.h"
#include "plugin/abi/error.h"
#include "plugin/abi/gate.h"
#include "plugin/abi/handles.h"
#include "plugin/include/imprint/imprint.hpp"

namespace imprint::abi {
namespace {

using ::testing::HasSubstr;

// Handles of objects that were never created are refused with an error.
TEST(Coat, AnObjectThatWasNeverMadeRefuses) {
  game::Context context;
  game::Brain brain;
  game::Agent agent;
  for (const game::Outcome& status :
       {agent.set_goal(1), agent.act().outcome, brain.save("nowhere"), brain.create_agent().outcome,
        context.frame_end(), context.record(nullptr).outcome, context.destroy(),
        context.create_brain(imp_brain_desc_init()).outcome}) {
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.code(), game::Code::wrong_state);
    EXPECT_THAT(status.message(), HasSubstr("was never made"));
  }
}

TEST(Handles, PackAndUnpack) {
  const HandleParts parts{HandleKind::agent, 63, kContextGenerations, kSlots - 1, kGenerations};
  const HandleParts back = unpack_handle(pack_handle(parts));
  EXPECT_EQ(back.kind, parts.kind);
  EXPECT_EQ(back.context_slot, parts.context_slot);
  EXPECT_EQ(back.context_generation, parts.context_generation);
  EXPECT_EQ(back.slot, parts.slot);
  EXPECT_EQ(back.generation, parts.generation);
}

TEST(Handles, AStaleHandleIsNotFoundAfterItsSlotIsTakenAgain) {
  HandleTable<int> table;
  const auto first = table.insert(10).first;
  table.erase(first.slot);
  EXPECT_EQ(table.find(first.slot, first.generation), nullptr);
  const auto second = table.insert(20).first;
  EXPECT_EQ(second.slot, first.slot);
  EXPECT_EQ(table.find(first.slot, first.generation), nullptr);
  ASSERT_NE(table.find(second.slot, second.generation), nullptr);
  EXPECT_EQ(*table.find(second.slot, second.generation), 20);
  EXPECT_EQ(table.find(77, 1), nullptr);
  EXPECT_EQ(table.find(second.slot, 0), nullptr);
}

// A stale first handle must not name a later object.
TEST(Handles, ASlotIsNotTakenAgainAfterItsLastGeneration) {
  HandleTable<int> table;
  const auto first = table.insert(0).first;
  table.erase(first.slot);
  auto last = first;
  for (std::uint32_t i = 1; i < kGenerations; ++i) {
    last = table.insert(1).first;
    ASSERT_EQ(last.slot, first.slot);
    table.erase(last.slot);
  }
  EXPECT_EQ(last.generation, kGenerations);
  const auto next = table.insert(2).first;
  EXPECT_NE(next.slot, first.slot);
  EXPECT_EQ(table.find(first.slot, first.generation), nullptr);
  EXPECT_EQ(table.find(last.slot, last.generation), nullptr);
  ASSERT_NE(table.find(next.slot, next.generation), nullptr);
  EXPECT_EQ(*table.find(next.slot, next.generation), 2);
}

TEST(Handles, EraseIfFreesTheErasedHandles) {
  HandleTable<std::shared_ptr<int>> table;
  const auto value = std::make_shared<int>(1);
  for (int i = 0; i < 4; ++i) table.insert(value);
  EXPECT_EQ(value.use_count(), 5);
  table.erase_if([&](const std::shared_ptr<int>& held) { return held == value; });
  EXPECT_EQ(value.use_count(), 1);
}

using bridge::FrameState;

class GateTest : public ::testing::Test {
 protected:
  // The error's message, or "".
  std::string enter(Tag tag, FrameState state) const {
    const Result<> status = gate.enter(tag, state, "call");
    if (status) return "";
    EXPECT_EQ(status.error().code, ErrorCode::wrong_state);
    EXPECT_THAT(status.error().message, ::testing::StartsWith("call: "));
    return status.error().message;
  }
  std::string enter_elsewhere(Tag tag, FrameState state) const {
    std::string message;
    std::thread([&] { message = enter(tag, state); }).join();
    return message;
  }

  Gate gate;
};

TEST_F(GateTest, AFrameInOrderIsLetThrough) {
  for (const Tag tag : {Tag::create, Tag::frame_or_create, Tag::frame_begin})
    EXPECT_EQ(enter(tag, FrameState::closed), "");
  gate.opened();
  for (const Tag tag :
       {Tag::frame_before, Tag::frame_or_create, Tag::frame, Tag::frame_submit, Tag::frame_end})
    EXPECT_EQ(enter(tag, FrameState::open), "");
  for (const FrameState issued : {FrameState::submitted, FrameState::recorded})
    for (const Tag tag : {Tag::frame, Tag::frame_or_create, Tag::frame_end})
      EXPECT_EQ(enter(tag, issued), "");
}

TEST_F(GateTest, CallsOutOfOrderAreNamed) {
  for (const Tag tag : {Tag::frame, Tag::frame_before, Tag::frame_submit, Tag::frame_end})
    EXPECT_THAT(enter(tag, FrameState::closed), HasSubstr("no frame is open"));
  gate.opened();
  for (const FrameState state : {FrameState::open, FrameState::submitted, FrameState::recorded})
    for (const Tag tag : {Tag::create, Tag::frame_begin})
      EXPECT_THAT(enter(tag, state), HasSubstr("a frame is open"));
  for (const Tag tag : {Tag::frame_before, Tag::frame_submit}) {
    EXPECT_THAT(enter(tag, FrameState::submitted), HasSubstr("already submitted"));
    EXPECT_THAT(enter(tag, FrameState::recorded), HasSubstr("already recorded"));
  }
}

TEST_F(GateTest, AnOpenFrameBelongsToItsThread) {
  gate.opened();
  for (const Tag tag :
       {Tag::frame, Tag::frame_before, Tag::frame_submit, Tag::frame_end, Tag::frame_or_create})
    EXPECT_THAT(enter_elsewhere(tag, FrameState::open), HasSubstr("another thread"));
  EXPECT_EQ(enter(Tag::frame_end, FrameState::submitted), "");
  for (const Tag tag : {Tag::frame_begin, Tag::frame_or_create})
    EXPECT_EQ(enter_elsewhere(tag, FrameState::closed), "") << "the next frame may be another thread's";
}

TEST_F(GateTest, OnlyCallsOfAFrameCountAsItsTime) {
  EXPECT_TRUE(Gate::in_frame(Tag::frame_begin, FrameState::closed));
  EXPECT_TRUE(Gate::in_frame(Tag::frame_or_create, FrameState::submitted));
  EXPECT_FALSE(Gate::in_frame(Tag::frame_or_create, FrameState::closed));
}

TEST(ContextHolds, ComeOneAtATime) {
  const imp_context context = *publish(std::make_unique<ContextEntry>());
  {
    const ContextHold first(context);
    ASSERT_NE(first.entry(), nullptr);
    const ContextHold second(context);
    EXPECT_EQ(second.entry(), nullptr);
    EXPECT_TRUE(second.busy());
    std::thread([&] { EXPECT_TRUE(ContextHold(context).busy()); }).join();
  }
  const ContextHold third(context);
  ASSERT_NE(third.entry(), nullptr);
  EXPECT_FALSE(third.busy());
  withdraw(*third.entry());
}

// The thread that destroys a context has it to itself, and its slot stays taken until it is destroyed.
TEST(ContextHolds, KeepOtherThreadsFromDestroyedContexts) {
  const imp_context context = *publish(std::make_unique<ContextEntry>());
  imp_context next{};
  {
    const ContextHold last(context);
    ASSERT_NE(last.entry(), nullptr);
    const std::unique_ptr<ContextEntry> gone = withdraw(*last.entry());
    const ContextHold late(context);
    EXPECT_EQ(late.entry(), nullptr);
    EXPECT_FALSE(late.busy()) << "destroyed, not under way";
    next = *publish(std::make_unique<ContextEntry>());
    EXPECT_NE(unpack_handle(next.id).context_slot, unpack_handle(context.id).context_slot);
  }
  const imp_context after = *publish(std::make_unique<ContextEntry>());
  EXPECT_EQ(unpack_handle(after.id).context_slot, unpack_handle(context.id).context_slot);
  EXPECT_EQ(ContextHold(context).entry(), nullptr) << "stale, although its slot is used again";
  for (const imp_context one : {next, after}) {
    const ContextHold hold(one);
    ASSERT_NE(hold.entry(), nullptr);
    withdraw(*hold.entry());
  }
}

TEST(ContextHolds, APlaceIsNotTakenAgainAfterItsLastGeneration) {
  const imp_context first = *publish(std::make_unique<ContextEntry>());
  const HandleParts place = unpack_handle(first.id);
  imp_context next = first;
  for (std::uint32_t i = place.context_generation; i <= kContextGenerations; ++i) {
    ASSERT_EQ(unpack_handle(next.id).context_slot, place.context_slot);
    withdraw(*find_context(next));
    next = *publish(std::make_unique<ContextEntry>());
  }
  EXPECT_NE(unpack_handle(next.id).context_slot, place.context_slot);
  EXPECT_EQ(find_context(first), nullptr);
  withdraw(*find_context(next));
}

TEST(ErrorText, LosesItsMiddleButCutsNoCharacter) {
  char room[32];
  shorten("short", room, sizeof room);
  EXPECT_STREQ(room, "short");
  shorten("0123456789012345678901234567890", room, sizeof room);
  EXPECT_STREQ(room, "0123456789012345678901234567890") << "fits to the last byte";
  shorten("what was asked: a name without end, and what to do", room, sizeof room);
  EXPECT_STREQ(room, "what was aske ... nd what to do");
  std::string wide;
  for (int i = 0; i < 40; ++i) wide += "\xC3\xA4";
  for (const std::size_t size : {20u, 21u, 22u, 23u}) {
    shorten(wide.c_str(), room, size);
    EXPECT_TRUE(is_utf8(room)) << size;
    EXPECT_LT(std::strlen(room), size);
    EXPECT_GT(std::strlen(room), size - 4);
  }
}

}  // namespace
}  // namespace imprint::abi
