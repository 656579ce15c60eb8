#pragma once
// All there is to an elementwise operation or a reduction, one row each. The rooms expand the columns that
// they need, so a forgotten part does not compile. Expressions of a column see only names of their own room.
//
// X(name, kind, inputs, dtypes, cost, glsl, on floats, on ints, derivatives)
//   dtypes       the operands' dtypes, of which they share one; the result's dtype (struct Dtypes in op.h)
//   cost         1 is an addition, 6 a function that a GPU has, 12 to 16 a function made of several
//   glsl         $a and $b are the operands; then the files of shaders that it calls. vectors(): GLSL
//                defines it for vectors and scalars alike, mixed in any order. ints_by(): the form for int32
//   on floats,   x and y are the operands, of float or std::int32_t (bool as 0 or 1); none: not defined.
//   on ints      Functions come from cpu/float_functions.h and shaders/both
//   derivatives  per operand. g is the gradient of the result, x (or a and b) the operands, y the result;
//                flat: no gradient passes
// clang-format off

#define IMPRINT_UNARY_OPS(X) \
  /* float32 or int32 */ \
  X(abs, elementwise, 1, numbers, 1, glsl("abs($a)").vectors(), \
    magnitude(x), (x < 0 ? negated(x) : x), g * sign(x)) \
  X(neg, elementwise, 1, numbers, 1, glsl("(-$a)").vectors(), -x, negated(x), -g) \
  X(sign, elementwise, 1, numbers, 1, glsl("sign($a)"), \
    (x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f), (x > 0) - (x < 0), flat) \
  /* float32 */ \
  X(ceil, elementwise, 1, floats, 1, glsl("ceil($a)").vectors(), __builtin_ceilf(x), none, flat) \
  X(floor, elementwise, 1, floats, 1, glsl("floor($a)").vectors(), __builtin_floorf(x), none, flat) \
  /* half to even */ \
  X(round, elementwise, 1, floats, 1, glsl("roundEven($a)").vectors(), __builtin_rintf(x), none, flat) \
  X(trunc, elementwise, 1, floats, 1, glsl("trunc($a)").vectors(), __builtin_truncf(x), none, flat) \
  X(sqrt, elementwise, 1, floats, 6, glsl("sqrt($a)").vectors(), __builtin_sqrtf(x), none, g * 0.5f / y) \
  X(recip, elementwise, 1, floats, 6, glsl("(1.0 / $a)").vectors(), 1.0f / x, none, -(g * y * y)) \
  X(exp, elementwise, 1, floats, 6, glsl("exp($a)").vectors(), exp_of(x), none, g * y) \
  X(expm1, elementwise, 1, floats, 12, glsl("imp_expm1($a)", "expm1"), expm1_of(x), none, g * (y + 1.0f)) \
  X(log, elementwise, 1, floats, 6, glsl("log($a)").vectors(), log_of(x), none, g / x) \
  X(log1p, elementwise, 1, floats, 12, glsl("imp_log1p($a)", "log1p"), log1p_of(x), none, g / (x + 1.0f)) \
  X(sin, elementwise, 1, floats, 6, glsl("sin($a)").vectors(), sin_of(x), none, g * cos(x)) \
  X(cos, elementwise, 1, floats, 6, glsl("cos($a)").vectors(), cos_of(x), none, -(g * sin(x))) \
  X(tan, elementwise, 1, floats, 6, glsl("tan($a)").vectors(), tan_of(x), none, g * (y * y + 1.0f)) \
  X(asin, elementwise, 1, floats, 16, glsl("imp_asin($a)", "atan2"), asin_of(x), none, \
    g / sqrt(1.0f - x * x)) \
  X(acos, elementwise, 1, floats, 16, glsl("imp_acos($a)", "atan2"), acos_of(x), none, \
    -(g / sqrt(1.0f - x * x))) \
  X(atan, elementwise, 1, floats, 16, glsl("atan($a)"), atan_of(x), none, g / (x * x + 1.0f)) \
  X(sinh, elementwise, 1, floats, 12, glsl("imp_sinh($a)", "expm1 log1p hyperbolic"), sinh_of(x), none, \
    g * cosh(x)) \
  X(cosh, elementwise, 1, floats, 12, glsl("imp_cosh($a)", "expm1 log1p hyperbolic"), cosh_of(x), none, \
    g * sinh(x)) \
  X(tanh, elementwise, 1, floats, 12, glsl("imp_tanh($a)", "tanh"), tanh_of(x), none, g * (1.0f - y * y)) \
  X(asinh, elementwise, 1, floats, 12, glsl("imp_asinh($a)", "expm1 log1p hyperbolic"), asinh_of(x), none, \
    g / sqrt(x * x + 1.0f)) \
  X(acosh, elementwise, 1, floats, 12, glsl("imp_acosh($a)", "expm1 log1p hyperbolic"), acosh_of(x), none, \
    g / sqrt((x - 1.0f) * (x + 1.0f))) \
  X(atanh, elementwise, 1, floats, 12, glsl("imp_atanh($a)", "expm1 log1p hyperbolic"), atanh_of(x), none, \
    g / ((1.0f - x) * (1.0f + x))) \
  X(erf, elementwise, 1, floats, 16, glsl("imp_erf($a)", "erf"), erf_of(x), none, \
    g * (Tensor(2 * std::numbers::inv_sqrtpi) * exp(-(x * x)))) \
  X(sigmoid, elementwise, 1, floats, 6, glsl("(1.0 / (1.0 + exp(-$a)))").vectors(), sigmoid_of(x), none, \
    g * (y * (1.0f - y))) \
  X(erfinv, elementwise, 1, floats, 16, glsl("imp_erfinv($a)", "erfinv"), imp_erfinv(x), none, \
    g * (Tensor(0.5 / std::numbers::inv_sqrtpi) * exp(y * y))) \
  /* of |gamma(x)| */ \
  X(lgamma, elementwise, 1, floats, 16, glsl("imp_lgamma($a)", "gamma"), imp_lgamma(x), none, \
    g * digamma(x)) \
  X(digamma, elementwise, 1, floats, 16, glsl("imp_digamma($a)", "gamma"), imp_digamma(x), none, \
    g * trigamma(x)) \
  /* -> bool */ \
  X(is_nan, elementwise, 1, floats_to_bool, 1, glsl("imp_is_nan($a)", "special_values"), x != x, none, flat) \
  X(is_inf, elementwise, 1, floats_to_bool, 1, glsl("imp_is_inf($a)", "special_values"), \
    magnitude(x) == kInfinity, none, flat) \
  X(logical_not, elementwise, 1, bools, 1, glsl("(!$a)"), none, x == 0, flat) \
  /* int32 */ \
  X(bit_not, elementwise, 1, ints, 1, glsl("(~$a)"), none, ~x, flat)

