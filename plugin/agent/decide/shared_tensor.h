#pragma once
// An array in a buffer that the host shares. A shader reaches no further from one binding than
// maxStorageBufferRange (128 MiB on some devices), so a longer array lies in several variables, one behind
// the other.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "compute/tensor/tensor.h"
#include "engine-bridge/host/shared_buffer.h"

namespace imprint::agent {

struct SharedTensor {
  std::shared_ptr<bridge::SharedBuffer> buffer;  // null: none
  std::string name;
  Shape shape;
  DType dtype = DType::float32;
  std::vector<Variable> parts;  // in the buffer, in order; as split() makes them

  std::uint64_t element_count() const { return static_cast<std::uint64_t>(shape.element_count()); }
};

// What a brain reads and writes there, without a trip over the processor.
struct SharedTensors {
  SharedTensor observations;  // float32 of any shape: agents say where theirs begins
  SharedTensor actions;       // float32 [seats, action width], see infer_graph.h
};

// External variables [rows, row] for an array whose rows are its last extent (of one dimension: an element).
// Each but the last has as many bytes as the reach allows, and a multiple of `step`, so that the next begins
// where a range may; and no row lies in two, unless so few are no multiple of `step`.
Result<std::vector<Variable>> split(const std::string& name, const Shape& shape, DType dtype,
                                    std::uint64_t reach_bytes, std::uint64_t step_bytes);

// The elements at `index` (int32, in row-major order over the whole), in its shape.
Tensor take_from(std::span<const Variable> parts, const Tensor& index);
// Writes rows [n, row] to the rows that `at` (int32 [n]) names, over the whole; -1: to none.
std::vector<Update> scatter_to(std::span<const Variable> parts, const Tensor& at, const Tensor& rows);

}  // namespace imprint::agent
