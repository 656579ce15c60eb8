#include <gtest/gtest.h>

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
  map["a"] = 1;
  map[std::string_view("a\0b", 3)] = 2;
  EXPECT_EQ(map.at("a"), 1);
  EXPECT_EQ(map.at(std::string_view("a\0b", 3)), 2);
  EXPECT_FALSE(map.contains(""));
}

}  // namespace
}  // namespace imprint