#define IMPRINT_BINARY_OPS(X) \
  X(add, elementwise, 2, numbers, 1, glsl("($a + $b)").vectors(), \
    x + y, wrapped(unsigned_of(x) + unsigned_of(y)), g, g) \
  X(sub, elementwise, 2, numbers, 1, glsl("($a - $b)").vectors(), \
    x - y, wrapped(unsigned_of(x) - unsigned_of(y)), g, -g) \
  /* the square of one value gets the whole gradient by its first operand */ \
  X(mul, elementwise, 2, numbers, 1, glsl("($a * $b)").vectors(), \
    x * y, wrapped(unsigned_of(x) * unsigned_of(y)), \
    (a.node() == b.node() ? g * (a + a) : g * b), (a.node() == b.node() ? zeros_like(b) : g * a)) \
  /* int32 truncates toward zero; int32 x / 0 is 0 */ \
  X(div, elementwise, 2, numbers, 6, glsl("($a / $b)").vectors().ints_by("imp_div($a, $b)", "division"), \
    x / y, quotient(x, y), g / b, -(g * y / b)) \
  /* sign of the divisor, as Python's %; int32 x % 0 is 0 */ \
  X(remainder, elementwise, 2, numbers, 16, glsl("imp_remainder($a, $b)", "division"), \
    float_remainder(x, y), remainder_of(x, y), g, -(g * floor(a / b))) \
  /* sign of the dividend, as C's fmod */ \
  X(fmod, elementwise, 2, numbers, 16, glsl("imp_fmod($a, $b)", "division"), \
    fmodf(x, y), rest_of(x, y), g, -(g * trunc(a / b))) \
  /* A negative base with an integral exponent is defined. At a zero base or exponent the derivative */ \
  /* would evaluate 0 * inf; the limits match PyTorch's. */ \
  X(pow, elementwise, 2, floats, 16, glsl("imp_pow($a, $b)", "pow"), pow_of(x, y), none, \
    where(equal(b, 0.0f), 0.0f, g * (b * pow(a, b - 1.0f))), \
    where(logical_and(equal(a, 0.0f), b >= 0.0f), 0.0f, g * (y * log(a)))) \
  X(atan2, elementwise, 2, floats, 16, glsl("imp_atan2($a, $b)", "atan2"), atan2f(x, y), none, \
    g / (a * a + b * b) * b, -(g / (a * a + b * b) * a)) \
  X(minimum, elementwise, 2, numbers, 1, glsl("imp_min($a, $b)", "extremes"), \
    smaller(x, y), (x < y ? x : y), unextreme(g, a, b, true, less), unextreme(g, a, b, false, less)) \
  X(maximum, elementwise, 2, numbers, 1, glsl("imp_max($a, $b)", "extremes"), \
    larger(x, y), (x > y ? x : y), unextreme(g, a, b, true, greater), unextreme(g, a, b, false, greater)) \
  X(logaddexp, elementwise, 2, floats, 16, glsl("imp_logaddexp($a, $b)", "log1p logaddexp"), \
    imp_logaddexp(x, y), none, g * sigmoid(a - b), g * sigmoid(b - a)) \
  /* -> bool */ \
  X(equal, elementwise, 2, all_to_bool, 1, glsl("($a == $b)"), x == y, x == y, flat, flat) \
  X(not_equal, elementwise, 2, all_to_bool, 1, glsl("($a != $b)"), x != y, x != y, flat, flat) \
  X(less, elementwise, 2, numbers_to_bool, 1, glsl("($a < $b)"), x < y, x < y, flat, flat) \
  X(less_equal, elementwise, 2, numbers_to_bool, 1, glsl("($a <= $b)"), x <= y, x <= y, flat, flat) \
  X(greater, elementwise, 2, numbers_to_bool, 1, glsl("($a > $b)"), x > y, x > y, flat, flat) \
  X(greater_equal, elementwise, 2, numbers_to_bool, 1, glsl("($a >= $b)"), x >= y, x >= y, flat, flat) \
  X(logical_and, elementwise, 2, bools, 1, glsl("($a && $b)"), none, x & y, flat, flat) \
  X(logical_or, elementwise, 2, bools, 1, glsl("($a || $b)"), none, x | y, flat, flat) \
  X(logical_xor, elementwise, 2, bools, 1, glsl("($a ^^ $b)"), none, x ^ y, flat, flat) \
  /* int32 */ \
  X(bit_and, elementwise, 2, ints, 1, glsl("($a & $b)"), none, x & y, flat, flat) \
  X(bit_or, elementwise, 2, ints, 1, glsl("($a | $b)"), none, x | y, flat, flat) \
  X(bit_xor, elementwise, 2, ints, 1, glsl("($a ^ $b)"), none, x ^ y, flat, flat) \
  /* by 0 .. 31 */ \
  X(shift_left, elementwise, 2, ints, 1, glsl("($a << $b)"), \
    none, wrapped(unsigned_of(x) << (y & 31)), flat, flat) \
  /* the same; copies the sign */ \
  X(shift_right, elementwise, 2, ints, 1, glsl("($a >> $b)"), none, x >> (y & 31), flat, flat)


