// Models with named extents (compute/docs/extents.md): shape arithmetic whose results each run computes, and
// the operators that make shapes of them.

#include <algorithm>
#include <set>

#include "compute/base/text.h"
#include "compute/model/onnx/op.h"

namespace imprint::onnx {
namespace {

using Symbols = std::vector<SymbolicInt>;

constexpr std::string_view kTakeNamed[] = {
    "Abs", "Neg", "Sign", "Ceil", "Floor", "Round", "Sqrt", "Reciprocal", "Exp", "Log", "Sin", "Cos", "Tan",
    "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Erf", "IsNaN", "IsInf", "Not",
    "BitwiseNot", "Add", "Sub", "Mul", "Div", "Mod", "Pow", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr",
    "BitwiseXor", "BitShift", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Min", "Max",
    "Sum", "Mean", "Where", "Clip", "Cast", "CastLike",
    // activations
    "Relu", "LeakyRelu", "PRelu", "Elu", "Selu", "Celu", "ThresholdedRelu", "Gelu", "Sigmoid", "HardSigmoid",
    "HardSwish", "Swish", "Mish", "Softsign", "Tanh", "Softplus", "Softmax", "LogSoftmax", "Hardmax",
    "Identity", "Dropout",
    // reductions and products
    "ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin", "CumSum", "Gemm", "MatMul", "Einsum",
    // normalisation
    "BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization",
    "RMSNormalization", "SimplifiedLayerNormalization", "LpNormalization", "MeanVarianceNormalization", "LRN",
    // images
    "Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool",
    "GlobalLpPool",
    // shapes and indices
    "Shape", "Size", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Split", "Slice",
    "Expand", "Tile", "DepthToSpace", "SpaceToDepth", "Gather", "GatherElements", "Pad", "OneHot", "Trilu",
    "EyeLike", "Resize", "Upsample", "Shrink", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss",
    "ScatterElements", "Scatter",
    // recurrent, attention and fused
    "RNN", "GRU", "LSTM", "Attention", "RotaryEmbedding", "com.microsoft.Attention", "com.microsoft.BiasGelu",
    "com.microsoft.FastGelu", "com.microsoft.FusedMatMul", "com.microsoft.Gelu",
    "com.microsoft.GroupQueryAttention", "com.microsoft.MultiHeadAttention", "com.microsoft.QuickGelu",
    "com.microsoft.RotaryEmbedding", "com.microsoft.SkipLayerNormalization",
    "com.microsoft.SkipSimplifiedLayerNormalization",
    // quantised
    "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger",
    "QLinearMatMul", "QLinearConv", "com.microsoft.DequantizeLinear", "com.microsoft.DynamicQuantizeMatMul",
    "com.microsoft.MatMulIntegerToFloat", "com.microsoft.QuantizeLinear"};

std::optional<SymbolicInt> extreme(const SymbolicInt& a, const SymbolicInt& b, bool larger) {
  const auto difference = added(a, b, -1);
  if (!difference) return std::nullopt;
  if (difference->least() >= 0) return larger ? a : b;
  return difference->most() <= 0 ? std::optional(larger ? b : a) : std::nullopt;
}

std::optional<SymbolicInt> computed(std::string_view op, const SymbolicInt& a, const SymbolicInt& b) {
  if (op == "Add") return added(a, b, 1);
  if (op == "Sub") return added(a, b, -1);
  if (op == "Mul") return product(a, b);
  if (op == "Div") {
    const auto exact = quotient(a, b);
    return exact || !b.number() ? exact : a.over(*b.number());
  }
  if (op == "Min" || op == "Max") return extreme(a, b, op == "Max");
  return std::nullopt;
}

// Nothing: it depends on the extents of a run, or op is no comparison.
std::optional<bool> compared(std::string_view op, const SymbolicInt& a, const SymbolicInt& b) {
  const auto difference = added(a, b, -1);
  if (!difference) return std::nullopt;
  const std::int64_t least = difference->least(), most = difference->most();
  const auto known = [](bool always, bool never) {
    return always ? std::optional(true) : never ? std::optional(false) : std::nullopt;
  };
  if (op == "Equal") return known(least == 0 && most == 0, least > 0 || most < 0);
  if (op == "Less") return known(most < 0, least >= 0);
  if (op == "LessOrEqual") return known(most <= 0, least > 0);
  if (op == "Greater") return known(least > 0, most <= 0);
  if (op == "GreaterOrEqual") return known(least >= 0, most < 0);
  return std::nullopt;
}

// Two lists, of which one may be a single element.
struct Pair {
  Symbols a, b;
  Shape shape;
  std::size_t size() const { return std::max(a.size(), b.size()); }
  // Terms that are combined.
  std::int64_t work() const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < size(); ++i) count += left(i).size() * right(i).size();
    return count;
  }
  const SymbolicInt& left(std::size_t i) const { return a[a.size() == 1 ? 0 : i]; }
  const SymbolicInt& right(std::size_t i) const { return b[b.size() == 1 ? 0 : i]; }
};

