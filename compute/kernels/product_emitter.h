#pragma once
// Writes the kernel of a large contraction: the loads of both operands and what becomes of its sums as
// functions, around a page of shaders/products.

#include <string>
#include <vector>

#include "compute/graph/product.h"
#include "compute/graph/strides.h"
#include "compute/kernels/emitter.h"

namespace imprint::kernels {

class ProductEmitter : public Emitter {
 public:
  using Emitter::Emitter;

  // The function `void <name>(int group)` and those that it calls.
  std::string function(const std::string& name);

  // What all products of a dispatch share; they have equal tiles.
  static std::string declarations(const graph::ProductTile& tile);

 private:
  // How a tile of an operand is copied: `width` neighbours at a time, along the terms or along its rows or
  // columns; what an invocation loads in its turns is `lines_apart` rows or columns apart, or one term.
  struct Loads {
    bool along_terms = false;
    std::int32_t width = 1, turns = 0, lines_apart = 0;
    std::string type() const { return width == 8 ? "uvec4" : width == 4 ? "vec4" : "float"; }
  };
  Loads loads(std::size_t slot) const;
  bool stores_sums() const;      // as they are, and nothing else
  bool stores_matrices() const;  // the same, whole matrices of a subgroup
  std::string workgroup_function(const std::string& name);
  std::string operand_place(const graph::MatrixOperand& operand, std::size_t slot);
  std::string element_function(const std::string& name);
  std::string load_macro(const std::string& name, std::size_t slot, const Loads& loads);
  std::string vector_at(const graph::Strides& strides, const ElementIndex& index, std::int32_t width);
  std::string store_function(const std::string& name);
  void
  write_four();  // outputs of a row side by side; refuses where what the task makes of them does not lie so
  void write_one_by_one(std::int64_t columns);
  std::string take_body();  // what was written, to begin another function
};

}  // namespace imprint::kernels
