#pragma once
// Integer expressions of GLSL, folded as far as constants allow, so that generated indexing is readable. An
// expression keeps its constant summand and a known divisor of the rest apart, so that alignment and
// adjacency are known.

#include <cstdint>
#include <string>

namespace imprint::kernels {

// May stand for the indices of a wide value's four elements at once: str() is the first, the others follow in
// steps of `lane`.
struct IndexExpression {
  std::string text;           // an identifier or a parenthesised expression; empty: zero
  std::int64_t multiple = 1;  // divides the value of `text`
  std::int64_t constant = 0;  // added to `text`
  std::int64_t lane = 0;      // 0: all elements have the same index
  bool is_irregular = false;  // the elements' indices are not evenly spaced: unusable

  IndexExpression() = default;
  IndexExpression(std::int64_t value) : constant(value) {}
  explicit IndexExpression(std::string expression, std::int64_t known_multiple = 1)
      : text(std::move(expression)), multiple(known_multiple) {}

  bool is_constant() const { return text.empty(); }
  bool is_zero() const { return is_constant() && constant == 0 && lane == 0; }
  bool is_multiple_of(std::int64_t number) const {
    return constant % number == 0 && (is_constant() || multiple % number == 0);
  }
  bool is_simple() const;  // an identifier or nothing, plus the constant
  std::string str() const;
};

IndexExpression operator+(const IndexExpression& a, const IndexExpression& b);
IndexExpression operator-(const IndexExpression& a, const IndexExpression& b);
IndexExpression operator*(const IndexExpression& a, const IndexExpression& b);
// The dividend must not be negative where the result is used; the divisor is positive.
IndexExpression operator/(const IndexExpression& a, std::int64_t divisor);
IndexExpression operator%(const IndexExpression& a, std::int64_t divisor);

}  // namespace imprint::kernels
