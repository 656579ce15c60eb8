#include <cmath>
#include <limits>

#include "compute/base/number_format.h"
#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint {

using namespace tensor;

std::optional<double> tensor::full_value(const Tensor& tensor) {
  if (!tensor.ok() || tensor.node()->op != Op::full) return std::nullopt;
  return tensor.node()->floats[0];
}

double tensor::representable(double value, DType dtype) {
  switch (dtype) {
    case DType::float32:
      return static_cast<double>(static_cast<float>(value));
    case DType::float16:
      return static_cast<double>(float_from_half(half_from_float(static_cast<float>(value))));
    case DType::bfloat16:
      return static_cast<double>(float_from_bfloat16(bfloat16_from_float(static_cast<float>(value))));
    case DType::boolean:
      return value != 0 ? 1 : 0;
    case DType::float64:
      return value;
    case DType::int64:  // 2^63 stands for the largest number
      return std::isnan(value) ? 0 : std::trunc(std::fmin(std::fmax(value, -0x1p63), 0x1p63));
    default: {
      if (std::isnan(value)) return 0;
      const bool is_uint32 = dtype == DType::uint32;
      const double low = is_uint32 ? 0 : std::numeric_limits<std::int32_t>::min(),
                   high = is_uint32 ? 4294967295.0 : std::numeric_limits<std::int32_t>::max();
      const double whole = std::trunc(std::fmin(std::fmax(value, low), high));
      return static_cast<double>(wrapped_to(static_cast<std::int64_t>(whole), dtype));
    }
  }
}

Tensor tensor::number(double value, const Tensor& like) { return full({}, value, like.dtype()); }

Tensor input(std::string name, Shape shape, DType dtype) {
  Tensor made = make(Op::input, std::span<const Tensor>(), {.shape = shape, .dtype = dtype});
  if (!made.ok()) return failure(made.error().code, text("input '", name, "'"), made.error().message);
  const_cast<Node&>(*made.node()).label = std::move(name);  // not shared yet
  return made;
}

Tensor full(Shape shape, double value, DType dtype) {
  return make(Op::full, std::span<const Tensor>(),
              {.floats = {representable(value, dtype)}, .shape = shape, .dtype = dtype});
}

Tensor zeros(Shape shape, DType dtype) { return full(shape, 0, dtype); }
Tensor ones(Shape shape, DType dtype) { return full(shape, 1, dtype); }
Tensor zeros_like(const Tensor& t) { return t.ok() ? full(t.shape(), 0, t.dtype()) : t; }
Tensor ones_like(const Tensor& t) { return t.ok() ? full(t.shape(), 1, t.dtype()) : t; }

Tensor iota(Shape shape, int axis) {
  const std::optional<int> position = normalize_axis(axis, shape.rank());
  if (!position)
    return failure(ErrorCode::shape_mismatch, "iota",
                   text("found axis ", axis, " of shape ", shape.text(), ", expected an axis inside"));
  return make(Op::iota, std::span<const Tensor>(),
              {.ints = {*position}, .shape = shape, .dtype = DType::int32});
}

Tensor arange(std::int64_t count) { return iota({count}, 0); }

Tensor arange(double start, double stop, double step) {
  const double count = std::ceil((stop - start) / step);
  if (!std::isfinite(count) || step == 0 || count > 2147483647.0)
    return failure(ErrorCode::invalid_argument, "arange",
                   text("found ", start, " to ", stop, " in steps of ", step,
                        ", expected at most 2^31 - 1 elements and a step that is not 0"));
  const Tensor index = arange(static_cast<std::int64_t>(std::fmax(count, 0)));
  return cast(index, DType::float32) * Tensor(step) + Tensor(start);
}

Tensor one_hot(const Tensor& indices, std::int64_t classes) {
  if (!indices.ok()) return indices;
  if (!dtype_is_integer(indices.dtype())) return bad_dtype("one_hot", indices, "integer indices");
  if (classes < 0 || indices.rank() == Shape::kMaxRank)
    return failure(ErrorCode::invalid_argument, "one_hot",
                   text("found ", classes, " classes for ", describe(indices),
                        ", expected 0 or more classes and at most 7 axes"));
  Shape shape = indices.shape();
  shape.append(classes);
  // Elementwise, so that x * one_hot(i) and its gradient stay in one kernel. A gather would read memory.
  return cast(equal(unsqueeze(as_indices(indices), -1), iota(shape, -1)), DType::float32);
}

}  // namespace imprint
