// Shape and dtype of every primitive's result: the rules that op.h names. Public functions broadcast first,
// so operands arrive with equal shapes.

#include <algorithm>

#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint::tensor {
namespace {

constexpr std::int64_t kLargestCount = std::int64_t{1} << 48;

// A rule's operands and attributes, and helpers for its errors.
struct Rule {
  Op op;
  std::span<const NodeRef> inputs;
  const Attributes& attributes;

  const Shape& shape(std::size_t i = 0) const { return inputs[i]->shape; }
  DType dtype(std::size_t i = 0) const { return inputs[i]->dtype; }
  std::int64_t ints(std::size_t i) const { return attributes.ints[i]; }

  Error refuse(ErrorCode code, const std::string& text) const {
    return make_error(code, imprint::text(op_info(op).name, ": ", text));
  }
  Error bad_shape(const std::string& text) const { return refuse(ErrorCode::shape_mismatch, text); }
  Error bad_dtype(std::size_t i, const std::string& expected) const {
    return refuse(ErrorCode::dtype_mismatch, dtype_text(*inputs[i], expected));
  }
  Error bad_attributes() const {
    return refuse(ErrorCode::internal, "attributes do not fit the operand " + describe(*inputs[0]));
  }

  Result<int> axis_in(std::size_t attribute, std::size_t input = 0) const {
    if (attributes.ints.size() <= attribute) return bad_attributes();
    const std::int64_t axis = ints(attribute);
    if (axis >= 0 && axis < shape(input).rank()) return static_cast<int>(axis);
    return bad_shape(
        text("found axis ", axis, " of ", describe(*inputs[input]), ", expected an axis inside"));
  }
  Result<> require_indices(std::size_t i) const {
    if (dtype(i) != DType::int32) return bad_dtype(i, "integer indices");
    return {};
  }
};

std::string mixed_dtypes(const Rule& rule, std::size_t i) {
  return text("found ", dtype_name(rule.dtype(0)), " ", describe(*rule.inputs[0]), " and ",
              dtype_name(rule.dtype(i)), " ", describe(*rule.inputs[i]),
              ", expected one dtype. Cast one of them first.");
}

bool is_number(DType dtype) { return dtype == DType::float32 || dtype == DType::int32; }

// The types that tensors have: "float32, int32, ...".
std::string tensor_dtypes() {
  std::string names;
  for (const DTypeInfo& dtype : kDTypes)
    if (dtype.use != DTypeUse::files) names += text(names.empty() ? "" : ", ", dtype.name);
  return names;
}

Result<Inferred> leaf(const Rule& rule) {
  const Attributes& a = rule.attributes;
  if (!dtype_has_tensors(a.dtype))
    return rule.refuse(ErrorCode::dtype_mismatch,
                       text("found ", dtype_name(a.dtype), ", expected ", tensor_dtypes()));
  for (std::int64_t extent : a.shape.extents())
    if (extent < 0)
      return rule.refuse(ErrorCode::invalid_argument,
                         text("found shape ", a.shape.text(), ", expected no negative extent"));
  if (a.shape.element_count() > kLargestCount)
    return rule.refuse(ErrorCode::invalid_argument,
                       text("found shape ", a.shape.text(), ", expected at most 2^48 elements"));
  if (a.dtype == DType::int64 && a.shape.rank() == Shape::kMaxRank)
    return rule.bad_shape(text("found int64 ", a.shape.text(), ", expected at most 7 axes of int64"));
  return Inferred{a.dtype, a.shape};
}

Result<Inferred> iota(const Rule& rule) {
  IMPRINT_ASSIGN(const Inferred made, leaf(rule));
  if (rule.attributes.ints.size() != 1)
    return rule.refuse(ErrorCode::internal, "found no axis, expected one");
  if (rule.ints(0) < 0 || rule.ints(0) >= made.shape.rank())
    return rule.bad_shape(
        text("found axis ", rule.ints(0), " of shape ", made.shape.text(), ", expected an axis inside"));
  return Inferred{DType::int32, made.shape};
}

Result<Inferred> random_uniform(const Rule& rule) {
  IMPRINT_ASSIGN(const Inferred made, leaf(rule));
  if (rule.dtype() != DType::int32) return rule.bad_dtype(0, "an int32 [4] generator");
  if (rule.shape() != Shape{4})
    return rule.bad_shape(text("found generator ", describe(*rule.inputs[0]), ", expected shape [4]"));
  return Inferred{DType::float32, made.shape};
}

Result<Inferred> random_permutation(const Rule& rule) {
  IMPRINT_ASSIGN(const Inferred made, random_uniform(rule));
  if (made.shape.rank() == 0) return rule.bad_shape("found a scalar, expected [..., n]");
  if (made.shape.element_count() > 0x7fffffff)
    return rule.bad_shape(text("found shape ", made.shape.text(), ", expected at most 2^31 - 1 elements"));
  return Inferred{DType::int32, made.shape};
}

// ---- elementwise ----

std::string names_of(const Dtypes& dtypes) {
  std::string names;
  for (auto [wanted, name] : {std::pair{dtypes.floats, "float32"}, std::pair{dtypes.ints, "int32"},
                              std::pair{dtypes.bools, "bool"}})
    if (wanted) names += text(names.empty() ? "" : " or ", name);
  return names;
}

Result<Inferred> elementwise_rule(const Rule& rule, const Dtypes& accepts) {
  for (std::size_t i = 0; i < rule.inputs.size(); ++i) {
    const DType dtype = rule.dtype(i);
    if (!accepts.accept(dtype)) return rule.bad_dtype(i, names_of(accepts));
    if (dtype != rule.dtype(0)) return rule.refuse(ErrorCode::dtype_mismatch, mixed_dtypes(rule, i));
    if (rule.shape(i) != rule.shape(0))
      return rule.bad_shape(text("found ", describe(*rule.inputs[0]), " and ", describe(*rule.inputs[i]),
                                 ", expected equal shapes. Expand them first."));
  }
  return Inferred{accepts.to_bool ? DType::boolean : rule.dtype(0), rule.shape()};
}

Result<Inferred> cast(const Rule& rule) {
  if (!dtype_has_tensors(rule.attributes.dtype))
    return rule.refuse(ErrorCode::dtype_mismatch,
                       text("found ", dtype_name(rule.attributes.dtype), " for ", describe(*rule.inputs[0]),
                            ", expected ", tensor_dtypes()));
  return Inferred{rule.attributes.dtype, rule.shape()};
}

Result<Inferred> int64_pair(const Rule& rule) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (rule.dtype(i) != DType::int32) return rule.bad_dtype(i, "an int32 word");
    if (rule.shape(i) != rule.shape(0)) return rule.bad_shape("found words of two shapes, expected one");
  }
  return Inferred{DType::int64, rule.shape()};
}

