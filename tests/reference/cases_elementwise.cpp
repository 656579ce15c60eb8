#include "tests/reference/op_case.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace imprint::reference {

using tensor::Op;

namespace {

using Inputs = std::span<const Tensor>;
using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

// Every other column of the transpose: a non-contiguous operand.
Tensor strided(const Tensor& x) { return slice(transpose(x), 1, 0, x.extent(0), 2); }

struct UnaryCase {
  const char* name;
  Unary op;
  double low = -2, high = 2;
  std::vector<double> avoid;
  Tolerance tolerance;
  Tolerance gradient_tolerance{2e-5, 2e-4};
  bool differentiable = true;
};

// Primitives whose oracle is a function of one double: the oracle and the case in one row.
struct UnaryRow {
  Op op;
  double (*oracle)(double);
  UnaryCase tried;
};

void add_unary(std::vector<OpCase>& cases, const UnaryCase& unary) {
  const Unary op = unary.op;
  cases.push_back({std::string(unary.name) + "/127",
                   {{{127}, DType::float32, unary.low, unary.high, unary.avoid}},
                   [op](Inputs in) { return op(in[0]); },
                   unary.tolerance,
                   unary.gradient_tolerance,
                   unary.differentiable});
  cases.push_back({std::string(unary.name) + "/strided",
                   {{{6, 5}, DType::float32, unary.low, unary.high, unary.avoid}},
                   [op](Inputs in) { return op(strided(in[0])); },
                   unary.tolerance,
                   unary.gradient_tolerance,
                   unary.differentiable});
}

// Vulkan allows atan an error of 4,096 units in the last place, and defines the other inverse functions by
// it.
constexpr Tolerance kWide{1e-3, 1e-3};
constexpr Tolerance kTrigonometric{1e-3, 1e-5};  // 2^-11 absolute in [-pi, pi]

// By Newton's method; |x| < 1.
double erfinv_oracle(double x) {
  double y = 0;
  for (int step = 0; step < 60; ++step)
    y -= (std::erf(y) - x) / (2 * std::numbers::inv_sqrtpi * std::exp(-y * y));
  return y;
}

// Twenty steps of the recurrence, then the asymptotic series.
double digamma_oracle(double x) {
  double sum = 0;
  for (; x < 20; x += 1) sum -= 1 / x;
  const double r = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x - r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r / 240)));
}

const std::vector<UnaryRow>& unary_rows() {
  static const std::vector<UnaryRow> rows{
      {Op::sqrt, std::sqrt, {"sqrt", &imprint::sqrt, 0.1, 9}},
      {Op::recip, [](double x) { return 1 / x; }, {"recip", &imprint::recip, 0.2, 5}},
      {Op::exp, std::exp, {"exp", &imprint::exp, -5, 5}},
      {Op::expm1, std::expm1, {"expm1", &imprint::expm1, -3, 3}},
      {Op::log, std::log, {"log", &imprint::log, 0.1, 9}},
      {Op::log1p, std::log1p, {"log1p", &imprint::log1p, -0.7, 9}},
      {Op::sin, std::sin, {"sin", &imprint::sin, -3, 3, {}, kTrigonometric, kTrigonometric}},
      {Op::cos, std::cos, {"cos", &imprint::cos, -3, 3, {}, kTrigonometric, kTrigonometric}},
      {Op::tan, std::tan, {"tan", &imprint::tan, -1, 1, {}, kWide, {5e-3, 5e-3}}},
      {Op::asin, std::asin, {"asin", &imprint::asin, -0.9, 0.9, {}, kWide}},
      {Op::acos, std::acos, {"acos", &imprint::acos, -0.9, 0.9, {}, kWide}},
      {Op::atan, std::atan, {"atan", &imprint::atan, -3, 3, {}, kWide}},
      {Op::sinh, std::sinh, {"sinh", &imprint::sinh, -3, 3}},
      {Op::cosh, std::cosh, {"cosh", &imprint::cosh, -3, 3}},
      {Op::tanh, std::tanh, {"tanh", &imprint::tanh, -4, 4}},
      {Op::asinh, std::asinh, {"asinh", &imprint::asinh, -3, 3, {}, {5e-5, 5e-5}}},
      {Op::acosh, std::acosh, {"acosh", &imprint::acosh, 1.2, 5, {}, {5e-5, 5e-5}}},
      {Op::atanh, std::atanh, {"atanh", &imprint::atanh, -0.9, 0.9, {}, {5e-5, 5e-5}}},
      {Op::erf, std::erf, {"erf", &imprint::erf, -3, 3}},
      {Op::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, {"sigmoid", &imprint::sigmoid, -5, 5}},
      {Op::erfinv, erfinv_oracle, {"erfinv", &imprint::erfinv, -0.9, 0.9}},
      {Op::lgamma, std::lgamma, {"lgamma", &imprint::lgamma, 0.2, 6}},
      {Op::digamma,
       digamma_oracle,
       {"digamma", &imprint::digamma, -1.9, 6, {-1, 0}, {5e-5, 5e-5}, {1e-3, 1e-3}}},
  };
  return rows;
}

