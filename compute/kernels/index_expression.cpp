#include "compute/kernels/index_expression.h"

#include <algorithm>
#include <cctype>

namespace imprint {
namespace {

IndexExpression binary(const IndexExpression& a, const char* op, const IndexExpression& b) {
  std::string text = "(";
  text += a.str();
  text += op;
  text += b.str();
  text += ")";
  return IndexExpression(std::move(text));
}

}  // namespace

bool IndexExpression::is_simple() const {
  return is_constant || std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

IndexExpression operator+(const IndexExpression& a, const IndexExpression& b) {
  if (a.is_constant && b.is_constant) return a.constant + b.constant;
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  if (b.is_constant && b.constant < 0) return binary(a, " - ", IndexExpression(-b.constant));
  return binary(a, " + ", b);
}

IndexExpression operator-(const IndexExpression& a, const IndexExpression& b) {
  if (a.is_constant && b.is_constant) return a.constant - b.constant;
  if (b.is_zero()) return a;
  return binary(a, " - ", b);
}

IndexExpression operator*(const IndexExpression& a, const IndexExpression& b) {
  if (a.is_constant && b.is_constant) return a.constant * b.constant;
  if (a.is_zero() || b.is_zero()) return 0;
  if (a.is_constant && a.constant == 1) return b;
  if (b.is_constant && b.constant == 1) return a;
  return binary(a, " * ", b);
}

IndexExpression operator/(const IndexExpression& a, std::int64_t divisor) {
  if (divisor == 1) return a;
  if (a.is_constant) return a.constant / divisor;
  return binary(a, " / ", IndexExpression(divisor));
}

IndexExpression operator%(const IndexExpression& a, std::int64_t divisor) {
  if (divisor == 1) return 0;
  if (a.is_constant) return a.constant % divisor;
  return binary(a, " % ", IndexExpression(divisor));
}

}  // namespace imprint
