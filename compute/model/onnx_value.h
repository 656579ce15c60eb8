#pragma once
// Inside the room: a value of an ONNX graph during import. It is known now, on the host (weights, shapes
// computed from shapes), or at run time, as a Tensor. Operations that only move elements work on either; what
// is known stays known, so shape arithmetic costs nothing at run time.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/model/onnx_proto.h"
#include "compute/tensor/tensor.h"

namespace imprint::onnx {

// Elements on the host. float types are held as float32 and whole-number types as int64, whatever the file's
// width; bool as 0 or 1.
struct HostArray {
  ElementType type = ElementType::float32;  // as the file says
  Shape shape;
  std::vector<float> floats;       // when is_float(type)
  std::vector<std::int64_t> ints;  // otherwise
};

bool is_float(ElementType type);         // float16, bfloat16, float32, float64
bool is_integer(ElementType type);       // whole numbers of at most 64 bits, without bool
DType run_time_dtype(ElementType type);  // float32, int32 or boolean

// Errors: unsupported (strings, complex numbers, rank or size beyond Tensor's), corrupt_file (external data
// that was not loaded).
Result<HostArray> host_array(const TensorData& tensor);

// The most elements of one tensor; keeps every product of extents far from overflow.
inline constexpr std::int64_t kMaxElements = (std::int64_t{1} << 31) - 1;

// Extents as a Shape. Errors: unsupported (more than Shape::kMaxRank axes, more than kMaxElements),
// invalid_argument (a negative extent).
Result<Shape> checked_shape(std::span<const std::int64_t> extents);

// Cheap to copy: elements are shared.
class Value {
 public:
  Value() = default;
  static Value known(HostArray array);
  static Value run_time(Tensor tensor, ElementType type);
  static Value parameter(
      HostArray array,
      Tensor variable);  // the graph uses the variable; its present elements may be looked at, not folded

  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  const HostArray* host() const {
    return slot_ ? slot_->array.get() : nullptr;
  }  // null when only known at run time
  bool foldable() const { return slot_ && slot_->array && slot_->fold; }
  // Made from the host's elements at the first call. Carries an error when an int64 element does not fit the
  // int32 of run time.
  Tensor tensor() const;

 private:
  struct Slot {
    std::shared_ptr<const HostArray> array;
    Tensor tensor;
    bool fold = true;
  };
  ElementType type_ = ElementType::undefined;
  Shape shape_;
  std::shared_ptr<Slot> slot_;
};

// Operations that move elements without looking at them. Axes are normalised, extents agree and results are
// below kMaxElements: callers check. A result is known when its operands are and it is small enough; `budget`
// bounds what all results of an import may take together.
class Mover {
 public:
  explicit Mover(std::int64_t budget) : budget_(budget) {}

  Value reshape(const Value& value, const Shape& shape);
  Value permute(const Value& value, const std::vector<int>& axes);
  Value slice(const Value& value, int axis, std::int64_t start, std::int64_t count,
              std::int64_t step);  // start + i * step, all inside
  Value expand(const Value& value, const Shape& shape);
  Value repeat(const Value& value, int axis, std::int64_t times);
  Value concat(std::span<const Value> values, int axis);
  Value take(const Value& value, int axis,
             const Value& indices);  // indices foldable (each inside) or at run time (>= 0)

  // Whether `elements` more may be computed on the host; counts them when so.
  bool may_fold(std::int64_t elements);

 private:
  Value strided(const Value& value, const Shape& shape, std::span<const std::int64_t> strides,
                std::int64_t offset) const;

  std::int64_t budget_;
};

}  // namespace imprint::onnx
