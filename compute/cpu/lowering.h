#pragma once
// Turns a schedule into steps. A value without memory is computed in the chain that reads it, where it is
// read element by element. Where it is read at other indices, it is computed once into arena memory.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compute/cpu/executable.h"
#include "compute/cpu/product_step.h"
#include "compute/cpu/step.h"
#include "compute/graph/schedule/memory_plan.h"

namespace imprint::cpu {

class Lowering {
 public:
  Lowering(const graph::Graph& graph, const graph::Schedule& schedule, Executable& into, bool few_copies);
  Result<> run(std::uint64_t memory_limit);

 private:
  friend class ChainBuilder;

  Result<> lower(const graph::Task& task);
  Result<bool> keep_constant(const graph::Task& task);
  Result<> store_rows(const graph::Store& store);

  // ---- values ----
  bool in_memory(graph::NodeIndex node) const;  // stored by an earlier kernel, or before any kernel
  // Whether elements there have fewer than four bytes. Intermediates never have.
  bool is_packed(graph::NodeIndex node, const graph::Place& place) const;
  Result<Strided> find(graph::NodeIndex node);  // computes the value first where it has no memory
  Result<Strided> find_row_major(graph::NodeIndex node);
  Strided near_right(graph::NodeIndex node, const Strided& found);
  std::optional<Strided> constant_panels(graph::NodeIndex node, const Strided& left, const Strided& found);
  std::optional<Strided> turned_weights(graph::NodeIndex node, const Strided& left, const Strided& right);
  Strided tiled_left(graph::NodeIndex node, const Strided& found, std::int64_t columns,
                     ProductOptions& options);
  std::optional<Strided> turned_copy(std::unordered_map<graph::NodeIndex, Strided>& known,
                                     graph::NodeIndex node, const Strided& from);
  Result<> compute(graph::NodeIndex node, std::int32_t into);  // all of it into a buffer
  Result<> compute_product(graph::NodeIndex node, std::int32_t into);
  void add_product(graph::NodeIndex node, std::unique_ptr<ProductStep> step, const Strided& left,
                   const Strided& right, std::int32_t into);
  Result<> compute_reduce(graph::NodeIndex node, std::int32_t into);
  // Whether a fold over windows of an image became a step.
  Result<bool> compute_windows(graph::NodeIndex node, std::int32_t into);
  std::vector<int> fold_order(const graph::GraphNode& node) const;
  bool reads_windows(graph::NodeIndex node) const;
  Result<> lower_page(const graph::Task& task);  // page_step.cpp
  Result<> compute_pad(graph::NodeIndex node, std::int32_t into);
  Result<> compute_concat(graph::NodeIndex node, std::int32_t into);
  Result<> compute_copy(const Strided& from, std::int32_t into);
  // Computes the node, if it has no memory, or copies it. to: part of another value.
  Result<> compute_into(graph::NodeIndex node, const Strided& to);
  // A copy that is made once, if it is of a constant.
  std::optional<Strided> constant_copy(const Strided& from, const Shape& shape);
  void forget(graph::NodeIndex node);  // where a view is
  // The operand of a product, if it is a constant of whole numbers: one for all products that read it.
  std::shared_ptr<const WholeOperand> find_whole(graph::NodeIndex node, const Strided& operand, bool left);
  // Sets options.patches, if the product is such a convolution.
  bool find_patches(graph::NodeIndex node, const Strided& left, const WindowMatrix& windows,
                    ProductOptions& options);
  // A constant, perhaps through views. Products with weights of a model use fused multiply-adds. Those with
  // variables, which learners train, have the same bits on all CPUs of an architecture.
  bool is_constant(graph::NodeIndex node) const;
  ProductOptions product_options(graph::NodeIndex node, std::shared_ptr<const WholeOperand> whole) const;
  // Windows of an image that are the right operand of a product.
  Result<std::optional<WindowMatrix>> find_windows(graph::NodeIndex node);

  // ---- named extents: what a run uses ----
  UsedPart used_part(const tensor::AxisPart& part) const;
  UsedPart used_along(const Shape& shape, int axis) const;
  UsedPart used_elements(const Shape& shape) const;  // by the first axis with several places
  UsedPart used_elements(const graph::Task& task) const;
  UsedProduct used_product(graph::NodeIndex node) const;
  void use_parts(ReduceStep& step, const Shape& source, std::span<const int> order) const;

  // ---- memory ----
  static std::uint64_t key_of(const graph::Place& place) {
    return static_cast<std::uint64_t>(place.kind) << 32 | static_cast<std::uint32_t>(place.index);
  }
  std::int32_t buffer_of(const graph::Place& place);
  // Where steps write the value of a store: its place, or arena memory that is packed into it afterwards.
  std::int32_t unpacked_buffer_of(const graph::Store& store);
  void pack(const graph::Store& store, std::int32_t from);
  bool is_variable(std::int32_t buffer) const { return is_variable_[at(buffer)] != 0; }
  std::int32_t arena_buffer(const Shape& shape);
  // The buffer for a value: where the task stores it, else in the arena.
  std::int32_t destination(graph::NodeIndex node);
  void add(std::unique_ptr<Step> step, std::span<const std::int32_t> buffers);
  void add(std::unique_ptr<Step> step, std::initializer_list<std::int32_t> buffers) {
    add(std::move(step), std::span(buffers.begin(), buffers.size()));
  }
  void add_open(graph::NodeIndex node, std::unique_ptr<OpenStep> step, std::span<const std::int32_t> buffers);
  void add(Chain chain, UsedPart used, std::span<const std::int32_t> buffers);
  void add_border(const graph::GraphNode& pad, std::unique_ptr<Step> step, std::int32_t into);
  // A step that computes no chain yet.
  struct OpenResult {
    OpenStep* step = nullptr;
    std::int32_t index = 0;  // of the step
    const graph::Task* task = nullptr;
    bool has_one_reader = false;
  };
  bool can_move(const Chain& chain, const OpenResult& open, std::span<const std::int32_t> buffers) const;
  void use_now(std::span<const std::int32_t> buffers);
  void use_at(std::span<const std::int32_t> buffers, std::int32_t step);
  // by_size: values of different sizes share no memory. keeps_borders: nor do values with different borders.
  graph::MemoryPlan plan(bool by_size, bool keeps_borders) const;
  Result<> plan_arena(std::uint64_t memory_limit);

