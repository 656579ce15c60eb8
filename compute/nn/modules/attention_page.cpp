#include "compute/nn/modules/attention_page.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
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
// Kernels on matrix units have these: extents of a matrix, keys or queries per turn, subgroups of 16 rows.
constexpr std::int64_t kMatrix = 16, kMatrixBlock = 32, kSubgroups = 4;
// Fewer scores are ordinary operations, and so are heads with masks of fewer queries or keys, which would
// leave most of a tile idle.
constexpr std::int64_t kLeastScores = 1 << 17, kLeastMaskedSteps = 64;
// Fewer scores of heads that are not narrow are stored without matrix units: with one more product to compute
// them again, kernels of tiles are slower. Those of narrow heads take more time in memory than in products.
// Kernels skip half of a causal head: they are faster from fewer scores on.
constexpr std::int64_t kLeastTiledScores = 1 << 25, kLeastCausalScores = 1 << 23, kNarrowExtent = 32;
// As many scores without a derivative take less time in one kernel than in three that wait for each other: of
// a few keys, which a workgroup takes one after the other, and of queries that fill it.
constexpr std::int64_t kMostJoinedScores = 1 << 20, kMostJoinedKeys = 128, kLeastJoinedQueries = 16;
// More scores are never stored, even where masks make kernels of tiles the only ones.
constexpr std::int64_t kMostStoredScores = 1 << 28;

// Sums of the gradient of queries per head, and their elements, where they are more than one.
constexpr std::int64_t kMostPieces = 8, kMostQuerySums = 1 << 24;

// Shapes of masks broadcast to the scores; those without a mask have no axes.
struct MaskShapes {
  Shape bias = {}, hidden = {}, factors = {};

  bool any() const { return bias.rank() + hidden.rank() + factors.rank() > 0; }
};

constexpr std::int64_t kParts = 3;  // query, key and value

struct Extents {
  std::int64_t batch = 1, heads = 1, key_heads = 1, queries = 1, keys = 1, extent = 1;
  bool causal = false;
  // Heads are read as [batch, steps, heads, extent], and kernels store results so, since their readers turn
  // them back. joins: query, key and value are parts of one value; one output has their gradients beside each
  // other.
  bool by_steps = false, joins = false;
  // As weights, the page's last output, where no kernel runs. Kernels of tiles do not run then without masks,
  // except for narrow heads and many causal scores.
  bool stores_scores = false;
  MaskShapes masks = {};

  std::int64_t shared() const { return heads / key_heads; }  // heads per key head
  float scale() const { return 1 / std::sqrt(static_cast<float>(extent)); }
  bool in_fours() const { return extent % 4 == 0; }
  bool in_eights() const { return extent % 8 == 0; }  // as kernels on matrix units load
  Shape of_queries() const { return {batch, heads, queries, extent}; }
  Shape of_keys() const { return {batch, key_heads, keys, extent}; }
  Shape per_query() const { return {batch, heads, queries}; }
  Shape query_sums(std::int64_t pieces) const {
    return {pieces, batch, heads, queries, (extent + 3) / 4 * 4};
  }
  Shape of_scores() const { return {batch, heads, queries, keys}; }
  // As kernels store results.
  Shape stored(const Shape& shape) const {
    return by_steps ? Shape{shape[0], shape[2], shape[1], shape[3]} : shape;
  }
};

Tensor by_heads(const Extents& extents, const Tensor& stored) {
  return extents.by_steps ? permute(stored, {0, 2, 1, 3}) : stored;
}

bool is_by_steps(const Tensor& heads) {
  return is_op(heads, Op::permute) && heads.node()->ints == std::vector<std::int64_t>{0, 2, 1, 3};
}
// The value along whose last axis such heads are a part; null: none.
const Node* whole_of(const Tensor& heads) {
  const Node* node = heads.node().get();
  for (const Op op : {Op::permute, Op::reshape, Op::slice}) {
    if (node->op != op) return nullptr;
    node = node->inputs[0].get();
  }
  return node;
}

// ---- as ordinary operations ----

// The last inputs of each page, in this order.
struct Masks {
  Tensor bias = {}, hidden = {}, factors = {};  // empty: none

