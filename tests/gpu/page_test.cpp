// Pages as a user writes them: a game's own physics step, differentiated, and the door's edges; a page of the
// library that is a derivative. Runs on the device and on the CPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/pages/page.h"
#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

using testing::HasSubstr;

// A rope of masses between springs: one step of semi-implicit Euler. Positions and velocities in and out.
constexpr float kStiffness = 40, kDrag = 0.5f, kStep = 0.01f;

constexpr char kRopeGlsl[] = R"(
const float kStiffness = 40.0, kDrag = 0.5, kStep = 0.01;
shared float around[imp_group_size + 2];

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x);
  int i = group * imp_group_size + lane;
  around[lane + 1] = imp_load_0(min(i, COUNT - 1));
  if (lane == 0) around[0] = i > 0 ? imp_load_0(i - 1) : 0.0;
  if (lane == imp_group_size - 1) around[lane + 2] = i + 1 < COUNT ? imp_load_0(i + 1) : 0.0;
  barrier();
  if (i >= COUNT) return;
  float left = around[lane], right = i + 1 < COUNT ? around[lane + 2] : 0.0, x = around[lane + 1];
  float velocity = imp_load_1(i);
  velocity += kStep * (kStiffness * (left - 2.0 * x + right) - kDrag * velocity);
  imp_store_0(i, x + kStep * velocity);
  imp_store_1(i, velocity);
}
)";

// The adjoint of the step: the springs' matrix is symmetric, so the same page computes it.
std::vector<Tensor> rope(const Tensor& positions, const Tensor& velocities);

std::vector<Tensor> rope_backward(std::span<const Tensor>, std::span<const Tensor>,
                                  std::span<const Tensor> g) {
  const Tensor of_velocity = g[1] + kStep * g[0];
  const Tensor zero = zeros({1});
  const std::int64_t count = g[0].extent(0);
  const Tensor left = concat({zero, narrow(of_velocity, 0, 0, count - 1)}, 0),
               right = concat({narrow(of_velocity, 0, 1, count - 1), zero}, 0);
  return {g[0] + kStep * kStiffness * (left - 2.0f * of_velocity + right), of_velocity * (1 - kStep * kDrag)};
}

std::vector<Tensor> rope(const Tensor& positions, const Tensor& velocities) {
  Page page;
  const std::int64_t count = positions.extent(0);
  page.name = "rope";
  page.glsl = kRopeGlsl;
  page.outputs = {{positions.shape()}, {positions.shape()}};
  page.group_size = 32;
  page.groups = (count + 31) / 32;
  page.constants = {{"COUNT", count}};
  page.cpu = [](std::span<const PageArray> in, std::span<const PageArray> out) {
    const std::span<float> x = in[0].floats(), v = in[1].floats();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float left = i > 0 ? x[i - 1] : 0, right = i + 1 < x.size() ? x[i + 1] : 0;
      const float velocity = v[i] + kStep * (kStiffness * (left - 2 * x[i] + right) - kDrag * v[i]);
      out[0].floats()[i] = x[i] + kStep * velocity;
      out[1].floats()[i] = velocity;
    }
  };
  page.backward = rope_backward;
  return run_page(std::move(page), std::vector{positions, velocities});
}

class PageTest : public test::SessionTest {};

