#include "compute/tensor/op.h"

#include <array>
#include <cstddef>

namespace imprint::tensor {

const OpInfo& op_info(Op op) {
#define X(name, kind, inputs, rule, cost, ...) OpInfo{#name, OpKind::kind, inputs, cost},
  static constexpr std::array kInfos { IMPRINT_OPS(X) };
#undef X
  return kInfos[static_cast<std::size_t>(op)];
}

const Dtypes& dtypes_of(Op op) {
#define IMPRINT_NONE(...) Dtypes{},
#define IMPRINT_ELEMENTWISE(name, kind, inputs, accepted, ...) dtypes::accepted,
  static constexpr Dtypes kDtypes[] = {IMPRINT_OPS_BY_TABLE(IMPRINT_NONE, IMPRINT_ELEMENTWISE)};
#undef IMPRINT_NONE
#undef IMPRINT_ELEMENTWISE
  return kDtypes[static_cast<std::size_t>(op)];
}

const Fold* fold_of(Op op) {
  switch (op) {
#define IMPRINT_FOLD(name, kind, inputs, rule, cost, derivative, function, combination, floats, ints) \
  case Op::name: {                                                                                    \
    static constexpr Fold kFold{Op::combination, floats, ints, false};                                \
    return &kFold;                                                                                    \
  }
#define IMPRINT_POSITION(name, kind, inputs, rule, cost, derivative, function, better, floats, ints) \
  case Op::name: {                                                                                   \
    static constexpr Fold kFold{Op::better, floats, ints, true};                                     \
    return &kFold;                                                                                   \
  }
    IMPRINT_FOLD_OPS(IMPRINT_FOLD)
    IMPRINT_POSITION_OPS(IMPRINT_POSITION)
#undef IMPRINT_FOLD
#undef IMPRINT_POSITION
    default:
      return nullptr;
  }
}

}  // namespace imprint::tensor
