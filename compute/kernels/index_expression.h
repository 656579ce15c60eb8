#pragma once
// Integer expressions of GLSL, folded as far as constants allow, so that generated indexing reads as a person would write it.

#include <cstdint>
#include <string>

namespace imprint {

struct IndexExpression {
  bool is_constant = true;
  std::int64_t constant = 0;
  std::string text;   // when not constant; an identifier or a parenthesised expression

  IndexExpression() = default;
  IndexExpression(std::int64_t value) : constant(value) {}
  explicit IndexExpression(std::string expression) : is_constant(false), text(std::move(expression)) {}

  std::string str() const { return is_constant ? std::to_string(constant) : text; }
  bool is_zero() const { return is_constant && constant == 0; }
  bool is_simple() const;   // a constant or an identifier
};

IndexExpression operator+(const IndexExpression& a, const IndexExpression& b);
IndexExpression operator-(const IndexExpression& a, const IndexExpression& b);
IndexExpression operator*(const IndexExpression& a, const IndexExpression& b);
// For non-negative operands and a positive divisor.
IndexExpression operator/(const IndexExpression& a, std::int64_t divisor);
IndexExpression operator%(const IndexExpression& a, std::int64_t divisor);

}  // namespace imprint
