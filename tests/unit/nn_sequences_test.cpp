// Recurrent layers, attention and transformer layers against plain loops in double precision, and their
// gradients against differences; on the CPU device too.

#include <gtest/gtest.h>

#include <cmath>

#include "compute/nn/modules/embedding.h"
#include "compute/nn/modules/recurrent.h"
#include "compute/nn/modules/transformer.h"
#include "tests/reference/interpreter.h"
#include "tests/unit/nn_check.h"

namespace imprint::nn {
namespace {

using reference::Bindings;
using reference::evaluate;
using test::expect_sound;
using test::waves;
using Numbers = std::vector<double>;

// A layer's variables, and numbers for all of them.
struct Weights {
  std::map<std::string, Numbers> by_name;
  Bindings bindings;
  std::vector<Tensor> leaves;

  Weights(const Parameters& parameters, double scale) {
    int seed = 1;
    for (const Parameter& parameter : parameters) {
      const Numbers values = waves(parameter.variable.shape().element_count(), scale, ++seed);
      by_name[parameter.name] = values;
      bindings[parameter.variable.name()] = values;
      leaves.push_back(parameter.value());
    }
  }
};

void expect_sequence(const Tensor& output, const Bindings& bindings, const Numbers& expected) {
  ASSERT_TRUE(output.ok()) << output.error().message;
  const Numbers found = evaluate(output, bindings);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}

// x [rows, in] times w [in, out], plus b.
Numbers affine(const Numbers& x, const Numbers& w, const Numbers& b, std::size_t in) {
  const std::size_t out = b.size();
  Numbers y;
  for (std::size_t row = 0; row < x.size() / in; ++row)
    for (std::size_t o = 0; o < out; ++o) {
      double sum = b[o];
      for (std::size_t i = 0; i < in; ++i) sum += x[row * in + i] * w[i * out + o];
      y.push_back(sum);
    }
  return y;
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// One layer in one direction; x [steps, in] of one sequence -> [steps, hidden].
Numbers run_cell(Cell cell, const Weights& weights, const std::string& suffix, const Numbers& x,
                 std::size_t in, std::size_t hidden, bool backward) {
  const auto of = [&](const char* kind) { return weights.by_name.at(kind + suffix); };
  const Numbers wi = of("weight_ih"), wh = of("weight_hh"), bi = of("bias_ih"), bh = of("bias_hh");
  const std::size_t steps = x.size() / in;
  Numbers h(hidden), c(hidden), out(steps * hidden);
  for (std::size_t n = 0; n < steps; ++n) {
    const std::size_t t = backward ? steps - 1 - n : n;
    const Numbers now(x.begin() + static_cast<std::ptrdiff_t>(t * in),
                      x.begin() + static_cast<std::ptrdiff_t>((t + 1) * in));
    const Numbers a = affine(now, wi, bi, in), b = affine(h, wh, bh, hidden);
    const auto both = [&](std::size_t gate, std::size_t k) {
      return a[gate * hidden + k] + b[gate * hidden + k];
    };
    for (std::size_t k = 0; k < hidden; ++k) {
      if (cell == Cell::rnn) h[k] = std::tanh(both(0, k));
      if (cell == Cell::rnn_relu) h[k] = std::fmax(0, both(0, k));
      if (cell == Cell::gru) {
        const double r = sigmoid_of(both(0, k)), z = sigmoid_of(both(1, k));
        const double fresh = std::tanh(a[2 * hidden + k] + r * b[2 * hidden + k]);
        h[k] = (1 - z) * fresh + z * h[k];
      }
      if (cell == Cell::lstm) {
        c[k] = sigmoid_of(both(1, k)) * c[k] + sigmoid_of(both(0, k)) * std::tanh(both(2, k));
        h[k] = sigmoid_of(both(3, k)) * std::tanh(c[k]);
      }
      out[t * hidden + k] = h[k];
    }
  }
  return out;
}

TEST(Recurrent, CellsEqualTheirFormulas) {
  for (const Cell cell : {Cell::rnn, Cell::rnn_relu, Cell::gru, Cell::lstm}) {
    SCOPED_TRACE(static_cast<int>(cell));
    const Recurrent layer("r", cell, 3, 2, {.layers = 2, .bidirectional = true});
    EXPECT_EQ(layer.parameters().size(), 16u);
    EXPECT_NE(layer.parameters().find("weight_hh_l1_reverse"), nullptr);
    Weights weights(layer.parameters(), 0.8);
    const Tensor x = input("x", {2, 4, 3});
    const Numbers v = waves(24, 1, 1);
    Bindings bindings = weights.bindings;
    bindings["x"] = v;
    Numbers expected;
    for (std::size_t n = 0; n < 2; ++n) {
      Numbers sequence(v.begin() + static_cast<std::ptrdiff_t>(12 * n),
                       v.begin() + static_cast<std::ptrdiff_t>(12 * n + 12));
      std::size_t in = 3;
      for (const std::string suffix : {"_l0", "_l1"}) {
        const Numbers forward = run_cell(cell, weights, suffix, sequence, in, 2, false),
                      backward = run_cell(cell, weights, suffix + "_reverse", sequence, in, 2, true);
        sequence.clear();
        for (std::size_t t = 0; t < 4; ++t) {
          sequence.insert(sequence.end(), {forward[2 * t], forward[2 * t + 1]});
          sequence.insert(sequence.end(), {backward[2 * t], backward[2 * t + 1]});
        }
        in = 4;
      }
      expected.insert(expected.end(), sequence.begin(), sequence.end());
    }
    expect_sequence(layer(x), bindings, expected);
    // Variables keep their initial content on the device: only the oracle takes the bindings.
    std::vector<Tensor> leaves{x};
    for (const Parameter& parameter : layer.parameters()) leaves.push_back(parameter.value());
    expect_sound(layer(x), {.inputs = {x}, .leaves = leaves, .bindings = {{"x", v}}});
  }
}

TEST(Recurrent, StateContinuesARun) {
  const Recurrent layer = lstm("r", 3, 4, {.layers = 2, .seed = 3});
  const Tensor x = input("x", {2, 6, 3});
  const Bindings bindings{{"x", waves(36)}};
  Pass pass;
  const Recurrent::Output first = layer.run(narrow(x, 1, 0, 4), {}, pass);
  const Recurrent::Output rest = layer.run(narrow(x, 1, 4, 2), first.state, pass);
  expect_sequence(concat({first.steps, rest.steps}, 1), bindings, evaluate(layer(x), bindings));
  const Recurrent::Output whole = layer.run(x, {}, pass);
  expect_sequence(rest.state.hidden, bindings, evaluate(whole.state.hidden, bindings));
  expect_sequence(rest.state.cell, bindings, evaluate(whole.state.cell, bindings));
  EXPECT_EQ(first.state.hidden.shape(), (Shape{2, 2, 4}));
  EXPECT_FALSE(layer(input("x", {2, 6, 4})).ok());
  EXPECT_FALSE(layer.run(x, {.hidden = zeros({1, 2, 4})}, pass).steps.ok());
}

// Attention of one sequence: q [queries, extent], k and v [keys, extent]; `sees` decides.
template <class Sees>
Numbers attend(const Numbers& q, const Numbers& k, const Numbers& v, std::size_t extent, std::size_t heads,
               Sees sees) {
  const std::size_t width = extent / heads, queries = q.size() / extent, keys = k.size() / extent;
  Numbers out(q.size());
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t i = 0; i < queries; ++i) {
      Numbers weight(keys);
      double total = 0;
      for (std::size_t j = 0; j < keys; ++j) {
        double score = 0;
        for (std::size_t d = h * width; d < (h + 1) * width; ++d)
          score += q[i * extent + d] * k[j * extent + d];
        weight[j] = sees(i, j) ? std::exp(score / std::sqrt(static_cast<double>(width))) : 0;
        total += weight[j];
      }
      for (std::size_t j = 0; j < keys; ++j)
        for (std::size_t d = h * width; d < (h + 1) * width; ++d)
          out[i * extent + d] += weight[j] / total * v[j * extent + d];
    }
  return out;
}

Numbers columns_of(const Numbers& x, std::size_t width, std::size_t first, std::size_t count) {
  Numbers out;
  for (std::size_t row = 0; row < x.size() / width; ++row)
    for (std::size_t i = first; i < first + count; ++i) out.push_back(x[row * width + i]);
  return out;
}

TEST(Attention, EqualsItsFormula) {
  const MultiHeadAttention layer("a", 4, 2);
  Weights weights(layer.parameters(), 0.7);
  const Numbers &wi = weights.by_name["in_proj_weight"], &bi = weights.by_name["in_proj_bias"],
                &wo = weights.by_name["out_proj.weight"], &bo = weights.by_name["out_proj.bias"];
  const Tensor x = input("x", {1, 5, 4}), y = input("y", {1, 3, 4});
  const Numbers xv = waves(20, 1, 1), yv = waves(12, 1, 2);
  Bindings bindings = weights.bindings;
  bindings["x"] = xv;
  bindings["y"] = yv;
  const Numbers px = affine(xv, wi, bi, 4), py = affine(yv, wi, bi, 4);
  const auto part = [](const Numbers& p, std::size_t i) { return columns_of(p, 12, 4 * i, 4); };
  const auto all = [](std::size_t, std::size_t) { return true; };
  const auto past = [](std::size_t i, std::size_t j) { return j <= i; };
  const auto not_second = [](std::size_t, std::size_t j) { return j != 1; };
  expect_sequence(layer(x), bindings,
                  affine(attend(part(px, 0), part(px, 1), part(px, 2), 4, 2, all), wo, bo, 4));
  expect_sequence(layer(x, {.causal = true}), bindings,
                  affine(attend(part(px, 0), part(px, 1), part(px, 2), 4, 2, past), wo, bo, 4));
  Pass pass;
  expect_sequence(layer.cross(x, y, {}, pass), bindings,
                  affine(attend(part(px, 0), part(py, 1), part(py, 2), 4, 2, all), wo, bo, 4));
  const bool hidden[] = {false, true, false};
  const Tensor padding = Tensor::from_bools(hidden, {1, 3});
  const Numbers masked = affine(attend(part(px, 0), part(py, 1), part(py, 2), 4, 2, not_second), wo, bo, 4);
  expect_sequence(layer.cross(x, y, {.padding = padding}, pass), bindings, masked);
  expect_sequence(layer.cross(x, y, {.forbidden = padding}, pass), bindings, masked);
  expect_sequence(layer.cross(x, y, {.bias = where(padding, -1e9f, 0.0f)}, pass), bindings, masked);
  for (const AttentionMask& mask :
       {AttentionMask{.causal = true}, AttentionMask{.bias = alibi_bias(2, 5, 5)}}) {
    std::vector<Tensor> leaves{x};
    for (const Parameter& parameter : layer.parameters()) leaves.push_back(parameter.value());
    expect_sound(layer(x, mask), {.inputs = {x}, .leaves = leaves, .bindings = {{"x", xv}}});
  }
  EXPECT_FALSE(MultiHeadAttention("a", 4, 3)(x).ok());
  EXPECT_NE(layer(input("x", {5, 4})).error().message.find("expected [batch, steps, 4]"), std::string::npos);
}

TEST(Attention, RotationsDependOnDistanceOnly) {
  // Without biases, a score depends on the distance of query and key: a shifted sequence has equal outputs.
  const MultiHeadAttention layer("a", 8, 2, {.bias = false, .rotary = true});
  const Tensor x = input("x", {1, 4, 8});
  const Bindings bindings{{"x", waves(32)}};
  const Tensor q = rotary(x), shifted = rotary(x, 10000, 7);
  const Numbers a = evaluate(matmul(q, transpose(q)), bindings),
                b = evaluate(matmul(shifted, transpose(shifted)), bindings);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
  expect_sound(layer(x), {.inputs = {x}, .leaves = {x}, .bindings = bindings});
}

Numbers layer_normalised(const Numbers& x, const Numbers& gain, const Numbers& bias) {
  const std::size_t n = gain.size();
  Numbers out;
  for (std::size_t row = 0; row < x.size() / n; ++row) {
    double mean = 0, squares = 0;
    for (std::size_t i = 0; i < n; ++i) mean += x[row * n + i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      squares += std::pow(x[row * n + i] - mean, 2) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      out.push_back((x[row * n + i] - mean) / std::sqrt(squares + 1e-5) * gain[i] + bias[i]);
  }
  return out;
}

TEST(Transformer, LayerEqualsItsFormula) {
  for (const bool first : {false, true}) {
    const TransformerEncoderLayer layer("t", 4, 2, {.hidden = 6, .dropout = 0.1, .norm_first = first});
    Weights w(layer.parameters(), 0.6);
    EXPECT_EQ(w.by_name.size(), 12u);
    const auto of = [&](const char* name) { return w.by_name.at(name); };
    const auto self = [&](const Numbers& x) {
      const Numbers p = affine(x, of("self_attn.in_proj_weight"), of("self_attn.in_proj_bias"), 4);
      const Numbers a = attend(columns_of(p, 12, 0, 4), columns_of(p, 12, 4, 4), columns_of(p, 12, 8, 4), 4,
                               2, [](std::size_t, std::size_t) { return true; });
      return affine(a, of("self_attn.out_proj.weight"), of("self_attn.out_proj.bias"), 4);
    };
    const auto feed = [&](const Numbers& x) {
      Numbers h = affine(x, of("linear1.weight"), of("linear1.bias"), 4);
      for (double& value : h) value = std::fmax(0, value);
      return affine(h, of("linear2.weight"), of("linear2.bias"), 6);
    };
    const auto norm = [&](const Numbers& x, const char* weight, const char* bias) {
      return layer_normalised(x, of(weight), of(bias));
    };
    const auto plus = [](Numbers a, const Numbers& b) {
      for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
      return a;
    };
    const Numbers v = waves(20, 1, 1);
    Numbers expected;
    if (first) {
      const Numbers middle = plus(v, self(norm(v, "norm1.weight", "norm1.bias")));
      expected = plus(middle, feed(norm(middle, "norm2.weight", "norm2.bias")));
    } else {
      const Numbers middle = norm(plus(v, self(v)), "norm1.weight", "norm1.bias");
      expected = norm(plus(middle, feed(middle)), "norm2.weight", "norm2.bias");
    }
    const Tensor x = input("x", {1, 5, 4});
    Bindings bindings = w.bindings;
    bindings["x"] = v;
    expect_sequence(layer(x), bindings, expected);
    std::vector<Tensor> leaves{x};
    for (const Parameter& parameter : layer.parameters()) leaves.push_back(parameter.value());
    expect_sound(layer(x, {.causal = true}), {.inputs = {x}, .leaves = leaves, .bindings = {{"x", v}}});
    Pass pass("net", 1);  // dropout acts
    EXPECT_NE(evaluate(layer(x, pass), bindings), expected);
  }
}

TEST(Transformer, DecoderLayerEqualsItsFormula) {
  for (const bool first : {false, true}) {
    const TransformerDecoderLayer layer("d", 4, 2, {.hidden = 6, .norm_first = first});
    Weights w(layer.parameters(), 0.6);
    EXPECT_EQ(w.by_name.size(), 18u);
    const auto of = [&](const std::string& name) { return w.by_name.at(name); };
    const auto norm = [&](const Numbers& x, int i) {
      return layer_normalised(x, of(text("norm", i, ".weight")), of(text("norm", i, ".bias")));
    };
    const auto attention_to = [&](const std::string& name, const Numbers& x, const Numbers& y, bool causal) {
      const Numbers px = affine(x, of(name + ".in_proj_weight"), of(name + ".in_proj_bias"), 4),
                    py = affine(y, of(name + ".in_proj_weight"), of(name + ".in_proj_bias"), 4);
      const Numbers a = attend(columns_of(px, 12, 0, 4), columns_of(py, 12, 4, 4), columns_of(py, 12, 8, 4),
                               4, 2, [=](std::size_t i, std::size_t j) { return !causal || j <= i; });
      return affine(a, of(name + ".out_proj.weight"), of(name + ".out_proj.bias"), 4);
    };
    const Numbers v = waves(20, 1, 1), m = waves(12, 1, 2);
    Numbers x = v;
    const auto branch = [&](int i, const auto& f) {
      const Numbers y = f(first ? norm(x, i) : x);
      for (std::size_t k = 0; k < x.size(); ++k) x[k] += y[k];
      if (!first) x = norm(x, i);
    };
    branch(1, [&](const Numbers& in) { return attention_to("self_attn", in, in, true); });
    branch(2, [&](const Numbers& in) { return attention_to("multihead_attn", in, m, false); });
    branch(3, [&](const Numbers& in) {
      Numbers h = affine(in, of("linear1.weight"), of("linear1.bias"), 4);
      for (double& value : h) value = std::fmax(0, value);
      return affine(h, of("linear2.weight"), of("linear2.bias"), 6);
    });
    const Tensor in = input("x", {1, 5, 4}), memory = input("m", {1, 3, 4});
    Bindings bindings = w.bindings;
    bindings["x"] = v;
    bindings["m"] = m;
    expect_sequence(layer(in, memory), bindings, x);
    std::vector<Tensor> leaves{in, memory};
    for (const Parameter& parameter : layer.parameters()) leaves.push_back(parameter.value());
    expect_sound(layer(in, memory),
                 {.inputs = {in, memory}, .leaves = leaves, .bindings = {{"x", v}, {"m", m}}});
  }
}

TEST(Transformer, GatedUnits) {
  const Tensor x = input("x", {2, 6});
  const Numbers v = waves(12, 2, 1);
  Numbers expected;
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t i = 0; i < 3; ++i)
      expected.push_back(v[6 * row + i] * sigmoid_of(v[6 * row + i]) * v[6 * row + 3 + i]);
  expect_sequence(gated(x, Activation::silu), {{"x", v}}, expected);
  EXPECT_FALSE(gated(input("x", {2, 5}), Activation::silu).ok());
  const GatedFeedForward layer("f", 3, 4);
  EXPECT_EQ(layer.parameters().size(), 3u);
  const Tensor y = input("y", {2, 3});
  Weights w(layer.parameters(), 0.8);
  const Numbers yv = waves(6, 1, 2), none4(4), none3(3);
  Numbers gate = affine(yv, w.by_name["gate_proj.weight"], none4, 3);
  const Numbers up = affine(yv, w.by_name["up_proj.weight"], none4, 3);
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= sigmoid_of(gate[i]) * up[i];
  Bindings bindings = w.bindings;
  bindings["y"] = yv;
  expect_sequence(layer(y), bindings, affine(gate, w.by_name["down_proj.weight"], none3, 4));
  std::vector<Tensor> leaves{y};
  for (const Parameter& parameter : layer.parameters()) leaves.push_back(parameter.value());
  expect_sound(layer(y), {.inputs = {y}, .leaves = leaves, .bindings = {{"y", yv}}});
}

}  // namespace
}  // namespace imprint::nn
