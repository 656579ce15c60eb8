#include "tests/reference/op_case.h"

namespace imprint::reference {
namespace {

using Inputs = std::span<const Tensor>;

// One activation on an odd extent and on a transposed operand, away from its kinks.
void add_activation(std::vector<OpCase>& cases, const std::string& name,
                    std::function<Tensor(const Tensor&)> op, std::vector<double> avoid = {},
                    Tolerance tolerance = {}) {
  cases.push_back({name + "/129",
                   {{{129}, DType::float32, -4, 4, avoid}},
                   [op](Inputs in) { return op(in[0]); },
                   tolerance,
                   {5e-5, 5e-4}});
  cases.push_back({name + "/transposed",
                   {{{4, 3}, DType::float32, -4, 4, avoid}},
                   [op](Inputs in) { return op(transpose(in[0])); },
                   tolerance,
                   {5e-5, 5e-4}});
}

void add_pointwise(std::vector<OpCase>& cases) {
  add_activation(cases, "relu", relu, {0});
  add_activation(cases, "relu6", [](const Tensor& x) { return relu6(x * 2); }, {0, 3});
  add_activation(cases, "leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.1); }, {0});
  add_activation(cases, "elu", [](const Tensor& x) { return elu(x, 1.5); }, {0});
  add_activation(cases, "selu", selu, {0});
  add_activation(cases, "celu", [](const Tensor& x) { return celu(x, 0.7); }, {0});
  add_activation(cases, "gelu", gelu);
  add_activation(cases, "gelu_tanh", gelu_tanh);
  add_activation(cases, "log_sigmoid", log_sigmoid);
  add_activation(cases, "hard_sigmoid", [](const Tensor& x) { return hard_sigmoid(x); }, {-3, 3});
  add_activation(cases, "silu", silu);
  add_activation(cases, "hard_swish", hard_swish, {-3, 3});
  add_activation(cases, "mish", mish);
  add_activation(cases, "softplus", [](const Tensor& x) { return softplus(x, 2); });
  add_activation(cases, "softsign", softsign, {0});
  add_activation(cases, "tanh_shrink", tanh_shrink);
  add_activation(cases, "hard_tanh", [](const Tensor& x) { return hard_tanh(x, -1, 2); }, {-1, 2});
  add_activation(cases, "hard_shrink", [](const Tensor& x) { return hard_shrink(x); }, {-0.5, 0.5});
  add_activation(cases, "soft_shrink", [](const Tensor& x) { return soft_shrink(x); }, {-0.5, 0.5});
  add_activation(cases, "shrink", [](const Tensor& x) { return shrink(x, 0.5, 0.2); }, {-0.5, 0.5});
  add_activation(cases, "threshold", [](const Tensor& x) { return threshold(x, 0.5, -3); }, {0.5});
  add_activation(cases, "thresholded_relu", [](const Tensor& x) { return thresholded_relu(x, 1); }, {1});
  // The two halves of a smooth function meet at 0.
  const auto zeros_too = [](Inputs in) { return concat({in[0] * 0.0f, in[0]}, 0); };
  cases.push_back({"softplus/at_zero", {{{5}}}, [=](Inputs in) { return softplus(zeros_too(in)); }});
  cases.push_back({"log_sigmoid/at_zero", {{{5}}}, [=](Inputs in) { return log_sigmoid(zeros_too(in)); }});
  cases.push_back({"mish/at_zero", {{{5}}}, [=](Inputs in) { return mish(zeros_too(in)); }});
  cases.push_back({"prelu/channels", {{{3, 5}, DType::float32, -2, 2, {0}}, {{5}}}, [](Inputs in) {
                     return prelu(in[0], in[1]);
                   }});
  cases.push_back({"glu/last", {{{3, 6}}}, [](Inputs in) { return glu(in[0]); }});
  cases.push_back({"glu/first", {{{4, 5}}}, [](Inputs in) { return glu(in[0], 0); }});
  // Arguments where an unstable form would give inf or NaN.
  const CaseInput far{{5}, DType::float32, 85, 200};
  cases.push_back({"softplus/far", {far}, [](Inputs in) {
                     return concat({softplus(in[0]), softplus(-in[0])}, 0);
                   }});
  cases.push_back({"log_sigmoid/far", {far}, [](Inputs in) {
                     return concat({log_sigmoid(in[0]), log_sigmoid(-in[0])}, 0);
                   }});
  cases.push_back({"mish/far", {far}, [](Inputs in) { return concat({mish(in[0]), mish(-in[0])}, 0); }});
  cases.push_back({"elu/far", {far}, [](Inputs in) { return elu(in[0]); }});
  cases.push_back({"sigmoid/far", {far}, [](Inputs in) {
                     return concat({sigmoid(in[0]), sigmoid(-in[0])}, 0);
                   }});
  cases.push_back({"tanh/far", {far}, [](Inputs in) { return concat({tanh(in[0]), tanh(-in[0])}, 0); }});
}

void add_normalisations(std::vector<OpCase>& cases) {
  for (const Shape& shape : {Shape{3, 5}, Shape{1}, Shape{2, 129}, Shape{0, 4}, Shape{2, 3, 1}}) {
    cases.push_back({"softmax/" + shape.text(), {{shape}}, [](Inputs in) { return softmax(in[0]); }});
    cases.push_back({"log_softmax/" + shape.text(), {{shape}}, [](Inputs in) { return log_softmax(in[0]); }});
  }
  cases.push_back({"softmax/first", {{{127, 3}}}, [](Inputs in) { return softmax(in[0], 0); }});
  cases.push_back({"softmax/far",
                   {{{3, 5}, DType::float32, -300, 300}},
                   [](Inputs in) { return softmax(in[0]); },
                   {1e-5, 1e-4}});
  cases.push_back({"log_softmax/far",
                   {{{3, 5}, DType::float32, -300, 300}},
                   [](Inputs in) { return log_softmax(in[0]); },
                   {1e-4, 1e-5}});
  cases.push_back({"softmax/masked", {{{3, 5}}, {{3, 5}, DType::boolean}}, [](Inputs in) {
                     return softmax(masked_fill(in[0], in[1], -1e8));
                   }});
  cases.push_back({"quiet_softmax/3x5", {{{3, 5}}}, [](Inputs in) { return quiet_softmax(in[0]); }});
  cases.push_back({"quiet_softmax/far",
                   {{{3, 5}, DType::float32, -300, 300}},
                   [](Inputs in) { return quiet_softmax(in[0], 0); },
                   {1e-5, 1e-4}});
  cases.push_back({"softmin/3x5", {{{3, 5}}}, [](Inputs in) { return softmin(in[0], 0); }});
  cases.push_back({"logsumexp/rows", {{{3, 129}}}, [](Inputs in) { return logsumexp(in[0], {1}); }});
  cases.push_back({"logsumexp/all", {{{3, 5}}}, [](Inputs in) { return logsumexp(in[0]); }});
  cases.push_back({"logsumexp/far",
                   {{{3, 5}, DType::float32, -300, 300}},
                   [](Inputs in) { return logsumexp(in[0], {0}, true); },
                   {1e-4, 1e-5}});
  for (const Shape& shape : {Shape{3, 5}, Shape{2, 3, 127}, Shape{0, 4}, Shape{129}}) {
    const Shape last{shape[shape.rank() - 1]};
    cases.push_back({"layer_norm/" + shape.text(),
                     {{shape}, {last}, {last}},
                     [](Inputs in) { return layer_norm(in[0], in[1], in[2]); },
                     {2e-5, 2e-5},
                     {1e-4, 1e-3}});
  }
}

}  // namespace

void add_activation_cases(std::vector<OpCase>& cases) {
  add_pointwise(cases);
  add_normalisations(cases);
}

}  // namespace imprint::reference
