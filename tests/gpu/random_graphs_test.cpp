// Random programs, run fused, with other kernel variants and with one kernel per operation, against the
// double oracle: layers, activations, norms, convolutions, attention, orders, scans, gathers and scatters,
// joins, reductions, recomputation, losses and their derivatives, on odd shapes and a batch of one. A failure
// names its seed.
//
// IMPRINT_RANDOM_GRAPHS=5000 number of graphs (the default keeps a software device under a minute)
//
// IMPRINT_RANDOM_SEED=1 the first seed; the others follow

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>

#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/graph/gradients/checkpoint.h"
#include "compute/nn/modules/attention.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/composites/images.h"
#include "compute/tensor/composites/signals.h"
#include "compute/tensor/ops/quantised.h"
#include "tests/gpu/session_test.h"
#include "tests/reference/interpreter.h"

namespace imprint {

using namespace graph;

namespace {

// The graph of one seed. Generating it again gives the same graph on new variables.
class Drawing {
 public:
  explicit Drawing(std::uint32_t seed) : random_(seed) {
    large_ = chance(10);
    batch_ = large_ ? pick({257, 300}) : pick({1, 1, 2, 3, 7, 16, 31, 33, 64, 100, 129});
    Tensor value = leaf({batch_, features()});
    const int steps = 2 + static_cast<int>(random_() % 7);
    for (int i = 0; i < steps; ++i) {
      values_.push_back(value);
      value = step(value);
    }
    outputs.push_back(value);
    if (chance(50)) outputs.push_back(values_[random_() % values_.size()] * 2.0f);
    finish(value);
  }

  std::vector<Tensor> outputs;
  std::vector<Update> updates;
  std::string text;  // the steps in words

 private:
  bool chance(std::uint32_t percent) { return random_() % 100 < percent; }
  std::int64_t pick(std::initializer_list<std::int64_t> of) {
    return *(of.begin() + static_cast<std::ptrdiff_t>(random_() % of.size()));
  }
  std::int64_t features() {
    return large_ ? pick({64, 132, 255, 256}) : pick({1, 2, 3, 5, 8, 16, 17, 31, 33, 64});
  }

  Variable variable(const Shape& shape, float scale = 1) {
    std::uniform_real_distribution<float> uniform(-scale, scale);
    std::vector<float> values(static_cast<std::size_t>(shape.element_count()));
    for (float& value : values) value = uniform(random_);
    variables_.emplace_back(imprint::text("v", variables_.size()), shape, values);
    return variables_.back();
  }
  Tensor leaf(const Shape& shape, float scale = 1) { return variable(shape, scale).value(); }

  Tensor indices(std::int64_t count, std::int64_t bound) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(count));
    for (std::int32_t& value : values)
      value = static_cast<std::int32_t>(random_() % static_cast<std::uint32_t>(bound));
    return Variable(imprint::text("i", index_count_++), {count}, values).value();
  }

  // x: [batch, n] -> [batch, m]; values stay near 1.
  Tensor step(const Tensor& x) {
    if (chance(20)) return ordered(x);
    if (chance(25)) return further(x);
    const std::int64_t n = x.extent(1);
    switch (const auto kind = random_() % 18; kind) {
      case 0:
      case 1:
      case 2:
        return said("linear", linear(x));
      case 3:
        return said("tanh", tanh(x));
      case 4:
        return said("gelu", gelu(x));
      case 5:
        return said("silu", silu(x) + 0.1f);
      case 6:
        return said("softplus", softplus(x) - 0.5f);
      case 7:
        return n < 2 ? said("sigmoid", sigmoid(x))
                     : said("layer norm", layer_norm(x, leaf({n}), leaf({n}), 1e-2));
      case 8:
        return said("softmax", softmax(x, static_cast<int>(random_() % 2)) * static_cast<float>(n));
      case 9:
        return said("residual", tanh(x) + x * leaf({n}));
      case 10:
        return said("scale rows", x * sigmoid(leaf({batch_, 1})) + mean(x, {1}, true));
      case 11:
        return said("centre columns", x - mean(x, {0}, true));
      case 12:
        return said("rows", take(x, 0, indices(batch_, batch_)));
      case 13:
        return said("join", concat({x, other(n)}, 1));
      case 14:
        return n < 3 ? said("square", square(x))
                     : said("slice", slice(x, 1, 1, n, 1 + static_cast<std::int64_t>(random_() % 2)));
      case 15:
        return said("fourier", waves(x));
      case 16:
        return said("four bits", matmul(x, few_bits(n)));
      default:
        return said("turn", transpose(cumsum(transpose(x) * (1.0f / static_cast<float>(n)), 0)));
    }
  }

