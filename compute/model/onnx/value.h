#pragma once
// Private: a value of an ONNX graph during import. Either the host knows it now (weights, shapes computed
// from shapes), or the graph computes it at run time as a Tensor. Operations that only move elements work on
// either. A result of known operands stays known, so shape arithmetic costs nothing at run time.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compute/base/shared_bytes.h"
#include "compute/model/files/checked_shape.h"
#include "compute/model/onnx/format/proto.h"
#include "compute/model/onnx/symbolic.h"
#include "compute/tensor/tensor.h"

namespace imprint::onnx {

// Floats of its own, or those of the file's bytes, which are copied before they change.
class FloatList {
 public:
  FloatList() = default;
  FloatList(std::vector<float> floats) : own_(std::move(floats)) {}
  // float32 elements at an aligned address.
  explicit FloatList(SharedBytes bytes) : bytes_(std::move(bytes)) {}

  std::size_t size() const { return bytes_.empty() ? own_.size() : bytes_.size() / sizeof(float); }
  const float* data() const {
    return bytes_.empty() ? own_.data() : reinterpret_cast<const float*>(bytes_.data());
  }
  const float* begin() const { return data(); }
  const float* end() const { return data() + size(); }
  const float& operator[](std::size_t index) const { return data()[index]; }
  std::vector<float>& own() {
    if (!bytes_.empty()) own_.assign(begin(), end());
    bytes_ = {};
    return own_;
  }

 private:
  std::vector<float> own_;
  SharedBytes bytes_;
};

// Elements on the host: float types as float32, whole-number types as int64, bool as 0 or 1, strings.
struct HostArray {
  ElementType type = ElementType::float32;  // as the file says
  Shape shape;
  FloatList floats;                // when is_float(type)
  std::vector<std::int64_t> ints;  // whole numbers and bool
  std::vector<std::string> strings;
};

bool is_float(ElementType type);         // float16, bfloat16, float32, float64
bool is_integer(ElementType type);       // 4 to 64 bits, without bool
DType run_time_dtype(ElementType type);  // float32, int32 or boolean

// Elements whose bytes the tensor has: 0 for types that Imprint lacks and for external data that was not
// loaded.
std::int64_t stored_elements(const TensorData& tensor);

// Memory of `elements` on the host and as a constant of the graph, in bytes; of strings without their
// letters.
std::uint64_t held_bytes(ElementType type, std::int64_t elements);

// Shares the bytes of a float32 tensor; converts all others.
// Errors: unsupported (complex numbers, rank or size beyond Tensor's), corrupt_file (external data that was
// not loaded).
Result<HostArray> host_array(const TensorData& tensor);

struct Dequantized;

// Cheap to copy: elements are shared. A tensor, a sequence of a length that is known, or nothing: an optional
// without content.
class Value {
 public:
  Value() = default;
  static Value known(HostArray array);
  static Value sequence(std::vector<Value> parts);
  static Value nothing();
  static Value run_time(Tensor tensor, ElementType type);
  // Whole numbers that follow from named extents, row-major: known when they are numbers.
  static Value symbolic(std::vector<SymbolicInt> elements, const Shape& shape, ElementType type);
  // The graph uses the variable. Its present elements can be looked at, but not folded.
  static Value parameter(const Value& known, Tensor variable);

  bool is_tensor() const { return kind_ == Kind::tensor; }
  bool is_sequence() const { return kind_ == Kind::sequence; }
  bool is_nothing() const { return kind_ == Kind::nothing; }
  std::span<const Value> parts() const;  // of a sequence
  std::string text() const;              // for messages: "float32 [2, 3]", "a sequence of 3"