TEST_F(PageTest, RunsAGamesOwnPhysicsAndDifferentiatesIt) {
  constexpr std::int64_t kCount = 77;
  constexpr int kSteps = 4;
  const Tensor start = input("start", {kCount}), speed = input("speed", {kCount});
  std::vector<Tensor> state{start * 0.5f, speed};  // the product fuses into the first page's loads
  for (int step = 0; step < kSteps; ++step) state = rope(state[0], state[1]);
  const Tensor loss = sum(state[0] * state[0]) + 0.1f * sum(state[1]);
  const auto grads = gradients(loss, std::vector{start, speed});
  ASSERT_TRUE(grads.ok()) << grads.error().message;
  Program program = compile(ProgramDescription{
      .name = "rope", .inputs = {start, speed}, .outputs = {loss, (*grads)[0], (*grads)[1]}});

  const auto run = [&](const std::vector<float>& x, const std::vector<float>& v) {
    return session()
        .run(program,
             std::vector<HostTensor>{{DType::float32, {kCount}, x, {}}, {DType::float32, {kCount}, v, {}}})
        .value();
  };
  // The same in double, for values and central differences.
  const auto expected = [&](std::vector<double> x, std::vector<double> v) {
    for (double& one : x) one *= 0.5;
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<double> old = x;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double left = i > 0 ? old[i - 1] : 0, right = i + 1 < x.size() ? old[i + 1] : 0;
        v[i] += double{kStep} * (kStiffness * (left - 2 * old[i] + right) - double{kDrag} * v[i]);
        x[i] = old[i] + double{kStep} * v[i];
      }
    }
    double total = 0;
    for (std::size_t i = 0; i < x.size(); ++i) total += x[i] * x[i] + 0.1 * v[i];
    return total;
  };
  const std::vector<float> x = test::wave(kCount, 1, 1), v = test::wave(kCount, 1, 2);
  const std::vector<double> wide_x(x.begin(), x.end()), wide_v(v.begin(), v.end());
  const std::vector<HostTensor> found = run(x, v);
  EXPECT_NEAR(found[0].floats[0], expected(wide_x, wide_v), 1e-4);
  for (std::size_t i : {0u, 1u, 31u, 32u, 40u, 76u}) {
    constexpr double kDelta = 1e-4;
    std::vector<double> up = wide_x, down = wide_x;
    up[i] += kDelta;
    down[i] -= kDelta;
    EXPECT_NEAR(found[1].floats[i], (expected(up, wide_v) - expected(down, wide_v)) / (2 * kDelta), 1e-4)
        << i;
    up = down = wide_v;
    up[i] += kDelta;
    down[i] -= kDelta;
    EXPECT_NEAR(found[2].floats[i], (expected(wide_x, up) - expected(wide_x, down)) / (2 * kDelta), 1e-4)
        << i;
  }
}

// Counts and lists: an int output, a bool output and a bool input; the first output has another size.
Page above_page(std::int64_t count) {
  Page page;
  page.name = "above";
  page.glsl = R"(
shared int found[imp_group_size];
void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x), own = 0;
  for (int i = lane; i < COUNT; i += imp_group_size) {
    int is_above = imp_load_1(i) != 0 && imp_load_0(i) > 0.25 ? 1 : 0;
    imp_store_1(i, is_above);
    imp_store_2(i, imp_load_0(i) * 2.0);
    own += is_above;
  }
  found[lane] = own;
  barrier();
  if (lane != 0) return;
  int total = 0;
  for (int k = 0; k < imp_group_size; ++k) total += found[k];
  imp_store_0(0, total);
}
)";
  page.outputs = {{{1}, DType::int32}, {{count}, DType::boolean}, {{count}}};
  page.constants = {{"COUNT", count}};
  page.cpu = [](std::span<const PageArray> in, std::span<const PageArray> out) {
    out[0].ints()[0] = 0;
    for (std::size_t i = 0; i < in[0].floats().size(); ++i) {
      out[1].ints()[i] = in[1].ints()[i] != 0 && in[0].floats()[i] > 0.25f;
      out[2].floats()[i] = in[0].floats()[i] * 2;
      out[0].ints()[0] += out[1].ints()[i];
    }
  };
  return page;
}

TEST_F(PageTest, HasOutputsOfSeveralTypesAndUpdatesVariables) {
  constexpr std::int64_t kCount = 300;
  const Tensor x = input("x", {kCount}), mask = input("mask", {kCount}, DType::boolean);
  Variable doubled = Variable::zeros("doubled", {kCount});
  const std::vector<Tensor> above = run_page(above_page(kCount), std::vector{x, mask});
  ASSERT_EQ(above.size(), 3u);
  ASSERT_TRUE(above[2].ok()) << above[2].error().message;
  // Output 1 is read by another kernel; output 2 becomes state.
  Program program = compile(ProgramDescription{.name = "above",
                                               .inputs = {x, mask},
                                               .outputs = {above[0], sum(where(above[1], x, 0.0f))},
                                               .updates = {Update::assign(doubled, above[2])}});
  const std::vector<float> values = test::wave(kCount, 1, 3);
  std::vector<std::int32_t> allowed(kCount);
  std::int32_t count = 0;
  double total = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    allowed[i] = i % 3 != 0;
    if (allowed[i] && values[i] > 0.25f) ++count, total += values[i];
  }
  const auto found = session()
                         .run(program, std::vector<HostTensor>{{DType::float32, {kCount}, values, {}},
                                                               {DType::boolean, {kCount}, {}, allowed}})
                         .value();
  EXPECT_EQ(found[0].ints[0], count);
  EXPECT_NEAR(found[1].floats[0], total, 1e-3);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(floats(doubled)[i], values[i] * 2) << i;
}

