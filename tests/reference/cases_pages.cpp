// Scans, sorts and scatters whose kernels are pages. Long lines take several kernels on a device.

#include "compute/tensor/composites/composites.h"
#include "compute/tensor/ops/linear_algebra.h"
#include "compute/tensor/ops/quantised.h"
#include "tests/reference/op_case.h"

namespace imprint::reference {
namespace {

using Inputs = std::span<const Tensor>;

void add_page_case(std::vector<OpCase>& cases, std::string name, std::vector<CaseInput> inputs, Build build,
                   bool differentiable = true, Tolerance tolerance = {1e-4, 1e-4}) {
  cases.push_back(
      {std::move(name), std::move(inputs), std::move(build), tolerance, {1e-3, 1e-3}, differentiable});
}

void add_scan_pages(std::vector<OpCase>& cases) {
  add_page_case(cases, "cumsum/long", {{{1, 20001}}}, [](Inputs in) { return cumsum(in[0], 1); }, true,
                {1e-3, 1e-4});
  add_page_case(cases, "cumsum/long_exclusive_reverse", {{{2, 9004}}},
                [](Inputs in) { return cumsum(tanh(in[0]), -1, true, true); }, true, {1e-3, 1e-4});
  add_page_case(cases, "cumsum/long_columns", {{{700, 37}}}, [](Inputs in) { return cumsum(in[0], 0); });
  add_page_case(
      cases, "cumsum/long_middle_int32", {{{2, 3000, 3}, DType::int32, -9, 9}},
      [](Inputs in) { return cumsum(in[0], 1, true); }, false);
  for (const bool reverse : {false, true}) {
    const std::int64_t length = reverse ? 9004 : 9001;  // in fours or not
    add_page_case(cases, reverse ? "linear_recurrence/long_reverse" : "linear_recurrence/long",
                  {{{2, length}}, {{2, length}, DType::float32, -0.9, 0.9}},
                  [=](Inputs in) { return linear_recurrence(in[0], in[1], 1, reverse); });
  }
  add_page_case(cases, "linear_recurrence/long_columns", {{{600, 5}}, {{600, 5}, DType::float32, 0.5, 0.99}},
                [](Inputs in) { return linear_recurrence(in[0], in[1], 0); });
  add_page_case(cases, "cumprod/rows", {{{3, 17}, DType::float32, -1.5, 1.5}},
                [](Inputs in) { return cumprod(in[0], 1); });
  add_page_case(cases, "cumprod/zeros", {{{3, 6}, DType::float32, 0.5, 1.5}}, [](Inputs in) {
    const Tensor mask = Tensor::from({1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1}, {3, 6});
    return cumprod(in[0] * mask, -1);
  });
  add_page_case(cases, "cumprod/long_columns", {{{700, 3}, DType::float32, 0.99, 1.01}},
                [](Inputs in) { return cumprod(in[0], 0); });
  add_page_case(cases, "logcumsumexp/rows", {{{3, 17}, DType::float32, -9, 9}},
                [](Inputs in) { return logcumsumexp(in[0], 1); });
  add_page_case(
      cases, "logcumsumexp/long", {{{1, 9001}, DType::float32, -30, 30}},
      [](Inputs in) { return logcumsumexp(in[0], 1); }, false);
  for (const bool largest : {true, false}) {
    const std::string name = largest ? "cummax" : "cummin";
    const auto extreme = [largest](const Tensor& x, int axis) {
      return largest ? cummax(x, axis) : cummin(x, axis);
    };
    add_page_case(cases, name + "/rows", {{{3, 17}}}, [=](Inputs in) { return extreme(in[0], 1).values; });
    add_page_case(cases, name + "/columns", {{{9, 5}}}, [=](Inputs in) {
      const WithIndices found = extreme(in[0] * 2.0f, 0);
      return found.values * cast(found.indices, DType::float32);
    });
    add_page_case(cases, name + "/long", {{{1, 8500}}}, [=](Inputs in) { return extreme(in[0], 1).values; });
    add_page_case(
        cases, name + "/ties_int32", {{{2, 900}, DType::int32, -3, 3}},
        [=](Inputs in) { return extreme(in[0], 1).indices; }, false);
  }
}

void add_sort_pages(std::vector<OpCase>& cases) {
  for (const bool descending : {false, true}) {
    const std::string suffix = descending ? "_descending" : "";
    add_page_case(cases, "sort/rows" + suffix, {{{3, 17}}},
                  [=](Inputs in) { return sort(in[0], 1, descending).values; });
    add_page_case(cases, "sort/middle" + suffix, {{{2, 5, 3}}},
                  [=](Inputs in) { return sort(in[0] * in[0], 1, descending).values; });
    add_page_case(
        cases, "argsort/ties" + suffix, {{{5, 70}, DType::int32, -3, 3}},
        [=](Inputs in) { return argsort(in[0], 1, descending); }, false);
    add_page_case(
        cases, "argsort/long" + suffix, {{{2, 5003}}},
        [=](Inputs in) { return argsort(in[0], 1, descending); }, false);
    add_page_case(
        cases, "argsort/many_chunks" + suffix, {{{1, 20011}, DType::int32, -70000, 70000}},
        [=](Inputs in) { return argsort(in[0], 1, descending); }, false);
    add_page_case(
        cases, "argsort/long_ties" + suffix, {{{3000, 2}, DType::int32, -9, 9}},
        [=](Inputs in) { return argsort(in[0], 0, descending); }, false);
    add_page_case(cases, "topk/rows" + suffix, {{{4, 33}}},
                  [=](Inputs in) { return topk(in[0], 5, 1, descending).values; });
    add_page_case(
        cases, "topk/long" + suffix, {{{3, 3001}}},
        [=](Inputs in) { return topk(in[0], 19, 1, descending).indices; }, false);
    add_page_case(
        cases, "topk/ties" + suffix, {{{2, 2000}, DType::int32, -4, 4}},
        [=](Inputs in) { return topk(in[0], 700, -1, descending).indices; }, false);
    add_page_case(
        cases, "topk/parts" + suffix, {{{1, 40001}, DType::int32, -4000, 4000}},
        [=](Inputs in) { return topk(in[0], 30, -1, descending).indices; }, false);
  }
  add_page_case(
      cases, "argsort/one", {{{3, 1}}}, [](Inputs in) { return argsort(in[0]); }, false);
  add_page_case(
      cases, "argsort/nothing", {{{3, 0}}}, [](Inputs in) { return argsort(in[0]); }, false);
  add_page_case(
      cases, "topk/most", {{{1, 1500}}}, [](Inputs in) { return topk(in[0], 1100).indices; }, false);
}

void add_scatter_pages(std::vector<OpCase>& cases) {
  for (const Scatter mode : {Scatter::assign, Scatter::mul, Scatter::min, Scatter::max, Scatter::add}) {
    constexpr const char* kNames[] = {"assign", "add", "mul", "min", "max"};
    const std::string name = std::string("scatter/") + kNames[static_cast<int>(mode)];
    add_page_case(cases, name + "_rows", {{{5, 4}}, {{7, 4}, DType::int32, -1, 5}, {{7, 4}}},
                  [=](Inputs in) { return scatter(in[0], 0, in[1], in[2], mode); });
    add_page_case(
        cases, name + "_columns_int32",
        {{{3, 6}, DType::int32, -3, 3}, {{3, 9}, DType::int32, -2, 7}, {{3, 9}, DType::int32, -3, 3}},
        [=](Inputs in) { return scatter(in[0], 1, in[1], in[2], mode); }, false);
    add_page_case(cases, name + "_large",
                  {{{300, 70}}, {{220, 70}, DType::int32, -3, 320}, {{220, 70}, DType::float32, 0.9, 1.1}},
                  [=](Inputs in) { return scatter(in[0], 0, in[1], in[2], mode); });
  }
  // Most updates go to a few rows, as those of padding do.
  add_page_case(cases, "take/large_embedding", {{{500, 33}}, {{900}, DType::int32, -3, 520}},
                [](Inputs in) { return take(in[0], 0, minimum(in[1], maximum(in[1] - 400, 0) + 7)); });
  add_page_case(cases, "take/large_last_axis", {{{40, 300}}, {{400}, DType::int32, 0, 299}},
                [](Inputs in) { return take(in[0], 1, in[1]); });
  add_page_case(cases, "gather/large_line", {{{3000}}, {{1500}, DType::int32, -5, 3010}},
                [](Inputs in) { return gather(in[0] * in[0], 0, in[1]); });
}

// Few rows times stored bits: parts of workgroups without columns, slices or rows; several scales in one
// load.
void add_few_bits_pages(std::vector<OpCase>& cases) {
  const struct {
    const char* name;
    int bits;
    std::int64_t rows, depth, columns, block;
  } kProducts[] = {{"eight_bits", 8, 1, 544, 514, 544},
                   {"eight_bits_rows", 8, 6, 1024, 256, 8},
                   {"four_bits", 4, 1, 1056, 250, 16},
                   {"four_bits_rows", 4, 3, 2048, 130, 64}};
  for (const auto& [name, bits, rows, depth, columns, block] : kProducts) {
    const CaseInput bytes{
        {columns, depth * bits / 8}, DType::int32, bits == 8 ? -128.0 : 0.0, bits == 8 ? 127.0 : 255.0};
    add_page_case(
        cases, std::string("matmul_quantised/few_rows_") + name,
        {{{rows, depth}}, bytes, {{columns, depth / block}, DType::float32, 0.001, 0.01}},
        [bits = bits](Inputs in) {
          return matmul(in[0] * 0.5f, {cast(in[1], bits == 8 ? DType::int8 : DType::uint8), in[2], bits});
        });
  }
}

// Well away from singular: in rows of a batch, with a large diagonal.
Tensor regular(const Tensor& x) { return 0.3f * x + 2.0f * eye(x.extent(-1)); }
Tensor positive_definite(const Tensor& x) { return 0.1f * matmul(x, transpose(x)) + eye(x.extent(-2)); }

void add_matrix_pages(std::vector<OpCase>& cases) {
  add_page_case(cases, "cholesky/batch", {{{3, 5, 5}}},
                [](Inputs in) { return cholesky(positive_definite(in[0])); });
  add_page_case(cases, "cholesky/lower_triangle", {{{4, 4}}},
                [](Inputs in) { return cholesky(0.2f * in[0] + 3.0f * eye(4)); });
  add_page_case(cases, "cholesky/one", {{{2, 3, 1, 1}, DType::float32, 0.5, 3}},
                [](Inputs in) { return cholesky(in[0]); });
  add_page_case(
      cases, "cholesky/blocks", {{{1, 150, 7}}}, [](Inputs in) { return cholesky(positive_definite(in[0])); },
      false);
  for (const bool upper : {false, true}) {
    const std::string name = std::string("solve_triangular/") + (upper ? "upper" : "lower");
    add_page_case(cases, name, {{{2, 6, 6}}, {{2, 6, 3}}},
                  [=](Inputs in) { return solve_triangular(regular(in[0]), in[1], upper); });
    add_page_case(cases, name + "_unit", {{{5, 5}}, {{5, 2}}},
                  [=](Inputs in) { return solve_triangular(0.3f * in[0], in[1], upper, true); });
    add_page_case(
        cases, name + "_blocks", {{{2, 70, 70}, DType::float32, -0.2, 0.2}, {{2, 70, 3}}},
        [=](Inputs in) { return solve_triangular(regular(in[0]), in[1], upper); }, false);
  }
  add_page_case(cases, "lu/factors", {{{3, 6, 6}}},
                [](Inputs in) { return lu(in[0] + flip(eye(6), 0) * 3.0f).factors; });
  add_page_case(
      cases, "lu/pivots", {{{4, 9, 9}}}, [](Inputs in) { return lu(in[0]).pivots; }, false);
  add_page_case(cases, "lu/most", {{{1, 64, 64}}}, [](Inputs in) { return lu(in[0]).factors; }, false,
                {2e-2, 2e-3});
  add_page_case(cases, "qr/q", {{{2, 7, 4}}}, [](Inputs in) { return qr(in[0]).q; });
  add_page_case(cases, "qr/r", {{{2, 5, 5}}}, [](Inputs in) { return qr(regular(in[0])).r; });
  add_page_case(
      cases, "qr/tall", {{{1, 100, 20}}}, [](Inputs in) { return qr(in[0]).q; }, false);
  add_page_case(cases, "solve/batch", {{{2, 3, 4, 4}}, {{2, 3, 4, 2}}},
                [](Inputs in) { return solve(regular(in[0]), in[1]); });
  add_page_case(cases, "inverse/rows_exchanged", {{{3, 5, 5}}},
                [](Inputs in) { return inverse(0.3f * in[0] + 2.0f * flip(eye(5), 1)); });
  add_page_case(cases, "det/batch", {{{3, 4, 4}}}, [](Inputs in) { return det(regular(in[0])); });
  add_page_case(
      cases, "det/singular", {{{3, 3}}}, [](Inputs in) { return det(in[0] * 0.0f + 1.0f); }, false);
  add_page_case(cases, "slogdet/both", {{{4, 5, 5}}}, [](Inputs in) {
    const SignAndLog found = slogdet(0.3f * in[0] - 2.0f * eye(5));
    return found.sign * found.log;
  });
}

}  // namespace

void add_page_cases(std::vector<OpCase>& cases) {
  add_scan_pages(cases);
  add_sort_pages(cases);
  add_scatter_pages(cases);
  add_matrix_pages(cases);
  add_few_bits_pages(cases);
}

}  // namespace imprint::reference