  Masks(const Extents& extents, Values in) {
    std::size_t next = in.size();
    if (extents.masks.factors.rank() > 0) factors = in[--next];
    if (extents.masks.hidden.rank() > 0) hidden = in[--next];
    if (extents.masks.bias.rank() > 0) bias = in[--next];
  }
};

Tensor scores_of(const Extents& extents, Values in) {
  const Masks masks(extents, in);
  const Tensor keys = extents.shared() == 1 ? in[1] : repeat_interleave(in[1], 1, extents.shared());
  Tensor scores = matmul(in[0] * Tensor(extents.scale()), transpose(keys));
  if (!is_empty(masks.bias)) scores = scores + masks.bias;
  if (!is_empty(masks.hidden)) scores = masked_fill(scores, masks.hidden, kUnseenScore);
  if (!extents.causal) return scores;
  const Tensor last =
      unsqueeze(arange(extents.queries), 1) + static_cast<int>(extents.keys - extents.queries);
  return masked_fill(scores, arange(extents.keys) > last, kNeverSeenScore);
}

Tensor times_factors(const Tensor& x, const Masks& masks) {
  return is_empty(masks.factors) ? x : x * masks.factors;
}

// The result, the logarithms of the sums, and the weights if they are stored. With masks the logarithms are
// without the largest scores, which follow: beside a score of -1e30 a logarithm would be lost.
std::vector<Tensor> forward_operations(const Extents& extents, Values in) {
  const Tensor scores = scores_of(extents, in), weights = softmax(scores);
  const Tensor values = extents.shared() == 1 ? in[2] : repeat_interleave(in[2], 1, extents.shared());
  const Tensor most = stop_gradient(max(scores, {-1}, true)), logarithms = log(sum(exp(scores - most), {-1}));
  std::vector<Tensor> found{matmul(times_factors(weights, Masks(extents, in)), values)};
  if (extents.masks.any())
    found.insert(found.end(), {logarithms, squeeze(most, 3)});
  else
    found.push_back(squeeze(most, 3) + logarithms);
  if (extents.stores_scores) found.push_back(weights);
  return found;
}

// Inputs of a gradient: query, key, value, the result's gradient, the logarithms, the result, with masks the
// largest scores, the weights if they are stored, and the masks.
constexpr std::size_t kResultSlot = 5, kMostSlot = 6;
std::size_t weights_slot(const Extents& extents) { return kMostSlot + (extents.masks.any() ? 1 : 0); }

struct Slopes {
  Tensor weights, of_scores;
};

Slopes slopes_of(const Extents& extents, Values in) {
  const Masks masks(extents, in);
  const auto of_row = [](const Tensor& x) { return unsqueeze(x, 3); };
  Tensor weights;
  if (extents.stores_scores)
    weights = in[weights_slot(extents)];
  else if (extents.masks.any())
    weights = exp(scores_of(extents, in) - of_row(in[kMostSlot]) - of_row(in[4]));
  else
    weights = exp(scores_of(extents, in) - of_row(in[4]));
  const Tensor values = extents.shared() == 1 ? in[2] : repeat_interleave(in[2], 1, extents.shared());
  const Tensor of_weights = times_factors(matmul(in[3], transpose(values)), masks);
  const Tensor products =
      extents.stores_scores ? sum(weights * of_weights, {3}, true) : sum(in[3] * in[kResultSlot], {3}, true);
  Tensor slopes = weights * (of_weights - products);
  if (!is_empty(masks.hidden)) slopes = masked_fill(slopes, masks.hidden, 0);
  return {times_factors(weights, masks), slopes};
}

std::vector<Tensor> gradient_operations(const Extents& extents, Values in) {
  const auto of_key_heads = [&](const Tensor& x) {
    if (extents.shared() == 1) return x;
    return sum(reshape(x, {extents.batch, extents.key_heads, extents.shared(), extents.keys, extents.extent}),
               {2});
  };
  const auto [weights, slopes] = slopes_of(extents, in);
  const Tensor keys = extents.shared() == 1 ? in[1] : repeat_interleave(in[1], 1, extents.shared());
  return {matmul(slopes, keys) * Tensor(extents.scale()),
          of_key_heads(matmul(transpose(slopes), in[0]) * Tensor(extents.scale())),
          of_key_heads(matmul(transpose(weights), in[3]))};
}