  const graph::Graph& graph_;
  const graph::Schedule& schedule_;
  Executable& executable_;
  const KernelSet& kernels_;
  static constexpr std::int64_t kMostCopied = std::int64_t{6} << 20;  // elements of constants
  bool few_copies_;
  std::int64_t most_copied_;
  const graph::Task* task_ = nullptr;  // the task being lowered
  std::vector<std::uint8_t> written_;  // per node: stored by an earlier task
  // Per node: what reads it, across values that have no memory. A stored value is one reader, any other
  // operand of an operation that is not elementwise another.
  static constexpr std::int64_t kNoReader = -1, kSeveralReaders = -2;
  std::vector<std::int64_t> readers_;
  std::unordered_map<graph::NodeIndex, Strided> computed_, dense_;   // values without memory in the schedule
  std::unordered_map<std::uint64_t, std::int32_t> buffer_of_place_;  // by kind and index
  static constexpr std::int64_t kSecondCache = std::int64_t{1} << 18;  // elements
  bool constants_stay_ = false;                                        // in the caches, from run to run
  std::int64_t turned_ = 0;  // elements of constants that turned_copy copied
  std::unordered_map<graph::NodeIndex, Strided> panels_, turned_weights_;  // copies of constants
  std::unordered_map<graph::NodeIndex, std::int32_t> tiles_;               // buffers of such
  std::int32_t buffer_count_ = 0;
  struct ArenaValue {
    std::int32_t buffer;
    graph::Lifetime lifetime;  // in steps
    std::int64_t border = -1;  // of a padded value: equal ones have the same number
  };
  std::vector<ArenaValue> arena_;
  std::vector<std::int32_t> arena_index_;       // per buffer: index in arena_, or -1
  std::vector<std::uint8_t> is_variable_;       // per buffer
  std::unordered_set<std::int32_t> constants_;  // buffers
  // By node and side; null: it has other numbers.
  std::map<std::pair<graph::NodeIndex, bool>, std::shared_ptr<const WholeOperand>> whole_;
  std::unordered_map<graph::NodeIndex, std::shared_ptr<const PatchOperand>> patches_;  // by weights
  std::map<std::vector<std::int64_t>, std::int64_t> border_numbers_;
  std::vector<SameStep*> borders_;                     // in the arena
  std::int64_t workspace_ = kMatmulScratch;            // elements
  std::unordered_map<std::int32_t, OpenResult> open_;  // by result
  std::int32_t assembled_ = -1;                        // the buffer that concat writes, part by part
};

// Builds one chain: gets its inputs from the lowering and gives each value a register.
class ChainBuilder {
 public:
  // order: of the axes of the values in the chain, outermost first; empty: as they are.
  ChainBuilder(Lowering& lowering, std::int64_t count, std::vector<int> order = {})
      : lowering_(lowering), order_(std::move(order)) {
    chain_.count = count;
    chain_.kernels = &lowering.kernels_;
  }

  Result<std::int32_t> value(graph::NodeIndex node);  // its register
  std::int32_t load(const Strided& from);
  void store(std::int32_t result, std::int32_t buffer);
  void store(std::int32_t result, const Strided& to);
  bool has_stores() const { return !chain_.stores.empty(); }

  // Assigns memory to the registers. kept: a register that is read after each block, or -1. buffers: receives
  // every buffer that the chain uses.
  Chain finish(std::int32_t kept, std::vector<std::int32_t>& buffers);

 private:
  std::int32_t new_register() {
    chain_.registers.emplace_back();
    return static_cast<std::int32_t>(chain_.registers.size()) - 1;
  }
  std::vector<graph::NodeIndex> chain_before(graph::NodeIndex node) const;
  Result<std::int32_t> compute(graph::NodeIndex node);
  Result<std::int32_t> generate(graph::NodeIndex node);
  bool is_relu(graph::NodeIndex node) const;
  // A known number that is not NaN.
  std::optional<float> number_of(graph::NodeIndex node) const;
  // The operation that the node applies to another value, which becomes `of`.
  AfterSum after_sum(graph::NodeIndex node, graph::NodeIndex& of) const;
  // A sum with numbers that repeat along rows, as a bias does; nothing: another value.
  Result<std::optional<std::int32_t>> sum_with_numbers(graph::NodeIndex sum, const AfterSum& after);
  std::int32_t add(std::vector<Instruction>& to, Instruction instruction);
  void store_in_place();
  void place_registers(std::int32_t kept);

  Lowering& lowering_;
  std::vector<int> order_;
  Chain chain_;
  std::unordered_map<graph::NodeIndex, std::int32_t> register_of_;
  std::size_t depth_ = 0;  // of calls of value
};

}  // namespace imprint::cpu
