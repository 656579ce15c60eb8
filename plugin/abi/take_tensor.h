#pragma once
// The tensor behind a handle in a descriptor.

#include <string>

#include "plugin/abi/contexts.h"

namespace imprint::abi {

// A zero handle leaves `into` as it is. Errors: invalid_argument (destroyed, or of another context).
inline Result<> take_tensor(ContextEntry& entry, const char* call, const std::string& field,
                            imp_tensor tensor, agent::SharedTensor& into) {
  if (tensor.id == 0) return {};
  const agent::SharedTensor* found = find_context_of(tensor) == &entry ? find_tensor(entry, tensor) : nullptr;
  if (!found)
    return refuse(call, text(field,
                             ": found a destroyed or foreign handle, expected a tensor of this context, or "
                             "zero"));
  into = *found;
  return {};
}

}  // namespace imprint::abi