Result<Inferred> int64_word(const Rule& rule) {
  if (rule.dtype() != DType::int64) return rule.bad_dtype(0, "int64");
  return Inferred{DType::int32, rule.shape()};
}

Result<Inferred> where(const Rule& rule) {
  if (rule.dtype(0) != DType::boolean) return rule.bad_dtype(0, "a bool condition");
  const Rule branches{rule.op, rule.inputs.subspan(1), rule.attributes};
  IMPRINT_ASSIGN(const Inferred made, elementwise_rule(branches, dtypes::all));
  if (rule.shape(0) != made.shape)
    return rule.bad_shape(text("found condition ", describe(*rule.inputs[0]), " and ",
                               describe(*rule.inputs[1]), ", expected equal shapes. Expand them first."));
  return made;
}

// ---- views and selects ----

Result<Inferred> reshape(const Rule& rule) {
  const Shape& target = rule.attributes.shape;
  for (std::int64_t extent : target.extents())
    if (extent < 0)
      return rule.bad_shape(text("found target ", target.text(), " for ", describe(*rule.inputs[0]),
                                 ", expected no negative extent"));
  if (target.element_count() != rule.shape().element_count())
    return rule.bad_shape(text("found target ", target.text(), " with ", target.element_count(),
                               " elements for ", describe(*rule.inputs[0]), ", expected ",
                               rule.shape().element_count()));
  return Inferred{rule.dtype(), target};
}

