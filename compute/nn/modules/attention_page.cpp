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
constexpr std::int64_t kMostRows = 64;  // of a tile of the kernels without matrix units
// Of those with them: an extent of a matrix, keys or queries per turn, and subgroups of 16 rows.
constexpr std::int64_t kMatrix = 16, kMatrixBlock = 32, kSubgroups = 4;
// Fewer scores are ordinary operations.
constexpr std::int64_t kLeastScores = 1 << 17;
// Fewer scores are stored without matrix units: with one more product to compute them again, kernels of tiles
// are slower.
constexpr std::int64_t kLeastTiledScores = 1 << 25;

struct Extents {
  std::int64_t batch = 1, heads = 1, key_heads = 1, queries = 1, keys = 1, extent = 1;
  bool causal = false;
  bool stores_scores = false;  // as weights, the page's third output, where no kernel on matrix units runs

  std::int64_t shared() const { return heads / key_heads; }  // heads per key head
  float scale() const { return 1 / std::sqrt(static_cast<float>(extent)); }
  bool in_fours() const { return extent % 4 == 0; }
  bool in_eights() const { return extent % 8 == 0; }  // as kernels on matrix units load
  Shape of_queries() const { return {batch, heads, queries, extent}; }
  Shape of_keys() const { return {batch, key_heads, keys, extent}; }
  Shape per_query() const { return {batch, heads, queries}; }
  Shape of_scores() const { return {batch, heads, queries, keys}; }
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
  const Tensor scores = scores_of(extents, in[0], in[1]), weights = softmax(scores);
  const Tensor values = extents.shared() == 1 ? in[2] : repeat_interleave(in[2], 1, extents.shared());
  const Tensor most = stop_gradient(max(scores, {-1}, true));
  std::vector<Tensor> found{matmul(weights, values), squeeze(most, 3) + log(sum(exp(scores - most), {-1}))};
  if (extents.stores_scores) found.push_back(weights);
  return found;
}

// in: query, key, value, the result's gradient, the logarithms of the queries' sums, the sums of gradient
// times result, and the weights if they are stored.
std::vector<Tensor> gradient_operations(const Extents& extents, Values in) {
  const auto repeated = [&](const Tensor& x) {
    return extents.shared() == 1 ? x : repeat_interleave(x, 1, extents.shared());
  };
  const auto of_key_heads = [&](const Tensor& x) {
    if (extents.shared() == 1) return x;
    return sum(reshape(x, {extents.batch, extents.key_heads, extents.shared(), extents.keys, extents.extent}),
               {2});
  };
  const Tensor weights =
      extents.stores_scores ? in[6] : exp(scores_of(extents, in[0], in[1]) - unsqueeze(in[4], 3));
  const Tensor of_weights = matmul(in[3], transpose(repeated(in[2])));
  const Tensor products = extents.stores_scores ? sum(weights * of_weights, {3}, true) : unsqueeze(in[5], 3);
  const Tensor slopes = weights * (of_weights - products);
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
  if (limits.processor || limits.invocations < 2 * kMostRows) return tiles;
  for (const std::int64_t rows : {kMostRows, kMostRows / 2})
    if (tiles.rows == 0 && fits(rows) && (rows < kMostRows || tiles.columns < 32)) tiles.rows = rows;
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
  page.group_size = static_cast<int>(2 * tiles.rows);
  page.stored_inputs = true;
  return page;
}

// ---- kernels on matrix units ----

// Whether the kernels of shaders/pages/attention_matrices.glsl run.
bool takes_matrices(const Extents& extents, const PageLimits& limits) {
  const std::int64_t eights = 2 * ((extents.extent + kMatrix - 1) / kMatrix),
                     bytes = 16 * (2 * kMatrixBlock * (eights + 1) + kMatrix * 5 * kSubgroups) + 2048;
  return limits.matrix_units && extents.in_eights() && bytes <= limits.shared_bytes;
}

LibraryPage matrix_kernel_of(const Extents& extents, const char* name, bool of_keys) {
  LibraryPage page = page_of(extents, name);
  page.prelude = "pages/attention_matrices";
  page.shader = std::string("pages/") + name;
  page.constants.emplace_back("BLOCK", kMatrixBlock);
  const std::int64_t steps = of_keys ? extents.keys : extents.queries, rows = kMatrix * kSubgroups;
  page.groups = extents.batch * (of_keys ? extents.key_heads : extents.heads) * ((steps + rows - 1) / rows);
  page.group_size = 32 * kSubgroups;
  page.stored_inputs = page.on_matrix_units = true;
  return page;
}

std::vector<Tensor> forward_on_matrices(const Extents& extents, Values in) {
  LibraryPage page = matrix_kernel_of(extents, "attention_matrices_forward", false);
  page.outputs = {{extents.of_queries(), DType::float16}, {extents.per_query()}};
  page.eights = {0, 1, 2};
  std::vector<Tensor> found = run_page(std::move(page), in);
  found[0] = cast(found[0], DType::float32);
  if (extents.stores_scores) found.push_back(softmax(scores_of(extents, in[0], in[1])));  // nothing reads it
  return found;
}