TEST_F(PageTest, GivesEqualBitsHoweverItIsSliced) {
  constexpr std::int64_t kCount = 100;
  const std::vector<float> start = test::wave(kCount, 1, 4);
  Variable x("x", {kCount}, start);
  Variable v = Variable::zeros("v", {kCount});
  std::vector<Tensor> state = rope(x.value(), v.value());
  state = rope(state[0], state[1]);
  Program program = compile(ProgramDescription{
      .name = "sliced", .updates = {Update::assign(x, state[0]), Update::assign(v, state[1])}});
  run_sliced(program, {1000});
  const std::vector<float> first = floats(x);
  ASSERT_TRUE(session().write(x, HostTensor::from(start, {kCount})).ok());
  ASSERT_TRUE(session().write(v, HostTensor::from(std::vector<float>(kCount), {kCount})).ok());
  run_sliced(program, {1});
  EXPECT_EQ(floats(x), first);
}

// Bytes in, bytes and halves out: a page sees ints and floats.
TEST_F(PageTest, ReadsAndWritesNarrowTypes) {
  constexpr std::int64_t kCount = 101;
  Page page;
  page.name = "narrow";
  page.glsl = R"(
void imp_page(int group) {
  int i = group * imp_group_size + int(gl_LocalInvocationID.x);
  if (i >= COUNT) return;
  imp_store_0(i, imp_load_0(i) * 3);
  imp_store_1(i, float(imp_load_0(i)) * 0.5 + imp_load_1(i));
})";
  page.outputs = {{{kCount}, DType::uint8}, {{kCount}, DType::float16}};
  page.groups = (kCount + 63) / 64;
  page.constants = {{"COUNT", kCount}};
  page.cpu = [](std::span<const PageArray> in, std::span<const PageArray> out) {
    for (std::size_t i = 0; i < kCount; ++i) {
      out[0].ints()[i] = in[0].ints()[i] * 3;
      out[1].floats()[i] = static_cast<float>(in[0].ints()[i]) * 0.5f + in[1].floats()[i];
    }
  };
  const Tensor bytes = input("bytes", {kCount}, DType::int8),
               halves = input("halves", {kCount}, DType::float16);
  const std::vector<Tensor> out = run_page(page, std::vector{bytes, halves});
  Program program =
      compile(ProgramDescription{.name = "narrow",
                                 .inputs = {bytes, halves},
                                 .outputs = {out[0], out[1], cast(out[0], DType::float32) * 2.0f}});
  HostTensor given{DType::int8, {kCount}, {}, {}}, floats{DType::float16, {kCount}, {}, {}};
  for (int i = 0; i < kCount; ++i) {
    given.ints.push_back(i - 50);
    floats.floats.push_back(0.25f * static_cast<float>(i));
  }
  const auto found = session().run(program, std::vector{given, floats}).value();
  for (int i = 0; i < kCount; ++i) {
    const auto at = static_cast<std::size_t>(i);
    ASSERT_EQ(found[0].ints[at], ((i - 50) * 3) & 255) << i;
    ASSERT_EQ(found[1].floats[at], 0.5f * static_cast<float>(i - 50) + 0.25f * static_cast<float>(i)) << i;
    ASSERT_EQ(found[2].floats[at], static_cast<float>(2 * (((i - 50) * 3) & 255))) << i;
  }
}