void add_unary_cases(std::vector<OpCase>& cases) {
  for (const UnaryRow& row : unary_rows()) add_unary(cases, row.tried);
  const std::vector<double> halves{-1.5, -0.5, 0.5, 1.5};
  const std::vector<double> wholes{-2, -1, 0, 1, 2};
  const UnaryCase table[] = {
      {"abs", &imprint::abs, -2, 2, {0}},
      {"neg", &imprint::neg},
      {"sign", &imprint::sign, -2, 2, {0}},
      {"ceil", &imprint::ceil, -2, 2, wholes},
      {"floor", &imprint::floor, -2, 2, wholes},
      {"round", &imprint::round, -2, 2, halves},
      {"trunc", &imprint::trunc, -2, 2, wholes},
      {"rsqrt", &imprint::rsqrt, 0.1, 9},
      {"square", &imprint::square},
      {"exp2", &imprint::exp2, -5, 5, {}, {1e-5, 5e-5}, {2e-5, 5e-4}},
      {"log2", &imprint::log2, 0.1, 9},
      {"log10", &imprint::log10, 0.1, 9},
      {"erfc", &imprint::erfc, -3, 3, {0.5}},
      {"is_nan", &imprint::is_nan, -2, 2, {}, {}, {}, false},
      {"is_inf", &imprint::is_inf, -2, 2, {}, {}, {}, false},
      {"is_finite", &imprint::is_finite, -2, 2, {}, {}, {}, false},
      {"stop_gradient", &imprint::stop_gradient, -2, 2, {}, {}, {}, false},
  };
  for (const UnaryCase& unary : table) add_unary(cases, unary);
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{0}, Shape{3, 0, 2}, Shape{129, 3}, Shape{2, 1, 3, 1, 2, 1, 2, 2}})
    cases.push_back({"tanh/" + shape.text(), {{shape}}, [](Inputs in) { return tanh(in[0]); }});
}

// GLSL and drivers leave these results undefined; all devices and the CPU must agree on them.
void add_special_values(std::vector<OpCase>& cases) {
  cases.push_back({"round/halves", {}, [](Inputs) { return round(arange(-4, 4, 0.5)); }, {}, {}, false});
  cases.push_back({"is_nan/mixed",
                   {},
                   [](Inputs) {
                     const Tensor x = Tensor::from(
                         {1, -0.0f, __builtin_nanf(""), __builtin_inff(), -__builtin_inff()}, {5});
                     return cast(is_nan(x), DType::int32) + cast(is_inf(x), DType::int32) * 2 +
                            cast(is_finite(x), DType::int32) * 4;
                   },
                   {},
                   {},
                   false});
  const auto special = [&](const char* name, Build build, Tolerance tolerance = {}) {
    cases.push_back({name, {}, std::move(build), tolerance, {}, false});
  };
  constexpr float kNaN = __builtin_nanf(""), kInfinity = __builtin_inff();
  special(
      "atan2/special",
      [=](Inputs) {
        return atan2(Tensor::from({0, -0.0f, 0, -0.0f, 0, -0.0f, kNaN, 3, 1, -1}, {10}),
                     Tensor::from({0, 0, -0.0f, -0.0f, -1, -1, 3, kNaN, 0, 0}, {10}));
      },
      kWide);
  special(
      "asin/special",
      [=](Inputs) {
        return asin(Tensor::from({-1, 1, 0, 2, -2, kNaN}, {6}));
      },
      kWide);
  special(
      "acos/special",
      [=](Inputs) {
        return acos(Tensor::from({-1, 1, 0, 2, -2, kNaN}, {6}));
      },
      kWide);
  special("tanh/special", [=](Inputs) {
    return tanh(Tensor::from({kNaN, kInfinity, -kInfinity, 0, 0.3f, -0.3f}, {6}));
  });
  special("sinh/special", [=](Inputs) { return sinh(Tensor::from({kNaN, kInfinity, -kInfinity, 0}, {4})); });
  special("cosh/special", [=](Inputs) { return cosh(Tensor::from({kNaN, kInfinity, -kInfinity, 0}, {4})); });
  special("maximum/special", [=](Inputs) {
    const Tensor a = Tensor::from({kNaN, 1, kNaN, kInfinity, -kInfinity}, {5}),
                 b = Tensor::from({1, kNaN, kNaN, kNaN, kNaN}, {5});
    return maximum(a, b) + minimum(a, b);
  });
  special("cast/special",
          [=](Inputs) {
            return cast(
                Tensor::from({kNaN, kInfinity, -kInfinity, 3e9f, -3e9f, 2147483520.0f, -2147483648.0f, -1.7f},
                             {8}),
                DType::int32);
          },
          {0, 0});
}