// Takes scores' memory, for a bias that is learned.
Tensor gradient_of_bias(const Extents& extents, Values in) {
  const Tensor slopes = slopes_of(extents, in).of_scores;
  std::vector<int> axes;
  for (int axis = 0; axis < 4; ++axis)
    if (extents.masks.bias[axis] != slopes.extent(axis)) axes.push_back(axis);
  return axes.empty() ? slopes : sum(slopes, axes, true);
}

// ---- kernels ----

// Where a mask's elements lie, by its slot and a stride per axis: 0 where it broadcasts.
void add_mask(LibraryPage& page, const std::string& name, const Shape& shape, std::size_t& slot) {
  if (shape.rank() == 0) return;
  page.constants.emplace_back(name, slot);
  std::int64_t stride = 1;
  constexpr const char* kAxes[] = {"_BATCH", "_HEAD", "_QUERY", "_KEY"};
  for (int axis = 3; axis >= 0; --axis) {
    page.constants.emplace_back(name + kAxes[axis], shape[axis] == 1 ? 0 : stride);
    stride *= shape[axis];
  }
  page.computed.push_back(slot++);
}

// first_mask: the slot of the first mask.
LibraryPage page_of(const Extents& extents, const char* name, std::size_t first_mask) {
  LibraryPage page;
  page.name = name;
  page.constants = {{"HEADS", extents.batch * extents.heads},
                    {"HEADS_OF_ONE", extents.heads},
                    {"BY_STEPS", extents.by_steps},
                    {"PARTS", extents.joins ? kParts : 1},
                    {"SHARED", extents.shared()},
                    {"QUERIES", extents.queries},
                    {"KEYS", extents.keys},
                    {"EXTENT", extents.extent},
                    {"CAUSAL", extents.causal},
                    {"SCALE_BITS", std::bit_cast<std::int32_t>(extents.scale())}};
  if (!extents.masks.any()) return page;
  add_mask(page, "BIAS", extents.masks.bias, first_mask);
  add_mask(page, "HIDDEN", extents.masks.hidden, first_mask);
  add_mask(page, "FACTORS", extents.masks.factors, first_mask);
  return page;
}

constexpr std::size_t kForwardMasks = 3, kGradientMasks = 7;  // the first slot of kernels

// Tiles of shaders/pages/attention_tiles.glsl. rows: of a workgroup; 0 if its invocations are too few.
struct Tiles {
  std::int64_t rows = 0, block = 32, columns = 8;

  bool are_narrow() const { return columns <= 16; }
};

// `gradient` is of keys and values, and may leave sums of that of queries.
enum class TiledKernel : std::uint8_t { forward, gradient_of_queries, gradient };
constexpr std::array kTiledKernels{TiledKernel::forward, TiledKernel::gradient_of_queries,
                                   TiledKernel::gradient};

std::int64_t shared_bytes(TiledKernel kernel, const Tiles& tiles) {
  const std::int64_t own = tiles.rows * tiles.columns, other = tiles.block * tiles.columns,
                     scores = tiles.rows * tiles.block / 4;
  switch (kernel) {
    case TiledKernel::forward:
      return 16 * (own + std::max(other, scores) + other);
    case TiledKernel::gradient_of_queries:
      return 16 * ((tiles.are_narrow() ? 2 : 1) * own + other + std::max(other, scores));
    case TiledKernel::gradient:
      return 16 * (std::max(own, 2 * scores) + own + 2 * other);
  }
  return 0;
}

Tiles tiles_of(TiledKernel kernel, const Extents& extents, const PageLimits& limits) {
  Tiles tiles;
  while (4 * tiles.columns < extents.extent) tiles.columns *= 2;
  const bool is_forward = kernel == TiledKernel::forward;
  for (const std::int64_t rows : {64, 32, 16}) {
    const Tiles some{.rows = rows, .block = is_forward && rows == 64 ? 64 : 32, .columns = tiles.columns};
    if (!limits.processor && limits.invocations >= 4 * rows &&
        shared_bytes(kernel, some) <= limits.shared_bytes)
      return some;
  }
  return tiles;
}

