// Programs whose weights, constants or intermediates exceed the range that one descriptor binds: 128 MiB on
// software devices. Runs on the device and on the CPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>

#include "compute/model/files/safetensors.h"
#include "compute/program/runtime_impl.h"
#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

constexpr std::int64_t kMebi = 1 << 20;

// Whole numbers from -1 to 1, so that sums are exact in any order. Every 15 columns they repeat.
constexpr std::int64_t kPeriod = 15;
float weight_at(std::int64_t layer, std::int64_t row, std::int64_t column) {
  return static_cast<float>((row * 31 + column * 17 + layer * 7 + row * column % 5) % 3 - 1);
}

class LargeTest : public test::SessionTest {
 protected:
  // Device memory in use at its highest, in MiB; 0 on the CPU.
  std::uint64_t peak() {
    if (runtime().on_cpu()) return 0;
    return static_cast<program::RuntimeImpl&>(runtime()).device().memory().stats().bytes_peak >> 20;
  }
};

// 5 layers of 64 MiB, from a file that is never read whole.
TEST_F(LargeTest, StreamsWeightsOfThreeHundredMebibytesFromTheirFile) {
  constexpr std::int64_t kLayers = 5, kWidth = 4096;
  const std::string path = "large_test.safetensors";
  const std::unique_ptr<const std::string, void (*)(const std::string*)> removed(
      &path, [](const std::string* name) { std::remove(name->c_str()); });
  {
    std::string header = "{";
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
      char entry[160];
      std::snprintf(
          entry, sizeof entry, R"(%s"w%d":{"dtype":"F32","shape":[4096,4096],"data_offsets":[%lld,%lld]})",
          layer == 0 ? "" : ",", static_cast<int>(layer), static_cast<long long>(layer * 64 * kMebi),
          static_cast<long long>((layer + 1) * 64 * kMebi));
      header += entry;
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    std::ofstream file(path, std::ios::binary);
    const std::uint64_t length = header.size();
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file << header;
    std::vector<float> rows(kWidth);
    for (std::int64_t layer = 0; layer < kLayers; ++layer)
      for (std::int64_t i = 0; i < kWidth; ++i) {
        for (std::int64_t k = 0; k < kPeriod; ++k) rows[static_cast<std::size_t>(k)] = weight_at(layer, i, k);
        for (std::size_t filled = kPeriod; filled < rows.size(); filled *= 2)
          std::copy_n(rows.begin(), std::min(filled, rows.size() - filled),
                      rows.begin() + static_cast<std::ptrdiff_t>(filled));
        file.write(reinterpret_cast<const char*>(rows.data()), kWidth * 4);
      }
    ASSERT_TRUE(file.good());
  }
  auto file = safetensors::map(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  Tensor x = input("x", {1, kWidth});
  std::vector<Variable> weights;
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    const safetensors::Array& array = file->arrays.at("w" + std::to_string(layer));
    weights.emplace_back("w" + std::to_string(layer), array.shape, DType::float32, array.bytes);
    // Whole numbers again, from 0 to 6.
    x = remainder(matmul(x, weights.back().value()), full({}, 7.0));
  }
  *file = {};  // the variables keep the mapping
  Program program =
      compile(ProgramDescription{.name = "large", .inputs = {input("x", {1, kWidth})}, .outputs = {x}});
  std::vector<float> start(kWidth);
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = static_cast<float>(i % 5);
  const auto found = session().run(program, std::vector{HostTensor::from(start, {1, kWidth})});
  ASSERT_TRUE(found.ok()) << found.error().message;

  std::vector<std::int64_t> expected(start.begin(), start.end());
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    std::vector<std::int64_t> next(kWidth);
    for (std::int64_t i = 0; i < kWidth; ++i)
      for (std::int64_t k = 0; k < kPeriod; ++k)
        next[static_cast<std::size_t>(k)] +=
            expected[static_cast<std::size_t>(i)] * static_cast<std::int64_t>(weight_at(layer, i, k));
    for (std::size_t k = 0; k < kPeriod; ++k) next[k] = (next[k] % 7 + 7) % 7;
    for (std::size_t k = kPeriod; k < next.size(); ++k) next[k] = next[k - kPeriod];
    expected = next;
  }
  ASSERT_EQ((*found)[0].floats, std::vector<float>(expected.begin(), expected.end()));
  EXPECT_LT(peak(), 320u + (2 * program::kUploadRing >> 20) + 32) << "staging of more than the ring";
}