  // Orders and extremes. No gradient passes through them: values that are nearly equal may change places.
  Tensor ordered(const Tensor& x) {
    const std::int64_t n = x.extent(1);
    const Tensor held = stop_gradient(x), half = x * 0.5f;
    switch (random_() % (n < 2 ? 5 : 6)) {
      case 0:
        return said("sort", half + sort(held, static_cast<int>(random_() % 2), chance(50)).values);
      case 1:
        return said("top", concat({half, topk(held, std::min<std::int64_t>(n, 3)).values}, 1));
      case 2:
        return said("so far", half + (chance(50) ? cummax(held, 1) : cummin(held, 0)).values);
      case 3:
        return said("extremes", half - max(held, {1}, true) + minimum(held, leaf({n})));
      case 4:
        return said("largest rows", half + scatter(zeros({batch_, n}), 0, rows_of(n), held,
                                                   chance(50) ? Scatter::max : Scatter::assign));
      default:
        return said(
            "pool",
            concat({half, reshape(max_pool(reshape(held, {batch_, 1, n, 1}), {.size = {2, 1}, .ceil = true}),
                                  {batch_, -1})},
                   1));
    }
  }

  // Layers and functions that networks have less often.
  Tensor further(const Tensor& x) {
    const std::int64_t n = x.extent(1);
    const float few = 1.0f / std::sqrt(static_cast<float>(n));
    switch (random_() % 15) {
      case 0:
        return said("convolution", tanh(reshape(convolution(reshape(x, {batch_, 1, n}), leaf({2, 1, 3}, 0.5f),
                                                            leaf({2}), {.padding = 1}),
                                                {batch_, 2 * n})));
      case 1:
        return said("attention", attended(x));
      case 2:
        return said("recurrence", linear_recurrence(x * 0.3f, sigmoid(x * leaf({n})), 1, chance(50)));
      case 3:
        return said("scatter", scatter(zeros({batch_, n}), 0, rows_of(n), x * 0.5f, Scatter::add));
      case 4:
        return said("factors",
                    n % 2 == 0 ? prod(reshape(x + 1.0f, {batch_, n / 2, 2}), {2}) : cumprod(tanh(x), 1));
      case 5:
        return said("where", where(x > leaf({n}), x, leaf({batch_, 1})) + atan2(x, leaf({n}) + 2.0f));
      case 6:
        return said("shifted", roll(x, 1, 1) * 0.5f + flip(x, 1) * leaf({n}));
      case 7:
        return said("padded",
                    pad(x, std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {2, 1}}, 0.5));
      case 8:
        return said("recomputed", checkpoint([&](const Tensor& in) { return tanh(linear(in)); }, x));
      case 9:
        return said("dropped", where(random_uniform(Variable(imprint::text("g", index_count_++), {4},
                                                             std::vector<std::int32_t>{3, 1, 2, 0})
                                                        .value(),
                                                    {batch_, n}, 5) < 0.8f,
                                     x, 0.0f));
      case 10:
        return said("spread", (x - mean(x, {1}, true)) * rsqrt(variance(x, {1}, true, 0) + 0.1f));
      case 11:
        return said("halves", halves(x));
      case 13:
        return said("int64", wide(x));
      case 12:
        return said("einsum", einsum("bi,ij,bj->bj", {x * few, leaf({n, n}, few), tanh(x)}));
      default:
        return said("functions", erf(x) + log1p(square(x)) * 0.3f + exp(-abs(x)) + remainder(x, 3.0f) * 0.1f);
    }
  }

  // A sum that rounds in another place than the oracle's changes the result little.
  Tensor halves(const Tensor& x) {
    const Tensor narrow = cast(stop_gradient(x), chance(50) ? DType::float16 : DType::bfloat16);
    return x + 0.003f * cast(tanh(narrow * 2.0f) - mean(narrow, {1}, true), DType::float32);
  }

  // Numbers that need both words. One that the oracle truncates to its neighbour changes the result little.
  Tensor wide(const Tensor& x) {
    const Tensor whole = cast(stop_gradient(x) * 4096.0f, DType::int64) * (std::int64_t{1} << 30) + 12345;
    const Tensor total = chance(50) ? max(whole, {1}, true) : sum(whole, {0}, true);
    const Tensor rows = take(whole, 0, cast(indices(batch_, batch_), DType::int64));
    const Tensor found = where(rows < total, rows, total) - whole;
    return x + 0.003f * tanh(cast(shift_right(found, 30), DType::float32) * (1.0f / 4096));
  }

  // A row for each of the batch, in all columns.
  Tensor rows_of(std::int64_t n) {
    return expand(reshape(indices(batch_, batch_), {batch_, 1}), {batch_, n});
  }

  Tensor attended(const Tensor& x) {
    const std::int64_t n = x.extent(1), heads = n % 2 == 0 ? 2 : 1;
    const auto split = [&](const Tensor& of) {
      return permute(reshape(of, {1, batch_, heads, n / heads}), {0, 2, 1, 3});
    };
    const Tensor found = nn::attention(split(x), split(x * leaf({n})), split(x), {.causal = chance(50)});
    return reshape(permute(found, {0, 2, 1, 3}), {batch_, n});
  }

  Tensor linear(const Tensor& x) {
    const std::int64_t n = x.extent(1), m = large_ ? pick({8, 33, 64}) : features();
    return matmul(x, leaf({n, m}, 1.5f / std::sqrt(static_cast<float>(n)))) + leaf({m}, 0.3f);
  }

  Tensor waves(const Tensor& x) {
    const ComplexTensor found = rfft(x * (1.0f / std::sqrt(static_cast<float>(x.extent(1)))));
    return chance(50) ? tanh(irfft(found, -1, x.extent(1))) : tanh(concat({found.real, found.imaginary}, 1));
  }

  // Weights [n, m] with one scale per column; 4 bits if n is even.
  QuantisedWeights few_bits(std::int64_t n) {
    const std::int64_t m = pick({3, 8, 33}), stored = n % 2 == 0 ? n / 2 : n;
    const Tensor values = reshape(indices(m * stored, n % 2 == 0 ? 256 : 15), {m, stored});
    QuantisedWeights weights;
    weights.bits = n % 2 == 0 ? 4 : 8;
    weights.values = n % 2 == 0 ? cast(values, DType::uint8) : cast(values - 7, DType::int8);
    weights.scales = leaf({m, 1}, 0.2f / std::sqrt(static_cast<float>(n)));
    return weights;
  }

  // An earlier value of shape [batch, ...].
  Tensor other(std::int64_t n) {
    return chance(50) ? values_[random_() % values_.size()] : leaf({batch_, n});
  }

  Tensor said(const char* what, Tensor result) {
    if (!result.ok()) throw std::runtime_error(imprint::text(what, ": ", result.error().message));
    text += std::string(text.empty() ? "" : ", ") + what + " " + result.shape().text();
    return result;
  }

  Tensor loss_of(const Tensor& x) {
    const std::int64_t n = x.extent(1);
    switch (random_() % 4) {
      case 0:
        return said("squared error", mean(square(x - leaf({batch_, n}))));
      case 1:
        return said("cross entropy",
                    -mean(gather(log_softmax(x), 1, reshape(indices(batch_, n), {batch_, 1}))));
      case 2:
        return said("log of sums", mean(logsumexp(x, {1})) + sum(square(x)) * 0.01f);
      default:
        return said("weighted", sum(tanh(x) * leaf({n})) / static_cast<float>(batch_));
    }
  }

  // A loss, its gradients, and sometimes a step that clips them by their norm.
  void finish(const Tensor& value) {
    if (chance(25)) return;
    const Tensor loss = loss_of(value);
    outputs.push_back(loss);
    std::vector<Tensor> with_respect_to;
    for (const Variable& one : variables_) with_respect_to.push_back(one.value());
    const std::vector<Tensor> gradient = gradients(loss, with_respect_to).value();
    if (chance(40)) {
      outputs.insert(outputs.end(), gradient.begin(), gradient.end());
      return;
    }
    Tensor norm = 1e-3f;
    for (const Tensor& one : gradient) norm = norm + sum(square(one));
    const Tensor scale = minimum(Tensor(1.0f), Tensor(0.5f) / sqrt(norm));
    for (std::size_t i = 0; i < variables_.size(); ++i)
      updates.push_back(Update::assign(variables_[i], with_respect_to[i] - gradient[i] * scale * 10.0f));
    text += ", step";
  }

  std::mt19937 random_;
  bool large_ = false;
  std::int64_t batch_ = 1;
  int index_count_ = 0;
  std::vector<Variable> variables_;
  std::vector<Tensor> values_;
};

