// Reductions and CumSum.

#include <algorithm>
#include <array>
#include <numeric>

#include "compute/model/onnx/op.h"

namespace imprint::onnx {
namespace {

// The axes to reduce: an attribute, later an input (ReduceSum since opset 13, others since 18). Nothing: no
// axis, each element is reduced alone.
std::optional<Axes> reduced_axes(OpContext& context, int rank) {
  std::vector<std::int64_t> raw = context.ints_attribute("axes");
  if (context.has(1)) raw = context.known_ints(1, "axes");
  if (raw.empty() && context.int_attribute("noop_with_empty_axes", 0) != 0) return std::nullopt;
  Axes axes = context.axes(raw, rank);
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

// keeps_one: one element alone stays as it is.
template <class Function>
void reduce(OpContext& context, Function function, bool keeps_one = true) {
  const Value from = context.value(0);
  const auto axes = reduced_axes(context, from.rank());
  const bool keep = context.int_attribute("keepdims", 1) != 0;
  if (context.failure()) return;
  if (!axes && keeps_one) return context.set(0, from);
  context.set(0,
              axes ? function(from.tensor(), *axes, keep)
                   : function(imprint::unsqueeze(from.tensor(), -1), Axes{-1}, false),
              from.type());
}

void reduce_sum(OpContext& context) { reduce(context, imprint::sum); }
void reduce_mean(OpContext& context) {
  reduce(context, [](const Tensor& x, const Axes& axes, bool keep) {
    const std::int64_t results = imprint::sum(x, axes, keep).shape().element_count();
    if (x.dtype() != DType::int32 || x.shape().is_named() || results == 0)
      return imprint::mean(x, axes, keep);
    return imprint::div(imprint::sum(x, axes, keep), x.shape().element_count() / results);
  });
}
void reduce_prod(OpContext& context) { reduce(context, imprint::prod); }
void reduce_max(OpContext& context) {
  reduce(context, [](const Tensor& x, const Axes& axes, bool keep) {
    return x.dtype() == DType::boolean ? imprint::any(x, axes, keep) : imprint::max(x, axes, keep);
  });
}
void reduce_min(OpContext& context) {
  reduce(context, [](const Tensor& x, const Axes& axes, bool keep) {
    return x.dtype() == DType::boolean ? imprint::all(x, axes, keep) : imprint::min(x, axes, keep);
  });
}
void reduce_l1(OpContext& context) {
  reduce(
      context,
      [](const Tensor& x, const Axes& axes, bool keep) { return imprint::sum(imprint::abs(x), axes, keep); },
      false);
}
void reduce_l2(OpContext& context) {
  reduce(
      context,
      [](const Tensor& x, const Axes& axes, bool keep) {
        return imprint::sqrt(imprint::sum(imprint::square(x), axes, keep));
      },
      false);
}
void reduce_log_sum(OpContext& context) {
  reduce(
      context,
      [](const Tensor& x, const Axes& axes, bool keep) { return imprint::log(imprint::sum(x, axes, keep)); },
      false);
}
void reduce_log_sum_exp(OpContext& context) { reduce(context, imprint::logsumexp); }
void reduce_sum_square(OpContext& context) {
  reduce(
      context,
      [](const Tensor& x, const Axes& axes, bool keep) {
        return imprint::sum(imprint::square(x), axes, keep);
      },
      false);
}

template <Tensor (*function)(const Tensor&, const Axes&, bool)>
void arg_reduce(OpContext& context) {
  const Tensor x = context.tensor(0);
  if (!context.require(x.rank() > 0, "a scalar has no axis to search")) return;
  const int axis = context.axis(context.int_attribute("axis", 0), x.rank());
  const bool keep = context.int_attribute("keepdims", 1) != 0;
  if (context.int_attribute("select_last_index", 0) == 0)
    return context.set(0, function(x, {axis}, keep), ElementType::int64);
  // The last of equal elements is the first one of the flipped axis.
  const Tensor last = SymbolicInt::of(x.shape(), axis).tensor() - 1;
  Shape along;
  along.append(x.shape(), axis);
  const Tensor flipped = x.shape().is_named(axis)
                             ? imprint::take(x, axis, imprint::sub(last, imprint::iota(along, 0)))
                             : imprint::flip(x, axis);
  context.set(0, imprint::sub(last, function(flipped, {axis}, keep)), ElementType::int64);
}

void cumulative_sum(OpContext& context) {
  const Tensor x = context.tensor(0);
  const int axis = context.axis(context.known_int(1, "axis"), x.rank());
  if (!context.require(x.rank() > 0, "a scalar has no axis to sum along")) return;
  context.set(0, imprint::cumsum(x, axis, context.int_attribute("exclusive", 0) != 0,
                                 context.int_attribute("reverse", 0) != 0));
}

constexpr std::array kReduceOps{
    OpHandler{"ReduceSum", reduce_sum, fold_reduce},
    OpHandler{"ReduceMean", reduce_mean},
    OpHandler{"ReduceProd", reduce_prod, fold_reduce},
    OpHandler{"ReduceMax", reduce_max, fold_reduce},
    OpHandler{"ReduceMin", reduce_min, fold_reduce},
    OpHandler{"ReduceL1", reduce_l1},
    OpHandler{"ReduceL2", reduce_l2},
    OpHandler{"ReduceLogSum", reduce_log_sum},
    OpHandler{"ReduceLogSumExp", reduce_log_sum_exp},
    OpHandler{"ReduceSumSquare", reduce_sum_square},
    OpHandler{"ArgMax", arg_reduce<imprint::argmax>},
    OpHandler{"ArgMin", arg_reduce<imprint::argmin>},
    OpHandler{"CumSum", cumulative_sum},
};

}  // namespace

std::span<const OpHandler> reduce_ops() { return kReduceOps; }

}  // namespace imprint::onnx