// Inputs, constants, intermediates and outputs of 48 MiB each, of which one range holds two.
TEST_F(LargeTest, RunsWithValuesInSeveralPages) {
  constexpr std::int64_t kCount = 12 * kMebi;
  const auto bytes_of = [](float scale) {
    std::vector<std::byte> bytes(kCount * 4);
    auto* values = reinterpret_cast<float*>(bytes.data());
    for (std::int64_t i = 0; i < kCount; ++i) values[i] = scale * static_cast<float>(i % 1000);
    return SharedBytes(std::move(bytes));
  };
  const Tensor x = input("x", {kCount}), y = input("y", {kCount}), z = input("z", {kCount});
  const Tensor a = Tensor::from_bytes(bytes_of(1), {kCount}, DType::float32),
               b = Tensor::from_bytes(bytes_of(2), {kCount}, DType::float32),
               c = Tensor::from_bytes(bytes_of(3), {kCount}, DType::float32);
  // Unfused: each operation has memory of its own.
  const Tensor first = x + a, second = y + b, third = z + c, fourth = first * second;
  Program program =
      compile(ProgramDescription{.name = "pages",
                                 .inputs = {x, y, z},
                                 .outputs = {fourth + third, sum(first), first - second,
                                             reshape(slice(third, 0, 5, kCount, 1 << 20), {-1})},
                                 .fuse = false});
  const auto filled = [](float value) {
    return HostTensor::from(std::vector<float>(kCount, value), {kCount});
  };
  const auto found = session().run(program, std::vector{filled(1), filled(2), filled(3)});
  ASSERT_TRUE(found.ok()) << found.error().message;
  for (std::int64_t i = 0; i < kCount; i += 997) {
    const auto n = static_cast<float>(i % 1000);
    const auto at = static_cast<std::size_t>(i);
    ASSERT_EQ((*found)[0].floats[at], (1 + n) * (2 + 2 * n) + 3 + 3 * n) << i;
    ASSERT_EQ((*found)[2].floats[at], 1 + n - (2 + 2 * n)) << i;
  }
  EXPECT_NEAR((*found)[1].floats[0] / (500.5 * kCount), 1, 1e-4);
  ASSERT_EQ((*found)[3].floats.size(), 12u);
  for (std::int64_t i = 0; i < 12; ++i)
    EXPECT_EQ((*found)[3].floats[static_cast<std::size_t>(i)],
              3 + 3 * static_cast<float>((5 + i * kMebi) % 1000));
}

// A table of 300 MiB, of which one range of a software device holds 128: rows of all its parts.
TEST_F(LargeTest, TrainsRowsOfAVariableLongerThanARange) {
  constexpr std::int64_t kRows = 75 * 1024, kWidth = 1024;
  const Variable table = Variable::zeros("table", {kRows, kWidth});
  const std::vector<std::int32_t> ids{kRows - 1, 5, kRows / 2, 32767, 32768};
  const Tensor rows = Tensor::from_ints(ids, {5}), found = take(table.value(), 0, rows),
               steps = cast(iota({5, kWidth}, 0), DType::float32) + 1.0f;
  Program program =
      compile(ProgramDescription{.name = "table",
                                 .outputs = {sum(found, {1})},
                                 .updates = {Update::scatter_rows(table, rows, found + steps)}});
  for (int run = 0; run < 3; ++run) {
    const auto sums = session().run(program);
    ASSERT_TRUE(sums.ok()) << sums.error().message;
    for (std::size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ((*sums)[0].floats[i], static_cast<float>(run * kWidth) * static_cast<float>(i + 1));
  }
}

}  // namespace
}  // namespace imprint