Result<Inferred> permute(const Rule& rule) {
  const Shape& source = rule.shape();
  std::vector<std::int64_t> sorted = rule.attributes.ints;
  std::ranges::sort(sorted);
  bool each_once = static_cast<int>(sorted.size()) == source.rank();
  for (std::size_t i = 0; each_once && i < sorted.size(); ++i)
    each_once = sorted[i] == static_cast<std::int64_t>(i);
  if (!each_once) {
    const Shape axes(rule.attributes.ints);
    return rule.bad_shape(
        text("found axes ", axes.text(), ", expected each axis of ", describe(*rule.inputs[0]), " once"));
  }
  Shape out;
  for (std::int64_t axis : rule.attributes.ints) out.append(source[static_cast<int>(axis)]);
  return Inferred{rule.dtype(), out};
}

Result<Inferred> expand(const Rule& rule) {
  const Shape& source = rule.shape();
  const Shape& target = rule.attributes.shape;
  bool fits = source.rank() == target.rank();
  for (int axis = 0; fits && axis < target.rank(); ++axis)
    fits = target[axis] >= 0 && (source[axis] == target[axis] || source[axis] == 1);
  if (!fits)
    return rule.bad_shape(text("found target ", target.text(), " for ", describe(*rule.inputs[0]),
                               ", expected equal extents except where the source has 1"));
  if (target.element_count() > kLargestCount)
    return rule.bad_shape(text("found target ", target.text(), ", expected at most 2^48 elements"));
  return Inferred{rule.dtype(), target};
}

Result<Inferred> slice(const Rule& rule) {
  const Shape& source = rule.shape();
  const Shape& target = rule.attributes.shape;
  if (static_cast<int>(rule.attributes.ints.size()) != 2 * source.rank() || target.rank() != source.rank())
    return rule.bad_attributes();
  for (int axis = 0; axis < source.rank(); ++axis) {
    if (target[axis] < 0) return rule.bad_attributes();
    if (target[axis] == 0) continue;
    const std::int64_t first = rule.ints(2 * static_cast<std::size_t>(axis));
    const std::int64_t last = first + (target[axis] - 1) * rule.ints(2 * static_cast<std::size_t>(axis) + 1);
    if (std::min(first, last) < 0 || std::max(first, last) >= source[axis]) return rule.bad_attributes();
  }
  return Inferred{rule.dtype(), target};
}

Result<Inferred> window(const Rule& rule) {
  IMPRINT_ASSIGN(const int axis, rule.axis_in(0));
  if (rule.attributes.ints.size() != 4) return rule.bad_attributes();
  const std::int64_t size = rule.ints(1), stride = rule.ints(2), dilation = rule.ints(3);
  if (size < 1 || stride < 1 || dilation < 1)
    return rule.refuse(ErrorCode::invalid_argument,
                       text("found size ", size, ", stride ", stride, " and dilation ", dilation,
                            ", expected at least 1 each"));
  if (rule.shape().rank() == Shape::kMaxRank)
    return rule.bad_shape(text("found ", describe(*rule.inputs[0]), ", expected at most 7 axes"));
  const std::int64_t extent = rule.shape()[axis];
  // Divides instead of multiplying, so that no size overflows.
  if (extent < 1 || (size - 1) > (extent - 1) / dilation)
    return rule.bad_shape(text("found a window of ", size, " with dilation ", dilation, " along axis ", axis,
                               " of ", describe(*rule.inputs[0]), ", expected one that fits"));
  Shape out = rule.shape();
  out[axis] = (extent - dilation * (size - 1) - 1) / stride + 1;
  out.append(size);
  return Inferred{rule.dtype(), out};
}

