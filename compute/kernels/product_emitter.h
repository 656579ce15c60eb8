#pragma once
// Writes the kernel of a large contraction: a page of shaders/products, with functions that load the operands
// and process the sums.

#include <string>
#include <vector>

#include "compute/graph/schedule/product.h"
#include "compute/graph/schedule/winograd.h"
#include "compute/graph/strides.h"
#include "compute/kernels/emitter.h"

namespace imprint::kernels {

class ProductEmitter : public Emitter {
 public:
  using Emitter::Emitter;

  // The function `void <name>(int group)` and the functions that it calls.
  std::string function(const std::string& name);
  // Workgroups that a run with named extents needs, in GLSL; empty: all.
  std::string used_groups();

  // Declarations that all products of a dispatch share; their tiles are equal.
  static std::string declarations(const graph::ProductTile& tile);

 private:
  // How a tile of an operand is copied: `width` neighbours at a time, along the terms or along the operand's
  // rows or columns. An invocation's loads are `lines_apart` rows or columns apart, or one term.
  struct Loads {
    bool along_terms = false;
    std::int32_t width = 1, turns = 0, lines_apart = 0;
    bool packs = false;  // loads float16 one by one
    std::string type() const { return width == 8 ? "uvec4" : width == 4 ? "vec4" : "float"; }
  };
  Loads loads(std::size_t slot) const;
  std::int64_t own_columns() const;  // of one product of the batch (joins_columns)
  bool stores_sums() const;          // unchanged, and stores nothing else
  bool stores_matrices() const;      // stores_sums() by whole matrices of a subgroup
  std::string used_row_tiles();
  std::string workgroup_function(const std::string& name);
  std::string operand_place(const graph::MatrixOperand& operand, std::size_t slot);
  std::string element_function(const std::string& name);
  std::string packing_macro(const std::string& name, std::size_t slot, const Loads& loads);
  std::string patches_function(const std::string& name);
  std::string kernel_macro(const std::string& name, const graph::WindowsOfThree& windows);
  std::string patch_macro(const std::string& name, const graph::WindowsOfThree& windows);
  std::string patch_store(const std::string& name, const graph::WindowsOfThree& windows);
  std::string parameterised(const std::string& name, const std::string& parameters);  // the body as a macro
  std::string macro_of_body(const std::string& name, std::size_t slot);
  std::string load_macro(const std::string& name, std::size_t slot, const Loads& loads);
  std::string vector_at(const graph::Strides& strides, const ElementIndex& index, std::int32_t width);
  std::string vector_behind(graph::NodeIndex node, const ElementIndex& index);
  std::string store_function(const std::string& name);
  // Four neighbouring outputs of a row; refuses where the task's results are not neighbours.
  void write_four();
  void write_fours(std::int64_t rows, std::int64_t apart);
  void write_one_by_one(std::int64_t columns);
  void write_one_by_one_of_joined(const graph::ProductShape& shape);
  std::string take_body();  // returns the text so far and starts another function
};

}  // namespace imprint::kernels