std::int64_t tile_count(std::int64_t steps, const Tiles& tiles) {
  return (steps + tiles.rows - 1) / tiles.rows;
}

// pieces: workgroups of `gradient` per key head.
LibraryPage kernel_of(const Extents& extents, TiledKernel kernel, const PageLimits& limits,
                      std::int64_t pieces = 1) {
  constexpr const char* kNames[] = {"attention_forward", "attention_gradient_of_queries",
                                    "attention_gradients"};
  const bool is_forward = kernel == TiledKernel::forward, of_keys = kernel == TiledKernel::gradient;
  const char* name = kNames[static_cast<std::size_t>(kernel)];
  const Tiles tiles = tiles_of(kernel, extents, limits);
  LibraryPage page = page_of(extents, name, is_forward ? kForwardMasks : kGradientMasks);
  page.prelude = "pages/attention_tiles";
  page.shader = std::string("pages/") + name;
  page.constants.insert(page.constants.end(), {{"KERNEL", static_cast<int>(kernel)},
                                               {"TILE", tiles.rows},
                                               {"BLOCK", tiles.block},
                                               {"COLUMNS", tiles.columns},
                                               {"NARROW", tiles.are_narrow()}});
  page.groups = extents.batch *
                (of_keys ? extents.key_heads * pieces : extents.heads * tile_count(extents.queries, tiles));
  page.group_size = static_cast<int>(2 * tiles.rows * (of_keys ? 2 : 1));
  page.stored_inputs = true;
  return page;
}

// ---- kernels on matrix units ----

// Whether the kernels of shaders/pages/attention_matrices.glsl run.
bool takes_matrices(const Extents& extents, const PageLimits& limits) {
  const std::int64_t eights = 2 * ((extents.extent + kMatrix - 1) / kMatrix),
                     bytes = 16 * (2 * kMatrixBlock * (eights + 1) + kMatrix * 5 * kSubgroups) +
                             4 * kMatrixBlock * eights + 2304;
  return limits.matrix_units && extents.in_eights() && bytes <= limits.shared_bytes;
}

std::int64_t matrix_groups(std::int64_t heads, std::int64_t steps) {
  const std::int64_t rows = kMatrix * kSubgroups;
  return heads * ((steps + rows - 1) / rows);
}

LibraryPage matrix_kernel_of(const Extents& extents, const char* name, std::size_t first_mask) {
  LibraryPage page = page_of(extents, name, first_mask);
  page.prelude = "pages/attention_matrices";
  page.shader = std::string("pages/") + name;
  page.constants.emplace_back("BLOCK", kMatrixBlock);
  page.groups = matrix_groups(extents.batch * extents.heads, extents.queries);
  page.group_size = 32 * kSubgroups;
  page.stored_inputs = page.on_matrix_units = true;
  return page;
}

std::vector<Tensor> forward_on_matrices(const Extents& extents, Values in) {
  LibraryPage page = matrix_kernel_of(extents, "attention_matrices_forward", kForwardMasks);
  page.outputs = {{extents.stored(extents.of_queries()), DType::float16}, {extents.per_query()}};
  if (extents.masks.any()) page.outputs.push_back({extents.per_query()});
  page.eights = {0, 1, 2};
  page.kept = {0};
  std::vector<Tensor> found = run_page(std::move(page), in);
  found[0] = by_heads(extents, cast(found[0], DType::float32));
  if (extents.stores_scores) found.push_back(softmax(scores_of(extents, in)));  // nothing reads it
  return found;
}