Result<Inferred> pad(const Rule& rule) {
  Shape out = rule.shape();
  if (static_cast<int>(rule.attributes.ints.size()) != 2 * out.rank() || rule.attributes.floats.size() != 1)
    return rule.bad_attributes();
  for (int axis = 0; axis < out.rank(); ++axis) {
    const std::int64_t before = rule.ints(2 * static_cast<std::size_t>(axis)),
                       after = rule.ints(2 * static_cast<std::size_t>(axis) + 1);
    if (before < 0 || after < 0 || before > kLargestCount || after > kLargestCount)
      return rule.refuse(
          ErrorCode::invalid_argument,
          text("found padding of ", before, " before and ", after, " after axis ", axis, " of ",
               describe(*rule.inputs[0]), ", expected 0 or more. Use narrow to remove elements."));
    out[axis] += before + after;
  }
  if (out.element_count() > kLargestCount)
    return rule.bad_shape(text("found result ", out.text(), ", expected at most 2^48 elements"));
  return Inferred{rule.dtype(), out};
}

Result<Inferred> concat(const Rule& rule) {
  if (rule.inputs.empty())
    return rule.refuse(ErrorCode::invalid_argument, "found no tensors, expected at least one");
  IMPRINT_ASSIGN(const int axis, rule.axis_in(0));
  Shape out = rule.shape();
  for (std::size_t i = 1; i < rule.inputs.size(); ++i) {
    if (rule.dtype(i) != rule.dtype(0)) return rule.refuse(ErrorCode::dtype_mismatch, mixed_dtypes(rule, i));
    bool fits = rule.shape(i).rank() == out.rank();
    for (int k = 0; fits && k < out.rank(); ++k) fits = k == axis || rule.shape(i)[k] == out[k];
    if (!fits)
      return rule.bad_shape(text("found ", describe(*rule.inputs[0]), " and ", describe(*rule.inputs[i]),
                                 ", expected equal extents except along axis ", axis));
    out[axis] += rule.shape(i)[axis];
  }
  if (out.element_count() > kLargestCount)
    return rule.bad_shape(text("found result ", out.text(), ", expected at most 2^48 elements"));
  return Inferred{rule.dtype(), out};
}

// `name`: what the first input is. The second holds the indices.
Result<> require_equal_except(const Rule& rule, const std::string& name, int axis) {
  const Shape& first = rule.shape(0);
  const Shape& indices = rule.shape(1);
  bool same = first.rank() == indices.rank();
  for (int k = 0; same && k < first.rank(); ++k) same = k == axis || first[k] == indices[k];
  if (same) return {};
  return rule.bad_shape(text("found ", name, " ", describe(*rule.inputs[0]), " and indices ",
                             describe(*rule.inputs[1]), ", expected equal extents except along axis ", axis));
}

Result<Inferred> gather(const Rule& rule) {
  IMPRINT_ASSIGN(const int axis, rule.axis_in(0));
  IMPRINT_CHECK(rule.require_indices(1));
  IMPRINT_CHECK(require_equal_except(rule, "data", axis));
  return Inferred{rule.dtype(), rule.shape(1)};
}

Result<Inferred> take(const Rule& rule) {
  IMPRINT_ASSIGN(const int axis, rule.axis_in(0));
  IMPRINT_CHECK(rule.require_indices(1));
  if (rule.shape(0).rank() - 1 + rule.shape(1).rank() > Shape::kMaxRank)
    return rule.bad_shape(text("found data ", describe(*rule.inputs[0]), " and indices ",
                               describe(*rule.inputs[1]), ", expected a result of at most 8 axes"));
  Shape out;
  for (int k = 0; k < axis; ++k) out.append(rule.shape(0)[k]);
  for (std::int64_t extent : rule.shape(1).extents()) out.append(extent);
  for (int k = axis + 1; k < rule.shape(0).rank(); ++k) out.append(rule.shape(0)[k]);
  if (out.element_count() > kLargestCount)
    return rule.bad_shape(text("found result ", out.text(), ", expected at most 2^48 elements"));
  return Inferred{rule.dtype(), out};
}

