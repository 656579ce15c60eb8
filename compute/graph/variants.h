#pragma once
// Kernels that could be made in several ways, and which way is taken. A place of choice names its kernel and
// lists the variants, each with what the cost model makes of it; what was measured on a device
// (program/tuning_table.h) goes before the cost model. Plain data.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace imprint {

// A kernel's variant by the kernel's signature.
using VariantTable = std::map<std::string, std::string>;

namespace graph {

struct Graph;

struct Variant {
  std::string name;  // "64 x 128 x 16 by 8 x 8": unique among the kernel's
  double cost = 0;   // in a unit of its place of choice
};

// A choice that was made.
struct VariantChoice {
  std::string kernel;  // kind, shapes and types, and for which of its numbers; no names of values
  std::vector<std::string>
      variants;  // that are worth measuring: the cheapest first, as the cost model has it
  std::string taken;
  bool from_table = false;
  std::string refused;  // what the table says, where that cannot be made here
};

// The position of the variant to take: the table's where it names one of these, else the cheapest. `variants`
// is not empty; of equal costs the first is taken. Adds the choice to `made`, unless there is only one
// variant. table: null for none.
std::size_t choose_variant(const VariantTable* table, const std::string& kernel,
                           std::span<const Variant> variants, std::vector<VariantChoice>& made);

// A hash of operations, types, shapes and edges of these nodes (ascending), and of the types and shapes of
// what they read; sixteen digits. Equal for the same work on other values.
std::string signature(const Graph& graph, std::span<const std::int32_t> nodes);
// Of what is computed with the nodes: they and all between them and memory.
std::string signature_down_to_memory(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                                     std::span<const std::int32_t> nodes);

}  // namespace graph
}  // namespace imprint
