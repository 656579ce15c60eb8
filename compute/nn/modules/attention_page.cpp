#include "compute/nn/modules/attention_page.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "compute/base/text.h"
#include "compute/nn/modules/composed_page.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::nn {

using namespace tensor;

namespace {

using Values = std::span<const Tensor>;

constexpr std::int64_t kMostExtent = 128;
constexpr int kInvocations = 256;  // of the kernels
// Fewer scores are stored: with one more product to compute them again, kernels of tiles are slower.
constexpr std::int64_t kLeastScores = 1 << 25;

struct Extents {
  std::int64_t batch = 1, heads = 1, key_heads = 1, queries = 1, keys = 1, extent = 1;
  bool causal = false;

  std::int64_t shared() const { return heads / key_heads; }  // heads per key head
  float scale() const { return 1 / std::sqrt(static_cast<float>(extent)); }
  Shape of_queries() const { return {batch, heads, queries, extent}; }
  Shape of_keys() const { return {batch, key_heads, keys, extent}; }
  Shape per_query() const { return {batch, heads, queries}; }
};

// ---- as ordinary operations ----

Tensor scores_of(const Extents& extents, const Tensor& query, const Tensor& key) {
  const Tensor keys = extents.shared() == 1 ? key : repeat_interleave(key, 1, extents.shared());
  const Tensor scores = matmul(query * Tensor(extents.scale()), transpose(keys));
  if (!extents.causal) return scores;
  const Tensor last =
      unsqueeze(arange(extents.queries), 1) + static_cast<int>(extents.keys - extents.queries);
  return masked_fill(scores, arange(extents.keys) > last, -1e30);
}

std::vector<Tensor> forward_operations(const Extents& extents, Values in) {
  const Tensor scores = scores_of(extents, in[0], in[1]);
  const Tensor values = extents.shared() == 1 ? in[2] : repeat_interleave(in[2], 1, extents.shared());
  const Tensor most = stop_gradient(max(scores, {-1}, true));
  return {matmul(softmax(scores), values), squeeze(most, 3) + log(sum(exp(scores - most), {-1}))};
}

// in: query, key, value, the result's gradient, the logarithms of the queries' sums, and the sums of gradient
// times result.
std::vector<Tensor> gradient_operations(const Extents& extents, Values in) {
  const auto repeated = [&](const Tensor& x) {
    return extents.shared() == 1 ? x : repeat_interleave(x, 1, extents.shared());
  };
  const auto of_key_heads = [&](const Tensor& x) {
    if (extents.shared() == 1) return x;
    return sum(reshape(x, {extents.batch, extents.key_heads, extents.shared(), extents.keys, extents.extent}),
               {2});
  };
  const Tensor weights = exp(scores_of(extents, in[0], in[1]) - unsqueeze(in[4], 3));
  const Tensor slopes = weights * (matmul(in[3], transpose(repeated(in[2]))) - unsqueeze(in[5], 3));
  return {matmul(slopes, repeated(in[1])) * Tensor(extents.scale()),
          of_key_heads(matmul(transpose(slopes), in[0]) * Tensor(extents.scale())),
          of_key_heads(matmul(transpose(weights), in[3]))};
}

// ---- kernels ----

LibraryPage page_of(const Extents& extents, const char* name) {
  LibraryPage page;
  page.name = name;
  page.constants = {{"HEADS", extents.batch * extents.heads},
                    {"SHARED", extents.shared()},
                    {"QUERIES", extents.queries},
                    {"KEYS", extents.keys},
                    {"EXTENT", extents.extent},
                    {"CAUSAL", extents.causal},
                    {"SCALE_BITS", std::bit_cast<std::int32_t>(extents.scale())}};
  return page;
}

// Rows per tile (shaders/pages/attention_tiles.glsl); 0: the device's workgroups are too small.
struct Tiles {
  std::int64_t rows = 0, columns = 8;
};

Tiles tiles_of(const Extents& extents, const PageLimits& limits) {
  Tiles tiles;
  while (4 * tiles.columns < extents.extent) tiles.columns *= 2;
  const auto fits = [&](std::int64_t rows) {
    return 16 * rows * (2 * tiles.columns + std::max(tiles.columns, rows / 4)) <= limits.shared_bytes;
  };
  if (limits.processor || limits.invocations < kInvocations) return tiles;
  for (const std::int64_t rows : {64, 32})
    if (tiles.rows == 0 && fits(rows) && (rows == 32 || tiles.columns < 32)) tiles.rows = rows;
  return tiles;
}

LibraryPage kernel_of(const Extents& extents, const char* name, const Tiles& tiles, bool of_keys) {
  LibraryPage page = page_of(extents, name);
  page.prelude = "pages/attention_tiles";
  page.shader = std::string("pages/") + name;
  page.constants.insert(page.constants.end(), {{"TILE", tiles.rows}, {"COLUMNS", tiles.columns}});
  const std::int64_t steps = of_keys ? extents.keys : extents.queries;
  page.groups =
      extents.batch * (of_keys ? extents.key_heads : extents.heads) * ((steps + tiles.rows - 1) / tiles.rows);
  page.group_size = kInvocations;
  page.stored_inputs = true;
  return page;
}

std::vector<Tensor> forward_kernel(const Extents& extents, Values in, const PageLimits& limits) {
  const Tiles tiles = tiles_of(extents, limits);
  if (tiles.rows == 0) return forward_operations(extents, in);
  LibraryPage page = kernel_of(extents, "attention_forward", tiles, false);
  page.outputs = {{extents.of_queries()}, {extents.per_query()}};
  return run_page(std::move(page), in);
}

std::vector<Tensor> gradient_kernels(const Extents& extents, Values in, const PageLimits& limits) {
  const Tiles tiles = tiles_of(extents, limits);
  if (tiles.rows == 0) return gradient_operations(extents, in);
  LibraryPage of_queries = kernel_of(extents, "attention_gradient_of_queries", tiles, false);
  of_queries.outputs = {{extents.of_queries()}};
  LibraryPage of_keys = kernel_of(extents, "attention_gradient_of_keys", tiles, true);
  of_keys.outputs = {{extents.of_keys()}, {extents.of_keys()}};
  std::vector<Tensor> found = run_page(std::move(of_queries), in);
  for (Tensor& one : run_page(std::move(of_keys), in)) found.push_back(std::move(one));
  return found;
}

// ---- derivatives ----

std::vector<Tensor> differentiate(const Extents& extents, Values in, Values outputs, Values gradients) {
  if (full_value(gradients[1]) != 0.0)  // a further derivative: one by the sums
    return composed_gradients([extents](Values given) { return forward_operations(extents, given); }, in,
                              gradients);
  LibraryPage page = page_of(extents, "attention_gradient");
  page.outputs = {{extents.of_queries()}, {extents.of_keys()}, {extents.of_keys()}};
  page.compose = [extents](Values inputs) { return gradient_operations(extents, inputs); };
  page.expand = [extents](Values inputs, const PageLimits& limits) {
    return gradient_kernels(extents, inputs, limits);
  };
  page.backward = [extents](Values inputs, Values, Values of_outputs) {
    return composed_gradients([extents](Values given) { return gradient_operations(extents, given); }, inputs,
                              of_outputs);
  };
  const Tensor products = sum(gradients[0] * outputs[0], {3});
  return run_page(std::move(page), std::vector{in[0], in[1], in[2], gradients[0], outputs[1], products});
}

}  // namespace