// ---- reductions, contraction, scan, scatter ----

Result<Inferred> reduce(const Rule& rule) {
  Dtypes accepts = dtypes_of(fold_of(rule.op)->combination);
  accepts.bools = false;
  if (!accepts.accept(rule.dtype())) return rule.bad_dtype(0, names_of(accepts));
  if (rule.attributes.ints.empty()) return rule.bad_attributes();
  Shape out = rule.shape();
  for (std::size_t i = 0; i < rule.attributes.ints.size(); ++i) {
    IMPRINT_ASSIGN(const int axis, rule.axis_in(i));
    if (i > 0 && rule.ints(i) <= rule.ints(i - 1)) return rule.bad_attributes();
    out[axis] = 1;
  }
  return Inferred{rule.dtype(), out};
}

Result<Inferred> arg_reduce(const Rule& rule) {
  if (!is_number(rule.dtype())) return rule.bad_dtype(0, "float32 or int32");
  IMPRINT_ASSIGN(const int axis, rule.axis_in(0));
  Shape out = rule.shape();
  out[axis] = 1;
  if (rule.shape()[axis] == 0 && out.element_count() > 0)
    return rule.bad_shape(text("found empty axis ", axis, " of ", describe(*rule.inputs[0]),
                               ", expected at least one element"));
  return Inferred{DType::int32, out};
}

Result<Inferred> matmul(const Rule& rule) {
  for (std::size_t i = 0; i < 2; ++i)
    if (!dtype_is_float(rule.dtype(i))) return rule.bad_dtype(i, "float32, float16 or bfloat16");
  if (rule.dtype(0) != rule.dtype(1)) return rule.refuse(ErrorCode::dtype_mismatch, mixed_dtypes(rule, 1));
  const Shape& a = rule.shape(0);
  const Shape& b = rule.shape(1);
  bool fits = a.rank() == b.rank() && a.rank() >= 2 && a[a.rank() - 1] == b[b.rank() - 2];
  for (int axis = 0; fits && axis < a.rank() - 2; ++axis) fits = a[axis] == b[axis];
  if (!fits)
    return rule.bad_shape(text("found ", describe(*rule.inputs[0]), " x ", describe(*rule.inputs[1]),
                               ", expected [..., m, k] x [..., k, n] with equal leading extents"));
  Shape out = a;
  out[out.rank() - 1] = b[b.rank() - 1];
  if (out.element_count() > kLargestCount)
    return rule.bad_shape(text("found result ", out.text(), ", expected at most 2^48 elements"));
  return Inferred{DType::float32, out};
}

Result<Inferred> cumsum(const Rule& rule) {
  if (!is_number(rule.dtype())) return rule.bad_dtype(0, "float32 or int32");
  if (rule.attributes.ints.size() != 3) return rule.bad_attributes();
  IMPRINT_CHECK(rule.axis_in(0));
  return Inferred{rule.dtype(), rule.shape()};
}

Result<Inferred> linear_recurrence(const Rule& rule) {
  for (std::size_t i = 0; i < 2; ++i)
    if (rule.dtype(i) != DType::float32) return rule.bad_dtype(i, "float32");
  if (rule.attributes.ints.size() != 3) return rule.bad_attributes();
  IMPRINT_CHECK(rule.axis_in(0));
  if (rule.shape(0) != rule.shape(1))
    return rule.bad_shape(text("found terms ", describe(*rule.inputs[0]), " and factors ",
                               describe(*rule.inputs[1]), ", expected equal shapes. Expand them first."));
  return Inferred{DType::float32, rule.shape()};
}