// Rows of a variable that a page computes, at numbers that a page computes, in every width and fused or not.
TEST_F(PageTest, ScattersItsOutputsByRows) {
  constexpr std::int64_t kCount = 6, kWidth = 5;
  Page page;
  page.name = "rows";
  page.glsl = R"(
void imp_page(int group) {
  int i = int(gl_LocalInvocationID.x);
  if (i >= COUNT) return;
  for (int k = 0; k < WIDTH; ++k) {
    imp_store_0(i * WIDTH + k, imp_load_0(i * WIDTH + k) * 2.0);
    imp_store_2(i * WIDTH + k, int(imp_load_0(i * WIDTH + k)));
    imp_store_3(i * WIDTH + k, imp_load_0(i * WIDTH + k) > 10.0 ? 1 : 0);
  }
  imp_store_1(i, (i * 7 + 3) % 8);
})";
  page.outputs = {{{kCount, kWidth}},
                  {{kCount}, DType::int32},
                  {{kCount, kWidth}, DType::int8},
                  {{kCount, kWidth}, DType::boolean}};
  page.constants = {{"COUNT", kCount}, {"WIDTH", kWidth}};
  page.cpu = [](std::span<const PageArray> in, std::span<const PageArray> out) {
    for (std::size_t i = 0; i < kCount * kWidth; ++i) {
      out[0].floats()[i] = in[0].floats()[i] * 2;
      out[2].ints()[i] = static_cast<std::int32_t>(in[0].floats()[i]);
      out[3].ints()[i] = in[0].floats()[i] > 10 ? 1 : 0;
    }
    for (int i = 0; i < kCount; ++i) out[1].ints()[static_cast<std::size_t>(i)] = (i * 7 + 3) % 8;
  };
  for (const bool fuse : {true, false})
    for (const bool also_output : {true, false}) {
      const Tensor x = input("x", {kCount, kWidth});
      const Variable wide = Variable::zeros("wide", {7, kWidth}),
                     again = Variable::zeros("again", {7, kWidth}),
                     bytes("bytes", {7, kWidth}, DType::int8, std::vector<std::byte>(7 * kWidth)),
                     masks("masks", {7, kWidth}, DType::boolean, std::vector<std::byte>(7 * kWidth)),
                     whole = Variable::zeros("whole", {kCount, kWidth});
      const std::vector<Tensor> out = run_page(page, std::vector{x + 0.0f});
      ProgramDescription description{.name = "rows", .inputs = {x}};
      description.updates = {Update::scatter_rows(wide, out[1], out[0]),
                             Update::scatter_rows(again, out[1], out[0] + 1.0f),
                             Update::scatter_rows(bytes, out[1], out[2]),
                             Update::scatter_rows(masks, out[1], out[3]), Update::assign(whole, out[0])};
      if (also_output) description.outputs = {sum(out[0]), out[2]};
      description.fuse = fuse;
      Program program = compile(description);
      std::vector<float> values(kCount * kWidth);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + 0.5f;
      ASSERT_TRUE(session().run(program, std::vector{HostTensor::from(values, {kCount, kWidth})}).ok());
      std::vector<float> rows(7 * kWidth), more(7 * kWidth);
      std::vector<std::int32_t> narrow(7 * kWidth), above(7 * kWidth);
      for (int i = 0; i < kCount; ++i) {
        const int row = (i * 7 + 3) % 8;
        if (row >= 7) continue;
        for (int k = 0; k < kWidth; ++k) {
          const auto to = static_cast<std::size_t>(row * kWidth + k);
          const float value = values[static_cast<std::size_t>(i * kWidth + k)];
          rows[to] = 2 * value;
          more[to] = 2 * value + 1;
          narrow[to] = static_cast<std::int32_t>(value);
          above[to] = value > 10;
        }
      }
      EXPECT_EQ(floats(wide), rows) << fuse << also_output;
      EXPECT_EQ(floats(again), more) << fuse << also_output;
      EXPECT_EQ(ints(bytes), narrow) << fuse << also_output;
      EXPECT_EQ(ints(masks), above) << fuse << also_output;
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(floats(whole)[i], 2 * values[i]);
    }
}

TEST_F(PageTest, MergesEqualPages) {
  const Tensor x = input("x", {10}), v = input("v", {10});
  const std::vector<Tensor> once = rope(x, v), again = rope(x, v);
  Program program =
      compile(ProgramDescription{.name = "merged", .inputs = {x, v}, .outputs = {once[0] + again[1]}});
  EXPECT_EQ(program.stats().kernels, 2u);  // the page and the sum
}

