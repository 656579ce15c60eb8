// A decoder of two layers against its formulas in double precision, written out here: the whole sequence, and
// step by step with caches. Vaswani et al., Attention Is All You Need, 2017.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compute/nn/modules/transformer.h"
#include "compute/program/run.h"
#include "tests/unit/nn_check.h"

namespace imprint::nn {
namespace {

using test::waves;
using Row = std::vector<double>;
using Rows = std::vector<Row>;

constexpr std::size_t kExtent = 8, kHeads = 2, kSteps = 5, kMemory = 3;

Rows rows_of(const std::vector<double>& values, std::size_t columns) {
  Rows rows;
  for (auto at = values.begin(); at != values.end(); at += static_cast<std::ptrdiff_t>(columns))
    rows.emplace_back(at, at + static_cast<std::ptrdiff_t>(columns));
  return rows;
}

Rows added(Rows a, const Rows& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].size(); ++j) a[i][j] += b[i][j];
  return a;
}

class DecoderFormulas {
 public:
  DecoderFormulas(const Parameters& parameters, bool norm_first)
      : parameters_(parameters), norm_first_(norm_first) {}

  Rows whole(Rows x, const Rows& memory) const {
    for (const std::string layer : {"layers.0.", "layers.1."}) {
      const auto self = [&](const Rows& in) { return attention(layer + "self_attn.", in, in, true); };
      const auto other = [&](const Rows& in) {
        return attention(layer + "multihead_attn.", in, memory, false);
      };
      const auto forward = [&](const Rows& in) { return feed_forward(layer, in); };
      x = branch(x, layer + "norm1.", self);
      x = branch(x, layer + "norm2.", other);
      x = branch(x, layer + "norm3.", forward);
    }
    return norm_first_ ? norm("norm.", x) : x;
  }

 private:
  std::vector<double> values(const std::string& name) const {
    const Parameter* found = parameters_.find(name);
    EXPECT_NE(found, nullptr) << name;
    return reference::initial_values(found->variable);
  }

  template <class Function>
  Rows branch(const Rows& x, const std::string& name, Function function) const {
    return norm_first_ ? added(x, function(norm(name, x))) : norm(name, added(x, function(x)));
  }

  Rows norm(const std::string& name, Rows x) const {
    const Row weight = values(name + "weight"), bias = values(name + "bias");
    for (Row& row : x) {
      double mean = 0, variance = 0;
      for (const double value : row) mean += value / kExtent;
      for (const double value : row) variance += (value - mean) * (value - mean) / kExtent;
      for (std::size_t i = 0; i < row.size(); ++i)
        row[i] = (row[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i];
    }
    return x;
  }

  // Columns `first` to `first + count` of the result.
  Rows linear(const Rows& x, const std::string& weight, const std::string& bias, std::size_t first,
              std::size_t count) const {
    const Row w = values(weight), b = values(bias);
    Rows out(x.size(), Row(count));
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < count; ++j) {
        out[i][j] = b[first + j];
        for (std::size_t k = 0; k < x[i].size(); ++k) out[i][j] += x[i][k] * w[k * b.size() + first + j];
      }
    return out;
  }

  Rows attention(const std::string& name, const Rows& from, const Rows& to, bool is_causal) const {
    const auto projected = [&](const Rows& x, std::size_t part) {
      return linear(x, name + "in_proj_weight", name + "in_proj_bias", part * kExtent, kExtent);
    };
    const Rows q = projected(from, 0), k = projected(to, 1), v = projected(to, 2);
    constexpr std::size_t kWidth = kExtent / kHeads;
    Rows joined(from.size(), Row(kExtent));
    for (std::size_t head = 0; head < kHeads; ++head)
      for (std::size_t i = 0; i < from.size(); ++i) {
        const std::size_t seen = is_causal ? i + 1 : to.size();
        Row share(seen);
        double sum = 0;
        for (std::size_t j = 0; j < seen; ++j) {
          double score = 0;
          for (std::size_t c = head * kWidth; c < (head + 1) * kWidth; ++c) score += q[i][c] * k[j][c];
          sum += share[j] = std::exp(score / std::sqrt(static_cast<double>(kWidth)));
        }
        for (std::size_t j = 0; j < seen; ++j)
          for (std::size_t c = head * kWidth; c < (head + 1) * kWidth; ++c)
            joined[i][c] += share[j] / sum * v[j][c];
      }
    return linear(joined, name + "out_proj.weight", name + "out_proj.bias", 0, kExtent);
  }

  Rows feed_forward(const std::string& layer, const Rows& x) const {
    Rows hidden = linear(x, layer + "linear1.weight", layer + "linear1.bias", 0, 12);
    for (Row& row : hidden)
      for (double& value : row) value = std::max(value, 0.0);
    return linear(hidden, layer + "linear2.weight", layer + "linear2.bias", 0, kExtent);
  }

  const Parameters& parameters_;
  bool norm_first_;
};

class Decoder : public testing::TestWithParam<bool> {};

TEST_P(Decoder, FollowsItsFormulasAsAWholeAndInSteps) {
  const TransformerDecoder decoder("net", 2, kExtent, kHeads,
                                   {.hidden = 12, .norm_first = GetParam(), .seed = 5});
  const std::vector<double> values = waves(kSteps * kExtent), keys = waves(kMemory * kExtent, 1.5, 4);
  const Rows expected = DecoderFormulas(decoder.parameters(), GetParam())
                            .whole(rows_of(values, kExtent), rows_of(keys, kExtent));

  const Tensor x = input("x", {1, kSteps, kExtent}), memory = input("memory", {1, kMemory, kExtent});
  const std::vector<double> found =
      reference::evaluate(decoder(x, memory), {{"x", values}, {"memory", keys}});
  ASSERT_EQ(found.size(), values.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i / kExtent][i % kExtent], 1e-6) << i;

  const std::vector<AttentionCache> caches = decoder.caches("cache", 1, kSteps);
  std::vector<Update> updates;
  const Tensor next = input("next", {1, 1, kExtent}),
               step = decoder.cached(next, memory, {}, caches, updates);
  ASSERT_TRUE(step.ok()) << step.error().message;
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  auto program = Program::compile(
      *runtime, {.name = "next", .inputs = {next, memory}, .outputs = {step}, .updates = updates});
  ASSERT_TRUE(program) << program.error().message;
  const auto given = [](auto first, std::size_t rows) {
    return HostTensor::from(std::vector<float>(first, first + static_cast<std::ptrdiff_t>(rows * kExtent)),
                            {1, static_cast<std::int64_t>(rows), kExtent});
  };
  for (std::size_t t = 0; t < kSteps; ++t) {
    const HostTensor inputs[] = {given(values.begin() + static_cast<std::ptrdiff_t>(t * kExtent), 1),
                                 given(keys.begin(), kMemory)};
    const auto stepped = session.run(*program, inputs);
    ASSERT_TRUE(stepped) << stepped.error().message;
    for (std::size_t i = 0; i < kExtent; ++i)
      ASSERT_NEAR((*stepped)[0].floats[i], expected[t][i], 1e-5) << "step " << t << " element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(NormFirst, Decoder, testing::Bool());

}  // namespace
}  // namespace imprint::nn
