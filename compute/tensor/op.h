#pragma once
// The primitive operations that a node can be. All other operations of tensor.h (softmax, gelu, layer norm,
// conv2d, ...) are composed of them. Shape rules, derivatives, code generation and the oracle have one case
// per line below.

#include <cstdint>
#include <string_view>

namespace imprint::tensor {

// How an op's output elements depend on its inputs; decides how it fuses.
enum class OpKind : std::uint8_t {
  leaf,         // memory that exists before the program runs
  generate,     // computed from the output index alone (and a counter)
  elementwise,  // output[i] from inputs[i]; all operands have the output's shape
  view,         // output[i] = input[map(i)]; free where the consumer can index through it
  select,       // a view whose map reads memory or selects an input (concat, pad, gather)
  reduce,       // folds axes
  contract,     // matmul
  scan,         // ordered along an axis
  scatter,      // sums inputs into positions named by indices
  page          // a loop of its own, with several outputs
};

// X(name, kind, inputs); inputs -1: any number. Attributes are in Node::ints and Node::floats, in the order
// that each line gives.
// clang-format off
#define IMPRINT_OPS(X) \
  /* leaves */ \
  X(constant, leaf, 0)  /* data: Node::constant */ \
  X(input, leaf, 0)     /* provided by the caller at each run; Node::label is its name */ \
  X(variable, leaf, 0)  /* state that lives across runs: Node::variable */ \
  /* generators */ \
  X(full, generate, 0)            /* floats {value} */ \
  X(iota, generate, 0)            /* ints {axis}; int32: the index along the axis */ \
  X(random_uniform, generate, 1)  /* int32[4] generator {seed low, seed high, step, 0}; ints {stream} */ \
  X(random_permutation, generate, 1)  /* as random_uniform; int32: each line permutes 0 .. n - 1 */ \
  /* elementwise, float32 or int32 -> same */ \
  X(abs, elementwise, 1) X(neg, elementwise, 1) X(sign, elementwise, 1) \
  /* elementwise, float32 -> float32 */ \
  X(ceil, elementwise, 1) X(floor, elementwise, 1) X(round, elementwise, 1) /* half to even */ \
  X(trunc, elementwise, 1) X(sqrt, elementwise, 1) X(recip, elementwise, 1) X(exp, elementwise, 1) \
  X(expm1, elementwise, 1) X(log, elementwise, 1) X(log1p, elementwise, 1) X(sin, elementwise, 1) \
  X(cos, elementwise, 1) X(tan, elementwise, 1) X(asin, elementwise, 1) X(acos, elementwise, 1) \
  X(atan, elementwise, 1) X(sinh, elementwise, 1) X(cosh, elementwise, 1) X(tanh, elementwise, 1) \
  X(asinh, elementwise, 1) X(acosh, elementwise, 1) X(atanh, elementwise, 1) X(erf, elementwise, 1) \
  X(sigmoid, elementwise, 1) \
  X(is_nan, elementwise, 1) X(is_inf, elementwise, 1)  /* float32 -> bool */ \
  X(logical_not, elementwise, 1)  /* bool -> bool */ \
  X(bit_not, elementwise, 1)      /* int32 -> int32 */ \
  X(cast, elementwise, 1)         /* to Node::dtype; float -> int truncates, x -> bool is x != 0 */ \
  /* elementwise, two operands of one dtype */ \
  X(add, elementwise, 2) X(sub, elementwise, 2) X(mul, elementwise, 2) \
  X(div, elementwise, 2)        /* int32 truncates toward zero; int32 x / 0 is 0 */ \
  X(remainder, elementwise, 2)  /* sign of the divisor, as Python's %; int32 x % 0 is 0 */ \
  X(fmod, elementwise, 2)       /* sign of the dividend, as C's fmod */ \
  X(pow, elementwise, 2)        /* float32; a negative base with an integral exponent is defined */ \
  X(atan2, elementwise, 2) \
  X(minimum, elementwise, 2) X(maximum, elementwise, 2) \
  X(equal, elementwise, 2) X(not_equal, elementwise, 2) X(less, elementwise, 2) \
  X(less_equal, elementwise, 2) \
  X(greater, elementwise, 2) X(greater_equal, elementwise, 2)  /* comparisons -> bool */ \
  X(logical_and, elementwise, 2) X(logical_or, elementwise, 2) X(logical_xor, elementwise, 2)  /* bool */ \
  X(bit_and, elementwise, 2) X(bit_or, elementwise, 2) X(bit_xor, elementwise, 2)  /* int32 */ \
  X(shift_left, elementwise, 2)   /* int32, by 0 .. 31 */ \
  X(shift_right, elementwise, 2)  /* the same; copies the sign */ \
  X(where, elementwise, 3)      /* bool, a, b */ \
  X(stop_gradient, elementwise, 1) \
  /* views */ \
  X(reshape, view, 1)  /* target in Node::shape */ \
  X(permute, view, 1)  /* ints {source axis of each output axis} */ \
  X(expand, view, 1)   /* input of equal rank; extents of 1 repeat to Node::shape */ \
  X(slice, view, 1)    /* ints {start, step} per axis: output[i] = input[start + i * step] */ \
  X(window, view, 1)   /* ints {axis, size, stride, dilation}: axis -> positions, new last axis of size */ \
  /* selects; an index outside reads 0 */ \
  X(pad, select, 1)      /* ints {before, after} per axis, each >= 0; floats {value} */ \
  X(concat, select, -1)  /* ints {axis} */ \
  X(gather, select, 2)   /* data, int32 indices of equal rank; ints {axis}: */ \
                         /* out[.., i, ..] = data[.., indices[.., i, ..], ..]; other extents are equal */ \
  X(take, select, 2)     /* data, int32 indices; ints {axis}: the indices' shape replaces the axis */ \
  /* reductions; the folded axes stay with extent 1 */ \
  X(reduce_sum, reduce, 1) X(reduce_prod, reduce, 1) X(reduce_max, reduce, 1) \
  X(reduce_min, reduce, 1)  /* all four: ints {axes...}, ascending */ \
  X(argmax, reduce, 1) X(argmin, reduce, 1)  /* ints {axis}; int32; the first of equals */ \
  /* contraction */ \
  X(matmul, contract, 2)  /* [..., m, k] x [..., k, n] of a float dtype -> float32; equal leading extents */ \
  /* scans and scatters */ \
  X(cumsum, scan, 1)             /* ints {axis, exclusive, reverse} */ \
  X(linear_recurrence, scan, 2)  /* terms, factors of one shape; ints {axis, 0, reverse}: */ \
                                 /* out[t] = factors[t] * out[t - 1] + terms[t] */ \
  X(custom, scan, -1)            /* ints {1, 0, 0}; Node::constant: the caller's GLSL (custom_rows) */ \
  X(scatter_add, scatter, 3)     /* base, int32 indices, updates; ints {axis}: adds in a fixed */ \
                                 /* order; an index outside is dropped */ \
  X(unwindow, scatter, 1)        /* ints {axis, size, stride, dilation, extent}: adjoint of window */ \
  /* pages */ \
  X(page, page, -1)       /* Node::page (page.h); the node is its output 0 */ \
  X(page_output, page, 1) /* of a page; ints {output}, at least 1 */
// clang-format on

enum class Op : std::uint8_t {
#define X(name, kind, inputs) name,
  IMPRINT_OPS(X)
#undef X
};

struct OpInfo {
  std::string_view name;
  OpKind kind;
  int input_count;  // -1: any
};

const OpInfo& op_info(Op op);

}  // namespace imprint::tensor
