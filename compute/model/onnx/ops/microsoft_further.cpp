// Further operators of ONNX Runtime's exporters (com.microsoft): what ONNX has too, biases that are fused
// with what follows, groups, positions and matrices.

#include <algorithm>
#include <array>
#include <cmath>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/op.h"
#include "compute/tensor/ops/linear_algebra.h"

namespace imprint::onnx {
namespace {

// ---- ONNX's own, from before ONNX had them ----

template <const auto& name, std::int64_t opset>
void as_onnx(OpContext& context) {
  if (const auto found = context.imported_as(name, opset, context.inputs())) context.set(0, (*found)[0]);
}
constexpr std::string_view kGatherNd = "GatherND", kGridSample = "GridSample", kPad = "Pad", kTrilu = "Trilu";

void range_ms(OpContext& context) {
  std::vector<std::optional<Value>> inputs = context.inputs();
  if (!context.has(2)) {
    const ElementType type = context.value(0).type();
    HostArray one{.type = type, .shape = {}, .floats = {}, .ints = {}, .strings = {}};
    if (is_float(type))
      one.floats.own().push_back(1);
    else
      one.ints.push_back(1);
    inputs.resize(2);
    inputs.emplace_back(Value::known(std::move(one)));
  }
  if (const auto found = context.imported_as("Range", 11, std::move(inputs))) context.set(0, (*found)[0]);
}

void expand_dims(OpContext& context) {
  const Value axis = context.value(1);
  if (!context.require(axis.shape().element_count() == 1,
                       text("axis: found ", axis.shape().text(), ", expected one number")))
    return;
  const auto found =
      context.imported_as("Unsqueeze", 13, {context.value(0), context.mover().reshape(axis, {1})});
  if (found) context.set(0, (*found)[0]);
}

// ---- a bias and what follows it ----

void bias_softmax(OpContext& context) {
  const Tensor x = context.tensor(0) + context.tensor(1);
  if (!context.require(x.shape() == context.shape(0), "the bias does not fit the scores")) return;
  const auto found = context.imported_as("Softmax", 11, {Value::run_time(x, context.value(0).type())});
  if (found) context.set(0, (*found)[0]);
}

// The mask of a Dropout that drops nothing.
void bias_dropout(OpContext& context) {
  if (context.has(4) && context.known_number(4, "training_mode") != 0) return context.unsupported("training");
  Tensor x = context.tensor(0) + context.tensor(1);
  if (context.has(2)) x = x + context.tensor(2);
  context.set(0, x);
  if (context.wants(1)) context.set(1, full(x.shape(), 1, DType::boolean), ElementType::boolean);
}

void bias_add(OpContext& context) {
  context.set(0, context.tensor(0) + context.tensor(1) + context.tensor(2));
}

void bias_split_gelu(OpContext& context) {
  const Tensor x = context.tensor(0) + context.tensor(1);
  if (!context.require(x.rank() >= 1 && x.extent(x.rank() - 1) % 2 == 0,
                       text("x ", x.shape().text(), " has no halves")))
    return;
  const int last = x.rank() - 1;
  const std::int64_t half = x.extent(last) / 2;
  context.set(0, imprint::narrow(x, last, 0, half) * imprint::gelu(imprint::narrow(x, last, half, half)));
}

void gemm_fast_gelu(OpContext& context) {
  Tensor x = imprint::matmul(context.tensor(0), context.tensor(1));
  if (context.has(2)) x = x + context.tensor(2);
  context.set(0, imprint::gelu_tanh(x));
}

// ---- groups of channels ----

// x normalised in groups of channels, times gamma, plus beta, and silu of it if asked.
void normalise_groups(OpContext& context, const Tensor& x) {
  const std::int64_t groups = context.int_attribute("groups", 0);
  const bool last = context.int_attribute("channels_last", 1) != 0;
  const int axis = last ? x.rank() - 1 : 1;
  const std::int64_t activation = context.int_attribute("activation", 0);
  if (!context.require(x.rank() >= 3 && groups > 0 && x.extent(axis) % groups == 0,
                       text("x ", x.shape().text(), " does not fit ", groups, " groups")) ||
      !context.require(activation == 0 || activation == 1, text("activation ", activation)))
    return;
  const std::int64_t channels = x.extent(axis), each = channels / groups,
                     places = x.shape().element_count() / std::max<std::int64_t>(1, x.extent(0) * channels);
  const Shape parts =
      last ? Shape{x.extent(0), places, groups, each} : Shape{x.extent(0), groups, each, places};
  const Tensor normal =
      imprint::reshape(normalized(imprint::reshape(x, parts), last ? Axes{1, 3} : Axes{2, 3},
                                  context.float_attribute("epsilon", 1e-5)),
                       x.shape());
  const auto per_channel_of = [&](int input) {
    Shape shape{channels};
    for (int i = axis + 1; i < x.rank(); ++i) shape.append(1);
    return imprint::reshape(context.tensor(input), shape);
  };
  const Tensor out = normal * per_channel_of(1) + per_channel_of(2);
  context.set(0, activation == 1 ? imprint::silu(out) : out);
}

void group_norm_ms(OpContext& context) { normalise_groups(context, context.tensor(0)); }

// skip: as x, or one row per batch element.
void skip_group_norm(OpContext& context) {
  Tensor x = context.tensor(0), skip = context.tensor(3);
  if (skip.rank() == 2 && x.rank() > 2)
    for (int axis = 1; axis + 1 < x.rank(); ++axis) skip = imprint::unsqueeze(skip, 1);
  x = x + skip;
  if (context.has(4)) x = x + context.tensor(4);
  if (!context.require(x.shape() == context.shape(0), "skip does not fit x")) return;
  normalise_groups(context, x);
  context.set(1, x);
}

// ---- positions ----

// T5's buckets of distances: small ones one each, larger ones by their logarithm.
std::int64_t bucket_of(std::int64_t distance, std::int64_t buckets, std::int64_t most, bool both_ways) {
  std::int64_t first = 0;
  if (both_ways) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<std::int64_t>(0, -distance);
  }
  const std::int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const float ratio = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                      std::log(static_cast<float>(most) / static_cast<float>(exact));
  const auto far = static_cast<std::int64_t>(ratio * static_cast<float>(buckets - exact));
  return first + std::min(exact + far, buckets - 1);
}

// The bias of each head for each distance between query and key: [1, heads, queries, keys].
void relative_position_bias(OpContext& context) {
  const Tensor table = context.tensor(0);
  const std::int64_t queries = context.known_int(1, "query_length"),
                     keys = context.known_int(2, "key_length"),
                     most = context.int_attribute("max_distance", 128);
  const bool both_ways = context.int_attribute("is_bidirectional", 0) != 0;
  if (!context.require(table.rank() == 2 && table.extent(0) >= 4 && most > table.extent(0) && queries >= 0 &&
                           queries <= (1 << 20) && keys >= 0 && keys <= (1 << 20),
                       text("table ", table.shape().text(), ": found ", queries, " queries, ", keys,
                            " keys and distances up to ", most)))
    return;
  if (!context.mover().may_fold(ElementType::int32, queries * keys))
    return context.unsupported("constants of this size");
  std::vector<std::int32_t> rows;
  for (std::int64_t query = 0; query < queries; ++query)
    for (std::int64_t key = 0; key < keys; ++key)
      rows.push_back(static_cast<std::int32_t>(bucket_of(key - query, table.extent(0), most, both_ways)));
  const Tensor bias = imprint::take(imprint::transpose(table), 1, Tensor::from_ints(rows, {queries, keys}));
  context.set(0, imprint::unsqueeze(bias, 0));
}

void torch_embedding(OpContext& context) {
  const auto indices = context.require(context.shape(0).rank() == 2, "expected a table of rows")
                           ? normal_indices(context, 1, context.shape(0), 0)
                           : std::nullopt;
  if (indices)
    context.set(0, imprint::take(context.tensor(0), 0, indices->tensor()), context.value(0).type());
}

// ---- matrices and complex numbers ----

// Distances between rows of A and rows of B.
void distances(OpContext& context) {
  const Tensor a = context.tensor(0), b = context.tensor(1);
  const std::string metric = context.string_attribute("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean") return context.unsupported("metric " + quote(metric));
  if (!context.require(
          a.rank() == 2 && b.rank() == 2 && a.extent(1) == b.extent(1),
          text("found A ", a.shape().text(), " and B ", b.shape().text(), ", expected rows of equal length")))
    return;
  context.checked(Extents{a.extent(0), b.extent(0), a.extent(1)});
  if (context.failure()) return;
  const Tensor squares =
      imprint::sum(imprint::square(imprint::unsqueeze(a, 1) - imprint::unsqueeze(b, 0)), {2});
  context.set(0, metric == "euclidean" ? imprint::sqrt(squares) : squares);
}

void inverse_ms(OpContext& context) { context.set(0, imprint::inverse(context.tensor(0))); }

void unfold_tensor(OpContext& context) {
  const Tensor x = context.tensor(0);
  const int axis = context.axis(context.int_attribute("dim", -1), x.rank());
  const std::int64_t size = context.int_attribute("size", 0), step = context.int_attribute("step", 1);
  if (!context.require(
          x.rank() >= 1 && size >= 1 && step >= 1 && step < kMaxElements && size <= x.extent(axis),
          text("windows of ", size, " in steps of ", step, " do not fit x ", x.shape().text())))
    return;
  Extents extents = extents_of(x.shape());
  extents[static_cast<std::size_t>(axis)] = (x.extent(axis) - size) / step + 1;
  extents.push_back(size);
  context.checked(extents);
  if (!context.failure()) context.set(0, imprint::window(x, axis, size, step));
}

// Pairs of real and imaginary parts along the last axis. conjugate: of B.
void multiply_complex(OpContext& context, bool conjugate) {
  const Tensor a = context.tensor(0), b = context.tensor(1);
  const auto pairs = [](const Tensor& x) { return x.rank() >= 1 && x.extent(x.rank() - 1) == 2; };
  if (!context.require(pairs(a) && pairs(b), "expected pairs along the last axis")) return;
  const auto part = [](const Tensor& x, int which) { return imprint::narrow(x, x.rank() - 1, which, 1); };
  const Tensor imaginary = conjugate ? -part(b, 1) : part(b, 1);
  const Tensor real = part(a, 0) * part(b, 0) - part(a, 1) * imaginary,
               other = part(a, 0) * imaginary + part(a, 1) * part(b, 0);
  context.set(0, imprint::concat({real, other}, real.rank() - 1));
}
void complex_mul(OpContext& context) { multiply_complex(context, false); }
void complex_mul_conj(OpContext& context) { multiply_complex(context, true); }

constexpr std::array kMicrosoftFurtherOps{
    OpHandler{"com.microsoft.BiasAdd", bias_add},
    OpHandler{"com.microsoft.BiasDropout", bias_dropout},
    OpHandler{"com.microsoft.BiasSoftmax", bias_softmax},
    OpHandler{"com.microsoft.BiasSplitGelu", bias_split_gelu},
    OpHandler{"com.microsoft.CDist", distances},
    OpHandler{"com.microsoft.ComplexMul", complex_mul},
    OpHandler{"com.microsoft.ComplexMulConj", complex_mul_conj},
    OpHandler{"com.microsoft.ExpandDims", expand_dims},
    OpHandler{"com.microsoft.GatherND", as_onnx<kGatherNd, 13>},
    OpHandler{"com.microsoft.GemmFastGelu", gemm_fast_gelu},
    OpHandler{"com.microsoft.GridSample", as_onnx<kGridSample, 16>},
    OpHandler{"com.microsoft.GroupNorm", group_norm_ms},
    OpHandler{"com.microsoft.Inverse", inverse_ms},
    OpHandler{"com.microsoft.Pad", as_onnx<kPad, 13>},
    OpHandler{"com.microsoft.Range", range_ms},
    OpHandler{"com.microsoft.RelativePositionBias", relative_position_bias},
    OpHandler{"com.microsoft.SkipGroupNorm", skip_group_norm},
    OpHandler{"com.microsoft.TorchEmbedding", torch_embedding},
    OpHandler{"com.microsoft.Trilu", as_onnx<kTrilu, 14>},
    OpHandler{"com.microsoft.UnfoldTensor", unfold_tensor},
};

}  // namespace

std::span<const OpHandler> microsoft_further_ops() { return kMicrosoftFurtherOps; }

}  // namespace imprint::onnx