Result<Inferred> custom(const Rule& rule) {
  const Shape& out = rule.attributes.shape;
  if (rule.inputs.empty() || rule.shape(0).rank() != 2)
    return rule.bad_shape("found a first input without rows, expected [rows, n]");
  if (out.rank() != 2 || out[0] != rule.shape(0)[0] || out[1] < 1)
    return rule.bad_shape(text("found result ", out.text(), ", expected [rows, n] with n of at least 1"));
  for (std::size_t i = 0; i < rule.inputs.size(); ++i) {
    const Shape& shape = rule.shape(i);
    const bool fits = shape.rank() == 1 || (shape.rank() == 2 && shape[0] == out[0]);
    if (!fits || shape[shape.rank() - 1] < 1)
      return rule.bad_shape(text("found input ", describe(*rule.inputs[i]), ", expected [", out[0],
                                 ", n] or [n] with n of at least 1"));
  }
  return Inferred{DType::float32, out};
}

Result<Inferred> scatter_add(const Rule& rule) {
  if (!is_number(rule.dtype())) return rule.bad_dtype(0, "float32 or int32");
  IMPRINT_ASSIGN(const int axis, rule.axis_in(0));
  IMPRINT_CHECK(rule.require_indices(1));
  if (rule.dtype(2) != rule.dtype(0))
    return rule.bad_dtype(2, text("the dtype of the base, ", dtype_name(rule.dtype(0))));
  if (rule.shape(1) != rule.shape(2))
    return rule.bad_shape(text("found indices ", describe(*rule.inputs[1]), " and updates ",
                               describe(*rule.inputs[2]), ", expected equal shapes"));
  IMPRINT_CHECK(require_equal_except(rule, "base", axis));
  return Inferred{rule.dtype(), rule.shape()};
}

Result<Inferred> unwindow(const Rule& rule) {
  if (!is_number(rule.dtype())) return rule.bad_dtype(0, "float32 or int32");
  if (rule.attributes.ints.size() != 5) return rule.bad_attributes();
  IMPRINT_ASSIGN(const int axis, rule.axis_in(0));
  const Shape& windows = rule.shape();
  const std::int64_t size = rule.ints(1), stride = rule.ints(2), dilation = rule.ints(3),
                     extent = rule.ints(4);
  const int last = windows.rank() - 1;
  const bool fits = size >= 1 && stride >= 1 && dilation >= 1 && axis < last && windows[last] == size &&
                    (size - 1) <= (extent - 1) / dilation &&
                    windows[axis] == (extent - dilation * (size - 1) - 1) / stride + 1;
  if (!fits) return rule.bad_attributes();
  Shape out;
  for (int k = 0; k < last; ++k) out.append(k == axis ? extent : windows[k]);
  if (out.element_count() > kLargestCount)
    return rule.bad_shape(text("found result ", out.text(), ", expected at most 2^48 elements"));
  return Inferred{rule.dtype(), out};
}

Result<Inferred> same_as_input(const Rule& rule) { return Inferred{rule.dtype(), rule.shape()}; }

using InferRule = Result<Inferred> (*)(const Rule& rule);

InferRule rule_of(Op op) {
#define IMPRINT_RULE(name, kind, inputs, rule, ...) InferRule{rule},
#define IMPRINT_ELEMENTWISE_RULE(name, kind, inputs, accepted, ...) \
  InferRule{[](const Rule& rule) { return elementwise_rule(rule, dtypes::accepted); }},
  static constexpr InferRule kRules[] = {IMPRINT_OPS_BY_TABLE(IMPRINT_RULE, IMPRINT_ELEMENTWISE_RULE)};
#undef IMPRINT_RULE
#undef IMPRINT_ELEMENTWISE_RULE
  return kRules[static_cast<std::size_t>(op)];
}

}  // namespace

Result<Inferred> infer(Op op, std::span<const NodeRef> inputs, const Attributes& attributes) {
  const Rule rule{op, inputs, attributes};
  const int expected = op_info(op).input_count;
  if (expected >= 0 && static_cast<int>(inputs.size()) != expected)
    return rule.refuse(ErrorCode::internal, text("found ", inputs.size(), " operands, expected ", expected));
  return rule_of(op)(rule);
}

}  // namespace imprint::tensor