std::vector<Tensor> gradient_on_matrices(const Extents& extents, Values in) {
  LibraryPage of_queries = matrix_kernel_of(extents, "attention_matrices_gradient_of_queries", false);
  of_queries.outputs = {{extents.of_queries()}};
  LibraryPage of_keys = matrix_kernel_of(extents, "attention_matrices_gradient_of_keys", true);
  of_keys.outputs = {{extents.of_keys()}, {extents.of_keys()}};
  of_queries.eights = of_keys.eights = {0, 1, 2, 3};
  std::vector<Tensor> found = run_page(std::move(of_queries), in.first(6));
  for (Tensor& one : run_page(std::move(of_keys), in.first(6))) found.push_back(std::move(one));
  return found;
}

// ---- the kernels of a device ----

std::vector<Tensor> forward_kernel(const Extents& extents, Values in, const PageLimits& limits) {
  if (takes_matrices(extents, limits)) return forward_on_matrices(extents, in);
  const Tiles tiles = tiles_of(extents, limits);
  if (tiles.rows == 0 || extents.stores_scores) return forward_operations(extents, in);
  LibraryPage page = kernel_of(extents, "attention_forward", tiles, false);
  page.outputs = {{extents.of_queries()}, {extents.per_query()}};
  if (extents.in_fours()) page.fours = {0, 1, 2};
  return run_page(std::move(page), in);
}

std::vector<Tensor> gradient_kernels(const Extents& extents, Values in, const PageLimits& limits) {
  if (takes_matrices(extents, limits)) return gradient_on_matrices(extents, in);
  const Tiles tiles = tiles_of(extents, limits);
  if (tiles.rows == 0 || extents.stores_scores) return gradient_operations(extents, in);
  LibraryPage of_queries = kernel_of(extents, "attention_gradient_of_queries", tiles, false);
  of_queries.outputs = {{extents.of_queries()}};
  LibraryPage of_keys = kernel_of(extents, "attention_gradient_of_keys", tiles, true);
  of_keys.outputs = {{extents.of_keys()}, {extents.of_keys()}};
  if (extents.in_fours()) of_queries.fours = of_keys.fours = {0, 1, 2, 3};
  std::vector<Tensor> found = run_page(std::move(of_queries), in);
  for (Tensor& one : run_page(std::move(of_keys), in)) found.push_back(std::move(one));
  return found;
}

// ---- derivatives ----

std::vector<Tensor> differentiate(const Extents& extents, Values in, Values outputs, Values gradients) {
  if (std::ranges::any_of(gradients.subspan(1), [](const Tensor& g) { return full_value(g) != 0.0; }))
    // A further derivative: one by the sums or the weights.
    return composed_gradients([extents](Values given) { return forward_operations(extents, given); }, in,
                              gradients);
  LibraryPage page = page_of(extents, "attention_gradient");
  page.outputs = {{extents.of_queries()}, {extents.of_keys()}, {extents.of_keys()}};
  page.compose = [extents](Values inputs) { return gradient_operations(extents, inputs); };
  page.expand = [extents](Values inputs, const PageLimits& limits) {
    return gradient_kernels(extents, inputs, limits);
  };
  page.on_matrix_units = extents.in_eights();
  page.backward = [extents](Values inputs, Values, Values of_outputs) {
    return composed_gradients([extents](Values given) { return gradient_operations(extents, given); }, inputs,
                              of_outputs);
  };
  const Tensor products = sum(gradients[0] * outputs[0], {3});
  std::vector<Tensor> inputs{in[0], in[1], in[2], gradients[0], outputs[1], products};
  if (extents.stores_scores) inputs.push_back(outputs[2]);
  return run_page(std::move(page), inputs);
}

}  // namespace

bool fits_attention_page(const Tensor& query, const Tensor& key, const Tensor& value, bool causal) {
  for (const Tensor* one : {&query, &key, &value})
    if (one->dtype() != DType::float32 || one->shape().is_named() || one->extent(0) != query.extent(0))
      return false;
  const std::int64_t queries = query.extent(2), keys = key.extent(2);
  return value.shape() == key.shape() && query.extent(3) == key.extent(3) && key.extent(3) >= 1 &&
         key.extent(3) <= kMostExtent && (!causal || queries <= keys);
}

bool has_attention_page(const Tensor& query, const Tensor& key, const Tensor& value, bool causal) {
  return fits_attention_page(query, key, value, causal) &&
         query.shape().element_count() / query.extent(3) * key.extent(2) >= kLeastScores;
}

bool stores_attention_scores(const Tensor& query, const Tensor& key) {
  return query.shape().element_count() / query.extent(3) * key.extent(2) < kLeastTiledScores;
}

Tensor attention_page(const Tensor& query, const Tensor& key, const Tensor& value, bool causal,
                      bool stores_scores) {
  const Extents extents{.batch = query.extent(0),
                        .heads = query.extent(1),
                        .key_heads = key.extent(1),
                        .queries = query.extent(2),
                        .keys = key.extent(2),
                        .extent = query.extent(3),
                        .causal = causal,
                        .stores_scores = stores_scores};
  LibraryPage page = page_of(extents, "attention");
  page.outputs = {{extents.of_queries()}, {extents.per_query()}};
  if (extents.stores_scores) page.outputs.push_back({extents.of_scores()});
  page.on_matrix_units = extents.in_eights();
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