std::vector<Tensor> gradient_on_matrices(const Extents& extents, Values in) {
  const std::int64_t key_groups = matrix_groups(extents.batch * extents.key_heads, extents.keys);
  LibraryPage page = matrix_kernel_of(extents, "attention_matrices_gradients", kGradientMasks);
  page.constants.emplace_back("KEY_GROUPS", key_groups);
  page.groups += key_groups;
  page.eights = {0, 1, 2, 3, kResultSlot};
  page.kept = {0, 1, 2};
  if (extents.joins)
    page.outputs = {{{extents.batch, extents.queries, kParts, extents.heads, extents.extent}}};
  else
    page.outputs = {{extents.stored(extents.of_queries())},
                    {extents.stored(extents.of_keys())},
                    {extents.stored(extents.of_keys())}};
  std::vector<Tensor> found = run_page(std::move(page), in);
  if (extents.joins) {
    const Tensor all = found[0];
    found.clear();
    for (std::int64_t part = 0; part < kParts; ++part)
      found.push_back(reshape(narrow(all, 2, part, 1), extents.stored(extents.of_queries())));
  }
  for (Tensor& one : found) one = by_heads(extents, one);
  return found;
}

// ---- the kernels of a device ----

// Whether the forward kernel suffices: no derivative reads what else the page gives.
bool infers_in_tiles(const Extents& extents, const PageLimits& limits) {
  return limits.first_output_only && extents.of_scores().element_count() <= kMostJoinedScores &&
         extents.keys <= kMostJoinedKeys && extents.queries >= kLeastJoinedQueries &&
         tiles_of(TiledKernel::forward, extents, limits).rows > 0;
}

bool takes_tiles(const Extents& extents, const PageLimits& limits) {
  const std::int64_t scores = extents.of_scores().element_count();
  const bool skips_many = extents.causal && scores >= kLeastCausalScores;
  if (extents.stores_scores && scores < kLeastTiledScores && extents.extent > kNarrowExtent && !skips_many)
    return false;
  return std::ranges::all_of(kTiledKernels,
                             [&](TiledKernel kernel) { return tiles_of(kernel, extents, limits).rows > 0; });
}

std::vector<Tensor> forward_kernel(const Extents& extents, Values in, const PageLimits& limits) {
  if (takes_matrices(extents, limits)) return forward_on_matrices(extents, in);
  if (!infers_in_tiles(extents, limits) && !takes_tiles(extents, limits))
    return forward_operations(extents, in);
  LibraryPage page = kernel_of(extents, TiledKernel::forward, limits);
  page.outputs = {{extents.stored(extents.of_queries())}, {extents.per_query()}};
  if (extents.masks.any()) page.outputs.push_back({extents.per_query()});
  if (extents.in_fours()) {
    page.fours = {0, 1, 2};
    page.kept = {0};
  }
  std::vector<Tensor> found = run_page(std::move(page), in);
  found[0] = by_heads(extents, found[0]);
  if (extents.stores_scores) found.push_back(softmax(scores_of(extents, in)));  // nothing reads it
  return found;
}

// Workgroups of a key head in `gradient`, of which each leaves sums of the gradient of queries. 0: they would
// be too many to fill the device with.
std::int64_t pieces_of_gradient(const Extents& extents, std::int64_t tiles, const PageLimits& limits) {
  const std::int64_t heads = extents.batch * extents.key_heads,
                     pieces = std::min(tiles, (limits.groups + heads - 1) / heads);
  const bool is_small = pieces <= kMostPieces && extents.query_sums(pieces).element_count() <= kMostQuerySums;
  return pieces == 1 || is_small ? pieces : 0;
}

