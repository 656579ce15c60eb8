#pragma once
// The primitive operations that a node can be. All other operations of tensor.h (softmax, gelu, layer norm,
// conv2d, ...) are composed of them.

#include <cstdint>
#include <string_view>

#include "compute/tensor/dtype.h"
#include "compute/tensor/op_rows.h"

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

// X(name, kind, inputs, rule, cost, derivative, ...)
//   inputs      -1: any number
//   rule        of the result's shape and dtype: a function of shape_rules.cpp
//   cost        of one element, or of one term of a fold; 1 is an addition
//   derivative  a function of derivatives_shape.cpp; flat: no gradient passes
//   ...         further columns of folds (op_rows.h)
// Attributes are in Node::ints and Node::floats, in the order that each comment gives. ELEMENTWISE takes the
// elementwise rows of op_rows.h, which have other columns.
// clang-format off
#define IMPRINT_OPS_BY_TABLE(X, ELEMENTWISE) \
  /* leaves */ \
  X(constant, leaf, 0, leaf, 1, flat)  /* data: Node::constant */ \
  X(input, leaf, 0, leaf, 1, flat)     /* provided by the caller at each run; Node::label is its name */ \
  X(variable, leaf, 0, leaf, 1, flat)  /* state that lives across runs: Node::variable */ \
  /* generators */ \
  X(full, generate, 0, leaf, 0, flat)  /* floats {value} */ \
  X(iota, generate, 0, iota, 0, flat)  /* ints {axis}; int32: the index along the axis */ \
  /* int32[4] generator {seed low, seed high, step, 0}; ints {stream} */ \
  X(random_uniform, generate, 1, random_uniform, 70, flat) \
  /* as random_uniform; int32: each line permutes 0 .. n - 1 */ \
  X(random_permutation, generate, 1, random_permutation, 48 * 70, flat) \
  /* elementwise; the operands have one shape */ \
  IMPRINT_UNARY_OPS(ELEMENTWISE) \
  /* to Node::dtype; float -> int truncates, x -> bool is x != 0 */ \
  X(cast, elementwise, 1, cast, 1, uncast) \
  IMPRINT_BINARY_OPS(ELEMENTWISE) \
  X(where, elementwise, 3, where, 1, unchoose)          /* bool, a, b */ \
  X(stop_gradient, elementwise, 1, same_as_input, 1, flat) \
  /* int64 and its low and high words, int32. No kernel: graphs take pairs apart */ \
  X(int64_pair, elementwise, 2, int64_pair, 0, flat) \
  X(int64_low, elementwise, 1, int64_word, 0, flat) \
  X(int64_high, elementwise, 1, int64_word, 0, flat) \
  /* views */ \
  X(reshape, view, 1, reshape, 3, unreshape)  /* target in Node::shape; costs index divisions */ \
  X(permute, view, 1, permute, 0.5, unpermute)  /* ints {source axis of each output axis} */ \
  X(expand, view, 1, expand, 0.5, unexpand)   /* input of equal rank; extents of 1 repeat to Node::shape */ \
  /* ints {start, step} per axis: output[i] = input[start + i * step] */ \
  X(slice, view, 1, slice, 0.5, unslice) \
  /* ints {axis, size, stride, dilation}: axis -> positions, new last axis of size */ \
  X(window, view, 1, window, 0.5, unview_windows) \
  /* selects; an index outside reads 0 */ \
  X(pad, select, 1, pad, 3, unpad)            /* ints {before, after} per axis, each >= 0; floats {value} */ \
  X(concat, select, -1, concat, 3, unconcat)  /* ints {axis} */ \
  /* data, int32 indices of equal rank; ints {axis}: */ \
  /* out[.., i, ..] = data[.., indices[.., i, ..], ..]; other extents are equal */ \
  X(gather, select, 2, gather, 3, ungather) \
  /* data, int32 indices; ints {axis}: the indices' shape replaces the axis */ \
  X(take, select, 2, take, 3, untake) \
  /* reductions; the folded axes stay with extent 1 */ \
  IMPRINT_FOLD_OPS(X)      /* ints {axes...}, ascending */ \
  IMPRINT_POSITION_OPS(X)  /* ints {axis} */ \
  /* [..., m, k] x [..., k, n] of a float dtype -> float32; equal leading extents */ \
  X(matmul, contract, 2, matmul, 2, uncontract) \
  /* scans and scatters */ \
  X(cumsum, scan, 1, cumsum, 1, uncumsum)  /* ints {axis, exclusive, reverse} */ \
  /* terms, factors of one shape; ints {axis, 0, reverse}: out[t] = factors[t] * out[t - 1] + terms[t] */ \
  X(linear_recurrence, scan, 2, linear_recurrence, 1, unrecur) \
  /* ints {1, 0, 0}; Node::constant: the caller's GLSL (custom_rows) */ \
  X(custom, scan, -1, custom, 1, flat) \
  /* first carry, stacks, shared values; Node::loop: the body (loop.h). No kernel: programs take it apart */ \
  X(loop, scan, -1, leaf, 0, flat) \
  X(loop_output, scan, 1, leaf, 0, flat)  /* of a loop; ints {position} */ \
  /* base, int32 indices, updates; ints {axis}: adds in a fixed order; an index outside is dropped */ \
  X(scatter_add, scatter, 3, scatter_add, 3, unscatter) \
  /* ints {axis, size, stride, dilation, extent}: adjoint of window */ \
  X(unwindow, scatter, 1, unwindow, 3, rewindow) \
  /* pages; run_page has checked shape and dtype, and differentiates by Page::backward */ \
  X(page, page, -1, leaf, 1, flat)        /* Node::page (page.h); the node is its output 0 */ \
  X(page_output, page, 1, leaf, 0, flat)  /* of a page; ints {output}, at least 1 */
