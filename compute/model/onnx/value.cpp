#include "compute/model/onnx/value.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "compute/base/number_format.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"

namespace imprint::onnx {
namespace {

constexpr std::int64_t kMaxFoldedElements = std::int64_t{1} << 20;
constexpr std::size_t kMostSymbols = 64;  // of a list: shapes and a few more

template <class Stored>
void widen(const TensorData& tensor, std::vector<std::int64_t>& out) {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::int64_t>(load_element<Stored>(tensor.bytes.data(), i));
}

// Calls visit(source offset) for each element of a strided view, in row-major order.
template <class Visit>
void for_each_offset(const Shape& given, std::span<const std::int64_t> given_strides, std::int64_t offset,
                     Visit visit) {
  std::array<std::int64_t, Shape::kMaxRank> index{}, strides{};
  Shape shape;  // without axes of one element
  for (int axis = 0; axis < given.rank(); ++axis) {
    if (given[axis] == 1) continue;
    strides[static_cast<std::size_t>(shape.rank())] = given_strides[static_cast<std::size_t>(axis)];
    shape.append(given[axis]);
  }
  const std::int64_t count = shape.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    visit(static_cast<std::size_t>(offset));
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      offset += strides[a];
      if (++index[a] < shape[axis]) break;
      offset -= strides[a] * shape[axis];
      index[a] = 0;
    }
  }
}

Tensor constant_of(const std::shared_ptr<const HostArray>& shared) {
  const HostArray& array = *shared;
  if (array.type == ElementType::string)
    return Tensor(make_error(ErrorCode::unsupported, "found strings, expected numbers"));
  if (is_float(array.type))
    return Tensor::from_bytes(SharedBytes(std::as_bytes(std::span(array.floats)), shared), array.shape,
                              DType::float32);
  std::vector<std::int32_t> narrow(array.ints.size());
  const bool wraps = array.type == ElementType::uint32;  // unsigned.cpp
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    if (!wraps && !std::in_range<std::int32_t>(array.ints[i]))
      return Tensor(make_error(ErrorCode::unsupported,
                               text("a constant holds ", array.ints[i],
                                    ", which does not fit the int32 that int64 is computed as")));
    narrow[i] = static_cast<std::int32_t>(array.ints[i]);
  }
  if (array.type != ElementType::boolean) return Tensor::from_ints(narrow, array.shape);
  const auto flags = std::make_unique<bool[]>(narrow.size());
  for (std::size_t i = 0; i < narrow.size(); ++i) flags[i] = narrow[i] != 0;
  return Tensor::from_bools(std::span<const bool>(flags.get(), narrow.size()), array.shape);
}

// Known numbers: strings are not moved, since no operator that the importer has needs that.
bool has_known_numbers(const Value& value) { return value.foldable() && value.type() != ElementType::string; }

// Whether a value can be joined to another one: the turns of a loop may make different ones.
bool joins(const Value& a, const Value& b, int axis) {
  bool fits = is_float(a.type()) == is_float(b.type()) && a.rank() == b.rank();
  for (int i = 0; fits && i < a.rank(); ++i) fits = i == axis || a.shape()[i] == b.shape()[i];
  return fits;
}

// Computed in each run.
Tensor list_of(const std::vector<SymbolicInt>& symbols, const Shape& shape) {
  std::vector<Tensor> scalars;
  for (const SymbolicInt& symbol : symbols) scalars.push_back(imprint::reshape(symbol.tensor(), {1}));
  return imprint::reshape(imprint::concat(scalars, 0), shape);
}

// Why int64 cannot hold an array's numbers as they were read; empty if it can.
std::string unfit_numbers(const HostArray& array) {
  if (array.type != ElementType::uint64) return {};
  const auto large = std::ranges::find_if(array.ints, [](std::int64_t x) { return x < 0; });
  if (large == array.ints.end()) return {};
  return text("found the number ", static_cast<std::uint64_t>(*large),
              ", expected at most 2^63 - 1. Store the tensor as float32");
}

}  // namespace

