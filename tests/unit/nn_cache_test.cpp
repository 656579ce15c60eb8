// Grouped heads against plain ones with repeated weights, and generation with a cache against one pass over
// the whole sequence.

#include <gtest/gtest.h>

#include "compute/nn/modules/embedding.h"
#include "compute/nn/modules/transformer.h"
#include "compute/program/run.h"
#include "compute/tensor/composites/composites.h"
#include "tests/unit/nn_check.h"

namespace imprint::nn {
namespace {

using test::waves;

std::vector<float> narrowed(const std::vector<double>& values) { return {values.begin(), values.end()}; }

TEST(GroupedAttention, EqualsPlainHeadsThatShareKeys) {
  // Extent 8, 4 heads of 2, 2 key heads: keys 8..12, values 12..16.
  const MultiHeadAttention grouped("g", 8, 4, {.key_heads = 2, .seed = 3}), plain("p", 8, 4, {.seed = 4});
  EXPECT_EQ(grouped.parameters()[0].variable.shape(), (Shape{8, 16}));
  const Tensor in = grouped.parameters()[0].value(), bias = grouped.parameters()[1].value();
  const auto widened = [](const Tensor& t) {
    std::vector<Tensor> parts{narrow(t, -1, 0, 8)};
    for (const std::int64_t first : {8, 12})
      for (const std::int64_t head : {0, 0, 1, 1}) parts.push_back(narrow(t, -1, first + 2 * head, 2));
    return concat(parts, -1);
  };
  const Tensor x = input("x", {2, 5, 8});
  const Tensor from[] = {plain.parameters()[0].value(), plain.parameters()[1].value(),
                         plain.parameters()[2].value(), plain.parameters()[3].value()};
  const Tensor to[] = {widened(in), widened(bias), grouped.parameters()[2].value(),
                       grouped.parameters()[3].value()};
  const reference::Bindings bindings{{"x", waves(80)}};
  const Tensor found = grouped(x, {.causal = true});
  const auto expected = reference::evaluate(substitute(plain(x, {.causal = true}), from, to), bindings);
  const auto values = reference::evaluate(found, bindings);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], 1e-12);
  std::vector<Tensor> leaves{x};
  for (const Parameter& parameter : grouped.parameters()) leaves.push_back(parameter.value());
  test::expect_sound(found, {.inputs = {x}, .leaves = leaves, .bindings = bindings});
  EXPECT_NE(MultiHeadAttention("a", 8, 4, {.key_heads = 3})(x).error().message.find("key heads that divide"),
            std::string::npos);
}

// Runs the steps in pieces of the given lengths.
void expect_generation(const TransformerLayerOptions& options, const std::vector<std::int64_t>& pieces) {
  const TransformerEncoder network("net", 2, 8, 4, options);
  const std::int64_t batch = 2, steps = 6;
  const std::vector<float> values = narrowed(waves(batch * steps * 8));
  const Tensor x = Tensor::from(values, {batch, steps, 8});
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const auto whole = session.evaluate(network(x, {.causal = true}));
  ASSERT_TRUE(whole) << whole.error().message;
  const std::vector<AttentionCache> caches = network.caches("cache", batch, steps);
  for (int round = 0; round < 2; ++round) {
    std::int64_t at = 0;
    for (const std::int64_t length : pieces) {
      std::vector<Update> updates;
      const Tensor y = network.cached(narrow(x, 1, at, length), caches, updates);
      ASSERT_TRUE(y.ok()) << y.error().message;
      auto program = Program::compile(*runtime, {.name = "next", .outputs = {y}, .updates = updates});
      ASSERT_TRUE(program) << program.error().message;
      const auto found = session.run(*program);
      ASSERT_TRUE(found) << found.error().message;
      for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t i = 0; i < length * 8; ++i)
          ASSERT_NEAR((*found)[0].floats[static_cast<std::size_t>(b * length * 8 + i)],
                      whole->floats[static_cast<std::size_t>((b * steps + at) * 8 + i)], 2e-6)
              << "round " << round << " step " << at;
      at += length;
    }
    std::vector<Update> clear;
    for (const AttentionCache& cache : caches) cache.clear(clear);
    auto program = Program::compile(*runtime, {.name = "clear", .updates = clear});
    ASSERT_TRUE(program && session.run(*program));
  }
}

