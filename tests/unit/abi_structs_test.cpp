// Structs of older and newer headers: one that has grown since version 1, and those of the interface.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "plugin/abi/structs.h"

namespace imprint::abi {
namespace {

using ::testing::HasSubstr;

// Versions of imp_thing: the first, this library's, and a later one.
struct First {
  imp_header header;
  std::uint64_t a;
};
struct Known {
  imp_header header;
  std::uint64_t a, b;
};
struct Newer {
  imp_header header;
  std::uint64_t a, b, c;
};
constexpr StructKind kThing{"imp_thing", 77, sizeof(First), sizeof(Known)};

template <class T>
T made(std::uint64_t a) {
  T thing;
  std::memset(&thing, 0, sizeof thing);
  thing.header = {sizeof(T), 77, nullptr};
  thing.a = a;
  return thing;
}

void expect_refused(const Result<>& status, const char* text) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(status.error().message, HasSubstr("call: thing"));
  EXPECT_THAT(status.error().message, HasSubstr(text));
}

TEST(Structs, AnOlderOneIsTakenWithDefaultsForTheRest) {
  const First given = made<First>(5);
  Known copy;
  std::memset(&copy, 0, sizeof copy);
  copy.a = 8;
  copy.b = 9;  // its default
  ASSERT_TRUE(read_struct("call", "thing", &given, kThing, &copy).ok());
  EXPECT_EQ(copy.a, 5u);
  EXPECT_EQ(copy.b, 9u);
}

TEST(Structs, OneOfThisVersionIsTakenWhole) {
  Known given = made<Known>(5), copy;
  given.b = 6;
  ASSERT_TRUE(read_struct("call", "thing", &given, kThing, &copy).ok());
  EXPECT_EQ(std::memcmp(&given, &copy, sizeof copy), 0);
}

TEST(Structs, ANewerOneIsTakenWhileItsRestIsZero) {
  Newer given = made<Newer>(5);
  given.b = 6;
  Known copy;
  ASSERT_TRUE(read_struct("call", "thing", &given, kThing, &copy).ok());
  EXPECT_EQ(copy.a, 5u);
  EXPECT_EQ(copy.b, 6u);
  for (std::size_t byte = 0; byte < sizeof given.c; ++byte) {
    given.c = std::uint64_t{1} << (8 * byte);
    const Result<> refused = read_struct("call", "thing", &given, kThing, &copy);
    expect_refused(refused, "imp_thing");
    EXPECT_THAT(refused.error().message, HasSubstr(std::to_string(sizeof(Newer))));
    EXPECT_THAT(refused.error().message, HasSubstr(std::to_string(sizeof(Known))));
  }
}

TEST(Structs, SizesThatNoVersionHadAreRefused) {
  Known given = made<Known>(5), copy;
  for (const std::size_t size : {std::size_t{0}, std::size_t{4}, sizeof(imp_header), sizeof(First) - 1,
                                 kLongestStruct + 1, std::size_t{0xffffffff}}) {
    given.header.size = static_cast<std::uint32_t>(size);
    const Result<> refused = read_struct("call", "thing", &given, kThing, &copy);
    expect_refused(refused, "size");
    EXPECT_THAT(refused.error().message, HasSubstr(std::to_string(size)));
    EXPECT_THAT(refused.error().message, HasSubstr(std::to_string(sizeof(First))));
    expect_refused(check_filled_struct("call", "thing", &given, kThing), "size");
  }
}

TEST(Structs, OtherStructsAreRefused) {
  Known given = made<Known>(5), copy;
  given.header.type = 78;
  expect_refused(read_struct("call", "thing", &given, kThing, &copy), "found struct type 78");
  given = made<Known>(5);
  given.header.next = &copy;
  expect_refused(read_struct("call", "thing", &given, kThing, &copy), "next chain");
  expect_refused(read_struct("call", "thing", nullptr, kThing, &copy), "null");
}

TEST(Structs, FilledOnesAreFilledAsFarAsBothKnow) {
  Known filled{};
  filled.a = 1;
  filled.b = 2;
  // An old struct that is followed by other memory.
  struct {
    First thing = made<First>(0);
    std::uint64_t behind = 99;
  } old;
  ASSERT_TRUE(check_filled_struct("call", "thing", &old.thing, kThing).ok());
  write_struct(&filled, kThing, &old.thing);
  EXPECT_EQ(old.thing.a, 1u);
  EXPECT_EQ(old.behind, 99u);
  EXPECT_EQ(old.thing.header.size, sizeof(First));
  EXPECT_EQ(old.thing.header.type, 77u);

  Newer fresh = made<Newer>(0);
  fresh.c = 3;
  ASSERT_TRUE(check_filled_struct("call", "thing", &fresh, kThing).ok());
  write_struct(&filled, kThing, &fresh);
  EXPECT_EQ(fresh.a, 1u);
  EXPECT_EQ(fresh.b, 2u);
  EXPECT_EQ(fresh.c, 3u) << "memory outside the struct is unchanged";
  EXPECT_EQ(fresh.header.size, sizeof(Newer));
}

// Each struct of the interface: unchanged, longer with zeros and with other bytes at the end, and too short.
template <class T>
void try_given(T whole) {
  SCOPED_TRACE(kKind<T>.name);
  std::vector<std::byte> bytes(sizeof(T) + 24);
  const auto put = [&](std::size_t size) {
    whole.header.size = static_cast<std::uint32_t>(size);
    std::memcpy(bytes.data(), &whole, sizeof whole);
  };
  T copy;
  const auto read = [&] { return read_struct("call", "thing", bytes.data(), kKind<T>, &copy); };
  put(sizeof(T));
  EXPECT_TRUE(read().ok());
  put(kKind<T>.first_size);
  EXPECT_TRUE(read().ok());
  put(bytes.size());
  EXPECT_TRUE(read().ok());
  bytes.back() = std::byte{1};
  expect_refused(read(), kKind<T>.name);
  put(kKind<T>.first_size - 4);
  expect_refused(read(), kKind<T>.name);
}

TEST(Structs, AllOfTheInterface) {
  try_given(imp_vk_device_info_init());
  try_given(imp_standalone_info_init());
  try_given(imp_host_init());
  try_given(imp_limits_init());
  try_given(imp_frame_info_init());
  try_given(imp_record_info_init());
  try_given(imp_brain_desc_init());
  try_given(imp_policy_desc_init());
  try_given(imp_feedback_init());
  try_given(imp_demonstration_init());
  try_given(imp_action_init());
  try_given(imp_brain_info_init());
  try_given(imp_brain_stats_init());
  try_given(imp_context_stats_init());
  try_given(imp_state_array_init());
  try_given(imp_shared_learning_init());
  try_given(imp_curves_init());
  try_given(imp_vk_plan_init());
  try_given(imp_vk_merged_init());
#define IMPRINT_TRY(name, ...) try_given(imp_##name##_options_init());
  IMP_LEARNERS(IMPRINT_TRY)
#undef IMPRINT_TRY
  try_given(imp_network_options_init());
  try_given(imp_demonstration_options_init());
  try_given(imp_signal_options_init());
  try_given(imp_self_play_options_init());
  try_given(imp_opponent_init());
  try_given(imp_group_options_init());
  try_given(imp_submit_info_init());
  try_given(imp_tensor_desc_init());
  try_given(imp_vk_buffer_init());
  try_given(imp_report_init());
  try_given(imp_missing_feature_init());
  try_given(imp_estimate_init());
  try_given(imp_model_desc_init());
  try_given(imp_model_info_init());
  try_given(imp_model_value_init());
  try_given(imp_policy_names_init());
}

}  // namespace
}  // namespace imprint::abi