std::vector<Tensor> gradient_kernels(const Extents& extents, Values in, const PageLimits& limits) {
  std::vector<Tensor> inputs(in.begin(), in.end());
  if (extents.stores_scores)
    inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(weights_slot(extents)));
  if (takes_matrices(extents, limits)) return gradient_on_matrices(extents, inputs);
  if (!takes_tiles(extents, limits)) return gradient_operations(extents, in);
  // These kernels have no shared memory left for the products.
  inputs[kResultSlot] = sum(inputs[3] * inputs[kResultSlot], {3});
  const std::int64_t tiles = tile_count(extents.keys, tiles_of(TiledKernel::gradient, extents, limits)),
                     pieces = pieces_of_gradient(extents, tiles, limits);
  const bool sums_queries = pieces > 0;
  LibraryPage gradient = kernel_of(extents, TiledKernel::gradient, limits, sums_queries ? pieces : tiles);
  gradient.constants.insert(gradient.constants.end(),
                            {{"PIECES", sums_queries ? pieces : tiles}, {"QUERY_SUMS", sums_queries}});
  gradient.outputs = {{extents.stored(extents.of_keys())}, {extents.stored(extents.of_keys())}};
  if (extents.in_fours()) {
    gradient.fours = {0, 1, 2, 3};
    gradient.kept = {0, 1};
  }
  if (sums_queries) {
    gradient.outputs.push_back({extents.query_sums(pieces)});
    gradient.kept.push_back(2);
  }
  std::vector<Tensor> found = run_page(std::move(gradient), inputs);
  for (std::size_t k = 0; k < 2; ++k) found[k] = by_heads(extents, found[k]);
  if (sums_queries) {
    Tensor sums = narrow(found[2], 4, 0, extents.extent);
    sums = pieces == 1 ? reshape(sums, extents.of_queries()) : sum(sums, {0});
    found = {sums, found[0], found[1]};
  } else {
    LibraryPage of_queries = kernel_of(extents, TiledKernel::gradient_of_queries, limits);
    of_queries.outputs = {{extents.stored(extents.of_queries())}};
    if (extents.in_fours()) {
      of_queries.fours = {0, 1, 2, 3};
      of_queries.kept = {0};
    }
    found.insert(found.begin(), by_heads(extents, run_page(std::move(of_queries), inputs)[0]));
  }
  return found;
}

// ---- derivatives ----

std::vector<Tensor> differentiate(const Extents& extents, Values in, Values outputs, Values gradients) {
  if (std::ranges::any_of(gradients.subspan(1), [](const Tensor& g) { return full_value(g) != 0.0; }))
    // A further derivative: one by the sums or the weights.
    return composed_gradients([extents](Values given) { return forward_operations(extents, given); }, in,
                              gradients);
  const bool is_masked = extents.masks.any();
  LibraryPage page =
      page_of(extents, "attention_gradient", weights_slot(extents) + (extents.stores_scores ? 1 : 0));
  page.outputs = {{extents.of_queries()}, {extents.of_keys()}, {extents.of_keys()}};
  page.compose = [extents](Values inputs) { return gradient_operations(extents, inputs); };
  page.expand = [extents](Values inputs, const PageLimits& limits) {
    return gradient_kernels(extents, inputs, limits);
  };
  page.on_matrix_units = extents.in_eights();
  page.spares_outputs = extents.stores_scores;
  page.backward = [extents](Values inputs, Values, Values of_outputs) {
    return composed_gradients([extents](Values given) { return gradient_operations(extents, given); }, inputs,
                              of_outputs);
  };
  std::vector<Tensor> inputs{in[0], in[1], in[2], gradients[0], outputs[1], outputs[0]};
  inputs.insert(inputs.end(), outputs.begin() + 2, outputs.end());  // the largest scores, the weights
  inputs.insert(inputs.end(), in.begin() + 3, in.end());            // the masks
  std::vector<Tensor> found = run_page(std::move(page), inputs);
  if (!is_masked) return found;
  if (extents.masks.bias.rank() > 0) found.push_back(gradient_of_bias(extents, inputs));
  found.resize(in.size());  // no gradient by what is hidden, none by factors
  return found;
}

// [batch, heads, queries, keys], with 1 where the mask broadcasts; without axes if there is no mask.
Tensor with_axes(const Tensor& mask) {
  if (is_empty(mask) || mask.rank() == 4) return mask;
  Shape shape{1, 1, 1, 1};
  for (int axis = 0; axis < mask.rank(); ++axis) shape[4 - mask.rank() + axis] = mask.extent(axis);
  return reshape(mask, shape);
}

bool fits_mask(const Tensor& mask, DType dtype, const Shape& scores) {
  if (is_empty(mask)) return true;
  if (!mask.ok() || mask.dtype() != dtype || mask.rank() > 4 || mask.shape().is_named()) return false;
  for (int axis = 0; axis < mask.rank(); ++axis) {
    const std::int64_t extent = mask.extent(axis);
    if (extent != 1 && extent != scores[4 - mask.rank() + axis]) return false;
  }
  return mask.shape().element_count() <= std::numeric_limits<std::int32_t>::max();
}

}  // namespace

