#pragma once
// Inputs and outputs of a model as the host has them. A program has float32, int32 and bool; the host's
// elements have the types of the file.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "compute/base/result.h"
#include "compute/model/onnx/format/proto.h"
#include "compute/tensor/dtype.h"
#include "compute/tensor/shape.h"

namespace imprint::agent {

struct ModelValue {
  std::string name;
  onnx::ElementType type = onnx::ElementType::float32;  // of the elements that the host has
  DType held = DType::float32;                          // of the program's: float32, int32 or bool
  Shape shape;

  // In the host's memory.
  std::uint64_t bytes() const { return bytes_of(shape); }
  std::uint64_t bytes_of(const Shape& used) const {
    return static_cast<std::uint64_t>(used.element_count()) * onnx::element_type_size(type);
  }
};

// Whether the functions below know the type, held that way.
bool can_exchange(onnx::ElementType type, DType held);

// The host's elements as the program's: as many as `held` has room for, aligned or not.
// float64 is rounded to float32. Errors: invalid_argument (a whole number that int32 cannot hold).
Result<> take_elements(const ModelValue& value, std::span<const std::byte> given, std::span<std::byte> held);
// The program's elements as the host's, all of `held`. Rounds to float16 and bfloat16; a narrower whole
// number keeps the low bits, as a cast in C does.
void give_elements(const ModelValue& value, std::span<const std::byte> held, std::span<std::byte> into);

}  // namespace imprint::agent