#define IMPRINT_OPS(X) IMPRINT_OPS_BY_TABLE(X, X)
// clang-format on

enum class Op : std::uint8_t {
#define X(name, kind, inputs, ...) name,
  IMPRINT_OPS(X)
#undef X
};

// The dtypes that an elementwise op accepts. Its operands share one of them, which is also the result's, or
// bool.
struct Dtypes {
  bool floats = false, ints = false, bools = false;
  bool to_bool = false;

  constexpr bool accept(DType dtype) const {
    return (floats && dtype == DType::float32) || (ints && dtype == DType::int32) ||
           (bools && dtype == DType::boolean);
  }
};

// The names of the dtypes column.
namespace dtypes {
inline constexpr Dtypes floats{.floats = true}, ints{.ints = true}, bools{.bools = true};
inline constexpr Dtypes numbers{.floats = true, .ints = true};
inline constexpr Dtypes all{.floats = true, .ints = true, .bools = true};
inline constexpr Dtypes floats_to_bool{.floats = true, .to_bool = true};
inline constexpr Dtypes numbers_to_bool{.floats = true, .ints = true, .to_bool = true};
inline constexpr Dtypes all_to_bool{.floats = true, .ints = true, .bools = true, .to_bool = true};
}  // namespace dtypes

struct OpInfo {
  std::string_view name;
  OpKind kind;
  int input_count;  // -1: any
  double cost;
};

const OpInfo& op_info(Op op);

// The dtypes of an elementwise op of op_rows.h; none for other ops.
const Dtypes& dtypes_of(Op op);

struct Fold {
  Op combination;  // of two values, or of a value and a partial result
  double float_start, int_start;
  bool finds_position;  // then combination: whether the first operand is better

  double start(DType dtype) const { return dtype == DType::int32 ? int_start : float_start; }
};

// Null where the op is no reduction.
const Fold* fold_of(Op op);

// Whether the op is a reduction of which partial results fold on.
inline bool is_plain_fold(Op op) {
  const Fold* fold = fold_of(op);
  return fold && !fold->finds_position;
}

}  // namespace imprint::tensor
