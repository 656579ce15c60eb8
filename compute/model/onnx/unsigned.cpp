// uint32 at run time. A kernel holds its numbers as the int32 with the same bits. Per operator: whether those
// bits are enough, the order of numbers must be that of int32, or the operator has a form of its own here.

#include <algorithm>
#include <array>
#include <limits>

#include "compute/base/text.h"
#include "compute/model/onnx/op.h"

namespace imprint::onnx {
namespace {

constexpr std::int32_t kTopBit = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kMostInt = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kOperations = 16;  // of a form, at most

// Moves, and arithmetic that wraps to 32 bits.
constexpr std::string_view kSameBits[] = {
    "Add", "Sub", "Mul", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift", "Equal", "Where",
    "Identity", "CumSum", "ReduceSum", "ReduceProd", "ReduceSumSquare", "MatMul", "Gemm",
    // shapes
    "Shape", "Size", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Split", "Slice",
    "Expand", "Tile", "DepthToSpace", "SpaceToDepth", "CenterCropPad", "com.microsoft.ExpandDims",
    "com.microsoft.UnfoldTensor",
    // elements by place
    "Gather", "GatherElements", "GatherND", "com.microsoft.GatherND", "Pad", "com.microsoft.Pad", "Trilu",
    "com.microsoft.Trilu", "EyeLike", "ConstantOfShape", "TensorScatter", "ReverseSequence", "NonZero",
    "Compress", "RandomUniformLike", "RandomNormalLike", "Dropout",
    // bodies, sequences and optionals
    "If", "Loop", "Scan", "SequenceEmpty", "SequenceConstruct", "SequenceInsert", "SequenceErase",
    "SequenceAt", "SequenceLength", "SequenceMap", "SplitToSequence", "ConcatFromSequence", "Optional",
    "OptionalHasElement", "OptionalGetElement"};

constexpr std::string_view kOrdered[] = {"Less",      "LessOrEqual", "Greater", "GreaterOrEqual",
                                         "Min",       "Max",         "Clip",    "ReduceMax",
                                         "ReduceMin", "ArgMax",      "ArgMin",  "TopK"};

constexpr std::string_view kScatters[] = {"Scatter", "ScatterElements", "ScatterND"};

bool lists(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_uint32(const Value& value) { return value.is_tensor() && value.type() == ElementType::uint32; }

// Whether a number may have the top bit, which int32 takes for a sign.
bool may_be_large(const Value& value) {
  if (!is_uint32(value)) return false;
  return !value.host() ||
         std::ranges::any_of(value.host()->ints, [](std::int64_t x) { return x > kMostInt; });
}

Value changed(const Value& value, std::int64_t (*host)(std::int64_t), Tensor (*run)(const Tensor&)) {
  if (!value.foldable()) return Value::run_time(run(value.tensor()), value.type());
  HostArray array = *value.host();
  for (std::int64_t& x : array.ints) x = host(x);
  return Value::known(std::move(array));
}

// Numbers in int32's order, and back.
Value turned(const Value& value) {
  return changed(
      value, [](std::int64_t x) { return x ^ kTopBit; },
      [](const Tensor& x) { return bit_xor(x, Tensor(kTopBit)); });
}

Value turned_back(const Value& value) {
  Value out = turned(value);
  if (!out.foldable()) return out;
  HostArray array = *out.host();
  for (std::int64_t& x : array.ints) x = static_cast<std::uint32_t>(x);
  return Value::known(std::move(array));
}

// Numbers beyond int32 as its largest: an index beyond every axis.
Value no_larger(const Value& value) {
  return changed(
      value, [](std::int64_t x) { return std::min<std::int64_t>(x, kMostInt); },
      [](const Tensor& x) { return imprint::where(x < 0, Tensor(kMostInt), x); });
}

Tensor is_at_least(const Tensor& a, const Tensor& b) {
  return bit_xor(a, Tensor(kTopBit)) >= bit_xor(b, Tensor(kTopBit));
}

// By 0 it is 0, as for int32. Warren, Hacker's Delight, 2nd edition, 9-3.
Tensor quotient(const Tensor& a, const Tensor& b) {
  const Tensor half = bit_and(shift_right(a, Tensor(1)), Tensor(kMostInt));
  const Tensor near = shift_left(div(half, b), Tensor(1));
  const Tensor fits = is_at_least(a, b);
  const Tensor found = add(near, cast(is_at_least(sub(a, mul(near, b)), b), DType::int32));
  return imprint::where(b > 0, found, imprint::where(equal(b, 0), Tensor(0), cast(fits, DType::int32)));
}

void divide(OpContext& context) {
  context.set(0, quotient(context.tensor(0), context.tensor(1)), ElementType::uint32);
}

void modulo(OpContext& context) {
  const Tensor a = context.tensor(0), b = context.tensor(1);
  context.set(0, imprint::where(equal(b, 0), Tensor(0), sub(a, mul(quotient(a, b), b))), ElementType::uint32);
}

// By squaring; wraps. Of negative exponents, if has_sign, only powers of 1 are whole; the rest becomes 0.
Tensor whole_power(Tensor base, const Tensor& exponent, bool has_sign) {
  const Tensor first = base;
  Tensor result = add(mul(base, 0), add(mul(exponent, 0), 1));
  for (int bit = 0; bit < 32; ++bit, base = mul(base, base)) {
    const Tensor taken = bit_and(shift_right(exponent, Tensor(bit)), Tensor(1));
    result = imprint::where(equal(taken, 0), result, mul(result, base));
  }
  return has_sign ? imprint::where(logical_or(exponent >= 0, equal(first, 1)), result, 0) : result;
}

// Both halves and their product are exact: one rounding.
Tensor as_float(const Tensor& x) {
  const auto half = [](const Tensor& bits) { return cast(bit_and(bits, Tensor(0xFFFF)), DType::float32); };
  return half(shift_right(x, Tensor(16))) * 65536.0f + half(x);
}

void cast_to(OpContext& context, ElementType to) {
  const Value from = context.value(0);
  if (is_float(to)) return context.set(0, stored_as(context, to, as_float(from.tensor())), to);
  if (to == ElementType::int64 || to == ElementType::uint64)
    return context.unsupported(text("a cast of uint32 to ", element_type_name(to),
                                    ", whose numbers have 32 bits and a sign at run time. Cast to float32, "
                                    "or declare the input as int32"));
  context.set(0, stored_as(context, to, cast(from.tensor(), run_time_dtype(to))), to);
}

void power(OpContext& context) {
  constexpr std::int64_t kOperationsOfPower = 192;
  const Value base = context.value(0), exponent = context.value(1);
  if (!context.may_make(kOperationsOfPower)) return;
  if (is_integer(base.type()) && is_integer(exponent.type()))
    return context.set(
        0,
        stored_as(context, base.type(), whole_power(base.tensor(), exponent.tensor(), !is_uint32(exponent))),
        base.type());
  const auto real = [](const Value& value) {
    return is_uint32(value) ? as_float(value.tensor()) : cast(value.tensor(), DType::float32);
  };
  const Tensor result = pow(real(base), real(exponent));
  context.set(0, stored_as(context, base.type(), is_uint32(base) ? uint32_of(result) : result), base.type());
}

void cast_node(OpContext& context) {
  if (const auto to = cast_target(context, context.int_attribute("to", 0))) cast_to(context, *to);
}

void cast_like(OpContext& context) {
  const auto to = cast_target(context, static_cast<std::int64_t>(context.value(1).type()));
  if (to && is_uint32(context.value(0))) return cast_to(context, *to);
  if (to) context.set(0, uint32_of(context.tensor(0)), *to);
}

void absolute(OpContext& context) { context.set(0, context.value(0)); }

void sign(OpContext& context) {
  context.set(0, cast(cast(context.tensor(0), DType::boolean), DType::int32), ElementType::uint32);
}

struct Form {
  std::string_view name;
  void (*import)(OpContext&);
};
constexpr std::array kForms{Form{"Div", divide},         Form{"Mod", modulo},   Form{"Cast", cast_node},
                            Form{"CastLike", cast_like}, Form{"Abs", absolute}, Form{"Sign", sign},
                            Form{"Pow", power}};

}  // namespace

Tensor uint32_of(const Tensor& x) {
  if (!dtype_is_float(x.dtype())) return cast(x, DType::int32);
  return imprint::where(x < 0.0f, cast(x, DType::int32), cast(cast(x, DType::uint32), DType::int32));
}

void import_with_unsigned(OpContext& context, const OpHandler& handler) {
  const std::string_view name = handler.name;
  const auto any = [&](bool (*holds)(const Value&)) {
    return std::ranges::any_of(context.inputs(), [&](const auto& input) { return input && holds(*input); });
  };
  if (!any(is_uint32) || lists(kSameBits, name)) return handler.import(context);
  const auto is_form = std::ranges::find(kForms, name, &Form::name);
  if (is_form != kForms.end()) {
    if (context.may_make(kOperations)) is_form->import(context);
    return;
  }
  const std::string reduction =
      lists(kScatters, name) ? context.string_attribute("reduction", "none") : std::string();
  if (lists(kScatters, name) && reduction != "max" && reduction != "min") return handler.import(context);
  if (name == "ReduceL1") return context.become(*find_handler("", "ReduceSum"), context.inputs());
  std::vector<std::optional<Value>> inputs = context.inputs();
  if (name == "OneHot") {
    if (inputs[0] && is_uint32(*inputs[0])) inputs[0] = no_larger(*inputs[0]);
    return context.become(handler, std::move(inputs));
  }
  if (!lists(kOrdered, name) && reduction.empty()) {
    if (!any(may_be_large)) return handler.import(context);
    return context.unsupported(
        "uint32 numbers of run time, which may be 2^31 or more. Cast them to float32, or declare the input "
        "as int32");
  }
  if (!context.may_make(kOperations)) return;
  for (auto& input : inputs)
    if (input && is_uint32(*input)) input = turned(*input);
  context.become(handler, std::move(inputs));
  for (std::size_t i = 0; i < context.outputs().size(); ++i)
    if (const Value output = context.outputs()[i]; is_uint32(output))
      context.set(static_cast<int>(i), turned_back(output));
}

}  // namespace imprint::onnx
