#include "compute/base/byte_cursor.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "compute/base/pointer_map.h"

namespace imprint {
namespace {

TEST(ByteCursor, ReadsInOrderAndNothingAfterALack) {
  const std::array<unsigned char, 7> given{1, 2, 0, 0, 'a', 'b', 9};
  ByteCursor cursor(std::as_bytes(std::span(given)), 1);
  EXPECT_EQ(cursor.number<std::uint16_t>(), 2);
  EXPECT_EQ(cursor.at(), 3u);
  EXPECT_EQ(cursor.words(0), "");
  EXPECT_EQ(cursor.take(1).size(), 1u);
  EXPECT_EQ(cursor.words(2), "ab");
  EXPECT_TRUE(cursor.ok());
  EXPECT_EQ(cursor.left(), 1u);
  EXPECT_TRUE(cursor.take(UINT64_MAX).empty());
  EXPECT_FALSE(cursor.ok());
  EXPECT_EQ(cursor.number<std::uint8_t>(), 0) << "although a byte is left";
  EXPECT_EQ(cursor.left(), 1u);
}

TEST(PointerMap, KeepsTheFirstValueOfEach) {
  std::vector<std::unique_ptr<int>> objects;
  PointerMap<int, int> numbers;
  EXPECT_FALSE(numbers.contains(std::make_unique<int>(0).get()));
  for (int i = 0; i < 1000; ++i) {
    objects.push_back(std::make_unique<int>(i));
    EXPECT_TRUE(numbers.try_emplace(objects.back().get(), i).second);
  }
  EXPECT_EQ(numbers.size(), objects.size());
  for (const auto& object : objects) {
    ASSERT_TRUE(numbers.find(object.get()));
    EXPECT_EQ(*numbers.find(object.get()), *object);
    const auto [found, is_new] = numbers.try_emplace(object.get(), -1);
    EXPECT_FALSE(is_new);
    EXPECT_EQ(*found, *object);
  }
  const int other = 0;
  EXPECT_EQ(numbers.find(&other), nullptr);
  EXPECT_EQ(numbers[&other], 0);
}

}  // namespace
}  // namespace imprint
