#include "compute/kernels/index_expression.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <numeric>

#include "compute/base/text.h"

namespace imprint::kernels {
namespace {

std::string binary(const std::string& a, const char* op, const std::string& b) {
  return text("(", a, op, b, ")");
}

bool is_power_of_two(std::int64_t number) { return std::has_single_bit(static_cast<std::uint64_t>(number)); }
std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return (a % b + b) % b; }

constexpr std::int64_t kLastElement = 3;  // of a wide value

// Whether the elements' quotients are evenly spaced. They are equal where no element reaches the next
// multiple of the divisor.
bool divides_regularly(const IndexExpression& a, std::int64_t divisor) {
  if (a.is_irregular || a.lane % divisor == 0) return !a.is_irregular;
  const std::int64_t shared = a.is_constant() ? divisor : std::gcd(a.multiple, divisor);
  return a.lane > 0 && floor_mod(a.constant, shared) + kLastElement * a.lane < shared;
}

IndexExpression quotient_of_first(const IndexExpression& a, std::int64_t divisor) {
  const auto quotient = [&](const std::string& whole) {
    if (is_power_of_two(divisor))
      return binary(whole, " >> ", text(std::countr_zero(static_cast<std::uint64_t>(divisor))));
    return binary(whole, " / ", text(divisor));
  };
  const std::int64_t shared = std::gcd(a.multiple, divisor);
  if (!a.is_constant() && shared < divisor)
    return IndexExpression(quotient((a - floor_mod(a.constant, shared)).str()));
  IndexExpression result =
      a.is_constant() ? IndexExpression() : IndexExpression(quotient(a.text), a.multiple / divisor);
  result.constant = (a.constant - floor_mod(a.constant, divisor)) / divisor;
  return result;
}

IndexExpression remainder_of_first(const IndexExpression& a, std::int64_t divisor) {
  const std::int64_t shared = std::gcd(a.multiple, divisor);
  if (a.is_constant() || shared == divisor) return floor_mod(a.constant, divisor);
  const std::int64_t rest = floor_mod(a.constant, shared);
  const std::string whole = (a - rest).str();
  if (is_power_of_two(divisor))
    return IndexExpression(binary(whole, " & ", text(divisor - 1)), shared) + rest;
  return IndexExpression(binary(whole, " % ", text(divisor)), shared) + rest;
}

}  // namespace

bool IndexExpression::is_simple() const {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

std::string IndexExpression::str() const {
  if (text.empty()) return imprint::text(constant);
  if (constant == 0) return text;
  return binary(text, constant > 0 ? " + " : " - ", imprint::text(std::abs(constant)));
}

IndexExpression operator+(const IndexExpression& a, const IndexExpression& b) {
  IndexExpression sum = b.is_constant() ? a : b;
  if (!a.is_constant() && !b.is_constant())
    sum = IndexExpression(binary(a.text, " + ", b.text), std::gcd(a.multiple, b.multiple));
  sum.constant = a.constant + b.constant;
  sum.lane = a.lane + b.lane;
  sum.is_irregular = a.is_irregular || b.is_irregular;
  return sum;
}

IndexExpression operator-(const IndexExpression& a, const IndexExpression& b) {
  IndexExpression difference = a;
  if (!b.is_constant())
    difference = IndexExpression(binary(a.is_constant() ? "0" : a.text, " - ", b.text),
                                 std::gcd(a.is_constant() ? 0 : a.multiple, b.multiple));
  difference.constant = a.constant - b.constant;
  difference.lane = a.lane - b.lane;
  difference.is_irregular = a.is_irregular || b.is_irregular;
  return difference;
}

IndexExpression operator*(const IndexExpression& a, const IndexExpression& b) {
  const bool a_is_factor = a.is_constant() && a.lane == 0 && !a.is_irregular;
  if (!a_is_factor && !(b.is_constant() && b.lane == 0)) {
    IndexExpression product(binary(a.str(), " * ", b.str()),
                            std::gcd(a.multiple, a.constant) * std::gcd(b.multiple, b.constant));
    product.is_irregular = a.lane != 0 || b.lane != 0 || a.is_irregular || b.is_irregular;
    return product;
  }
  const std::int64_t factor = a_is_factor ? a.constant : b.constant;
  const IndexExpression& other = a_is_factor ? b : a;
  if (factor == 0) return 0;
  IndexExpression product = other;
  if (factor != 1 && !other.is_constant())
    product = IndexExpression(binary(other.text, " * ", text(factor)), other.multiple * std::abs(factor));
  product.constant = other.constant * factor;
  product.lane = other.lane * factor;
  product.is_irregular = other.is_irregular;
  return product;
}

// A constant below the divisor that both share moves only itself: it does not change the quotient, and it is
// added to the remainder.
IndexExpression operator/(const IndexExpression& a, std::int64_t divisor) {
  if (divisor == 1) return a;
  IndexExpression result = quotient_of_first(a, divisor);
  result.lane = a.lane % divisor == 0 ? a.lane / divisor : 0;
  result.is_irregular = !divides_regularly(a, divisor);
  return result;
}

IndexExpression operator%(const IndexExpression& a, std::int64_t divisor) {
  IndexExpression result = remainder_of_first(a, divisor);
  result.lane = a.lane % divisor == 0 ? 0 : a.lane;
  result.is_irregular = !divides_regularly(a, divisor);
  return result;
}

}  // namespace imprint::kernels
