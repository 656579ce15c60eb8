#pragma once
// An array in a buffer that the host shares. One binding of a shader reaches maxStorageBufferRange bytes (128
// MiB on some devices), so a longer array is several variables, one after the other.

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

// Tensors that a brain reads and writes without a trip through the CPU.
struct SharedTensors {
  SharedTensor observations;  // float32 of any shape: each agent names its first element
  SharedTensor actions;       // float32 [agents, action width], decide/infer_graph.h
};

// External variables [rows, row] for an array whose rows are its last extent (in one dimension: one element).
// Each but the last is as long as `reach` allows and a multiple of `step` bytes, so that the next one may be
// bound. No row is split, unless no number of whole rows within reach is a multiple of `step`.
Result<std::vector<Variable>> split(const std::string& name, const Shape& shape, DType dtype,
                                    std::uint64_t reach_bytes, std::uint64_t step_bytes);

// The elements at `index` (int32, row-major over the whole array), in the shape of `index`.
Tensor take_from(std::span<const Variable> parts, const Tensor& index);
// Writes rows [n, row] to rows `at` (int32 [n]) of the whole array; -1 = nowhere.
std::vector<Update> scatter_to(std::span<const Variable> parts, const Tensor& at, const Tensor& rows);

}  // namespace imprint::agent