bool is_float(ElementType type) {
  return type == ElementType::float32 || type == ElementType::float16 || type == ElementType::bfloat16 ||
         type == ElementType::float64;
}

bool is_integer(ElementType type) {
  switch (type) {
    case ElementType::uint4:
    case ElementType::int4:
    case ElementType::uint8:
    case ElementType::int8:
    case ElementType::uint16:
    case ElementType::int16:
    case ElementType::int32:
    case ElementType::int64:
    case ElementType::uint32:
    case ElementType::uint64:
      return true;
    default:
      return false;
  }
}

DType run_time_dtype(ElementType type) {
  return is_float(type) ? DType::float32 : type == ElementType::boolean ? DType::boolean : DType::int32;
}

Result<HostArray> host_array(const TensorData& tensor) {
  const auto fail = [&](const std::string& reason) {
    return make_error(ErrorCode::unsupported, text("tensor ", quote(tensor.name), ": ", reason));
  };
  if (tensor.external)
    return make_error(ErrorCode::corrupt_file,
                      text("tensor ", quote(tensor.name), " is in another file, ",
                           quote(tensor.external->location), ": load the model by its path, not from bytes"));
  if (!is_float(tensor.type) && !is_integer(tensor.type) && tensor.type != ElementType::boolean &&
      tensor.type != ElementType::string)
    return fail("elements of type " + element_type_name(tensor.type));
  auto shape = checked_shape(tensor.extents);
  if (!shape) return fail(shape.error().message);
  HostArray array;
  array.type = tensor.type;
  array.shape = *shape;
  const auto count = static_cast<std::size_t>(shape->element_count());
  if (tensor.type == ElementType::string) {
    array.strings = tensor.strings;
    return array;
  }
  if (is_float(tensor.type)) {
    const std::byte* data = tensor.bytes.data();
    if (tensor.type == ElementType::float32 && std::endian::native == std::endian::little &&
        reinterpret_cast<std::uintptr_t>(data) % alignof(float) == 0) {
      array.floats = FloatList(tensor.bytes);
      return array;
    }
    std::vector<float>& floats = array.floats.own();
    floats.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      switch (tensor.type) {
        case ElementType::float16:
          floats[i] = float_from_half(load_element<std::uint16_t>(data, i));
          break;
        case ElementType::bfloat16:
          floats[i] = float_from_bfloat16(load_element<std::uint16_t>(data, i));
          break;
        case ElementType::float64:
          floats[i] = static_cast<float>(load_element<double>(data, i));
          break;
        default:
          floats[i] = load_element<float>(data, i);
      }
    }
    return array;
  }
  array.ints.resize(count);
  switch (tensor.type) {
    case ElementType::boolean:
      for (std::size_t i = 0; i < count; ++i) array.ints[i] = tensor.bytes[i] != std::byte{0};
      break;
    case ElementType::uint4:
    case ElementType::uint8:
      widen<std::uint8_t>(tensor, array.ints);
      break;
    case ElementType::int4:
    case ElementType::int8:
      widen<std::int8_t>(tensor, array.ints);
      break;
    case ElementType::uint16:
      widen<std::uint16_t>(tensor, array.ints);
      break;
    case ElementType::int16:
      widen<std::int16_t>(tensor, array.ints);
      break;
    case ElementType::uint32:
      widen<std::uint32_t>(tensor, array.ints);
      break;
    case ElementType::int32:
      widen<std::int32_t>(tensor, array.ints);
      break;
    default:
      widen<std::int64_t>(tensor, array.ints);
  }
  if (const std::string refusal = unfit_numbers(array); !refusal.empty()) return fail(refusal);
  return array;
}

Value Value::known(HostArray array) {
  Value value;
  value.type_ = array.type;
  value.shape_ = array.shape;
  value.slot_ = std::make_shared<Slot>();
  value.slot_->array = std::make_shared<const HostArray>(std::move(array));
  return value;
}

Value Value::run_time(Tensor tensor, ElementType type) {
  Value value;
  value.type_ = type;
  value.shape_ = tensor.shape();
  value.slot_ = std::make_shared<Slot>();
  value.slot_->tensor = std::move(tensor);
  value.slot_->has_tensor = true;
  return value;
}

