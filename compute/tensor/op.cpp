#include "compute/tensor/op.h"

#include <array>
#include <cstddef>

namespace imprint::tensor {

const OpInfo& op_info(Op op) {
#define X(name, kind, inputs) OpInfo{#name, OpKind::kind, inputs},
  static constexpr std::array kInfos { IMPRINT_OPS(X) };
#undef X
  return kInfos[static_cast<std::size_t>(op)];
}

}  // namespace imprint::tensor
