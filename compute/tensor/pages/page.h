#pragma once
// An operation with a loop of its own: a page of GLSL for the device, a function for the CPU, several
// outputs. Sorting, parallel scans and a caller's own kernels are pages. compute/docs/pages.md shows how to
// write one.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint {

// A value in host memory, row-major. Floats of any width as float; integers of any width, and bool as 0 or 1,
// as std::int32_t.
struct PageArray {
  DType dtype = DType::float32;
  Shape shape;
  void* data = nullptr;

  std::span<float> floats() const {
    return {static_cast<float*>(data), static_cast<std::size_t>(shape.element_count())};
  }
  std::span<std::int32_t> ints() const {
    return {static_cast<std::int32_t*>(data), static_cast<std::size_t>(shape.element_count())};
  }
};

struct PageOutput {
  Shape shape;
  DType dtype = DType::float32;
};

struct Page {
  std::string name;                 // for messages and dumps
  std::vector<PageOutput> outputs;  // at least one

  // The device's kernel. It defines `void imp_page(int group)`, which each workgroup runs once. Element i of
  // input k is imp_load_k(i): float, int, or int 0 or 1 for bool. imp_store_k(i, value) writes output k.
  // Indices are row-major and must lie inside. A page may declare shared memory and functions, and call
  // barrier(). Workgroups run in any order and see no element that another one stored.
  std::string glsl;
  std::int64_t groups = 1;  // workgroups; `group` is 0 .. groups - 1
  int group_size = 64;      // invocations per workgroup: imp_group_size in GLSL
  std::vector<std::pair<std::string, std::int64_t>> constants;  // names that GLSL may use, and their values
  // Row i of each output depends on row i of each input alone. Inputs may then have a named first axis
  // (Extent), which the outputs share. The kernel runs over all rows up to the bound.
  bool by_rows = false;

  // Computes all outputs on device cpu. Without it, programs for the CPU refuse the page.
  std::function<void(std::span<const PageArray> inputs, std::span<const PageArray> outputs)> cpu;

  // Returns one gradient per input, each with the input's shape; an empty tensor for none. gradients: one per
  // output; zeros for an output that the loss does not depend on, or that is not float32. Without it, a
  // gradient that arrives at the page is an error.
  std::function<std::vector<Tensor>(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                    std::span<const Tensor> gradients)>
      backward;
};

// The page's outputs. Equal pages on equal inputs run once: name, glsl, outputs, groups, group_size and
// constants decide.
// Errors: dtype_mismatch (an output of a type that has no tensors), invalid_argument (no outputs, neither
// glsl nor cpu, groups or group_size below 1). Program::compile fails for GLSL that does not compile
// (compile_failed, with the line in `glsl`), for more invocations than the device has, and for a page without
// glsl on a device or without cpu on device cpu (unsupported).
std::vector<Tensor> run_page(Page page, std::span<const Tensor> inputs);

}  // namespace imprint
