#include "compute/kernels/elementwise_glsl.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "compute/base/text.h"

namespace imprint::kernels {

using namespace tensor;

std::string_view glsl_type(DType dtype) {
  constexpr std::string_view kTypes[] = {"float", "int", "bool"};  // by DTypeRegisters
  return kTypes[static_cast<std::size_t>(dtype_registers(dtype))];
}

std::string glsl_literal(double value, DType dtype) {
  if (dtype == DType::boolean) return value != 0 ? "true" : "false";
  if (dtype_is_integer(dtype)) {
    const std::int64_t integer = wrapped_to(static_cast<std::int64_t>(value), DType::int32);
    // The most negative int has no literal of its own.
    if (integer == std::numeric_limits<std::int32_t>::min()) return "(-2147483647 - 1)";
    return integer < 0 ? text("(", integer, ")") : text(integer);
  }
  const float narrow = static_cast<float>(value);
  if (std::isnan(narrow)) return "uintBitsToFloat(0x7fc00000u)";
  if (std::isinf(narrow)) return narrow > 0 ? "uintBitsToFloat(0x7f800000u)" : "uintBitsToFloat(0xff800000u)";
  char digits[40];  // not printf, which writes the decimal point of the host's locale
  std::string literal(digits, std::to_chars(digits, digits + sizeof digits, static_cast<double>(narrow),
                                            std::chars_format::general, 9)
                                  .ptr);
  if (literal.find_first_of(".e") == std::string::npos) literal += ".0";
  return narrow < 0 || std::signbit(narrow) ? "(" + literal + ")" : literal;
}

namespace {

// How one dtype's operands become an expression.
struct Form {
  std::string_view pattern;   // $a and $b are the operands
  std::string_view includes;  // files of shaders, separated by spaces
  bool of_vectors = false;
};

// The glsl column of op_rows.h.
struct Forms {
  Form floats, ints;  // bools are as ints

  constexpr Forms vectors() const {
    return {{floats.pattern, floats.includes, true}, {ints.pattern, ints.includes, true}};
  }
  constexpr Forms ints_by(std::string_view pattern, std::string_view includes) const {
    return {floats, {pattern, includes}};
  }
};

constexpr Forms glsl(std::string_view pattern, std::string_view includes = {}) {
  return {{pattern, includes}, {pattern, includes}};
}

const Form& form_of(Op op, DType operand_dtype) {
#define IMPRINT_FORMS(name, kind, inputs, dtypes, cost, forms, ...) forms,
#define IMPRINT_NO_FORMS(...) Forms{},  // cast, where and operations that are not elementwise
  static constexpr Forms kForms[] = {IMPRINT_OPS_BY_TABLE(IMPRINT_NO_FORMS, IMPRINT_FORMS)};
#undef IMPRINT_FORMS
#undef IMPRINT_NO_FORMS
  const Forms& forms = kForms[static_cast<std::size_t>(op)];
  return dtype_is_float(operand_dtype) ? forms.floats : forms.ints;
}

void include(std::string_view names, std::set<std::string>& includes) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    includes.emplace(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

std::string filled(std::string_view pattern, std::span<const std::string> operands) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '$')
      out += operands[static_cast<std::size_t>(pattern[++i] - 'a')];
    else
      out += pattern[i];
  }
  return out;
}

std::string cast_glsl(DType from, DType to, std::span<const std::string> operands,
                      std::set<std::string>& includes) {
  const auto with = [&](const char* include, std::string_view function) {
    includes.insert(include);
    return text(function, "(", operands[0], ")");
  };
  const std::string& x = operands[0];
  if (from == to) return x;
  const auto as_float = [&] {
    if (dtype_is_float(from)) return x;
    return from == DType::uint32 ? text("float(uint(", x, "))") : text("float(", x, ")");
  };
  const auto as_int = [&] {
    if (dtype_is_integer(from)) return x;
    if (from == DType::boolean) return text("int(", x, ")");
    return to == DType::uint32 ? with("to_int", "imp_to_uint") : with("to_int", "imp_to_int");
  };
  if (dtype_is_narrow_float(to)) {
    includes.insert("narrow_floats");
    return text(to == DType::float16 ? "imp_to_half(" : "imp_to_bfloat16(", as_float(), ")");
  }
  if (to == DType::float32) return as_float();
  if (to == DType::boolean) return text("(", x, dtype_is_float(from) ? " != 0.0)" : " != 0)");
  const bool is_signed = to == DType::int8 || to == DType::int16;
  const std::size_t bits = 8 * dtype_size(to);
  if (bits == 32) return as_int();
  if (is_signed) return text("bitfieldExtract(", as_int(), ", 0, ", bits, ")");
  return text("(", as_int(), bits == 8 ? " & 255)" : " & 65535)");
}

}  // namespace

std::string elementwise_glsl(Op op, DType operand_dtype, DType result_dtype,
                             std::span<const std::string> operands, std::set<std::string>& includes) {
  if (op == Op::cast) return cast_glsl(operand_dtype, result_dtype, operands, includes);
  if (op == Op::where) return text("(", operands[0], " ? ", operands[1], " : ", operands[2], ")");
  const Form& form = form_of(op, operand_dtype);
  include(form.includes, includes);
  return filled(form.pattern, operands);
}

std::string operator_glsl(Op op, DType operand_dtype) {
  constexpr std::string_view kBefore = "($a ", kAfter = " $b)";
  const std::string_view pattern = form_of(op, operand_dtype).pattern;
  if (!pattern.starts_with(kBefore) || !pattern.ends_with(kAfter)) return {};
  return std::string(pattern.substr(kBefore.size(), pattern.size() - kBefore.size() - kAfter.size()));
}

bool takes_vectors(Op op, DType operand_dtype) { return form_of(op, operand_dtype).of_vectors; }

}  // namespace imprint::kernels
