#pragma once
// Private: how much of a graph this thread makes, so that a reader of files can bound it.

#include <cstdint>

namespace imprint::tensor {

std::uint64_t made_nodes();  // by this thread so far

}  // namespace imprint::tensor
