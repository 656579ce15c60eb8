#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "compute/base/number_format.h"
#include "compute/base/philox.h"
#include "tests/reference/index.h"
#include "tests/reference/interpreter.h"
#include "tests/reference/op_case.h"

namespace imprint::reference {

using namespace tensor;

namespace {

std::int32_t as_int(double value) { return static_cast<std::int32_t>(value); }
std::uint32_t as_bits(double value) { return static_cast<std::uint32_t>(as_int(value)); }
double wrapped(std::int64_t value) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(value)));
}

double cast_to(DType dtype, bool from_float, double x) {
  const bool to_uint32 = dtype == DType::uint32;
  switch (dtype) {
    case DType::boolean:
      return x != 0 ? 1 : 0;
    case DType::float16:
      return float_from_half(half_from_float(static_cast<float>(x)));
    case DType::bfloat16:
      return float_from_bfloat16(bfloat16_from_float(static_cast<float>(x)));
    case DType::float32:
    case DType::float64:
    case DType::int64:
      return x;
    default:
      break;
  }
  if (std::isnan(x)) return 0;
  // A float is clamped to the 32 bits of its sign; an integer keeps its low bits.
  const double low = to_uint32 ? 0 : -2147483648.0, high = to_uint32 ? 4294967295.0 : 2147483647.0;
  const double whole = from_float ? std::clamp(std::trunc(x), low, high) : x;
  return static_cast<double>(wrapped_to(static_cast<std::int64_t>(whole), dtype));
}

double unary(const Node& node, double x) {
  switch (node.op) {
    case Op::abs:
      return node.dtype == DType::int32 ? wrapped(std::llabs(as_int(x))) : std::fabs(x);
    case Op::neg:
      return node.dtype == DType::int32 ? wrapped(-std::int64_t{as_int(x)}) : -x;
    case Op::sign:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case Op::ceil:
      return std::ceil(x);
    case Op::floor:
      return std::floor(x);
    case Op::round:
      return std::nearbyint(x);  // the default rounding mode: half to even
    case Op::trunc:
      return std::trunc(x);
    case Op::is_nan:
      return std::isnan(x);
    case Op::is_inf:
      return std::isinf(x);
    case Op::logical_not:
      return x == 0;
    case Op::bit_not:
      return ~as_int(x);
    case Op::cast:
      return cast_to(node.dtype, dtype_is_float(node.inputs[0]->dtype), x);
    case Op::stop_gradient:
      return x;
    case Op::int64_low:
      return wrapped(static_cast<std::int64_t>(x));
    case Op::int64_high:
      return std::floor(x / 4294967296.0);
    default:
      if (const UnaryOracle oracle = unary_oracle(node.op)) return oracle(x);
      throw std::runtime_error("no unary " + std::string(op_info(node.op).name));
  }
}

double int_division(Op op, std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  switch (op) {
    case Op::div:
      return wrapped(a / b);
    case Op::fmod:
      return static_cast<double>(a % b);
    default: {
      const std::int64_t rest = a % b;
      return static_cast<double>(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    }
  }
}

double float_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double binary(const Node& node, double a, double b) {
  const bool is_int = node.dtype == DType::int32;
  switch (node.op) {
    case Op::add:
      return is_int ? wrapped(std::int64_t{as_int(a)} + as_int(b)) : a + b;
    case Op::sub:
      return is_int ? wrapped(std::int64_t{as_int(a)} - as_int(b)) : a - b;
    case Op::mul:
      return is_int ? wrapped(std::int64_t{as_int(a)} * as_int(b)) : a * b;
    case Op::div:
      return is_int ? int_division(node.op, as_int(a), as_int(b)) : a / b;
    case Op::remainder:
      return is_int ? int_division(node.op, as_int(a), as_int(b)) : float_remainder(a, b);
    case Op::fmod:
      return is_int ? int_division(node.op, as_int(a), as_int(b)) : std::fmod(a, b);
    case Op::pow:
      return std::pow(a, b);
    case Op::atan2:
      return std::atan2(a, b);
    case Op::logaddexp:
      return std::fmax(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
    case Op::minimum:
      return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::fmin(a, b);
    case Op::maximum:
      return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::fmax(a, b);
    case Op::equal:
      return a == b;
    case Op::not_equal:
      return a != b;
    case Op::less:
      return a < b;
    case Op::less_equal:
      return a <= b;
    case Op::greater:
      return a > b;
    case Op::greater_equal:
      return a >= b;
    case Op::logical_and:
      return a != 0 && b != 0;
    case Op::logical_or:
      return a != 0 || b != 0;
    case Op::logical_xor:
      return (a != 0) != (b != 0);
    case Op::bit_and:
      return as_int(a) & as_int(b);
    case Op::bit_or:
      return as_int(a) | as_int(b);
    case Op::bit_xor:
      return as_int(a) ^ as_int(b);
    case Op::int64_pair:
      return b * 4294967296.0 + static_cast<double>(as_bits(a));
    case Op::shift_left:
      return static_cast<std::int32_t>(as_bits(a) << (as_bits(b) & 31));
    case Op::shift_right:
      return as_int(a) >> (as_bits(b) & 31);
    default:
      throw std::runtime_error("no binary " + std::string(op_info(node.op).name));
  }
}

}  // namespace

std::vector<double> elementwise(const Node& node, std::span<const Operand> operands) {
  std::vector<double> out(static_cast<std::size_t>(node.shape.element_count()));
  for (const Operand& operand : operands)
    if (operand.node.shape != node.shape) throw std::runtime_error("elementwise operand of another shape");
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (node.op == Op::where)
      out[i] = operands[0].values[i] != 0 ? operands[1].values[i] : operands[2].values[i];
    else if (operands.size() == 1)
      out[i] = unary(node, operands[0].values[i]);
    else
      out[i] = binary(node, operands[0].values[i], operands[1].values[i]);
  }
  return out;
}

std::vector<double> generate(const Node& node, std::span<const Operand> operands) {
  std::vector<double> out(static_cast<std::size_t>(node.shape.element_count()));
  switch (node.op) {
    case Op::full:
      out.assign(out.size(), node.floats[0]);
      return out;
    case Op::iota:
      for_each(node.shape, [&](const Index& index, std::size_t i) {
        out[i] = static_cast<double>(index[at(node.ints[0])]);
      });
      return out;
    case Op::random_uniform: {
      const std::vector<double>& generator = operands[0].values;
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = philox_uniform(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(node.ints[0]),
                                as_bits(generator[2]), as_bits(generator[0]), as_bits(generator[1]));
      return out;
    }
    case Op::random_permutation: {
      const std::vector<double>& generator = operands[0].values;
      const auto count = static_cast<std::size_t>(node.shape[node.shape.rank() - 1]);
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] =
            philox_permuted(static_cast<std::uint32_t>(i % count), static_cast<std::uint32_t>(count),
                            static_cast<std::uint32_t>(i / count), static_cast<std::uint32_t>(node.ints[0]),
                            as_bits(generator[2]), {as_bits(generator[0]), as_bits(generator[1])});
      return out;
    }
    default:
      throw std::runtime_error("no generator " + std::string(op_info(node.op).name));
  }
}

}  // namespace imprint::reference