std::uint32_t setting(const char* name, std::uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)) : otherwise;
}

class RandomGraphs : public test::SessionTest {
 protected:
  void TearDown() override {
    runtime().set_variants(nullptr);
    SessionTest::TearDown();
  }

  // For each kernel with variants, one that the seed draws.
  void draw_variants(std::uint32_t seed) {
    std::mt19937 random(seed);
    VariantTable table;
    for (const VariantChoice& choice : choices_)
      table[choice.kernel] = choice.variants[random() % choice.variants.size()];
    runtime().set_variants(std::make_shared<const VariantTable>(table));
  }

  // Everything that the program writes.
  std::vector<std::vector<float>> run(const Drawing& drawing, bool fuse) {
    Program program =
        compile({.name = "random", .outputs = drawing.outputs, .updates = drawing.updates, .fuse = fuse});
    explanation_ = program.explain();
    choices_.clear();
    for (const ScheduleFigures& part : program.schedule())
      for (const DispatchFigures& dispatch : part.dispatches)
        for (const KernelFigures& kernel : dispatch.kernels)
          choices_.insert(choices_.end(), kernel.choices.begin(), kernel.choices.end());
    expect_figures_to_add_up(program);
    std::vector<std::vector<float>> found;
    const Result<std::vector<HostTensor>> results = session().run(program);
    if (!results.ok()) {
      ADD_FAILURE() << results.error().message;
      return found;
    }
    for (const HostTensor& output : *results) found.push_back(output.floats);
    for (const Update& update : drawing.updates) found.push_back(floats(update.target));
    return found;
  }

