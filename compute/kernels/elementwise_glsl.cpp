#include "compute/kernels/elementwise_glsl.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "compute/base/text.h"

namespace imprint::kernels {

using namespace tensor;

std::string_view glsl_type(DType dtype) {
  switch (dtype) {
    case DType::int32:
      return "int";
    case DType::boolean:
      return "bool";
    default:
      return "float";
  }
}

std::string glsl_literal(double value, DType dtype) {
  if (dtype == DType::boolean) return value != 0 ? "true" : "false";
  if (dtype == DType::int32) {
    const auto integer = static_cast<std::int64_t>(value);
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

// An op that is one function of GLSL or of shaders/include.
struct FunctionOfOp {
  Op op;
  std::string_view function;
  std::string_view include = {};
};

constexpr FunctionOfOp kFunctions[] = {
    {Op::abs, "abs"},
    {Op::sign, "sign"},
    {Op::ceil, "ceil"},
    {Op::floor, "floor"},
    {Op::round, "roundEven"},
    {Op::trunc, "trunc"},
    {Op::sqrt, "sqrt"},
    {Op::exp, "exp"},
    {Op::expm1, "imp_expm1", "expm1"},
    {Op::log, "log"},
    {Op::log1p, "imp_log1p", "log1p"},
    {Op::sin, "sin"},
    {Op::cos, "cos"},
    {Op::tan, "tan"},
    {Op::asin, "imp_asin", "atan2"},
    {Op::acos, "imp_acos", "atan2"},
    {Op::atan, "atan"},
    {Op::tanh, "imp_tanh", "tanh"},
    {Op::erf, "imp_erf", "erf"},
    {Op::is_nan, "isnan"},
    {Op::is_inf, "isinf"},
    {Op::remainder, "imp_remainder", "division"},
    {Op::fmod, "imp_fmod", "division"},
    {Op::pow, "imp_pow", "pow"},
    {Op::atan2, "imp_atan2", "atan2"},
    {Op::minimum, "imp_min", "extremes"},
    {Op::maximum, "imp_max", "extremes"},
};

// An op that is an operator between its operands; not for bool operands where GLSL has none.
struct OperatorOfOp {
  Op op;
  std::string_view symbol;
};

constexpr OperatorOfOp kOperators[] = {
    {Op::add, "+"},          {Op::sub, "-"},          {Op::mul, "*"},
    {Op::equal, "=="},       {Op::not_equal, "!="},   {Op::less, "<"},
    {Op::less_equal, "<="},  {Op::greater, ">"},      {Op::greater_equal, ">="},
    {Op::logical_and, "&&"}, {Op::logical_or, "||"},  {Op::logical_xor, "^^"},
    {Op::bit_and, "&"},      {Op::bit_or, "|"},       {Op::bit_xor, "^"},
    {Op::shift_left, "<<"},  {Op::shift_right, ">>"},
};

std::string call(std::string_view function, std::span<const std::string> operands) {
  std::string out = text(function, "(");
  for (std::size_t i = 0; i < operands.size(); ++i) out += text(i > 0 ? ", " : "", operands[i]);
  return out + ")";
}

std::string infix(std::string_view symbol, std::span<const std::string> operands) {
  return text("(", operands[0], " ", symbol, " ", operands[1], ")");
}

std::string cast_glsl(DType from, DType to, std::span<const std::string> operands,
                      std::set<std::string>& includes) {
  const auto with = [&](const char* include, std::string_view function) {
    includes.insert(include);
    return call(function, operands);
  };
  if (from == to) return operands[0];
  if (to == DType::float16) return with("narrow_floats", "imp_to_half");
  if (to == DType::bfloat16) return with("narrow_floats", "imp_to_bfloat16");
  if (to == DType::boolean) return text("(", operands[0], dtype_is_float(from) ? " != 0.0)" : " != 0)");
  if (dtype_is_float(from) && to == DType::int32) return with("to_int", "imp_to_int");
  return call(glsl_type(to), operands);
}

// GLSL does not order bools: false is less than true.
std::string compared_bools(Op op, std::span<const std::string> operands) {
  switch (op) {
    case Op::less:
      return text("(!", operands[0], " && ", operands[1], ")");
    case Op::less_equal:
      return text("(!", operands[0], " || ", operands[1], ")");
    case Op::greater:
      return text("(", operands[0], " && !", operands[1], ")");
    case Op::greater_equal:
      return text("(", operands[0], " || !", operands[1], ")");
    default:
      return {};
  }
}

}  // namespace

std::string elementwise_glsl(Op op, DType operand_dtype, DType result_dtype,
                             std::span<const std::string> operands, std::set<std::string>& includes) {
  if (operand_dtype == DType::boolean)
    if (std::string compared = compared_bools(op, operands); !compared.empty()) return compared;
  for (const FunctionOfOp& entry : kFunctions) {
    if (entry.op != op) continue;
    if (!entry.include.empty()) includes.emplace(entry.include);
    return call(entry.function, operands);
  }
  for (const OperatorOfOp& entry : kOperators)
    if (entry.op == op) return infix(entry.symbol, operands);

  switch (op) {
    case Op::neg:
      return text("(-", operands[0], ")");
    case Op::recip:
      return text("(1.0 / ", operands[0], ")");
    case Op::sinh:
    case Op::cosh:
    case Op::asinh:
    case Op::acosh:
    case Op::atanh:
      includes.insert({"expm1", "log1p", "hyperbolic"});
      return call(text("imp_", op_info(op).name), operands);
    case Op::sigmoid:
      return text("(1.0 / (1.0 + exp(-", operands[0], ")))");
    case Op::logical_not:
      return text("(!", operands[0], ")");
    case Op::bit_not:
      return text("(~", operands[0], ")");
    case Op::cast:
      return cast_glsl(operand_dtype, result_dtype, operands, includes);
    case Op::div:
      if (dtype_is_float(operand_dtype)) return infix("/", operands);
      includes.insert("division");
      return call("imp_div", operands);
    case Op::where:
      return text("(", operands[0], " ? ", operands[1], " : ", operands[2], ")");
    default:
      return {};  // not elementwise: the emitter never asks
  }
}

}  // namespace imprint::kernels
