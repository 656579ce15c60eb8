// Arithmetic on values that are known during import: shapes computed from shapes, in int64 and sometimes in
// float32. Handlers are called with a known first input. The others may be left out.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compute/base/number_format.h"
#include "compute/base/text.h"
#include "compute/model/onnx/op.h"

namespace imprint::onnx {
namespace {

// Two's complement of the type's own width, as the operator would compute.
std::int64_t wrap(ElementType type, std::int64_t value) {
  switch (type) {
    case ElementType::uint4:
      return value & 15;
    case ElementType::int4:
      return ((value & 15) ^ 8) - 8;
    case ElementType::uint8:
      return static_cast<std::uint8_t>(value);
    case ElementType::int8:
      return static_cast<std::int8_t>(value);
    case ElementType::uint16:
      return static_cast<std::uint16_t>(value);
    case ElementType::int16:
      return static_cast<std::int16_t>(value);
    case ElementType::uint32:
      return static_cast<std::uint32_t>(value);
    case ElementType::int32:
      return static_cast<std::int32_t>(value);
    case ElementType::boolean:
      return value != 0;
    default:
      return value;
  }
}

std::int64_t from_bits(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }
std::uint64_t to_bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

// As a cast at run time: to the nearest number of the type, or of int32 where the type is narrower.
std::int64_t truncated(ElementType type, float value) {
  if (std::isnan(value)) return 0;
  using Narrow = std::numeric_limits<std::int32_t>;
  using Wide = std::numeric_limits<std::int64_t>;
  if (type == ElementType::uint32 && value >= 0x1p32f) return std::numeric_limits<std::uint32_t>::max();
  if (type == ElementType::uint32 && value >= 0) return static_cast<std::int64_t>(value);
  const bool is_wide = type == ElementType::int64 || type == ElementType::uint64;
  if (value >= (is_wide ? 0x1p63f : 0x1p31f)) return is_wide ? Wide::max() : Narrow::max();
  if (value < (is_wide ? -0x1p63f : -0x1p31f)) return is_wide ? Wide::min() : Narrow::min();
  return static_cast<std::int64_t>(value);
}

// With the digits of the type.
float rounded(ElementType type, float value) {
  if (type == ElementType::float16) return float_from_half(half_from_float(value));
  if (type == ElementType::bfloat16) return float_from_bfloat16(bfloat16_from_float(value));
  return value;
}

struct Unary {
  std::string_view name;
  float (*on_float)(float);  // null: not for this kind
  std::int64_t (*on_int)(std::int64_t);
};
const std::array kUnary{
    Unary{"Abs", [](float a) { return std::fabs(a); },
          [](std::int64_t a) { return a < 0 ? from_bits(0 - to_bits(a)) : a; }},
    Unary{"Neg", [](float a) { return -a; }, [](std::int64_t a) { return from_bits(0 - to_bits(a)); }},
    Unary{"Sign", [](float a) { return static_cast<float>((a > 0) - (a < 0)); },  // as sign(): 0 of NaN
          [](std::int64_t a) -> std::int64_t { return (a > 0) - (a < 0); }},
    Unary{"Floor", [](float a) { return std::floor(a); }, nullptr},
    Unary{"Ceil", [](float a) { return std::ceil(a); }, nullptr},
    Unary{"Round", [](float a) { return std::nearbyint(a); }, nullptr},
    Unary{"Sqrt", [](float a) { return std::sqrt(a); }, nullptr},
    Unary{"Reciprocal", [](float a) { return 1 / a; }, nullptr},
    Unary{"Relu", [](float a) { return a < 0 ? 0.0f : a; },
          [](std::int64_t a) { return std::max<std::int64_t>(a, 0); }},
    Unary{"Not", nullptr, [](std::int64_t a) -> std::int64_t { return a == 0; }},
};

struct Binary {
  std::string_view name;
  float (*on_float)(float, float);
  std::int64_t (*on_int)(std::int64_t, std::int64_t);
  bool compares = false;  // the result is a bool
  bool divides = false;   // whole numbers: not by zero, and not the smallest by -1
};
using F = float;
using I = std::int64_t;
const std::array kBinary{
    Binary{"Add", [](F a, F b) { return a + b; },
           [](I a, I b) { return from_bits(to_bits(a) + to_bits(b)); }},
    Binary{"Sub", [](F a, F b) { return a - b; },
           [](I a, I b) { return from_bits(to_bits(a) - to_bits(b)); }},
    Binary{"Mul", [](F a, F b) { return a * b; },
           [](I a, I b) { return from_bits(to_bits(a) * to_bits(b)); }},
    Binary{"Div", [](F a, F b) { return a / b; }, [](I a, I b) { return a / b; }, false, true},
    Binary{"Pow", [](F a, F b) { return std::pow(a, b); }, nullptr},
    Binary{"Min", [](F a, F b) { return std::isnan(a) || a < b ? a : b; },
           [](I a, I b) { return a < b ? a : b; }},
    Binary{"Max", [](F a, F b) { return std::isnan(a) || a > b ? a : b; },
           [](I a, I b) { return a > b ? a : b; }},
    Binary{"And", nullptr, [](I a, I b) -> I { return a && b; }, true},
    Binary{"Or", nullptr, [](I a, I b) -> I { return a || b; }, true},
    Binary{"Xor", nullptr, [](I a, I b) -> I { return (a != 0) != (b != 0); }, true},
    Binary{"Equal", [](F a, F b) { return F(a == b); }, [](I a, I b) -> I { return a == b; }, true},
    Binary{"Less", [](F a, F b) { return F(a < b); }, [](I a, I b) -> I { return a < b; }, true},
    Binary{"LessOrEqual", [](F a, F b) { return F(a <= b); }, [](I a, I b) -> I { return a <= b; }, true},
    Binary{"Greater", [](F a, F b) { return F(a > b); }, [](I a, I b) -> I { return a > b; }, true},
    Binary{"GreaterOrEqual", [](F a, F b) { return F(a >= b); }, [](I a, I b) -> I { return a >= b; }, true},
};
I modulo(I a, I b) {
  const I rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <class Table>
auto find(const Table& table, std::string_view name) -> const typename Table::value_type* {
  for (const auto& row : table)
    if (row.name == name) return &row;
  return nullptr;
}

// Walks the elements of an output shape, with the position of the element of each operand that broadcasts to
// it: a few additions per element.
template <std::size_t Operands>
class BroadcastWalk {
 public:
  BroadcastWalk(const Shape& out, const std::array<const Shape*, Operands>& operands) {
    for (int axis = 0; axis < out.rank(); ++axis) {
      if (out[axis] == 1) continue;
      const auto a = static_cast<std::size_t>(out_.rank());
      out_.append(out[axis]);
      for (std::size_t k = 0; k < Operands; ++k) {
        const int own = axis - (out.rank() - operands[k]->rank());
        if (own >= 0 && (*operands[k])[own] != 1)
          strides_[k][a] = row_major_strides(*operands[k])[static_cast<std::size_t>(own)];
      }
    }
  }
  std::size_t operator[](std::size_t operand) const { return static_cast<std::size_t>(at_[operand]); }
  void next() {
    for (int axis = out_.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      const bool more = ++index_[a] < out_[axis];
      for (std::size_t k = 0; k < Operands; ++k)
        at_[k] += more ? strides_[k][a] : -strides_[k][a] * (out_[axis] - 1);
      if (more) return;
      index_[a] = 0;
    }
  }

 private:
  using PerAxis = std::array<std::int64_t, Shape::kMaxRank>;
  Shape out_;  // without axes of one element
  std::array<PerAxis, Operands> strides_{};
  PerAxis index_{};
  std::array<std::int64_t, Operands> at_{};
};

HostArray empty_like(ElementType type, const Shape& shape) {
  HostArray out;
  out.type = type;
  out.shape = shape;
  const auto count = static_cast<std::size_t>(shape.element_count());
  if (is_float(type))
    out.floats.own().resize(count);
  else
    out.ints.resize(count);
  return out;
}

bool fold_unary(OpContext& context, const Unary& op) {
  const HostArray& a = *context.value(0).host();
  if (is_float(a.type) ? op.on_float == nullptr : op.on_int == nullptr) return false;
  if (!context.mover().may_fold(a.type, a.shape.element_count())) return false;
  HostArray out = a;
  for (F& value : out.floats.own()) value = op.on_float(value);
  for (I& value : out.ints) value = wrap(out.type, op.on_int(value));
  context.set(0, Value::known(std::move(out)));
  return true;
}

bool fold_binary(OpContext& context, const Binary& op, const HostArray& a, const HostArray& b,
                 HostArray& out) {
  if (is_float(a.type) != is_float(b.type) ||
      (is_float(a.type) ? op.on_float == nullptr : op.on_int == nullptr))
    return false;
  const auto shape = broadcast(a.shape, b.shape);
  const ElementType type = op.compares ? ElementType::boolean : a.type;
  const std::uint64_t work = op.name == "Pow" ? kSlowFunction : 1;
  if (!shape || !context.mover().may_fold(type, shape->element_count(), work)) return false;
  out = empty_like(type, *shape);
  const auto count = static_cast<std::size_t>(shape->element_count());
  BroadcastWalk<2> at(*shape, {&a.shape, &b.shape});
  for (std::size_t i = 0; i < count; ++i, at.next()) {
    if (is_float(a.type)) {
      const F value = op.on_float(a.floats[at[0]], b.floats[at[1]]);
      if (op.compares)
        out.ints[i] = value != 0;
      else
        out.floats.own()[i] = value;
      continue;
    }
    const I x = a.ints[at[0]], y = b.ints[at[1]];
    if (op.divides && (y == 0 || (y == -1 && x == std::numeric_limits<I>::min()))) {
      context.fail(ErrorCode::invalid_argument, text("divides ", x, " by ", y));
      return true;
    }
    out.ints[i] = wrap(out.type, op.on_int(x, y));
  }
  return true;
}

}  // namespace

bool fold_elementwise(OpContext& context) {
  const std::string_view name = context.node().op_type;
  if (const Unary* unary = find(kUnary, name))
    return context.input_count() == 1 && fold_unary(context, *unary);
  const Binary* op = find(kBinary, name);
  if (context.opset() < 7 && context.has_attribute("axis")) return false;
  const Binary mod{"Mod", nullptr, modulo, false, true};
  if (name == "Mod" && context.int_attribute("fmod", 0) == 0) op = &mod;
  if (!op || context.input_count() < 2) return false;
  if (context.input_count() > 2 && name != "Min" && name != "Max") return false;
  if (!context.mover().may_fold(context.value(0).type(), context.shape(0).element_count())) return false;
  HostArray sum = *context.value(0).host();
  for (int i = 1; i < context.input_count(); ++i) {
    HostArray out;
    if (!context.has(i) || !fold_binary(context, *op, sum, *context.value(i).host(), out)) return false;
    if (context.failure()) return true;
    sum = std::move(out);
  }
  context.set(0, Value::known(std::move(sum)));
  return true;
}

bool fold_where(OpContext& context) {
  if (context.input_count() != 3 || !context.has(1) || !context.has(2)) return false;
  const HostArray &condition = *context.value(0).host(), &a = *context.value(1).host(),
                  &b = *context.value(2).host();
  const auto values = broadcast(a.shape, b.shape);
  const auto shape = values ? broadcast(*values, condition.shape) : std::nullopt;
  if (is_float(condition.type) || is_float(a.type) != is_float(b.type) || !shape ||
      !context.mover().may_fold(a.type, shape->element_count()))
    return false;
  HostArray out = empty_like(a.type, *shape);
  const auto count = static_cast<std::size_t>(shape->element_count());
  BroadcastWalk<3> at(*shape, {&condition.shape, &a.shape, &b.shape});
  for (std::size_t i = 0; i < count; ++i, at.next()) {
    const bool first = condition.ints[at[0]] != 0;
    if (is_float(a.type))
      out.floats.own()[i] = first ? a.floats[at[1]] : b.floats[at[2]];
    else
      out.ints[i] = first ? a.ints[at[1]] : b.ints[at[2]];
  }
  context.set(0, Value::known(std::move(out)));
  return true;
}

std::optional<ElementType> cast_target(OpContext& context, std::int64_t number) {
  const auto type = static_cast<ElementType>(static_cast<std::int32_t>(number));
  if (number == static_cast<std::int32_t>(number) &&
      (is_float(type) || is_integer(type) || type == ElementType::boolean))
    return type;
  context.unsupported("a cast to " + element_type_name(type));
  return std::nullopt;
}

HostArray cast_known(const HostArray& from, ElementType to) {
  HostArray out = empty_like(to, from.shape);
  const auto count = static_cast<std::size_t>(from.shape.element_count());
  const bool makes_floats = is_float(to), has_floats = is_float(from.type);
  std::vector<F>& floats = out.floats.own();
  for (std::size_t i = 0; i < count; ++i) {
    if (makes_floats)
      floats[i] = rounded(to, has_floats ? from.floats[i] : static_cast<F>(from.ints[i]));
    else if (has_floats)
      out.ints[i] =
          to == ElementType::boolean ? from.floats[i] != 0 : wrap(to, truncated(to, from.floats[i]));
    else
      out.ints[i] = wrap(to, from.ints[i]);
  }
  return out;
}

bool fold_cast(OpContext& context) {
  const std::int64_t number = context.int_attribute("to", 0);
  if (number == static_cast<std::int32_t>(ElementType::string) ||
      context.value(0).type() == ElementType::string)
    return false;  // cast_text does it
  const auto to = cast_target(context, number);
  const HostArray& from = *context.value(0).host();
  if (!to || !context.mover().may_fold(*to, from.shape.element_count())) return false;
  context.set(0, Value::known(cast_known(from, *to)));
  return true;
}

bool fold_reduce(OpContext& context) {
  // As shape computations need it: a list reduced to one number.
  const Value& value = context.value(0);
  const HostArray& from = *value.host();
  if (from.type != ElementType::int64 || from.shape.rank() != 1 || from.ints.empty() ||
      !context.mover().may_fold(from.type, from.shape.element_count()))
    return false;
  std::vector<std::int64_t> axes = context.ints_attribute("axes");
  if (context.has(1)) axes = context.known_ints(1, "axes");
  if (axes.empty() && context.int_attribute("noop_with_empty_axes", 0) != 0) return false;
  context.axes(axes, 1);
  const std::string_view name = context.node().op_type;
  I result = from.ints[0];
  for (std::size_t i = 1; i < from.ints.size(); ++i) {
    const I value_i = from.ints[i];
    if (name == "ReduceProd")
      result = from_bits(to_bits(result) * to_bits(value_i));
    else if (name == "ReduceSum")
      result = from_bits(to_bits(result) + to_bits(value_i));
    else if (name == "ReduceMax")
      result = std::max(result, value_i);
    else if (name == "ReduceMin")
      result = std::min(result, value_i);
    else
      return false;
  }
  HostArray out;
  out.type = from.type;
  if (context.int_attribute("keepdims", 1) != 0) out.shape.append(1);
  out.ints.push_back(result);
  context.set(0, Value::known(std::move(out)));
  return true;
}

}  // namespace imprint::onnx