bool has_attention_page(const Tensor& query, const Tensor& key, const Tensor& value, bool causal) {
  for (const Tensor* one : {&query, &key, &value})
    if (one->dtype() != DType::float32 || one->shape().is_named() || one->extent(0) != query.extent(0))
      return false;
  const std::int64_t queries = query.extent(2), keys = key.extent(2);
  return value.shape() == key.shape() && query.extent(3) == key.extent(3) && key.extent(3) >= 1 &&
         key.extent(3) <= kMostExtent && (!causal || queries <= keys) &&
         query.shape().element_count() / query.extent(3) * keys >= kLeastScores;
}

Tensor attention_page(const Tensor& query, const Tensor& key, const Tensor& value, bool causal) {
  const Extents extents{.batch = query.extent(0),
                        .heads = query.extent(1),
                        .key_heads = key.extent(1),
                        .queries = query.extent(2),
                        .keys = key.extent(2),
                        .extent = query.extent(3),
                        .causal = causal};
  LibraryPage page = page_of(extents, "attention");
  page.outputs = {{extents.of_queries()}, {extents.per_query()}};
  page.compose = [extents](Values inputs) { return forward_operations(extents, inputs); };
  page.expand = [extents](Values inputs, const PageLimits& limits) {
    return forward_kernel(extents, inputs, limits);
  };
  page.backward = [extents](Values inputs, Values outputs, Values gradients) {
    return differentiate(extents, inputs, outputs, gradients);
  };
  return run_page(std::move(page), std::vector{query, key, value})[0];
}

}  // namespace imprint::nn