struct BinaryCase {
  const char* name;
  Binary op;
  double low_a = -2, high_a = 2, low_b = -2, high_b = 2;
  bool differentiable = true;
  Tolerance tolerance;
  Tolerance gradient_tolerance{2e-5, 2e-4};
};

void add_binary_cases(std::vector<OpCase>& cases) {
  const BinaryCase table[] = {
      {"add", &imprint::add},
      {"sub", &imprint::sub},
      {"mul", &imprint::mul},
      {"div", &imprint::div, -2, 2, 0.5, 3},
      {"remainder", &imprint::remainder, 3.1, 3.9, 1.3, 1.5},
      {"fmod", &imprint::fmod, -3.9, -3.1, 1.3, 1.5},
      {"pow", &imprint::pow, 0.3, 3, -2, 2, true, {1e-5, 1e-4}, {1e-4, 1e-3}},
      {"logaddexp", &imprint::logaddexp, -2, 2, -2, 2, true, {1e-5, 1e-5}, {2e-5, 2e-4}},
      {"atan2", &imprint::atan2, 0.5, 2, -2, 2, true, kWide, kWide},
      {"hypot", &imprint::hypot, 0.5, 2, -2, 2},
      {"minimum", &imprint::minimum},
      {"maximum", &imprint::maximum},
      {"equal", &imprint::equal, -2, 2, -2, 2, false},
      {"not_equal", &imprint::not_equal, -2, 2, -2, 2, false},
      {"less", &imprint::less, -2, 2, -2, 2, false},
      {"less_equal", &imprint::less_equal, -2, 2, -2, 2, false},
      {"greater", &imprint::greater, -2, 2, -2, 2, false},
      {"greater_equal", &imprint::greater_equal, -2, 2, -2, 2, false},
  };
  for (const BinaryCase& binary : table) {
    const Binary op = binary.op;
    const std::string name = binary.name;
    const auto add = [&](const std::string& form, const Shape& a, const Shape& b, Build build) {
      cases.push_back({name + "/" + form,
                       {{a, DType::float32, binary.low_a, binary.high_a},
                        {b, DType::float32, binary.low_b, binary.high_b}},
                       std::move(build),
                       binary.tolerance,
                       binary.gradient_tolerance,
                       binary.differentiable});
    };
    add("129", {129}, {129}, [op](Inputs in) { return op(in[0], in[1]); });
    add("broadcast", {3, 1, 5}, {4, 1}, [op](Inputs in) { return op(in[0], in[1]); });
  }
  const Build mul = [](Inputs in) { return in[0] * in[1]; };
  cases.push_back({"mul/scalar", {{{3, 5}}, {{}}}, mul});
  cases.push_back({"mul/empty", {{{0, 5}}, {{1, 5}}}, mul});
  cases.push_back({"mul/strided", {{{6, 5}}, {{3}}}, [](Inputs in) { return strided(in[0]) * in[1]; }});
  cases.push_back({"mul/itself", {{{3, 5}}}, [](Inputs in) { return in[0] * in[0]; }});
  cases.push_back({"pow/edges",
                   {},
                   [](Inputs) {
                     const float inf = std::numeric_limits<float>::infinity(), nan = inf - inf;
                     return pow(Tensor::from({-2, -2, -2, 0, 0, 1, 1, 1, -1, 0, nan}, {11}),
                                Tensor::from({3, -2, 0, 0, 2, nan, inf, -inf, inf, nan, 0}, {11}));
                   },
                   {1e-5, 1e-4},
                   {},
                   false});
  cases.push_back({"remainder/signs",
                   {},
                   [](Inputs) {
                     const Tensor a = Tensor::from({5, -5, 5, -5, 6, -6}, {6}),
                                  b = Tensor::from({3, 3, -3, -3, 3, -3}, {6});
                     return stack({remainder(a, b), fmod(a, b)}, 0);
                   },
                   {},
                   {},
                   false});
  cases.push_back({"where/broadcast", {{{3, 1}, DType::boolean}, {{3, 5}}, {{5}}}, [](Inputs in) {
                     return where(in[0], in[1], in[2]);
                   }});
  cases.push_back({"clamp/3x5", {{{3, 5}, DType::float32, -2, 2, {-1, 1}}}, [](Inputs in) {
                     return clamp(in[0], -1, 1);
                   }});
  cases.push_back({"clamp_min/3x5", {{{3, 5}, DType::float32, -2, 2, {0.5}}}, [](Inputs in) {
                     return clamp_min(in[0], 0.5);
                   }});
  cases.push_back({"clamp_max/3x5", {{{3, 5}, DType::float32, -2, 2, {0.5}}}, [](Inputs in) {
                     return clamp_max(in[0], 0.5);
                   }});
  cases.push_back(
      {"lerp/broadcast", {{{3, 5}}, {{5}}, {{3, 1}}}, [](Inputs in) { return lerp(in[0], in[1], in[2]); }});
  cases.push_back({"masked_fill/3x5", {{{3, 5}}, {{5}, DType::boolean}}, [](Inputs in) {
                     return masked_fill(in[0], in[1], -7);
                   }});
}

