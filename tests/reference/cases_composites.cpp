// Composites of compute/tensor/composites/composites.h, images.h and their neighbours.

#include <array>

#include "compute/tensor/composites/composites.h"
#include "compute/tensor/composites/images.h"
#include "compute/tensor/composites/signals.h"
#include "compute/tensor/functions.h"
#include "compute/tensor/ops/detection.h"
#include "compute/tensor/ops/quantised.h"
#include "tests/reference/op_case.h"

namespace imprint::reference {
namespace {

using Inputs = std::span<const Tensor>;
using ComposedAmounts = std::array<std::pair<std::int64_t, std::int64_t>, 2>;

void add_composite(std::vector<OpCase>& cases, std::string name, std::vector<CaseInput> inputs, Build build) {
  cases.push_back({std::move(name), std::move(inputs), std::move(build), {2e-5, 2e-5}, {1e-4, 2e-4}});
}

void add_composite_products(std::vector<OpCase>& cases) {
  add_composite(cases, "einsum/batched", {{{2, 3, 5}}, {{2, 5, 4}}},
                [](Inputs in) { return einsum("bij,bjk->bki", in); });
  add_composite(cases, "einsum/three", {{{3, 5}}, {{5, 2}}, {{2, 4}}},
                [](Inputs in) { return einsum("ab,bc,cd->da", in); });
  add_composite(cases, "einsum/diagonal", {{{4, 4, 3}}}, [](Inputs in) { return einsum("iij->ij", in); });
  add_composite(cases, "einsum/products_only", {{{3}}, {{5}}},
                [](Inputs in) { return einsum("i,j->ij", in); });
  add_composite(cases, "einsum/further_axes", {{{2, 3, 4}}, {{4, 5}}},
                [](Inputs in) { return einsum("...k,kn->n...", in); });
  add_composite(cases, "tensordot/two", {{{3, 4, 5}}, {{4, 5, 2}}},
                [](Inputs in) { return tensordot(in[0], in[1]); });
  add_composite(cases, "kron/ragged", {{{2, 3}}, {{3, 2}}}, [](Inputs in) { return kron(in[0], in[1]); });
  add_composite(cases, "cross/rows", {{{3, 5}}, {{3, 5}}}, [](Inputs in) { return cross(in[0], in[1], 0); });
  add_composite(cases, "norm/two", {{{4, 7}}}, [](Inputs in) { return norm(in[0], 2, {1}); });
  add_composite(cases, "norm/three", {{{4, 7}, DType::float32, -2, 2, {0}}},
                [](Inputs in) { return norm(in[0], 3, {0}, true); });
}

void add_composite_selections(std::vector<OpCase>& cases) {
  add_composite(cases, "gather_nd/rows", {{{4, 5, 3}}, {{7, 2}, DType::int32, -1, 4}},
                [](Inputs in) { return gather_nd(in[0], in[1]) * 2; });
  add_composite(cases, "scatter_nd/add", {{{4, 5, 3}}, {{9, 2}, DType::int32, -1, 4}, {{9, 3}}},
                [](Inputs in) { return scatter_nd(in[0], in[1], in[2], Scatter::add); });
  add_composite(cases, "scatter_nd/assign", {{{6, 3}}, {{9, 1}, DType::int32, 0, 5}, {{9, 3}}},
                [](Inputs in) { return scatter_nd(in[0], in[1], in[2]); });
  add_composite(cases, "segment_reduce/add", {{{40, 3}}, {{40}, DType::int32, -1, 6}},
                [](Inputs in) { return segment_reduce(in[0], in[1], 6); });
  add_composite(cases, "slice_assign/middle", {{{3, 9}}, {{3, 4}}},
                [](Inputs in) { return slice_assign(in[0], 1, -6, in[1]) * 2; });
  add_composite(cases, "quantile/third", {{{3, 10}}}, [](Inputs in) { return quantile(in[0], 0.3, 1); });
  add_composite(cases, "median/columns", {{{8, 5}}}, [](Inputs in) { return median(in[0], 0, true); });
  add_composite(cases, "masked_select/half", {{{4, 9}}, {{4, 9}, DType::boolean}},
                [](Inputs in) { return masked_select(in[0], in[1], 30).values; });
  const auto add_counted = [&](std::string name, std::vector<CaseInput> inputs, Build build) {
    add_composite(cases, std::move(name), std::move(inputs), std::move(build));
    cases.back().differentiable = false;
  };
  add_counted("histogram/outside", {{{400}, DType::float32, -2, 2}},
              [](Inputs in) { return histogram(in[0], 7, -1, 1.5); });
  add_counted("searchsorted/left", {{{33}, DType::int32, -20, 20}, {{5, 9}, DType::int32, -25, 25}},
              [](Inputs in) { return searchsorted(sort(in[0]).values, in[1]); });
  add_counted("nonzero/bound", {{{5, 7}, DType::int32, -1, 1}},
              [](Inputs in) { return nonzero(in[0], 12).values; });
  add_counted("unique/ints", {{{60}, DType::int32, -9, 9}},
              [](Inputs in) { return unique(in[0], 30).values; });
}

void add_composite_arrangements(std::vector<OpCase>& cases) {
  add_composite(cases, "tril/offset", {{{4, 6}}}, [](Inputs in) { return tril(in[0], 1) * 2; });
  add_composite(cases, "triu/batch", {{{2, 5, 4}}}, [](Inputs in) { return triu(in[0], -1) * 2; });
  add_composite(cases, "diagonal/below", {{{2, 5, 4}}}, [](Inputs in) { return diagonal(in[0], -2) * 2; });
  add_composite(cases, "diag_embed/rows", {{{3, 4}}}, [](Inputs in) { return diag_embed(in[0]) * 2; });
  add_composite(cases, "roll/around", {{{3, 7}}}, [](Inputs in) { return roll(in[0], -9, 1) * 2; });
  add_composite(cases, "rot90/once", {{{3, 5}}}, [](Inputs in) { return rot90(in[0]) * 2; });
  add_composite(cases, "repeat_interleave/rows", {{{3, 5}}},
                [](Inputs in) { return repeat_interleave(in[0], 0, 3) * 2; });
  add_composite(cases, "pad/reflect", {{{4, 5}}}, [](Inputs in) {
    return pad(in[0], ComposedAmounts{{{3, 1}, {0, 4}}}, PadMode::reflect) * 2;
  });
  add_composite(cases, "pad/edge", {{{4, 5}}}, [](Inputs in) {
    return pad(in[0], ComposedAmounts{{{3, 1}, {0, 6}}}, PadMode::edge) * 2;
  });
  add_composite(cases, "pad/wrap", {{{4, 5}}}, [](Inputs in) {
    return pad(in[0], ComposedAmounts{{{4, 1}, {0, 5}}}, PadMode::wrap) * 2;
  });
}

void add_composite_volumes(std::vector<OpCase>& cases) {
  add_composite(cases, "convolution/line", {{{2, 4, 9}}, {{6, 2, 3}}, {{6}}}, [](Inputs in) {
    return convolution(in[0], in[1], in[2], {.stride = 2, .padding = 1, .dilation = 2, .groups = 2});
  });
  add_composite(cases, "convolution/volume", {{{2, 4, 3, 5, 4}}, {{6, 2, 2, 3, 2}}, {{6}}}, [](Inputs in) {
    return convolution(in[0], in[1], in[2], {.stride = {1, 2, 1}, .padding = {0, 1, 1}, .groups = 2});
  });
  add_composite(cases, "convolution/same", {{{1, 2, 5, 6}}, {{3, 2, 2, 3}}},
                [](Inputs in) { return convolution(in[0], in[1], Tensor(), {.stride = 2, .same = true}); });
  add_composite(
      cases, "transposed_convolution/image", {{{2, 4, 4, 3}}, {{4, 3, 3, 2}}, {{6}}}, [](Inputs in) {
        return transposed_convolution(
            in[0], in[1], in[2],
            {.stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 0}, .dilation = {2, 1}, .groups = 2});
      });
  add_composite(cases, "transposed_convolution/volume", {{{1, 2, 3, 2, 2}}, {{2, 3, 2, 2, 2}}},
                [](Inputs in) { return transposed_convolution(in[0], in[1], Tensor(), {.stride = 2}); });
  add_composite(cases, "fold/overlap", {{{2, 12, 9}}}, [](Inputs in) {
    return fold(in[0], {4, 4}, {.size = 2, .stride = 1});
  });
}

void add_composite_places(std::vector<OpCase>& cases) {
  const CaseInput image{{2, 3, 7, 6}};
  add_composite(cases, "max_pool/ceil", {image}, [](Inputs in) {
    return max_pool(in[0], {.size = 3, .stride = {2, 3}, .padding = 1, .ceil = true});
  });
  add_composite(cases, "max_unpool/padded", {image}, [](Inputs in) {
    const WithIndices best =
        max_pool_with_indices(in[0], {.size = {2, 3}, .stride = 3, .padding = {1, 0}, .ceil = true});
    return max_unpool(best.values * 2, best.indices, {7, 6});
  });
  add_composite(cases, "avg_pool/inside", {image}, [](Inputs in) {
    return avg_pool(in[0], {.size = 3, .stride = 2, .padding = 1, .ceil = true, .count_padding = false});
  });
  add_composite(cases, "lp_pool/cubes", {{{2, 2, 7}, DType::float32, 0.5, 2}},
                [](Inputs in) { return lp_pool(in[0], 3); });
  add_composite(cases, "adaptive_avg_pool/ragged", {image}, [](Inputs in) {
    return adaptive_avg_pool(in[0], {3, 4});
  });
  add_composite(cases, "adaptive_max_pool/ragged", {image}, [](Inputs in) {
    return adaptive_max_pool(in[0], {3, 4});
  });
  add_composite(cases, "interpolate/nearest", {image}, [](Inputs in) {
    return interpolate(in[0], {9, 3}) * 2;
  });
  add_composite(cases, "interpolate/linear", {image}, [](Inputs in) {
    return interpolate(in[0], {9, 3}, {.mode = Resize::linear});
  });
  add_composite(cases, "interpolate/cubic_corners", {{{1, 2, 5}}}, [](Inputs in) {
    return interpolate(in[0], 8, {.mode = Resize::cubic, .align_corners = true});
  });
  add_composite(cases, "pixel_shuffle/both_ways", {{{1, 8, 2, 3}}},
                [](Inputs in) { return pixel_shuffle(in[0], 2) * 2; });
}

void add_composite_samples(std::vector<OpCase>& cases) {
  add_composite(cases, "grid_sample/linear", {{{2, 3, 4, 5}}, {{2, 3, 2, 2}, DType::float32, -1.4, 1.4}},
                [](Inputs in) { return grid_sample(in[0], in[1]); });
  add_composite(
      cases, "grid_sample/cubic_edge", {{{1, 2, 5}}, {{1, 7, 1}, DType::float32, -1.4, 1.4}},
      [](Inputs in) { return grid_sample(in[0], in[1], {.mode = Resize::cubic, .outside = PadMode::edge}); });
  add_composite(cases, "grid_sample/nearest_reflect",
                {{{1, 2, 3, 4, 3}}, {{1, 2, 3, 1, 3}, DType::float32, -1.4, 1.4}}, [](Inputs in) {
                  return grid_sample(
                      in[0], stop_gradient(in[1]),
                      {.mode = Resize::nearest, .outside = PadMode::reflect, .align_corners = true});
                });
  add_composite(cases, "affine_grid/image", {{{2, 2, 3}}}, [](Inputs in) {
    return affine_grid(in[0], {3, 4});
  });
  add_composite(
      cases, "deformable_convolution/parts",
      {{{1, 4, 4, 5}}, {{2, 2, 2, 3}}, {{1, 24, 3, 3}, DType::float32, -0.9, 0.9}, {{1, 12, 3, 3}}},
      [](Inputs in) {
        return deformable_convolution(in[0], in[1], Tensor(), in[2], in[3], {.padding = {0, 0}, .groups = 2});
      });
  const CaseInput image{{2, 3, 6, 7}};
  add_composite(cases, "box_overlap/pairs", {{{3, 4}, DType::float32, 0, 3}, {{2, 4}, DType::float32, 0, 3}},
                [](Inputs in) { return box_overlap(in[0], in[1]); });
  for (const bool largest : {false, true})
    add_composite(cases, largest ? "roi_align/largest" : "roi_align/mean",
                  {image, {{3, 4}, DType::float32, -1, 8}, {{3}, DType::int32, 0, 1}}, [=](Inputs in) {
                    return roi_align(in[0], in[1], in[2], {.bins = {2, 3}, .scale = 0.7, .largest = largest});
                  });
  add_composite(cases, "non_max_suppression/lists",
                {{{2, 70, 4}, DType::float32, 0, 9}, {{2, 70}, DType::float32, 0, 1}}, [](Inputs in) {
                  const KeptBoxes kept =
                      non_max_suppression(in[0], in[1], {.most = 40, .overlap = 0.3, .score = 0.2});
                  return concat({kept.indices, unsqueeze(kept.count, 1)}, 1);
                });
  cases.back().differentiable = false;
}

void add_composite_functions(std::vector<OpCase>& cases) {
  add_composite(cases, "with_gradient/exp", {{{3, 5}}, {{3, 5}}}, [](Inputs in) {
    const Tensor x[] = {in[0] * 0.5f, in[1]};
    return with_gradient([](Inputs of) { return std::vector{exp(of[0]) * of[1]}; },
                         [](Inputs of, Inputs results, Inputs g) {
                           return std::vector{g[0] * results[0], g[0] * exp(of[0])};
                         },
                         x)[0];
  });
  add_composite(cases, "vmap/layer", {{{5, 4, 3}}, {{4, 6}}}, [](Inputs in) {
    const Tensor weight = in[1];
    return vmap(
        [&](Inputs of) {
          const Tensor hidden = tanh(matmul(transpose(of[0]), weight));  // [3, 6]
          const Tensor best = cast(argmax(hidden, 0), DType::int32);
          return std::vector{concat({cumsum(hidden, 1), take(hidden, 0, minimum(best, 2))}, 0)};
        },
        in.first(1))[0];
  });
  add_composite(cases, "vmap/sorts", {{{4, 3, 5}}}, [](Inputs in) {
    return vmap([](Inputs of) { return std::vector{sort(of[0], 0).values * of[0]}; }, in, 1)[0];
  });
  for (const int bits : {8, 4}) {
    const std::string name = bits == 8 ? "eight_bits" : "four_bits";
    const CaseInput bytes{{7, bits * 3}, DType::int32, bits == 8 ? -127.0 : 0.0, bits == 8 ? 127.0 : 255.0};
    add_composite(cases, "matmul_quantised/" + name, {{{5, 24}}, bytes, {{7, 3}, DType::float32, 0.01, 0.1}},
                  [=](Inputs in) {
                    return matmul(in[0], {cast(in[1], bits == 8 ? DType::int8 : DType::uint8), in[2], bits});
                  });
    add_composite(cases, "quantise/" + name, {{{24, 7}}},
                  [=](Inputs in) { return cast(quantise(in[0], bits, 8).values, DType::int32); });
    cases.back().differentiable = false;
  }
}

void add_composite_signals(std::vector<OpCase>& cases) {
  const auto both = [](const ComplexTensor& x) { return concat({x.real, x.imaginary}, 0); };
  add_composite(cases, "fft/columns", {{{15, 3}}, {{15, 3}}}, [=](Inputs in) {
    return both(fft({in[0], in[1]}, 0));
  });
  add_composite(cases, "ifft/three_products", {{{2, 4680}}, {{2, 4680}}}, [=](Inputs in) {
    return both(ifft({in[0], in[1]})) * 30;
  });
  add_composite(cases, "rfft/two_products", {{{3, 150}}}, [=](Inputs in) { return both(rfft(in[0])); });
  add_composite(cases, "rfft/large_prime", {{{2, 134}}}, [=](Inputs in) { return both(rfft(in[0])); });
  add_composite(cases, "irfft/odd", {{{2, 75}}, {{2, 75}}}, [](Inputs in) {
    return irfft({in[0], in[1]}, -1, 149) * 10;
  });
  add_composite(cases, "stft/centred", {{{2, 40}}},
                [=](Inputs in) { return both(stft(in[0], hann_window(9), 4)); });
  add_composite(cases, "istft/overlap", {{{2, 7, 5}}, {{2, 7, 5}}}, [](Inputs in) {
    return istft({in[0], in[1]}, hamming_window(9), 4, 25);
  });
}

}  // namespace

void add_composite_cases(std::vector<OpCase>& cases) {
  add_composite_products(cases);
  add_composite_arrangements(cases);
  add_composite_selections(cases);
  add_composite_volumes(cases);
  add_composite_places(cases);
  add_composite_samples(cases);
  add_composite_functions(cases);
  add_composite_signals(cases);
}

}  // namespace imprint::reference