std::optional<Pair> pair_of(OpContext& context, int first, int second) {
  const auto a = context.value(first).as_symbols(), b = context.value(second).as_symbols();
  const auto shape = broadcast(context.shape(first), context.shape(second));
  if (!a || !b || !shape || shape->element_count() == 0) return std::nullopt;
  const auto fits = [&](const Symbols& list) {
    return list.size() == 1 || static_cast<std::int64_t>(list.size()) == shape->element_count();
  };
  if (!fits(*a) || !fits(*b)) return std::nullopt;
  return Pair{*a, *b, *shape};
}

bool fold_pair(OpContext& context) {
  if (context.input_count() != 2) return false;
  const auto pair = pair_of(context, 0, 1);
  if (!pair) return false;
  constexpr std::int64_t kFreeWork = 128, kWorkPerOperation = 8;  // a shape's is free
  if (const std::int64_t work = pair->work(); work > kFreeWork)
    if (!context.may_make((work - kFreeWork) / kWorkPerOperation)) return true;
  const std::string_view op = context.node().op_type;
  Symbols numbers;
  HostArray flags{
      .type = ElementType::boolean, .shape = pair->shape, .floats = {}, .ints = {}, .strings = {}};
  for (std::size_t i = 0; i < pair->size(); ++i) {
    if (const auto number = computed(op, pair->left(i), pair->right(i)))
      numbers.push_back(*number);
    else if (const auto flag = compared(op, pair->left(i), pair->right(i)))
      flags.ints.push_back(*flag);
    else
      return false;
  }
  context.set(0, flags.ints.empty()
                     ? Value::symbolic(std::move(numbers), pair->shape, context.value(0).type())
                     : Value::known(std::move(flags)));
  return true;
}

bool fold_choice(OpContext& context) {
  const auto pair = context.input_count() == 3 ? pair_of(context, 1, 2) : std::nullopt;
  const HostArray* const condition = pair ? context.value(0).host() : nullptr;
  if (!condition || condition->type != ElementType::boolean ||
      (condition->ints.size() != 1 && condition->ints.size() != pair->size()) ||
      broadcast(condition->shape, pair->shape) != pair->shape)
    return false;
  Symbols chosen;
  for (std::size_t i = 0; i < pair->size(); ++i)
    chosen.push_back(condition->ints[condition->ints.size() == 1 ? 0 : i] != 0 ? pair->left(i)
                                                                               : pair->right(i));
  context.set(0, Value::symbolic(std::move(chosen), pair->shape, context.value(1).type()));
  return true;
}

bool fold_cast_symbols(OpContext& context) {
  const std::int64_t to = context.int_attribute("to", 0);
  if (to != static_cast<std::int64_t>(ElementType::int64) &&
      to != static_cast<std::int64_t>(ElementType::int32))
    return false;
  const Value& from = context.value(0);
  context.set(0, Value::symbolic(*from.symbols(), from.shape(), static_cast<ElementType>(to)));
  return true;
}

// The sum or product of a list.
bool fold_list(OpContext& context) {
  const Value& from = context.value(0);
  const bool keeps = context.int_attribute("keepdims", 1) != 0;
  if (!from.symbols() || from.rank() != 1 || (context.has(1) && context.known_ints(1, "axes").empty()))
    return false;
  const bool multiplies = context.node().op_type == "ReduceProd";
  std::optional<SymbolicInt> total(multiplies ? 1 : 0);
  for (const SymbolicInt& symbol : *from.symbols())
    if (total) total = multiplies ? product(*total, symbol) : added(*total, symbol, 1);
  if (!total) return false;
  context.set(0, Value::symbolic({*total}, keeps ? Shape{1} : Shape{}, from.type()));
  return true;
}