void add_int(std::vector<OpCase>& cases, const char* name, Binary op, double low_b = -9, double high_b = 9) {
  cases.push_back({std::string(name) + "/int32",
                   {{{3, 1, 7}, DType::int32, -1000, 1000}, {{5, 1}, DType::int32, low_b, high_b}},
                   [op](Inputs in) { return op(in[0], in[1]); },
                   {},
                   {},
                   false});
}

void add_int_and_bool_cases(std::vector<OpCase>& cases) {
  add_int(cases, "add", &imprint::add);
  add_int(cases, "sub", &imprint::sub);
  add_int(cases, "mul", &imprint::mul, -2000000000, 2000000000);
  add_int(cases, "div", &imprint::div, -3, 3);
  add_int(cases, "remainder", &imprint::remainder, -3, 3);
  add_int(cases, "fmod", &imprint::fmod, -3, 3);
  add_int(cases, "minimum", &imprint::minimum, -1000, 1000);
  add_int(cases, "maximum", &imprint::maximum, -1000, 1000);
  add_int(cases, "equal", &imprint::equal, -1000, 1000);
  add_int(cases, "less", &imprint::less, -1000, 1000);
  add_int(cases, "greater_equal", &imprint::greater_equal, -1000, 1000);
  add_int(cases, "bit_and", &imprint::bit_and, -1000, 1000);
  add_int(cases, "bit_or", &imprint::bit_or, -1000, 1000);
  add_int(cases, "bit_xor", &imprint::bit_xor, -1000, 1000);
  add_int(cases, "shift_left", &imprint::shift_left, 0, 31);
  add_int(cases, "shift_right", &imprint::shift_right, 0, 31);

  const CaseInput ints{{129}, DType::int32, -5, 5}, bools{{3, 1}, DType::boolean},
      more_bools{{5}, DType::boolean};
  cases.push_back({"abs/int32", {ints}, [](Inputs in) { return abs(in[0]); }, {}, {}, false});
  cases.push_back({"neg/int32", {ints}, [](Inputs in) { return neg(in[0]); }, {}, {}, false});
  cases.push_back({"sign/int32", {ints}, [](Inputs in) { return sign(in[0]); }, {}, {}, false});
  cases.push_back({"bit_not/int32", {ints}, [](Inputs in) { return bit_not(in[0]); }, {}, {}, false});
  cases.push_back({"cast/int32_to_float32",
                   {ints},
                   [](Inputs in) { return cast(in[0], DType::float32) * 0.5f; },
                   {},
                   {},
                   false});
  cases.push_back({"cast/float32_to_int32",
                   {{{129}, DType::float32, -5, 5, {-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5}}},
                   [](Inputs in) { return cast(in[0], DType::int32); },
                   {},
                   {},
                   false});
  cases.push_back(
      {"cast/int32_to_bool", {ints}, [](Inputs in) { return cast(in[0], DType::boolean); }, {}, {}, false});
  cases.push_back({"cast/bool_to_float32",
                   {more_bools},
                   [](Inputs in) { return cast(in[0], DType::float32); },
                   {},
                   {},
                   false});
  cases.push_back(
      {"logical_not/5", {more_bools}, [](Inputs in) { return logical_not(in[0]); }, {}, {}, false});
  cases.push_back({"logical_and/broadcast",
                   {bools, more_bools},
                   [](Inputs in) { return logical_and(in[0], in[1]); },
                   {},
                   {},
                   false});
  cases.push_back({"logical_or/broadcast",
                   {bools, more_bools},
                   [](Inputs in) { return logical_or(in[0], in[1]); },
                   {},
                   {},
                   false});
  cases.push_back({"logical_xor/broadcast",
                   {bools, more_bools},
                   [](Inputs in) { return logical_xor(in[0], in[1]); },
                   {},
                   {},
                   false});
  cases.push_back(
      {"equal/bool", {bools, more_bools}, [](Inputs in) { return equal(in[0], in[1]); }, {}, {}, false});
  cases.push_back({"where/int32",
                   {more_bools, {{3, 5}, DType::int32, -9, 9}},
                   [](Inputs in) { return where(in[0], in[1], -1); },
                   {},
                   {},
                   false});
}