Value Value::symbolic(std::vector<SymbolicInt> elements, const Shape& shape, ElementType type) {
  HostArray array{.type = type, .shape = shape, .floats = {}, .ints = {}, .strings = {}};
  for (const SymbolicInt& element : elements)
    if (const auto number = element.number()) array.ints.push_back(*number);
  if (array.ints.size() == elements.size()) return known(std::move(array));
  Value value;
  value.type_ = type;
  value.shape_ = shape;
  value.slot_ = std::make_shared<Slot>();
  value.slot_->symbols = std::make_shared<const std::vector<SymbolicInt>>(std::move(elements));
  return value;
}

std::optional<std::vector<SymbolicInt>> Value::as_symbols() const {
  if (symbols()) return *symbols();
  if (!foldable() || !is_integer(type_) || host()->ints.size() > kMostSymbols) return std::nullopt;
  return std::vector<SymbolicInt>(host()->ints.begin(), host()->ints.end());
}

Value Value::parameter(const Value& known, Tensor variable) {
  Value value = known;
  value.slot_ = std::make_shared<Slot>();
  value.slot_->array = known.slot_->array;
  value.slot_->tensor = std::move(variable);
  value.slot_->has_tensor = true;
  value.slot_->fold = false;
  return value;
}

void Value::set_dequantized(Dequantized of) {
  dequantized_ = std::make_shared<const Dequantized>(std::move(of));
}

Value Value::sequence(std::vector<Value> parts) {
  Value value;
  value.kind_ = Kind::sequence;
  value.slot_ = std::make_shared<Slot>();
  value.slot_->parts = std::move(parts);
  return value;
}

Value Value::nothing() {
  Value value;
  value.kind_ = Kind::nothing;
  return value;
}

std::span<const Value> Value::parts() const {
  return slot_ ? std::span<const Value>(slot_->parts) : std::span<const Value>();
}

std::string Value::text() const {
  if (is_sequence()) return imprint::text("a sequence of ", parts().size());
  if (is_nothing()) return "an optional that holds nothing";
  return imprint::text(element_type_name(type_), " ", shape_.text());
}

Tensor Value::tensor() const {
  if (!slot_ || !is_tensor()) return Tensor();
  if (!slot_->has_tensor)
    slot_->tensor = slot_->symbols ? list_of(*slot_->symbols, shape_) : constant_of(slot_->array);
  slot_->has_tensor = true;
  return slot_->tensor;
}

std::int64_t stored_elements(const TensorData& tensor) {
  if (tensor.type == ElementType::string) return static_cast<std::int64_t>(tensor.strings.size());
  const std::size_t size = element_type_size(tensor.type);
  return size == 0 ? 0 : static_cast<std::int64_t>(tensor.bytes.size() / size);
}

std::uint64_t held_bytes(ElementType type, std::int64_t elements) {
  if (type == ElementType::string) return static_cast<std::uint64_t>(elements) * sizeof(std::string);
  return static_cast<std::uint64_t>(elements) * (is_float(type) ? sizeof(float) : sizeof(std::int64_t) + 4);
}

bool Mover::may_hold(ElementType type, std::int64_t elements) {
  const std::uint64_t bytes = held_bytes(type, elements);
  if (bytes > budget_.constant_bytes) return false;
  budget_.constant_bytes -= bytes;
  return true;
}

Result<Value> Mover::held(const TensorData& tensor) {
  if (const auto found = held_.find(&tensor); found != held_.end()) return found->second;
  if (!may_hold(tensor.type, stored_elements(tensor)))
    return make_error(ErrorCode::out_of_host_memory,
                      text("constant ", quote(tensor.name), ": found more than ", constant_limit_,
                           " bytes of constants, the limit of the import"));
  IMPRINT_ASSIGN(HostArray array, host_array(tensor));
  const Value value = Value::known(std::move(array));
  held_.emplace(&tensor, value);
  return value;
}