TEST_F(PageTest, RefusesWithTheReason) {
  const Tensor x = input("x", {10}), mask = input("mask", {10}, DType::boolean);
  Page none = above_page(10);
  none.outputs.clear();
  EXPECT_THAT(run_page(none, std::vector{x, mask})[0].error().message,
              HasSubstr("page 'above': found no outputs"));
  Page empty = above_page(10);
  empty.glsl.clear();
  empty.cpu = nullptr;
  EXPECT_THAT(run_page(empty, std::vector{x, mask})[0].error().message, HasSubstr("neither glsl nor cpu"));
  Page files = above_page(10);
  files.outputs[2].dtype = DType::int64;
  EXPECT_THAT(run_page(files, std::vector{x, mask})[0].error().message, HasSubstr("an output of int64"));

  const std::vector<Tensor> above = run_page(above_page(10), std::vector{x, mask});
  const auto grads = gradients(sum(above[2]), std::vector{x});
  ASSERT_FALSE(grads.ok());
  EXPECT_THAT(grads.error().message, HasSubstr("page 'above': found no backward"));

  Page other = above_page(10);
  other.cpu = nullptr;
  other.glsl = "float twice(float x) { return 2.0 * x; }\nvoid imp_page(int group) {\n  nonsense;\n}";
  const auto broken =
      Program::compile(runtime(), ProgramDescription{.name = "broken",
                                                     .inputs = {x, mask},
                                                     .outputs = {run_page(other, std::vector{x, mask})[0]}});
  ASSERT_FALSE(broken.ok());
  if (runtime().on_cpu()) {
    EXPECT_THAT(broken.error().message, HasSubstr("no CPU function"));
    return;
  }
  EXPECT_EQ(broken.error().code, ErrorCode::compile_failed) << broken.error().message;
  EXPECT_THAT(broken.error().message, HasSubstr("\npage 'above', line 3: 'nonsense'"));
  EXPECT_THAT(broken.error().message, HasSubstr("\n  |   nonsense;"));
  Page cpu_only = above_page(10);
  cpu_only.glsl.clear();
  const auto unrunnable = Program::compile(
      runtime(),
      ProgramDescription{
          .name = "cpu", .inputs = {x, mask}, .outputs = {run_page(cpu_only, std::vector{x, mask})[0]}});
  ASSERT_FALSE(unrunnable.ok());
  EXPECT_EQ(unrunnable.error().code, ErrorCode::unsupported);
  EXPECT_THAT(unrunnable.error().message, HasSubstr("page 'above': found a Vulkan device and no glsl"));
  Page large = above_page(10);
  large.group_size = 1 << 20;
  const auto wide =
      Program::compile(runtime(), ProgramDescription{.name = "wide",
                                                     .inputs = {x, mask},
                                                     .outputs = {run_page(large, std::vector{x, mask})[0]}});
  ASSERT_FALSE(wide.ok());
  EXPECT_THAT(wide.error().message, HasSubstr("group_size: found 1048576"));
}

// P(a, x), by its series.
double gamma_distribution(double a, double x) {
  double term = std::exp(a * std::log(x) - x - std::lgamma(a + 1)), sum = 0;
  for (int n = 1; n < 10000 && (term > 1e-18 * sum || n < x); ++n) {
    sum += term;
    term *= x / (a + n);
  }
  return sum;
}

// The value that has as much of the distribution below it.
double gamma_quantile(double a, double below) {
  double low = 0, high = 10 * a + 50;
  for (int step = 0; step < 200; ++step) {
    const double middle = (low + high) / 2;
    (gamma_distribution(a, middle) < below ? low : high) = middle;
  }
  return low;
}

TEST_F(PageTest, GammaVariablesMoveWithTheirShape) {
  const std::vector<float> shapes{0.2f, 0.7f, 1, 3, 3, 12, 12, 19, 25, 25, 60, 200};
  const auto count = static_cast<std::int64_t>(shapes.size());
  const Tensor alpha = input("alpha", {count});
  const Tensor drawn = random_gamma(Tensor::from_ints(std::vector{7, 0, 3, 0}, {4}), alpha, 5);
  const auto slopes = gradients(sum(drawn * 2.0f), std::span(&alpha, 1));
  ASSERT_TRUE(slopes.ok()) << slopes.error().message;
  Program program = compile({.name = "gamma", .inputs = {alpha}, .outputs = {drawn, (*slopes)[0]}});
  const HostTensor data = HostTensor::from(shapes, {count});
  const auto found = session().run(program, std::span(&data, 1));
  ASSERT_TRUE(found.ok()) << found.error().message;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const double a = shapes[i], step = 1e-4 * a, below = gamma_distribution(a, (*found)[0].floats[i]);
    const double slope = (gamma_quantile(a + step, below) - gamma_quantile(a - step, below)) / (2 * step);
    EXPECT_NEAR((*found)[1].floats[i], 2 * slope, 2e-4 * slope) << a << ": " << (*found)[0].floats[i];
  }
}

}  // namespace
}  // namespace imprint
