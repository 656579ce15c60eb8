// Arrays that the host shares: how they lie in parts, and how they are read and written across them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "plugin/agent/decide/shared_tensor.h"
#include "tests/reference/interpreter.h"
#include "tests/reference/updates.h"
#include "tests/unit/agent_oracle.h"

namespace imprint::agent {
namespace {

using namespace oracle;
using reference::Bindings;

std::vector<std::int64_t> rows_of(const Shape& shape, std::uint64_t reach, std::uint64_t step) {
  const auto parts = split("rows", shape, DType::float32, reach, step);
  EXPECT_TRUE(parts.ok());
  std::vector<std::int64_t> rows;
  std::int64_t count = 0;
  for (const Variable& part : *parts) {
    EXPECT_EQ(static_cast<std::uint64_t>(count) * 4 % step, 0u) << "where a range may begin";
    EXPECT_LE(static_cast<std::uint64_t>(part.shape().element_count()) * 4, reach);
    count += part.shape().element_count();
    rows.push_back(part.shape()[0]);
  }
  EXPECT_EQ(count, shape.element_count());
  return rows;
}

TEST(SharedTensor, LiesInPartsOfWholeRowsWhereItIsLong) {
  using testing::ElementsAre;
  EXPECT_THAT(rows_of({10, 3}, 120, 16), ElementsAre(10)) << "as long as the reach";
  EXPECT_THAT(rows_of({10, 3}, 64, 16), ElementsAre(4, 4, 2))
      << "five rows would end where no range may begin";
  EXPECT_THAT(rows_of({2, 5, 3}, 64, 16), ElementsAre(4, 4, 2));
  EXPECT_THAT(rows_of({40}, 64, 16), ElementsAre(16, 16, 8));
  EXPECT_THAT(rows_of({2, 20}, 64, 16), ElementsAre(16, 16, 8)) << "rows longer than the reach";
  EXPECT_THAT(rows_of({40, 3}, 256, 256), ElementsAre(64, 56))
      << "rows that only fill whole steps if there are too many of them";
  EXPECT_THAT(rows_of({8388608, 5}, 134217728, 256), ElementsAre(6710848, 1677760))
      << "160 MiB where shaders reach 128";
}

TEST(SharedTensor, IsReadAcrossItsParts) {
  const std::vector<Variable> parts = {Variable("a", {2, 3}, std::vector<float>{0, 1, 2, 3, 4, 5}),
                                       Variable("b", {2, 3}, std::vector<float>{6, 7, 8, 9, 10, 11}),
                                       Variable("c", {1, 3}, std::vector<float>{12, 13, 14})};
  const Tensor found = take_from(parts, input("index", {3, 5}, DType::int32));
  ASSERT_TRUE(found.ok());
  const Numbers index = {14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  EXPECT_EQ(reference::evaluate_all(std::vector<Tensor>{found}, {{"index", index}})[0], index);
}

TEST(SharedTensor, IsWrittenAcrossItsParts) {
  const std::vector<Variable> parts = {Variable::zeros("a", {2, 2}), Variable::zeros("b", {2, 2}),
                                       Variable::zeros("c", {1, 2})};
  const std::vector<Update> updates =
      scatter_to(parts, input("at", {4}, DType::int32), input("rows", {4, 2}));
  Bindings state{{"at", {4, -1, 1, 2}}, {"rows", {1, 2, 3, 4, 5, 6, 7, 8}}};
  reference::run_updates(updates, state);
  EXPECT_EQ(reference::content(parts[0], state), (Numbers{0, 0, 5, 6}));
  EXPECT_EQ(reference::content(parts[1], state), (Numbers{7, 8, 0, 0}));
  EXPECT_EQ(reference::content(parts[2], state), (Numbers{1, 2}));
}

}  // namespace
}  // namespace imprint::agent