Result<Value> Mover::held(const Attribute& attribute) {
  if (attribute.kind == AttributeKind::tensor && !attribute.tensors.empty())
    return held(attribute.tensors[0]);
  if (const auto found = held_attributes_.find(&attribute); found != held_attributes_.end())
    return found->second;
  HostArray array;
  const AttributeKind kind = attribute.kind;
  const bool list =
      kind == AttributeKind::floats || kind == AttributeKind::ints || kind == AttributeKind::strings;
  if (kind == AttributeKind::int_value || kind == AttributeKind::ints)
    array.type = ElementType::int64;
  else if (kind == AttributeKind::string_value || kind == AttributeKind::strings)
    array.type = ElementType::string;
  else if (kind != AttributeKind::float_value && kind != AttributeKind::floats)
    return make_error(ErrorCode::corrupt_file, text("attribute ", quote(attribute.name), " holds no value"));
  const std::size_t count = attribute.floats.size() + attribute.ints.size() + attribute.strings.size();
  if (!may_hold(array.type, static_cast<std::int64_t>(count)))
    return make_error(ErrorCode::out_of_host_memory,
                      text("attribute ", quote(attribute.name), ": found more than ", constant_limit_,
                           " bytes of constants, the limit of the import"));
  array.floats = attribute.floats;
  array.ints = attribute.ints;
  array.strings = attribute.strings;
  // A single number that the file leaves out is zero.
  const std::size_t expected = list ? count : 1;
  if (list) array.shape = {static_cast<std::int64_t>(count)};
  if (is_float(array.type))
    array.floats.own().resize(expected);
  else if (array.type == ElementType::string)
    array.strings.resize(expected);
  else
    array.ints.resize(expected);
  const Value value = Value::known(std::move(array));
  held_attributes_.emplace(&attribute, value);
  return value;
}

bool Mover::may_fold(ElementType type, std::int64_t elements, std::uint64_t work) {
  return elements <= kMaxFoldedElements && may_fold_weight(type, elements, work);
}

bool Mover::may_fold_weight(ElementType type, std::int64_t elements, std::uint64_t work) {
  const std::uint64_t bytes = work * held_bytes(type, elements);
  if (bytes > budget_.folded_bytes || !may_hold(type, elements)) return false;
  budget_.folded_bytes -= bytes;
  return true;
}

bool Mover::moves_now(const Value& value, std::int64_t elements) {
  return value.symbols() || (has_known_numbers(value) && may_fold(value.type(), elements));
}

bool Mover::may_make(std::int64_t operations) {
  if (operations > budget_.operations) return false;
  budget_.operations -= operations;
  return true;
}

Value Mover::strided(const Value& value, const Shape& shape, std::span<const std::int64_t> strides,
                     std::int64_t offset) const {
  if (const std::vector<SymbolicInt>* symbols = value.symbols()) {
    std::vector<SymbolicInt> moved;
    for_each_offset(shape, strides, offset, [&](std::size_t at) { moved.push_back((*symbols)[at]); });
    return Value::symbolic(std::move(moved), shape, value.type());
  }
  const HostArray& source = *value.host();
  HostArray out;
  out.type = source.type;
  out.shape = shape;
  if (is_float(source.type)) {
    std::vector<float>& floats = out.floats.own();
    floats.reserve(static_cast<std::size_t>(shape.element_count()));
    for_each_offset(shape, strides, offset, [&](std::size_t at) { floats.push_back(source.floats[at]); });
  } else {
    out.ints.reserve(static_cast<std::size_t>(shape.element_count()));
    for_each_offset(shape, strides, offset, [&](std::size_t at) { out.ints.push_back(source.ints[at]); });
  }
  return Value::known(std::move(out));
}

Value Mover::reshape(const Value& value, const Shape& shape) {
  Value out = reshaped(value, shape);
  const Dequantized* const of = value.dequantized();
  if (of && of->has_one_scale() && !of->numbers.host())
    out.set_dequantized({reshaped(of->numbers, shape), of->scale, of->zero});
  return out;
}

