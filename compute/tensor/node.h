#pragma once
// The recorded operation behind a Tensor: an immutable node of a directed acyclic graph that shares its
// inputs.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/dtype.h"
#include "compute/tensor/op.h"
#include "compute/tensor/shape.h"

namespace imprint::tensor {

struct Node;
using NodeRef = std::shared_ptr<const Node>;

// Bytes of a constant, row-major, elements of dtype_size(dtype) bytes. Never changes.
struct ConstantData {
  std::vector<std::byte> bytes;
};

// Storage that a device room attaches to a variable: opaque here, because this room knows no Vulkan.
struct VariableStorage {
  virtual ~VariableStorage() = default;
};

// State that lives across runs of programs: parameters, moments, counters, replay memory.
// Created on the host with initial bytes; moves to a device when the first program that uses it is compiled.
// Not synchronised: create and destroy from one thread, or lock outside.
struct VariableState {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  std::vector<std::byte>
      initial;            // element_count * dtype_size bytes; emptied once on the device; empty when external
  bool external = false;  // lives where somebody else puts it, content included
  std::shared_ptr<VariableStorage> storage;  // null until on a device
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
  std::string label;     // input name, or a name given by Tensor::named for messages and dumps
  std::uint64_t id = 0;  // creation order, unique in the process: inputs always have smaller ids

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();  // releases long chains without recursion
};

}  // namespace imprint::tensor
