#include "compute/kernels/elementwise_glsl.h"

#include <charconv>
#include <cmath>
#include <limits>

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
    return integer < 0 ? "(" + std::to_string(integer) + ")" : std::to_string(integer);
  }
  const float narrow = static_cast<float>(value);
  if (std::isnan(narrow)) return "uintBitsToFloat(0x7fc00000u)";
  if (std::isinf(narrow)) return narrow > 0 ? "uintBitsToFloat(0x7f800000u)" : "uintBitsToFloat(0xff800000u)";
  char text[40];  // not by printf, which writes what the host's locale has for a point
  std::string literal(text, std::to_chars(text, text + sizeof text, static_cast<double>(narrow),
                                          std::chars_format::general, 9)
                                .ptr);
  if (literal.find_first_of(".e") == std::string::npos) literal += ".0";
  return narrow < 0 || std::signbit(narrow) ? "(" + literal + ")" : literal;
}

std::string elementwise_glsl(Op op, DType operand_dtype, DType result_dtype,
                             std::span<const std::string> operands, std::set<std::string>& includes) {
  const auto call = [&](std::string_view function) {
    std::string text(function);
    text += "(";
    for (std::size_t i = 0; i < operands.size(); ++i) text += (i ? ", " : "") + operands[i];
    return text + ")";
  };
  const auto infix = [&](std::string_view symbol) {
    return "(" + operands[0] + " " + std::string(symbol) + " " + operands[1] + ")";
  };
  const auto with = [&](std::string_view include, std::string text) {
    includes.insert(std::string(include));
    return text;
  };
  const bool is_float = dtype_is_float(operand_dtype);

  switch (op) {
    case Op::abs:
      return call("abs");
    case Op::neg:
      return "(-" + operands[0] + ")";
    case Op::sign:
      return call("sign");
    case Op::ceil:
      return call("ceil");
    case Op::floor:
      return call("floor");
    case Op::round:
      return call("roundEven");
    case Op::trunc:
      return call("trunc");
    case Op::sqrt:
      return call("sqrt");
    case Op::recip:
      return "(1.0 / " + operands[0] + ")";
    case Op::exp:
      return call("exp");
    case Op::expm1:
      return with("expm1", call("imp_expm1"));
    case Op::log:
      return call("log");
    case Op::log1p:
      return with("log1p", call("imp_log1p"));
    case Op::sin:
      return call("sin");
    case Op::cos:
      return call("cos");
    case Op::tan:
      return call("tan");
    case Op::asin:
      return with("atan2", call("imp_asin"));
    case Op::acos:
      return with("atan2", call("imp_acos"));
    case Op::atan:
      return call("atan");
    case Op::sinh:
    case Op::cosh:
    case Op::asinh:
    case Op::acosh:
    case Op::atanh:
      includes.insert("expm1");
      includes.insert("log1p");
      includes.insert("hyperbolic");
      return call("imp_" + std::string(op_info(op).name));
    case Op::tanh:
      return with("tanh", call("imp_tanh"));
    case Op::erf:
      return with("erf", call("imp_erf"));
    case Op::sigmoid:
      return "(1.0 / (1.0 + exp(-" + operands[0] + ")))";
    case Op::is_nan:
      return call("isnan");
    case Op::is_inf:
      return call("isinf");
    case Op::logical_not:
      return "(!" + operands[0] + ")";
    case Op::bit_not:
      return "(~" + operands[0] + ")";
    case Op::cast:
      if (operand_dtype == result_dtype) return operands[0];
      if (result_dtype == DType::float16) return with("narrow_floats", call("imp_to_half"));
      if (result_dtype == DType::bfloat16) return with("narrow_floats", call("imp_to_bfloat16"));
      if (result_dtype == DType::boolean) return "(" + operands[0] + (is_float ? " != 0.0)" : " != 0)");
      if (is_float && result_dtype == DType::int32) return with("to_int", call("imp_to_int"));
      return call(glsl_type(result_dtype));
    case Op::add:
      return infix("+");
    case Op::sub:
      return infix("-");
    case Op::mul:
      return infix("*");
    case Op::div:
      return is_float ? infix("/") : with("division", call("imp_div"));
    case Op::remainder:
      return with("division", call("imp_remainder"));
    case Op::fmod:
      return with("division", call("imp_fmod"));
    case Op::pow:
      return with("pow", call("imp_pow"));
    case Op::atan2:
      return with("atan2", call("imp_atan2"));
    case Op::minimum:
      return with("extremes", call("imp_min"));
    case Op::maximum:
      return with("extremes", call("imp_max"));
    case Op::equal:
      return infix("==");
    case Op::not_equal:
      return infix("!=");
    case Op::less:
      return operand_dtype == DType::boolean ? "(!" + operands[0] + " && " + operands[1] + ")" : infix("<");
    case Op::less_equal:
      return operand_dtype == DType::boolean ? "(!" + operands[0] + " || " + operands[1] + ")" : infix("<=");
    case Op::greater:
      return operand_dtype == DType::boolean ? "(" + operands[0] + " && !" + operands[1] + ")" : infix(">");
    case Op::greater_equal:
      return operand_dtype == DType::boolean ? "(" + operands[0] + " || !" + operands[1] + ")" : infix(">=");
    case Op::logical_and:
      return infix("&&");
    case Op::logical_or:
      return infix("||");
    case Op::logical_xor:
      return infix("^^");
    case Op::bit_and:
      return infix("&");
    case Op::bit_or:
      return infix("|");
    case Op::bit_xor:
      return infix("^");
    case Op::shift_left:
      return infix("<<");
    case Op::shift_right:
      return infix(">>");
    case Op::where:
      return "(" + operands[0] + " ? " + operands[1] + " : " + operands[2] + ")";
    default:
      return {};  // not elementwise: the emitter never asks
  }
}

}  // namespace imprint::kernels
