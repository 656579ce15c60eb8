// Loops: carries, stacks, captured values, both directions, and their gradients.

#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/loop.h"
#include "tests/reference/op_case.h"

namespace imprint::reference {
namespace {

using Inputs = std::span<const Tensor>;

// All values of a loop in one row, so that a case sees each of them.
Tensor joined(const Result<Scanned>& scanned) {
  if (!scanned) return Tensor(scanned.error());
  std::vector<Tensor> flat;
  for (const auto* list : {&scanned->carry, &scanned->results})
    for (const Tensor& value : *list) flat.push_back(reshape(value, {-1}));
  return concat(flat, 0);
}

Tensor first(const Result<std::vector<Tensor>>& values) {
  return values ? values->front() : Tensor(values.error());
}

// carry [rows, n], stack [steps, rows, n], weights [n, n].
Result<Scanned> recurrent(const Tensor& carry, const Tensor& stack, const Tensor& weights, bool reverse) {
  const auto body = [&](std::span<const Tensor> h, std::span<const Tensor> x) {
    const Tensor next = tanh(matmul(h[0], weights) + x[0]);
    return ScanStep{{next}, {next * next, x[0] - h[0]}};
  };
  const Tensor carries[] = {carry}, stacks[] = {stack};
  return scan(body, carries, stacks, {.reverse = reverse});
}

// input [steps, rows, n]; weights [2 n, 4 n]. Both states start at zero.
Result<Scanned> lstm(const Tensor& x, const Tensor& weights) {
  const std::int64_t rows = x.extent(1), n = x.extent(2);
  const auto body = [&](std::span<const Tensor> state, std::span<const Tensor> step) {
    const Tensor gates = matmul(concat({step[0], state[0]}, 1), weights);
    const auto gate = [&](std::int64_t k) { return narrow(gates, 1, k * n, n); };
    const Tensor cell = sigmoid(gate(1)) * state[1] + sigmoid(gate(0)) * tanh(gate(2));
    const Tensor hidden = sigmoid(gate(3)) * tanh(cell);
    return ScanStep{{hidden, cell}, {hidden}};
  };
  const Tensor carries[] = {zeros({rows, n}), zeros({rows, n})}, stacks[] = {x};
  return scan(body, carries, stacks);
}

void add(std::vector<OpCase>& cases, const char* name, std::vector<CaseInput> inputs, Build build,
         Tolerance tolerance = {5e-5, 5e-5}, Tolerance gradient = {2e-4, 5e-4}) {
  cases.push_back({name, std::move(inputs), std::move(build), tolerance, gradient, true});
}

void add_scans_of_rows(std::vector<OpCase>& cases) {
  const CaseInput carry{{2, 3}}, stack{{5, 2, 3}}, weights{{3, 3}, DType::float32, -1, 1};
  add(cases, "scan/recurrent", {carry, stack, weights},
      [](Inputs in) { return joined(recurrent(in[0], in[1], in[2], false)); });
  add(cases, "scan/reverse", {carry, stack, weights},
      [](Inputs in) { return joined(recurrent(in[0], in[1], in[2], true)); });
  add(cases, "scan/one_step", {carry, {{1, 2, 3}}, weights},
      [](Inputs in) { return joined(recurrent(in[0], in[1], in[2], false)); });
  add(cases, "scan/lstm", {{{6, 3, 4}}, {{8, 16}, DType::float32, -1, 1}},
      [](Inputs in) { return joined(lstm(in[0], in[1])); });
  add(cases, "scan/of_a_scan", {carry, stack, weights}, [](Inputs in) {
    const Tensor scaled = exp(in[2] * 0.3f);  // read before, within and after
    const auto one = recurrent(in[0], in[1] * 0.5f, scaled - 1.0f, false);
    if (!one) return Tensor(one.error());
    const auto two = recurrent(one->carry[0], one->results[0], in[2], true);
    if (!two) return Tensor(two.error());
    return matmul(two->carry[0], scaled) + sum(one->results[1], {0});
  });
  add(cases, "scan/second_derivative", {carry, stack, weights}, [](Inputs in) {
    const auto found = recurrent(in[0], in[1], in[2], false);
    if (!found) return Tensor(found.error());
    const Tensor targets[] = {in[2]};
    const auto slopes = gradients(sum(found->results[0]) + sum(square(found->carry[0])), targets);
    return slopes ? (*slopes)[0] : Tensor(slopes.error());
  });
}

void add_other_loops(std::vector<OpCase>& cases) {
  add(cases, "scan/steps", {{{3}, DType::float32, 0.1, 0.9}}, [](Inputs in) {
    const auto body = [](std::span<const Tensor> x, std::span<const Tensor>) {
      return ScanStep{{x[0] * x[0] * 0.5f + 0.25f}, {}};
    };
    return joined(scan(body, in, {}, {.steps = 4}));
  });
  add(cases, "scan/scalars", {{{}}, {{7}}}, [](Inputs in) {
    const auto body = [](std::span<const Tensor> sum, std::span<const Tensor> x) {
      return ScanStep{{sum[0] + sin(x[0])}, {sum[0] * x[0]}};
    };
    return joined(scan(body, in.first(1), in.subspan(1)));
  });
  add(cases, "scan/int32", {{{2}, DType::int32, 0, 9}, {{4, 2}, DType::int32, -9, 9}}, [](Inputs in) {
    const auto body = [](std::span<const Tensor> x, std::span<const Tensor> row) {
      return ScanStep{{maximum(x[0], row[0]) * 3}, {x[0] + row[0]}};
    };
    return joined(scan(body, in.first(1), in.subspan(1)));
  });
  cases.back().differentiable = false;
  add(cases, "while_loop/newton", {{{3}, DType::float32, 1, 9}}, [](Inputs in) {
    const auto goes_on = [&](std::span<const Tensor> x) { return max(abs(x[0] * x[0] - in[0])) > 1e-2f; };
    const auto body = [&](std::span<const Tensor> x) {
      return std::vector<Tensor>{(x[0] + in[0] / x[0]) * 0.5f};
    };
    return first(while_loop(goes_on, body, in, 9));
  });
  add(cases, "cond/both", {{{3}}, {{3}}}, [](Inputs in) {
    const auto one = [&] { return std::vector<Tensor>{in[0] * in[1]}; };
    const auto other = [&] { return std::vector<Tensor>{in[0] - in[1]}; };
    return first(cond(sum(in[0]) > 0.0f, one, other)) + first(cond(sum(in[0]) <= 0.0f, one, other)) * 2.0f;
  });
}

}  // namespace

void add_loop_cases(std::vector<OpCase>& cases) {
  add_scans_of_rows(cases);
  add_other_loops(cases);
}

}  // namespace imprint::reference
