#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>

#include "compute/base/name_hash.h"

namespace imprint {
namespace {

// The example of the paper's Appendix A: SipHash-2-4 of the bytes 0 to 14 under the key of the bytes 0 to 15.
TEST(NameHash, IsSipHash) {
  std::string text;
  for (char byte = 0; byte < 15; ++byte) text += byte;
  constexpr SipKey kKey{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  EXPECT_EQ(siphash(kKey, text, 2, 4), 0xa129ca6149be45e5u);
  EXPECT_NE(siphash({kKey.low ^ 1, kKey.high}, text, 1, 3), siphash(kKey, text, 1, 3));
}

TEST(NameHash, TellsNamesApart) {
  std::set<std::size_t> hashes;
  std::string zeros;
  for (int i = 0; i < 300; ++i, zeros += '\0') hashes.insert(NameHash()(zeros));
  EXPECT_EQ(hashes.size(), 300u) << "names that differ in their length alone";
  NameMap<int> map;
  std::deque<std::string> numbers;  // which the map does not copy
  map["a"] = 1;
  map[std::string_view("a\0b", 3)] = 2;
  ASSERT_TRUE(map.find("a") && map.find(std::string_view("a\0b", 3)));
  EXPECT_EQ(*map.find("a"), 1);
  EXPECT_EQ(*map.find(std::string_view("a\0b", 3)), 2);
  EXPECT_FALSE(map.find(""));
  for (int i = 0; i < 1000; ++i) map[numbers.emplace_back(std::to_string(i))] = i;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(map[numbers[static_cast<std::size_t>(i)]], i);
}

}  // namespace
}  // namespace imprint