  static void expect_figures_to_add_up(const Program& program) {
    const std::vector<ScheduleFigures> parts = program.schedule();
    ASSERT_EQ(parts.size(), 1u);
    ProgramStats sum;
    for (const DispatchFigures& dispatch : parts[0].dispatches) {
      ++sum.dispatches;
      EXPECT_GT(dispatch.workgroups * dispatch.invocations, 0u);
      for (const KernelFigures& kernel : dispatch.kernels) {
        ++sum.kernels;
        sum.bytes_moved += kernel.bytes_read + kernel.bytes_written;
        sum.flops += kernel.operations;
      }
    }
    EXPECT_EQ(sum.dispatches, program.stats().dispatches);
    EXPECT_EQ(sum.kernels, program.stats().kernels);
    EXPECT_EQ(sum.bytes_moved, program.stats().bytes_moved);
    EXPECT_EQ(sum.flops, program.stats().flops);
  }

  void expect_near(const std::vector<std::vector<float>>& found,
                   const std::vector<std::vector<double>>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t o = 0; o < found.size(); ++o) {
      double scale =
          0;  // gradients of means are small: scaled by their size, with some tolerance for sums that cancel
      for (double value : expected[o]) scale = std::max(scale, std::abs(value));
      for (std::size_t i = 0; i < expected[o].size(); ++i)
        ASSERT_NEAR(found[o][i], expected[o][i], 3e-4 * scale + 3e-5)
            << "output " << o << " element " << i << " of\n"
            << explanation_;
    }
  }

 private:
  std::string explanation_;
  std::vector<VariantChoice> choices_;  // of the last program
};

TEST_F(RandomGraphs, AreTheSameFusedAndNot) {
  const std::uint32_t first = setting("IMPRINT_RANDOM_SEED", 1), count = setting("IMPRINT_RANDOM_GRAPHS", 24);
  constexpr std::uint32_t kUnfusedEach = 12;  // compiling one kernel per operation takes long
  constexpr std::uint32_t kVariantsEach = 4;
  for (std::uint32_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    const Drawing fused(seed);
    SCOPED_TRACE(imprint::text("IMPRINT_RANDOM_SEED=", seed, ": ", fused.text));
    std::vector<Tensor> left = fused.outputs;
    for (const Update& update : fused.updates) left.push_back(update.value);
    const auto expected = reference::evaluate_all(left);  // before the program takes the variables' content
    expect_near(run(fused, true), expected);
    if (seed % kVariantsEach == 1 && !HasFailure()) {
      draw_variants(seed);
      expect_near(run(Drawing(seed), true), expected);
      runtime().set_variants(nullptr);
    }
    if (seed % kUnfusedEach == 0 && !HasFailure()) expect_near(run(Drawing(seed), false), expected);
    test::expect_validation_silent();
  }
}

}  // namespace
}  // namespace imprint