void add_generator_cases(std::vector<OpCase>& cases) {
  const CaseInput generator{{4}, DType::int32, -2000000000, 2000000000};
  const auto add = [&](std::string name, std::vector<CaseInput> inputs, Build build,
                       Tolerance tolerance = {}) {
    cases.push_back({std::move(name), std::move(inputs), std::move(build), tolerance, {}, false});
  };
  add("full/3x5", {}, [](Inputs) { return full({3, 5}, 2.5); });
  add("iota/rows", {}, [](Inputs) { return iota({3, 5}, 0); });
  add("iota/columns", {}, [](Inputs) { return iota({3, 5}, -1); });
  add("arange/ints", {}, [](Inputs) { return arange(129); });
  add("arange/floats", {}, [](Inputs) { return arange(1, -2, -0.25); });
  add("one_hot/out_of_range", {{{3, 5}, DType::int32, -1, 4}}, [](Inputs in) { return one_hot(in[0], 4); });
  add("random_uniform/3x129", {generator},
      [](Inputs in) {
        return random_uniform(in[0], {3, 129}, 5);
      },
      {0, 0});
  add("random_uniform/view_of_generators", {{{3, 4}, DType::int32, -9, 9}},
      [](Inputs in) { return random_uniform(reshape(narrow(in[0], 0, 1, 1), {4}), {127}, 0xFFFFFFFFu); },
      {0, 0});
  for (const Shape& shape : {Shape{1}, Shape{2, 127}, Shape{3, 2, 5}, Shape{0}})
    add("random_permutation/" + shape.text(), {generator},
        [=](Inputs in) { return random_permutation(in[0], shape, 3); }, {0, 0});
  add("random_normal/129", {generator}, [](Inputs in) { return random_normal(in[0], {129}, 2); },
      {5e-3, 1e-3});
  add("random_integers/bounds", {generator, {{5}, DType::int32, -2, 7}}, [](Inputs in) {
    return random_integers(in[0], {3, 5}, in[1], 1);
  });
  add("random_categorical/3x5", {generator, {{3, 5}}},
      [](Inputs in) { return random_categorical(in[0], in[1], 1); });
  add("generator_next/4", {generator}, [](Inputs in) { return generator_next(in[0]); });
  cases.push_back({"one_hot/product", {{{3, 4}}, {{3}, DType::int32, 0, 3}}, [](Inputs in) {
                     return sum(in[0] * one_hot(in[1], 4), {-1});
                   }});
}

}  // namespace

UnaryOracle unary_oracle(Op op) {
  for (const UnaryRow& row : unary_rows())
    if (row.op == op) return row.oracle;
  return nullptr;
}

void add_elementwise_cases(std::vector<OpCase>& cases) {
  add_unary_cases(cases);
  add_special_values(cases);
  add_binary_cases(cases);
  add_int_and_bool_cases(cases);
  add_generator_cases(cases);
}

}  // namespace imprint::reference