  // The rest is for tensors. Type and shape of others are undefined and [].
  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  // Null for values of run time.
  const HostArray* host() const { return slot_ ? slot_->array.get() : nullptr; }
  // Null for others than Value::symbolic makes: each run computes those from its extents.
  const std::vector<SymbolicInt>* symbols() const { return slot_ ? slot_->symbols.get() : nullptr; }
  // The same of a known list of whole numbers too. Nothing for other values, and for long lists.
  std::optional<std::vector<SymbolicInt>> as_symbols() const;
  bool foldable() const { return slot_ && slot_->array && slot_->fold; }
  // The numbers, if DequantizeLinear made the value. Null for other values.
  const Dequantized* dequantized() const { return dequantized_.get(); }
  void set_dequantized(Dequantized of);
  // Made from the host's elements at the first call; floats are shared with it. Carries an error when an
  // int64 element does not fit int32.
  Tensor tensor() const;

 private:
  struct Slot {
    std::shared_ptr<const HostArray> array;
    std::shared_ptr<const std::vector<SymbolicInt>> symbols;
    Tensor tensor;
    bool has_tensor = false;
    bool fold = true;
    std::vector<Value> parts;
  };
  enum class Kind : std::uint8_t { tensor, sequence, nothing };
  Kind kind_ = Kind::tensor;
  ElementType type_ = ElementType::undefined;
  Shape shape_;
  std::shared_ptr<Slot> slot_;
  std::shared_ptr<const Dequantized> dequantized_;
};

// (numbers - zero) * scale. Scale and zero: one each, or one per index of the axis.
struct Dequantized {
  Value numbers, scale;
  std::optional<Value> zero;
  int axis = 0;

  bool has_one_scale() const { return scale.shape().element_count() == 1; }
};

// Limits of one import.
struct ImportBudget {
  std::uint64_t folded_bytes = 0;    // of constants that the import computes
  std::uint64_t constant_bytes = 0;  // of all constants: the limit that the host sets
  std::int64_t operations = 0;       // beyond a few per node
};

inline constexpr std::uint64_t kSlowFunction = 8;  // pow, cos: the `work` of Mover::may_fold

// Operations that move elements without looking at them. Callers check that axes are normalised, extents
// agree and results are below kMaxElements. A result is known when its operands are, and it is small and
// within the budget.
class Mover {
 public:
  explicit Mover(const ImportBudget& budget) : budget_(budget), constant_limit_(budget.constant_bytes) {}

  Value reshape(const Value& value, const Shape& shape);
  Value permute(const Value& value, const std::vector<int>& axes);
  // Elements start + i * step, all inside.
  Value slice(const Value& value, int axis, std::int64_t start, std::int64_t count, std::int64_t step);
  Value expand(const Value& value, const Shape& shape);
  Value repeat(const Value& value, int axis, std::int64_t times);
  Value concat(std::span<const Value> values, int axis);
  // indices: foldable and each inside the axis, or at run time and >= 0.
  Value take(const Value& value, int axis, const Value& indices);

  // The tensor's elements, read once per import and counted by the limits. Errors: those of host_array;
  // out_of_host_memory.
  Result<Value> held(const TensorData& tensor);
  // The same for an attribute of a Constant: a tensor, a number, a string or a list. Errors: besides,
  // corrupt_file for others.
  Result<Value> held(const Attribute& attribute);

  // Whether the host may compute `elements` more; counts them if so. work: how many times the time of a copy
  // one takes.
  bool may_fold(ElementType type, std::int64_t elements, std::uint64_t work = 1);
  // The same for weights that each run would convert otherwise: of any size.
  bool may_fold_weight(ElementType type, std::int64_t elements, std::uint64_t work = 1);
  // The same for constants that the file holds, and for operations of the graph.
  bool may_hold(ElementType type, std::int64_t elements);
  bool may_make(std::int64_t operations);

 private:
  // Whether elements are moved now.
  bool moves_now(const Value& value, std::int64_t elements);
  // Without what DequantizeLinear made the value of.
  Value reshaped(const Value& value, const Shape& shape);
  Value permuted(const Value& value, const std::vector<int>& axes, bool now) const;
  Value strided(const Value& value, const Shape& shape, std::span<const std::int64_t> strides,
                std::int64_t offset) const;

  ImportBudget budget_;
  std::uint64_t constant_limit_;
  std::map<const TensorData*, Value> held_;
  std::map<const Attribute*, Value> held_attributes_;
};

}  // namespace imprint::onnx
