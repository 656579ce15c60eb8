#pragma once
// Kernels with several possible implementations, and the choice between them. A choice point names its kernel
// and lists the variants with their costs from the cost model. Measurements on a device
// (tuning/tuning_table.h) override the cost model. Plain data.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace imprint {

// Maps a kernel's signature to the name of its variant.
using VariantTable = std::map<std::string, std::string>;

namespace graph {

struct Graph;

struct Variant {
  std::string name;  // "64 x 128 x 16 by 8 x 8": unique among the kernel's
  double cost = 0;   // in a unit of the choice point's own
};

// A choice that was made.
struct VariantChoice {
  std::string kernel;  // kind, shapes, types, and which of its numbers is chosen; no names of values
  // Variants worth measuring, cheapest first by the cost model.
  std::vector<std::string> variants;
  std::string taken;
  bool from_table = false;
  std::string refused;  // the table's variant, if it is not possible here
};

// Returns the position of the variant to take: the table's if it names one of these, else the cheapest.
// `variants` is not empty; of equal costs the first wins. Adds the choice to `made`, unless there is only one
// variant. table: null for none.
std::size_t choose_variant(const VariantTable* table, const std::string& kernel,
                           std::span<const Variant> variants, std::vector<VariantChoice>& made);

// A hash of the operations, types, shapes and edges of these nodes (ascending), and of the types and shapes
// of what they read. Sixteen digits. Equal for the same work on other values.
std::string signature(const Graph& graph, std::span<const std::int32_t> nodes);
// The signature of the nodes and everything between them and memory.
std::string signature_down_to_memory(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                                     std::span<const std::int32_t> nodes);

}  // namespace graph
}  // namespace imprint