Value Mover::reshaped(const Value& value, const Shape& shape) {
  if (const std::vector<SymbolicInt>* symbols = value.symbols())
    return Value::symbolic(*symbols, shape, value.type());
  if (!value.foldable() || !may_fold(value.type(), shape.element_count()))
    return Value::run_time(imprint::reshape(value.tensor(), shape), value.type());
  HostArray out = *value.host();
  out.shape = shape;
  return Value::known(std::move(out));
}

Value Mover::permute(const Value& value, const std::vector<int>& axes) {
  Value out = permuted(value, axes, moves_now(value, value.shape().element_count()));
  if (const Dequantized* of = value.dequantized()) {
    const Value& numbers = of->numbers;
    const bool now = numbers.foldable() && may_fold_weight(numbers.type(), numbers.shape().element_count());
    const auto axis = std::ranges::find(axes, of->axis) - axes.begin();
    out.set_dequantized({permuted(numbers, axes, now), of->scale, of->zero, static_cast<int>(axis)});
  }
  return out;
}

Value Mover::permuted(const Value& value, const std::vector<int>& axes, bool now) const {
  if (!now) return Value::run_time(imprint::permute(value.tensor(), axes), value.type());
  const auto source = row_major_strides(value.shape());
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  Shape shape = value.shape();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int from = axes[static_cast<std::size_t>(axis)];
    shape[axis] = value.shape()[from];
    strides[static_cast<std::size_t>(axis)] = source[static_cast<std::size_t>(from)];
  }
  return strided(value, shape, strides, 0);
}

Value Mover::slice(const Value& value, int axis, std::int64_t start, std::int64_t count, std::int64_t step) {
  Shape shape = value.shape();
  const std::int64_t extent = shape[axis];
  shape[axis] = count;
  if (!moves_now(value, shape.element_count())) {
    if (count == 0) return Value::run_time(imprint::slice(value.tensor(), axis, 0, 0), value.type());
    // One past the last element; a downward slice that reaches element 0 stops before the beginning, which
    // Python writes as -(extent + 1).
    const std::int64_t last = start + (count - 1) * step;
    const std::int64_t stop = step > 0 ? last + 1 : last == 0 ? -(extent + 1) : last - 1;
    return Value::run_time(imprint::slice(value.tensor(), axis, start, stop, step), value.type());
  }
  auto strides = row_major_strides(value.shape());
  const std::int64_t offset = count == 0 ? 0 : start * strides[static_cast<std::size_t>(axis)];
  strides[static_cast<std::size_t>(axis)] *= step;
  return strided(value, shape, strides, offset);
}

Value Mover::expand(const Value& value, const Shape& shape) {
  if (shape.is_named() ||
      (value.symbols() && shape.element_count() > static_cast<std::int64_t>(kMostSymbols)) ||
      !moves_now(value, shape.element_count()))
    return Value::run_time(imprint::expand(value.tensor(), shape), value.type());
  const auto source = row_major_strides(value.shape());
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  const int added = shape.rank() - value.rank();
  for (int axis = 0; axis < value.rank(); ++axis)
    if (value.shape()[axis] != 1)
      strides[static_cast<std::size_t>(axis + added)] = source[static_cast<std::size_t>(axis)];
  return strided(value, shape, strides, 0);
}

Value Mover::repeat(const Value& value, int axis, std::int64_t times) {
  if (times == 1) return value;
  Shape shape = value.shape();
  shape[axis] *= times;
  if (!has_known_numbers(value) || !may_fold(value.type(), shape.element_count()))
    return Value::run_time(imprint::repeat(value.tensor(), axis, times), value.type());
  const HostArray& source = *value.host();
  HostArray out;
  out.type = source.type;
  out.shape = shape;
  if (shape.element_count() == 0) return Value::known(std::move(out));
  // None of the loops' counts is zero, so they take no more steps than there are elements.
  std::int64_t outer = 1, length = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (int i = axis; i < shape.rank(); ++i) length *= value.shape()[i];
  const auto copy = [&](const auto& from, auto& to) {
    to.reserve(static_cast<std::size_t>(shape.element_count()));
    for (std::int64_t row = 0; row < outer; ++row)
      for (std::int64_t i = 0; i < times; ++i)
        to.insert(to.end(), from.begin() + row * length, from.begin() + (row + 1) * length);
  };
  if (is_float(out.type))
    copy(source.floats, out.floats.own());
  else
    copy(source.ints, out.ints);
  return Value::known(std::move(out));
}

