// Operators with indices of several axes, in order, or written to: TopK, GatherND, the Scatter family and
// others.

#include <algorithm>
#include <array>
#include <numeric>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/op.h"

namespace imprint::onnx {
namespace {

void top_k(OpContext& context) {
  const Value from = context.value(0);
  const std::int64_t count = context.opset() < 10 ? context.int_attribute("k", 0) : context.known_int(1, "k");
  if (!context.require(from.rank() > 0, "a scalar has no axis")) return;
  const int axis = context.axis(context.int_attribute("axis", -1), from.rank());
  if (!context.require(count >= 0 && count <= from.shape()[axis],
                       text("k: found ", count, ", expected 0 to ", from.shape()[axis])) ||
      !context.may_make(32))
    return;
  const WithIndices found = topk(from.tensor(), count, axis, context.int_attribute("largest", 1) != 0);
  context.set(0, found.values, from.type());
  context.set(1, found.indices, ElementType::int64);
}

// How many elements a step along each of the first `count` axes skips, within those axes.
std::vector<std::int64_t> steps_of(const Shape& shape, int first, int count) {
  std::vector<std::int64_t> steps(static_cast<std::size_t>(count), 1);
  for (int i = count - 2; i >= 0; --i)
    steps[static_cast<std::size_t>(i)] = steps[static_cast<std::size_t>(i) + 1] * shape[first + i + 1];
  return steps;
}

// Indices [..., k] into k axes from `first` on, as one index [...] each; -1 where one is outside.
Tensor joined_indices(const Tensor& indices, const Shape& shape, int first) {
  const int last = indices.rank() - 1, count = static_cast<int>(indices.extent(last));
  const std::vector<std::int64_t> steps = steps_of(shape, first, count);
  Tensor joined, inside;
  for (int i = 0; i < count; ++i) {
    const int extent = static_cast<int>(shape[first + i]);
    const Tensor raw = imprint::squeeze(imprint::narrow(indices, last, i, 1), last);
    const Tensor index = imprint::where(raw < 0, raw + extent, raw);
    const Tensor fits = imprint::logical_and(index >= 0, index < extent);
    const Tensor part = index * static_cast<int>(steps[static_cast<std::size_t>(i)]);
    joined = i == 0 ? part : joined + part;
    inside = i == 0 ? fits : imprint::logical_and(inside, fits);
  }
  return imprint::where(inside, joined, -1);
}

std::int64_t product(const Shape& shape, int from, int to) {
  std::int64_t count = 1;
  for (int i = from; i < to; ++i) count *= shape[i];
  return count;
}

bool fits_indices(OpContext& context, const Value& data, const Value& indices, int batch_axes) {
  bool fits = data.rank() > 0 && indices.rank() > batch_axes && batch_axes >= 0 && batch_axes < data.rank();
  for (int i = 0; fits && i < batch_axes; ++i) fits = data.shape()[i] == indices.shape()[i];
  const std::int64_t count = fits ? indices.shape()[indices.rank() - 1] : 0;
  return context.require(
      fits && is_integer(indices.type()) && count >= 1 && batch_axes + count <= data.rank(),
      text("indices ", indices.shape().text(), " do not fit ", data.shape().text()));
}

void gather_nd(OpContext& context) {
  const Value data = context.value(0), indices = context.value(1);
  const int batch_axes =
      static_cast<int>(std::clamp<std::int64_t>(context.int_attribute("batch_dims", 0), -1, 99));
  if (!fits_indices(context, data, indices, batch_axes)) return;
  const int count = static_cast<int>(indices.shape()[indices.rank() - 1]);
  std::vector<std::int64_t> extents = extents_of(indices.shape());
  extents.pop_back();
  for (int i = batch_axes + count; i < data.rank(); ++i) extents.push_back(data.shape()[i]);
  const Shape shape = context.checked(extents);
  if (context.failure() || !context.may_make(6 * count)) return;
  const std::int64_t batch = product(data.shape(), 0, batch_axes),
                     plane = product(data.shape(), batch_axes, batch_axes + count),
                     rest = product(data.shape(), batch_axes + count, data.rank());
  Tensor at = joined_indices(indices.tensor(), data.shape(), batch_axes);
  if (batch_axes > 0) {
    const std::int64_t each = at.shape().element_count() / std::max<std::int64_t>(batch, 1);
    at = imprint::reshape(at, {batch, each});
    at = imprint::where(at < 0, -1, at + imprint::iota(at.shape(), 0) * static_cast<int>(plane));
  }
  at = imprint::reshape(at, {at.shape().element_count()});
  context.set(
      0,
      imprint::reshape(imprint::take(imprint::reshape(data.tensor(), {batch * plane, rest}), 0, at), shape),
      data.type());
}

std::optional<Scatter> reduction_of(OpContext& context) {
  const std::string name = context.string_attribute("reduction", "none");
  constexpr std::array<std::pair<std::string_view, Scatter>, 5> kNames{{{"none", Scatter::assign},
                                                                        {"add", Scatter::add},
                                                                        {"mul", Scatter::mul},
                                                                        {"min", Scatter::min},
                                                                        {"max", Scatter::max}}};
  for (const auto& [known, mode] : kNames)
    if (known == name) return mode;
  context.unsupported("reduction " + quote(name));
  return std::nullopt;
}

// A scatter along the first axis of `base`, for any dtype.
Tensor scattered(const Tensor& base, const Tensor& at, const Tensor& updates, Scatter mode) {
  if (base.dtype() != DType::boolean) return imprint::scatter(base, 0, at, updates, mode);
  return imprint::cast(
      imprint::scatter(imprint::cast(base, DType::int32), 0, at, imprint::cast(updates, DType::int32), mode),
      DType::boolean);
}

void scatter_nd(OpContext& context) {
  const Value data = context.value(0), indices = context.value(1), updates = context.value(2);
  const auto mode = reduction_of(context);
  if (!mode || !fits_indices(context, data, indices, 0)) return;
  const int count = static_cast<int>(indices.shape()[indices.rank() - 1]);
  std::vector<std::int64_t> extents = extents_of(indices.shape());
  extents.pop_back();
  for (int i = count; i < data.rank(); ++i) extents.push_back(data.shape()[i]);
  if (!context.require(context.checked(extents) == updates.shape() &&
                           run_time_dtype(data.type()) == run_time_dtype(updates.type()),
                       text("updates ", updates.shape().text(), " do not fit indices ",
                            indices.shape().text(), " and ", data.shape().text())) ||
      !context.may_make(6 * count))
    return;
  if (updates.shape().element_count() == 0) return context.set(0, data);
  const std::int64_t plane = product(data.shape(), 0, count),
                     rest = product(data.shape(), count, data.rank()),
                     rows = product(indices.shape(), 0, indices.rank() - 1);
  const Tensor at = imprint::expand(
      imprint::reshape(joined_indices(indices.tensor(), data.shape(), 0), {rows, 1}), {rows, rest});
  const Tensor out = scattered(imprint::reshape(data.tensor(), {plane, rest}), at,
                               imprint::reshape(updates.tensor(), {rows, rest}), *mode);
  context.set(0, stored_as(context, data.type(), imprint::reshape(out, data.shape())), data.type());
}

void scatter_elements(OpContext& context) {
  const Value data = context.value(0), updates = context.value(2);
  const Shape& shape = context.shape(1);
  const auto mode = reduction_of(context);
  if (!mode) return;
  bool fits = data.rank() > 0 && data.rank() == shape.rank() && shape == updates.shape() &&
              run_time_dtype(data.type()) == run_time_dtype(updates.type());
  const int axis = context.axis(context.int_attribute("axis", 0), data.rank());
  for (int i = 0; fits && i < data.rank(); ++i) fits = i == axis || shape[i] <= data.shape()[i];
  if (!context.require(fits, text("indices ", shape.text(), " and updates ", updates.shape().text(),
                                  " do not fit ", data.shape().text())))
    return;
  if (shape.element_count() == 0) return context.set(0, data);
  const auto indices = normal_indices(context, 1, data.shape(), axis);
  if (!indices || !context.may_make(4 * data.rank())) return;
  const Tensor index = indices->tensor();
  const std::vector<std::int64_t> steps = steps_of(data.shape(), 0, data.rank());
  // Each update's place among all elements.
  Tensor at = index * static_cast<int>(steps[static_cast<std::size_t>(axis)]);
  for (int i = 0; i < data.rank(); ++i)
    if (i != axis) at = at + imprint::iota(shape, i) * static_cast<int>(steps[static_cast<std::size_t>(i)]);
  const int extent = static_cast<int>(data.shape()[axis]);
  at = imprint::where(imprint::logical_and(index >= 0, index < extent), at, -1);
  const Tensor out = scattered(imprint::reshape(data.tensor(), {-1}), imprint::reshape(at, {-1}),
                               imprint::reshape(updates.tensor(), {-1}), *mode);
  context.set(0, stored_as(context, data.type(), imprint::reshape(out, data.shape())), data.type());
}

// past_cache [batch, ..., steps, ...] with the update's steps written from write_indices on.
void tensor_scatter(OpContext& context) {
  const Value past = context.value(0), update = context.value(1);
  const int axis = context.axis(context.int_attribute("axis", -2), past.rank());
  const std::string mode = context.string_attribute("mode", "linear");
  bool fits = past.rank() >= 2 && update.rank() == past.rank() && axis > 0;
  for (int i = 0; fits && i < past.rank(); ++i)
    fits = i == axis ? update.shape()[i] <= past.shape()[i] : update.shape()[i] == past.shape()[i];
  if (!context.require(fits, text("update ", update.shape().text(), " does not fit ", past.shape().text())) ||
      !context.require(!context.has(2) || context.shape(2) == Shape{past.shape()[0]},
                       "write_indices: expected one per batch"))
    return;
  const int steps = static_cast<int>(past.shape()[axis]), written = static_cast<int>(update.shape()[axis]);
  Shape beside;
  for (int i = 0; i < past.rank(); ++i) beside.append(i == 0 ? past.shape()[0] : 1);
  Tensor first =
      context.has(2) ? imprint::reshape(context.tensor(2), beside) : imprint::zeros(beside, DType::int32);
  Tensor from = imprint::iota(past.shape(), axis) - first;  // the update's step that each place takes
  if (mode == "circular") from = imprint::remainder(from, Tensor(steps));
  const Tensor inside = imprint::logical_and(from >= 0, from < written);
  context.set(0, imprint::where(inside, imprint::gather(update.tensor(), axis, from), past.tensor()),
              past.type());
}

// The elements' numbers as doubles, for operators whose shape follows from values.
std::optional<std::vector<bool>> known_flags(OpContext& context, int input, const char* what) {
  const Value& value = context.value(input);
  const HostArray* host = value.host();
  if (!value.foldable() || !context.mover().may_fold(value.type(), value.shape().element_count())) {
    context.unsupported(
        text(what, " computed at run time: its shape must follow from the input shapes alone"));
    return std::nullopt;
  }
  std::vector<bool> flags;
  for (const float number : host->floats) flags.push_back(number != 0);
  for (const std::int64_t number : host->ints) flags.push_back(number != 0);
  return flags;
}

void non_zero(OpContext& context) {
  const auto flags = known_flags(context, 0, "NonZero of values");
  if (!flags) return;
  const Shape shape = context.shape(0).rank() == 0 ? Shape{1} : context.shape(0);
  const auto count = std::count(flags->begin(), flags->end(), true);
  HostArray out;
  out.type = ElementType::int64;
  out.shape = {shape.rank(), count};
  if (!context.mover().may_fold(out.type, out.shape.element_count()))
    return context.unsupported("constants of this size");
  const auto strides = row_major_strides(shape);
  for (int axis = 0; axis < shape.rank(); ++axis)
    for (std::size_t i = 0; i < flags->size(); ++i)
      if ((*flags)[i])
        out.ints.push_back(static_cast<std::int64_t>(i) / strides[static_cast<std::size_t>(axis)] %
                           shape[axis]);
  context.set(0, Value::known(std::move(out)));
}

void compress(OpContext& context) {
  const auto flags = known_flags(context, 1, "Compress by a condition");
  if (!flags) return;
  Value data = context.value(0);
  if (!context.has_attribute("axis")) data = context.mover().reshape(data, {data.shape().element_count()});
  const int axis = context.axis(context.int_attribute("axis", 0), data.rank());
  if (context.failure() ||
      !context.require(data.rank() > 0 && static_cast<std::int64_t>(flags->size()) <= data.shape()[axis],
                       "the condition is longer than the axis"))
    return;
  Extents kept;
  for (std::size_t i = 0; i < flags->size(); ++i)
    if ((*flags)[i]) kept.push_back(static_cast<std::int64_t>(i));
  context.set(0, context.mover().take(data, axis, known_vector(std::move(kept))));
}

// x [time, batch, ...] or [batch, time, ...]: the first lengths[batch] steps in reverse.
void reverse_sequence(OpContext& context) {
  const Value x = context.value(0);
  const std::int64_t time = context.int_attribute("time_axis", 0),
                     batch = context.int_attribute("batch_axis", 1);
  if (!context.require(x.rank() >= 2 && time >= 0 && time < 2 && batch == 1 - time &&
                           context.shape(1) == Shape{x.shape()[static_cast<int>(batch)]},
                       text("lengths ", context.shape(1).text(), " do not fit ", x.shape().text())))
    return;
  const int axis = static_cast<int>(time);
  Shape beside;
  for (int i = 0; i < x.rank(); ++i) beside.append(i == batch ? x.shape()[i] : 1);
  const Tensor lengths = imprint::reshape(context.tensor(1), beside), step = imprint::iota(x.shape(), axis);
  const Tensor from = imprint::where(step < lengths, lengths - 1 - step, step);
  context.set(0, imprint::gather(x.tensor(), axis, from), x.type());
}

constexpr std::array kScatterOps{
    OpHandler{"TopK", top_k},
    OpHandler{"GatherND", gather_nd},
    OpHandler{"Scatter", scatter_elements},
    OpHandler{"ScatterElements", scatter_elements},
    OpHandler{"ScatterND", scatter_nd},
    OpHandler{"TensorScatter", tensor_scatter},
    OpHandler{"NonZero", non_zero},
    OpHandler{"Compress", compress},
    OpHandler{"ReverseSequence", reverse_sequence},
};

}  // namespace

std::span<const OpHandler> scatter_ops() { return kScatterOps; }

}  // namespace imprint::onnx