TEST(AttentionCache, StepsEqualTheWholeSequence) {
  expect_generation({.hidden = 16}, {1, 1, 1, 1, 1, 1});
  expect_generation({.hidden = 16, .norm_first = true, .rotary = true, .key_heads = 2}, {3, 1, 2});
  expect_generation({.hidden = 16, .alibi = true, .key_heads = 1}, {2, 4});
}

TEST(AttentionCache, DecoderStepsEqualTheWholeSequence) {
  const TransformerDecoderLayer layer("d", 8, 2, {.hidden = 16});
  const Tensor x = Tensor::from(narrowed(waves(32)), {1, 4, 8}),
               memory = Tensor::from(narrowed(waves(24, 1, 2)), {1, 3, 8});
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const auto whole = session.evaluate(layer(x, memory));
  ASSERT_TRUE(whole) << whole.error().message;
  const AttentionCache cache = layer.cache("cache", 1, 4);
  for (std::int64_t at = 0; at < 4; ++at) {
    std::vector<Update> updates;
    const Tensor y = layer.cached(narrow(x, 1, at, 1), memory, {}, cache, updates);
    auto program = Program::compile(*runtime, {.name = "next", .outputs = {y}, .updates = updates});
    ASSERT_TRUE(program) << program.error().message;
    const auto found = session.run(*program);
    ASSERT_TRUE(found);
    for (std::size_t i = 0; i < 8; ++i)
      ASSERT_NEAR((*found)[0].floats[i], whole->floats[static_cast<std::size_t>(at) * 8 + i], 2e-6);
  }
}

// Beam search with learned positions: after two steps both lines continue the second.
TEST(AttentionCache, LinesContinueAnother) {
  const TransformerEncoder network("net", 2, 8, 4, {.hidden = 16, .key_heads = 2});
  const LearnedPositions positions("positions", 6, 8, {.values = {.scheme = Scheme::normal}});
  const std::int64_t batch = 2, steps = 4;
  const Tensor x = Tensor::from(narrowed(waves(batch * steps * 8)), {batch, steps, 8});
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const std::vector<AttentionCache> caches = network.caches("cache", batch, steps);
  const auto advance = [&](const Tensor& piece) {
    std::vector<Update> updates;
    const Tensor y = network.cached(positions(piece, caches[0].length()), caches, updates);
    auto program = Program::compile(*runtime, {.name = "next", .outputs = {y}, .updates = updates});
    return session.run(*program).value()[0].floats;
  };
  advance(narrow(x, 1, 0, 2));
  std::vector<Update> reordered;
  const Tensor rows = Tensor::from_ints(std::vector<int>{1, 1}, {2});
  for (const AttentionCache& cache : caches) cache.reorder(rows, reordered);
  auto program = Program::compile(*runtime, {.name = "reorder", .updates = reordered});
  ASSERT_TRUE(program) << program.error().message;
  ASSERT_TRUE(session.run(*program));
  const std::vector<float> found = advance(narrow(x, 1, 2, 2));

  const Tensor start = index_select(narrow(x, 1, 0, 2), 0, rows);
  const Tensor whole = positions(concat({start, narrow(x, 1, 2, 2)}, 1));
  const auto expected = session.evaluate(narrow(network(whole, {.causal = true}), 1, 2, 2));
  ASSERT_TRUE(expected) << expected.error().message;
  ASSERT_EQ(found.size(), expected->floats.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected->floats[i], 2e-6) << i;
}

}  // namespace
}  // namespace imprint::nn
