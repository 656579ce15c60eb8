#pragma once
// The recorded operation that a Tensor refers to: an immutable node of a directed acyclic graph. Nodes share
// their inputs.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/base/shared_bytes.h"
#include "compute/tensor/dtype.h"
#include "compute/tensor/op.h"
#include "compute/tensor/shape.h"

namespace imprint::tensor {

struct Loop;         // loop.h
struct LibraryPage;  // library_page.h
struct Node;
using NodeRef = std::shared_ptr<const Node>;

// A constant's elements, row-major, dtype_size(dtype) bytes each. Never changes.
struct ConstantData {
  SharedBytes bytes;
};

// A variable's memory on a device. Opaque here: this room knows no Vulkan.
struct VariableStorage {
  virtual ~VariableStorage() = default;
};

// State that lives across runs of programs: parameters, moments, counters, replay memory. Starts on the host;
// moves to a device when the first program that uses it is compiled. Not synchronised: create and destroy it
// on one thread, or lock outside.
struct VariableState {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  SharedBytes initial;                       // bytes() of them; emptied once on a device; empty when external
  bool external = false;                     // the caller provides memory and content
  std::shared_ptr<VariableStorage> storage;  // null until on a device

  std::uint64_t bytes() const;
  Shape kernel_shape() const;  // the shape in kernels: of int64, that of its words
};

struct Node {
  Op op = Op::constant;
  DType dtype = DType::float32;
  Shape shape;
  std::vector<NodeRef> inputs;
  std::vector<std::int64_t> ints;  // meaning per op: op.h
  std::vector<double> floats;
  std::shared_ptr<const ConstantData> constant;
  std::shared_ptr<VariableState> variable;
  std::shared_ptr<const LibraryPage> page;  // of an op page
  std::shared_ptr<const Loop> loop;         // of an op loop
  std::string label;     // input name, or a name given by Tensor::named for messages and dumps
  std::uint64_t id = 0;  // order of creation, unique in the process; inputs have smaller ids

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();  // releases long chains without recursion
};

}  // namespace imprint::tensor
