#pragma once
// Named extents of a program's runs: arrays that use a part of an input's or output's memory.

#include <cstddef>
#include <functional>

#include "compute/program/program.h"

namespace imprint::program {

// Calls use(offset, offset_in_full, bytes) for runs of bytes of a dense array with the elements of `full`
// that the slot's runs use, and where they lie in the memory of `full`.
void each_used_run(const Program& program, std::uint32_t slot, const Shape& full, std::size_t element_bytes,
                   const std::function<void(std::size_t, std::size_t, std::size_t)>& use);

// Sets the extents of the slot that an array of shape `found` has along the named axes of `port`. Other axes
// are left to the caller. Errors: shape_mismatch (an extent outside 1 .. bound, or between two steps of it).
Result<> take_extents(Program& program, std::uint32_t slot, const Shape& found, const Shape& port);

}  // namespace imprint::program