Value Mover::concat(std::span<const Value> values, int axis) {
  Shape shape = values.front().shape();
  shape[axis] = 0;
  bool foldable = true, symbolic = shape.rank() == 1;
  std::vector<SymbolicInt> joined;
  for (const Value& value : values) {
    shape[axis] += value.shape()[axis];
    const bool fits = joins(values.front(), value, axis);
    foldable = foldable && has_known_numbers(value) && fits;
    const auto part = symbolic && fits ? value.as_symbols() : std::nullopt;
    symbolic = part && joined.size() + part->size() <= kMostSymbols;
    if (symbolic) joined.insert(joined.end(), part->begin(), part->end());
  }
  if (symbolic && !foldable) return Value::symbolic(std::move(joined), shape, values.front().type());
  if (!foldable || !may_fold(values.front().type(), shape.element_count())) {
    std::vector<Tensor> tensors;
    for (const Value& value : values) tensors.push_back(value.tensor());
    return Value::run_time(imprint::concat(tensors, axis), values.front().type());
  }
  HostArray out;
  out.type = values.front().type();
  out.shape = shape;
  if (shape.element_count() == 0) return Value::known(std::move(out));
  // Empty parts left out, the loops below take no more steps than there are elements.
  std::vector<Value> parts;
  for (const Value& value : values)
    if (value.shape()[axis] != 0) parts.push_back(value);
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  std::vector<float>& floats = out.floats.own();
  for (std::int64_t row = 0; row < outer; ++row)
    for (const Value& value : parts) {
      const std::int64_t length = value.shape()[axis] * inner;
      const HostArray& part = *value.host();
      if (is_float(out.type))
        floats.insert(floats.end(), part.floats.begin() + row * length,
                      part.floats.begin() + (row + 1) * length);
      else
        out.ints.insert(out.ints.end(), part.ints.begin() + row * length,
                        part.ints.begin() + (row + 1) * length);
    }
  return Value::known(std::move(out));
}

Value Mover::take(const Value& value, int axis, const Value& indices) {
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.append(value.shape()[i]);
  for (const std::int64_t extent : indices.shape().extents()) shape.append(extent);
  for (int i = axis + 1; i < value.rank(); ++i) shape.append(value.shape()[i]);
  if (value.symbols() && value.rank() == 1 && indices.foldable() &&
      shape.element_count() <= static_cast<std::int64_t>(kMostSymbols)) {
    std::vector<SymbolicInt> taken;
    for (const std::int64_t index : indices.host()->ints)
      taken.push_back((*value.symbols())[static_cast<std::size_t>(index)]);
    return Value::symbolic(std::move(taken), shape, value.type());
  }
  if (!has_known_numbers(value) || !indices.foldable() || !may_fold(value.type(), shape.element_count()))
    return Value::run_time(imprint::take(value.tensor(), axis, indices.tensor()), value.type());
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= value.shape()[i];
  for (int i = axis + 1; i < value.rank(); ++i) inner *= value.shape()[i];
  const HostArray& source = *value.host();
  HostArray out;
  out.type = source.type;
  out.shape = shape;
  if (shape.element_count() == 0) return Value::known(std::move(out));
  std::vector<float>& floats = out.floats.own();
  for (std::int64_t row = 0; row < outer; ++row)
    for (const std::int64_t index : indices.host()->ints) {
      const std::int64_t begin = (row * value.shape()[axis] + index) * inner;
      if (is_float(out.type))
        floats.insert(floats.end(), source.floats.begin() + begin, source.floats.begin() + begin + inner);
      else
        out.ints.insert(out.ints.end(), source.ints.begin() + begin, source.ints.begin() + begin + inner);
    }
  return Value::known(std::move(out));
}

}  // namespace imprint::onnx
