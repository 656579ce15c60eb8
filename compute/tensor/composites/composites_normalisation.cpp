#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/narrow_floats.h"

namespace imprint {

using namespace tensor;

namespace {

// The shift before exp that prevents overflow. It cancels out of value and derivative, so no gradient passes
// through it.
Tensor shift_of(const Tensor& x, const Axes& axes) {
  const Tensor largest = max(x, axes, true);
  return stop_gradient(where(is_inf(largest), 0.0f, largest));
}

std::optional<Tensor> refuse(std::string_view op, const Tensor& x, int axis) {
  if (!x.ok()) return x;
  if (x.dtype() != DType::float32) return bad_dtype(op, x, "float32");
  if (!normalize_axis(axis, x.rank())) return bad_axis(op, axis, x);
  return std::nullopt;
}

}  // namespace

Tensor logsumexp(const Tensor& x, const Axes& axes, bool keep_dims) {
  if (!x.ok()) return x;
  if (is_narrow_float(x))
    return rounded_once(x, [&](const Tensor& wide) { return logsumexp(wide, axes, keep_dims); });
  if (x.dtype() != DType::float32) return bad_dtype("logsumexp", x, "float32");
  const Tensor shift = shift_of(x, axes);
  const Tensor kept = log(sum(exp(x - shift), axes, true)) + shift;
  return keep_dims || !kept.ok() ? kept : reshape(kept, sum(x, axes, false).shape());
}

Tensor softmax(const Tensor& x, int axis) {
  if (is_narrow_float(x)) return rounded_once(x, [&](const Tensor& wide) { return softmax(wide, axis); });
  if (std::optional<Tensor> refused = refuse("softmax", x, axis)) return *refused;
  const Tensor powers = exp(x - stop_gradient(max(x, {axis}, true)));
  return powers / sum(powers, {axis}, true);
}

Tensor log_softmax(const Tensor& x, int axis) {
  if (is_narrow_float(x)) return rounded_once(x, [&](const Tensor& wide) { return log_softmax(wide, axis); });
  if (std::optional<Tensor> refused = refuse("log_softmax", x, axis)) return *refused;
  const Tensor shifted = x - stop_gradient(max(x, {axis}, true));
  return shifted - log(sum(exp(shifted), {axis}, true));
}

Tensor softmin(const Tensor& x, int axis) { return softmax(-x, axis); }

// Scaled by the largest term, the 1 included.
Tensor quiet_softmax(const Tensor& x, int axis) {
  if (is_narrow_float(x))
    return rounded_once(x, [&](const Tensor& wide) { return quiet_softmax(wide, axis); });
  if (std::optional<Tensor> refused = refuse("quiet_softmax", x, axis)) return *refused;
  const Tensor largest = stop_gradient(clamp_min(max(x, {axis}, true), 0));
  const Tensor powers = exp(x - largest);
  return powers / (exp(-largest) + sum(powers, {axis}, true));
}

// Ba, Kiros, Hinton, Layer Normalization, 2016.
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon) {
  if (is_narrow_float(x))
    return rounded_once(x, [&](const Tensor& wide) {
      return layer_norm(wide, cast(gain, DType::float32), cast(bias, DType::float32), epsilon);
    });
  if (std::optional<Tensor> refused = refuse("layer_norm", x, -1)) return *refused;
  for (const auto& [name, operand] :
       {std::pair<std::string, const Tensor&>{"gain ", gain}, {"bias ", bias}}) {
    if (!operand.ok()) return operand;
    if (operand.shape() != Shape{x.extent(-1)})
      return failure(ErrorCode::shape_mismatch, "layer_norm",
                     text("found ", name, describe(operand), ", expected [", x.extent(-1),
                          "], the last extent of ", describe(x)));
  }
  const Tensor centred = x - mean(x, {-1}, true);
  const Tensor spread = mean(square(centred), {-1}, true);
  return centred * rsqrt(spread + Tensor(epsilon)) * gain + bias;
}

}  // namespace imprint