bool AttentionTerms::has_masks() const { return !is_empty(bias) || !is_empty(hidden) || !is_empty(factors); }

bool fits_attention_page(const Tensor& query, const Tensor& key, const Tensor& value,
                         const AttentionTerms& terms) {
  for (const Tensor* one : {&query, &key, &value})
    if (one->dtype() != DType::float32 || one->shape().is_named() || one->extent(0) != query.extent(0))
      return false;
  const std::int64_t queries = query.extent(2), keys = key.extent(2);
  const Shape scores{query.extent(0), query.extent(1), queries, keys};
  return value.shape() == key.shape() && query.extent(3) == key.extent(3) && key.extent(3) >= 1 &&
         key.extent(3) <= kMostExtent && (!terms.causal || queries <= keys) &&
         fits_mask(terms.bias, DType::float32, scores) && fits_mask(terms.hidden, DType::boolean, scores) &&
         fits_mask(terms.factors, DType::float32, scores);
}

bool has_attention_page(const Tensor& query, const Tensor& key, const Tensor& value,
                        const AttentionTerms& terms) {
  if (!fits_attention_page(query, key, value, terms)) return false;
  const std::int64_t scores = query.shape().element_count() / query.extent(3) * key.extent(2);
  if (scores >= kLeastTiledScores) return true;
  // The gradient of a bias takes another product and as much memory as stored scores do.
  const bool is_small = std::min(query.extent(2), key.extent(2)) < kLeastMaskedSteps;
  return scores >= kLeastScores && is_empty(terms.bias) && !(terms.has_masks() && is_small);
}

bool stores_attention_scores(const Tensor& query, const Tensor& key, const AttentionTerms& terms) {
  return query.shape().element_count() / query.extent(3) * key.extent(2) <
         (terms.has_masks() ? kMostStoredScores : kLeastTiledScores);
}

Tensor attention_page(const Tensor& query, const Tensor& key, const Tensor& value,
                      const AttentionTerms& terms, bool stores_scores) {
  std::vector<Tensor> inputs{query, key, value};
  const auto shape_of = [&](const Tensor& mask) {
    if (is_empty(mask)) return Shape();
    inputs.push_back(with_axes(mask));
    return inputs.back().shape();
  };
  Extents extents{.batch = query.extent(0),
                  .heads = query.extent(1),
                  .key_heads = key.extent(1),
                  .queries = query.extent(2),
                  .keys = key.extent(2),
                  .extent = query.extent(3),
                  .causal = terms.causal,
                  .by_steps = is_by_steps(value),
                  .stores_scores = stores_scores};
  const Node* whole = whole_of(value);
  extents.joins = extents.by_steps && whole && extents.queries == extents.keys &&
                  extents.heads == extents.key_heads && is_by_steps(query) && is_by_steps(key) &&
                  whole_of(query) == whole && whole_of(key) == whole;
  extents.masks.bias = shape_of(terms.bias);
  extents.masks.hidden = shape_of(terms.hidden);
  extents.masks.factors = shape_of(terms.factors);
  LibraryPage page = page_of(extents, "attention", kForwardMasks);
  page.outputs = {{extents.of_queries()}, {extents.per_query()}};
  if (extents.masks.any()) page.outputs.push_back({extents.per_query()});
  if (extents.stores_scores) page.outputs.push_back({extents.of_scores()});
  page.on_matrix_units = extents.in_eights();
  page.spares_outputs = extents.stores_scores;
  page.compose = [extents](Values given) { return forward_operations(extents, given); };
  page.expand = [extents](Values given, const PageLimits& limits) {
    return forward_kernel(extents, given, limits);
  };
  page.backward = [extents](Values given, Values outputs, Values gradients) {
    return differentiate(extents, given, outputs, gradients);
  };
  return run_page(std::move(page), inputs)[0];
}

}  // namespace imprint::nn
