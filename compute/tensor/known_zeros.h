#pragma once
// Content of variables that is known to be zeros, so that nothing reads or copies it.

#include <cstddef>

#include "compute/base/shared_bytes.h"

namespace imprint::tensor {

// Takes no memory until something reads it: an extent from a file costs nothing before a memory cap refuses
// it. Throws std::bad_alloc.
SharedBytes known_zeros(std::size_t size);

// Whether known_zeros gave the bytes. Thread-safe.
bool are_known_zeros(const SharedBytes& bytes);

}  // namespace imprint::tensor