// Folds: a start value and a combination of two values, associative and commutative, of elements as well as
// of partial results. The fold of one element is that element.
//
// X(name, kind, inputs, rule, cost, derivative, function, combination, start of floats, start of ints)
//   rule .. derivative  as in op.h
//   function            the public function: Tensor sum(const Tensor& x, const Axes& axes, bool keep_dims)
//   combination         an elementwise operation of two operands, which also has the fold's dtypes; of
//                       argmax and argmin: whether the first operand is better
#define IMPRINT_FOLD_OPS(X) \
  X(reduce_sum, reduce, 1, reduce, 1, unreduce_sum, sum, add, 0, 0) \
  X(reduce_prod, reduce, 1, reduce, 1, unreduce_prod, prod, mul, 1, 1) \
  X(reduce_max, reduce, 1, reduce, 1, unreduce_extreme, max, maximum, -__builtin_inf(), -2147483647 - 1) \
  X(reduce_min, reduce, 1, reduce, 1, unreduce_extreme, min, minimum, __builtin_inf(), 2147483647)

// Folds that find a position: int32, the first of equals.
#define IMPRINT_POSITION_OPS(X) \
  X(argmax, reduce, 1, arg_reduce, 1, flat, argmax, greater, -__builtin_inf(), -2147483647 - 1) \
  X(argmin, reduce, 1, arg_reduce, 1, flat, argmin, less, __builtin_inf(), 2147483647)

// clang-format on