Error differs(const Shape& from, const std::string& target) {
  return make_error(ErrorCode::unsupported,
                    text("found input ", from.text(), " and target ", target,
                         ", expected equal counts for all extents, and a target that keeps the places of a ",
                         "named axis together. Give these extents numbers instead of bounds."));
}

// The value with another shape, by broadcasting.
void expand_to(OpContext& context, const Value& from, const Symbols& targets) {
  const int rank = std::max(from.rank(), static_cast<int>(targets.size()));
  Shape shape;
  for (int axis = 0; axis < rank; ++axis) {
    const int of_value = axis - (rank - from.rank()),
              of_target = axis - (rank - static_cast<int>(targets.size()));
    const SymbolicInt own = of_value < 0 ? SymbolicInt(1) : SymbolicInt::of(from.shape(), of_value);
    const SymbolicInt target = of_target < 0 ? SymbolicInt(1) : targets[static_cast<std::size_t>(of_target)];
    if (target == SymbolicInt(1) || target == own) {
      of_value < 0 ? shape.append(1) : shape.append(from.shape(), of_value);
      continue;
    }
    const auto made = target.axis();
    if (own != SymbolicInt(1) || !made || rank > Shape::kMaxRank)
      return context.unsupported(text("axis ", axis, ": found ", own.text(), " and ", target.text(),
                                      ", expected equal extents, or 1. Give these extents numbers instead ",
                                      "of bounds."));
    shape.append(made->extent);
    shape.set_name(shape.rank() - 1, made->name);
  }
  context.checked(shape.extents());
  if (!context.failure()) context.set(0, context.mover().expand(from, shape));
}

}  // namespace

bool takes_named_axes(std::string_view name) {
  static const std::set<std::string_view> known(std::begin(kTakeNamed), std::end(kTakeNamed));
  return known.contains(name);
}

bool fold_symbolic(OpContext& context) {
  const std::string_view op = context.node().op_type;
  if (!context.node().domain.empty() || !context.has(0)) return false;
  if (op == "Where") return fold_choice(context);
  if (op == "Cast") return fold_cast_symbols(context);
  if (op == "ReduceProd" || op == "ReduceSum") return fold_list(context);
  return fold_pair(context);
}

std::optional<Symbols> symbolic_list(OpContext& context, int input, const char* what) {
  if (context.value(input).symbols() && context.value(input).rank() <= 1)
    return context.value(input).as_symbols();
  const std::vector<std::int64_t> numbers = context.known_ints(input, what);
  if (context.failure()) return std::nullopt;
  return Symbols(numbers.begin(), numbers.end());
}

void reshape_named(OpContext& context) {
  const Value from = context.value(0);
  Symbols target;
  if (context.input_count() > 1) {
    const auto given = symbolic_list(context, 1, "the target shape");
    if (!given) return;
    target = *given;
  } else {
    const Extents given = context.ints_attribute("shape");
    target.assign(given.begin(), given.end());
  }
  std::string asked;
  for (const SymbolicInt& extent : target) asked += (asked.empty() ? "[" : ", ") + extent.text();
  const bool zero_means_zero = context.int_attribute("allowzero", 0) != 0;
  Symbols sources;  // that no axis of the target has
  for (int axis = 0; axis < from.rank(); ++axis) sources.push_back(SymbolicInt::of(from.shape(), axis));
  std::optional<SymbolicInt> total(1), known(1);
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == SymbolicInt(0) && !zero_means_zero) {
      if (!context.require(static_cast<int>(i) < from.rank(),
                           "extent 0 of the target copies an axis that the input does not have"))
        return;
      target[i] = SymbolicInt::of(from.shape(), static_cast<int>(i));
    }
    if (target[i] == SymbolicInt(-1)) {
      if (!context.require(!open, "the target shape leaves two axes open")) return;
      open = i;
    } else if (const auto same = std::ranges::find(sources, target[i]); same != sources.end()) {
      sources.erase(same);
    } else if (known) {
      known = product(*known, target[i]);
    }
  }
  for (const SymbolicInt& source : sources)
    if (total) total = product(*total, source);
  if (open && total && known) {
    const auto rest = quotient(*total, *known);
    if (rest) target[*open] = *rest;
    known = rest ? total : std::nullopt;
  }
  const auto fail = [&] { context.unsupported(differs(from.shape(), asked + "]").message); };
  const auto shape = total && known && *known == *total ? shape_of_extents(target) : std::nullopt;
  if (!shape) return fail();
  context.checked(shape->extents());
  if (context.failure()) return;
  Shape plain = *shape;
  plain.clear_names();  // those of the input's places
  const Value out = context.mover().reshape(from, plain);
  if (!out.host() && !out.symbols() && !out.tensor().ok())
    return context.fail(out.tensor().error().code, out.tensor().error().message);
  for (int axis = 0; axis < out.rank(); ++axis)
    if (SymbolicInt::of(out.shape(), axis) != target[static_cast<std::size_t>(axis)]) return fail();
  context.set(0, out);
}

void expand_named(OpContext& context) {
  if (const auto target = symbolic_list(context, 1, "the target shape"))
    expand_to(context, context.value(0), *target);
}

void tile_named(OpContext& context) {
  const Value from = context.value(0);
  auto target = symbolic_list(context, 1, "repeats");
  if (!target || !context.require(static_cast<int>(target->size()) == from.rank(),
                                  "one repeat for each axis of " + from.shape().text() + " is needed"))
    return;
  for (int axis = 0; axis < from.rank(); ++axis) {
    SymbolicInt& times = (*target)[static_cast<std::size_t>(axis)];
    const SymbolicInt own = SymbolicInt::of(from.shape(), axis);
    if (times != SymbolicInt(1) && own != SymbolicInt(1))
      return context.unsupported(text("axis ", axis, ": found ", own.text(), " repeated ", times.text(),
                                      " times, expected 1 of both"));
    if (times == SymbolicInt(1)) times = own;
  }
  expand_to(context, from, *target);
}

void range_named(OpContext& context) {
  Symbols ends;
  for (int input = 0; input < 3; ++input) {
    const auto number = context.value(input).as_symbols();
    if (!number || number->size() != 1)
      return context.unsupported(
          "start, limit or delta is computed at run time: expected numbers or extents");
    ends.push_back((*number)[0]);
  }
  const auto count = added(ends[1], ends[0], -1);
  const auto axis = count && count->least() >= 0 ? count->axis() : std::nullopt;
  if (!axis || ends[2] != SymbolicInt(1))
    return context.unsupported(text("found ", ends[0].text(), " to ", ends[1].text(), " in steps of ",
                                    ends[2].text(), ", expected a product of extents as the count, and 1"));
  const Tensor positions = imprint::iota(Shape{*axis}, 0);
  context.set(0, ends[0] == SymbolicInt(0) ? positions : positions + ends[0].tensor(),
              context.value(0).type());
}

std::optional<Value> slice_named(OpContext& context, const Value& value, int axis, const SymbolicInt& start,
                                 const SymbolicInt& end) {
  const SymbolicInt extent = SymbolicInt::of(value.shape(), axis);
  // Python's ends: from the back when they are negative, and no further than the axis. Nothing where that
  // depends on the extents of a run.
  const auto placed = [&](const SymbolicInt& index) -> std::optional<SymbolicInt> {
    const auto from_start = index.most() < 0 ? added(extent, index, 1) : std::optional(index);
    if (!from_start || (index.most() >= 0 && index.least() < 0)) return std::nullopt;
    const auto low = extreme(*from_start, SymbolicInt(0), true);
    return low ? extreme(*low, extent, false) : std::nullopt;
  };
  const auto first = placed(start), beyond = placed(end);
  const auto count = first && beyond ? added(*beyond, *first, -1) : std::nullopt;
  const auto made = count && count->least() >= 0 ? count->axis() : std::nullopt;
  if (!made) {
    context.unsupported(text("axis ", axis, ": found ", extent.text(), " from ", start.text(), " to ",
                             end.text(),
                             ", expected ends that lie inside for all extents. Give these extents ",
                             "numbers instead of bounds."));
    return std::nullopt;
  }
  if (*count == extent) return value;
  if (value.symbols() || value.host()) {
    const auto from = first->number(), to = beyond->number();
    if (from && to) return context.mover().slice(value, axis, *from, *to - *from, 1);
  }
  if (count->number() == 0) return context.mover().slice(value, axis, 0, 0, 1);
  const Tensor places = imprint::iota(Shape{*made}, 0);
  return Value::run_time(
      imprint::take(value.tensor(), axis, *first == SymbolicInt(0) ? places : places + first->tensor()),
      value.type());
}

}  // namespace imprint::onnx
