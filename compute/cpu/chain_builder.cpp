#include <algorithm>
#include <cstring>

#include "compute/base/text.h"
#include "compute/cpu/lowering.h"

namespace imprint::cpu {

using namespace graph;
using namespace tensor;

namespace {

// Whether every block of a chain reads the same elements in the same order, as with a row that repeats.
bool is_equal_for_blocks(const Loops<1>& loops) {
  if (loops.depth == 1) return loops.strides[0][0] == 0;
  return loops.depth == 2 && loops.strides[0][0] == 0 && kBlock % loops.extents[1] == 0;
}

Strided permuted(const Strided& from, const std::vector<int>& order) {
  if (order.empty()) return from;
  Strided to{from.buffer, from.offset, {}, {}};
  for (const int axis : order) {
    to.strides[at(to.shape.rank())] = from.strides[at(axis)];
    to.shape.append(from.shape[axis]);
  }
  return to;
}

}  // namespace

Result<std::int32_t> ChainBuilder::value(NodeIndex node) {
  if (const auto known = register_of_.find(node); known != register_of_.end()) return known->second;
  // Values of a long chain are found from its beginning, in steps: calls as deep as the chain would not fit a
  // thread's stack.
  constexpr std::size_t kStep = 256;
  if (depth_ % kStep == 0) {
    const std::vector<NodeIndex> chain = chain_before(node);
    if (chain.size() > 2 * kStep)
      for (std::size_t i = chain.size() - kStep; i >= kStep; i -= kStep) IMPRINT_CHECK(value(chain[i]));
  }
  ++depth_;
  const Result<std::int32_t> result = compute(node);
  --depth_;
  if (result.ok()) register_of_.emplace(node, *result);
  return result;
}

// The node and those before it that have no register yet, each the latest operand of the one before.
std::vector<NodeIndex> ChainBuilder::chain_before(NodeIndex node) const {
  std::vector<NodeIndex> chain;
  const auto is_computed_here = [&](NodeIndex index) {
    return lowering_.graph_[index].kind() == OpKind::elementwise && !register_of_.contains(index) &&
           !lowering_.in_memory(index) && !lowering_.computed_.contains(index);
  };
  for (; is_computed_here(node); node = std::ranges::max(lowering_.graph_[node].inputs))
    chain.push_back(node);
  return chain;
}

Result<std::int32_t> ChainBuilder::compute(NodeIndex node) {
  const GraphNode& entry = lowering_.graph_[node];
  const bool is_elsewhere = lowering_.in_memory(node) || lowering_.computed_.contains(node);
  if (!is_elsewhere && entry.op == Op::reshape && order_.empty())
    return value(entry.inputs[0]);  // the same elements in the same order
  if (!is_elsewhere && entry.kind() == OpKind::generate && (order_.empty() || entry.op == Op::full))
    return generate(node);
  if (!is_elsewhere && entry.kind() == OpKind::elementwise) {
    Instruction instruction;
    NodeIndex of = node;
    const AfterSum after = after_sum(node, of);
    IMPRINT_ASSIGN(const auto sum, sum_with_numbers(of, after));
    if (sum) return *sum;
    if (after.kind == AfterSum::Kind::relu) {
      IMPRINT_ASSIGN(instruction.operands[0], value(of));
      instruction.function = lowering_.kernels_.relu;
      return add(chain_.block, instruction);
    }
    for (std::size_t slot = 0; slot < entry.inputs.size(); ++slot) {
      IMPRINT_ASSIGN(instruction.operands[slot], value(entry.inputs[slot]));
    }
    instruction.function =
        lowering_.kernels_.elementwise(entry.op, lowering_.graph_[entry.inputs[0]].dtype, entry.dtype);
    if (!instruction.function)
      return make_error(ErrorCode::internal, text("found no CPU kernel for ", op_info(entry.op).name, " of ",
                                                  dtype_name(lowering_.graph_[entry.inputs[0]].dtype)));
    return add(chain_.block, instruction);
  }
  IMPRINT_ASSIGN(const Strided found, lowering_.find(node));
  return load(permuted(found, order_));
}

// where(x <= 0, 0, x) of floats, as relu() builds it.
bool ChainBuilder::is_relu(NodeIndex node) const {
  const Graph& graph = lowering_.graph_;
  const GraphNode& entry = graph[node];
  if (entry.op != Op::where || entry.dtype != DType::float32) return false;
  const GraphNode& condition = graph[entry.inputs[0]];
  const auto is_zero = [&](NodeIndex value) {
    value = graph.without_views(value);
    return graph[value].op == Op::full && graph[value].floats[0] == 0;
  };
  return condition.op == Op::less_equal && condition.inputs[0] == entry.inputs[2] &&
         is_zero(condition.inputs[1]) && is_zero(entry.inputs[1]);
}

std::optional<float> ChainBuilder::number_of(NodeIndex node) const {
  const GraphNode& entry = lowering_.graph_[lowering_.graph_.without_views(node)];
  if (entry.dtype != DType::float32 || entry.element_count() != 1) return {};
  float number = 0;
  if (entry.op == Op::full)
    number = static_cast<float>(entry.floats[0]);
  else if (entry.op == Op::constant)
    std::memcpy(&number, entry.source->constant->bytes.data(), sizeof number);
  else
    return {};
  return number == number ? std::optional(number) : std::nullopt;
}

AfterSum ChainBuilder::after_sum(NodeIndex node, NodeIndex& of) const {
  const Graph& graph = lowering_.graph_;
  if (is_relu(node)) {
    of = graph[node].inputs[2];
    return {AfterSum::Kind::relu};
  }
  if (graph[node].op != Op::minimum) return {};
  const NodeIndex raised = graph[node].inputs[0];
  if (graph[raised].op != Op::maximum || register_of_.contains(raised) || lowering_.in_memory(raised) ||
      lowering_.computed_.contains(raised))
    return {};
  const auto low = number_of(graph[raised].inputs[1]), high = number_of(graph[node].inputs[1]);
  if (!low || !high) return {};
  of = graph[raised].inputs[0];
  return {AfterSum::Kind::clamp, *low, *high};
}

Result<std::optional<std::int32_t>> ChainBuilder::sum_with_numbers(NodeIndex sum, const AfterSum& after) {
  constexpr std::int64_t kShortRun = 16;
  const GraphNode& entry = lowering_.graph_[sum];
  if (entry.op != Op::add || entry.dtype != DType::float32 || register_of_.contains(sum) ||
      lowering_.in_memory(sum) || lowering_.computed_.contains(sum))
    return std::optional<std::int32_t>();
  for (const std::size_t slot : {std::size_t{1}, std::size_t{0}}) {
    const NodeIndex numbers = entry.inputs[slot];
    if (lowering_.graph_[numbers].op != Op::expand || register_of_.contains(numbers)) continue;
    IMPRINT_ASSIGN(const Strided found, lowering_.find(numbers));
    const Strided order = permuted(found, order_);
    Instruction instruction;
    instruction.kind = Instruction::Kind::add_numbers;
    instruction.loops = loops_over<1>(order.shape, {order.strides});
    const std::size_t inner = at(instruction.loops.depth) - 1;
    if (instruction.loops.strides[0][inner] != 0 || instruction.loops.extents[inner] < kShortRun) continue;
    IMPRINT_ASSIGN(instruction.operands[0], value(entry.inputs[1 - slot]));
    instruction.from = order.buffer;
    instruction.offset = order.offset;
    instruction.after = after;
    return std::optional(add(chain_.block, instruction));
  }
  return std::optional<std::int32_t>();
}

Result<std::int32_t> ChainBuilder::generate(NodeIndex node) {
  const GraphNode& entry = lowering_.graph_[node];
  Instruction instruction;
  if (entry.op == Op::full) {
    instruction.kind = Instruction::Kind::fill;
    instruction.value = word_of(entry.floats[0], entry.dtype);
    return add(chain_.once, instruction);
  }
  if (entry.op == Op::iota) {
    instruction.kind = Instruction::Kind::iota;
    instruction.stride = row_major_strides(entry.shape)[at(entry.ints[0])];
    instruction.extent = entry.shape[static_cast<int>(entry.ints[0])];
    return add(chain_.block, instruction);
  }
  instruction.kind =
      entry.op == Op::random_uniform ? Instruction::Kind::uniform : Instruction::Kind::permutation;
  IMPRINT_ASSIGN(const Strided generator, lowering_.find_row_major(entry.inputs[0]));
  instruction.from = generator.buffer;
  instruction.offset = generator.offset;
  instruction.stream = static_cast<std::uint32_t>(entry.ints[0]);
  if (entry.op == Op::random_permutation) instruction.extent = entry.shape[entry.shape.rank() - 1];
  return add(chain_.block, instruction);
}

std::int32_t ChainBuilder::load(const Strided& from) {
  if (from.is_row_major()) {
    const std::int32_t result = new_register();
    chain_.registers[at(result)] = {from.buffer, from.offset};
    return result;
  }
  Instruction instruction;
  instruction.kind = Instruction::Kind::load;
  instruction.from = from.buffer;
  instruction.offset = from.offset;
  instruction.loops = loops_over<1>(from.shape, {from.strides});
  return add(is_equal_for_blocks(instruction.loops) ? chain_.once : chain_.block, instruction);
}

std::int32_t ChainBuilder::add(std::vector<Instruction>& to, Instruction instruction) {
  instruction.result = new_register();
  to.push_back(instruction);
  return instruction.result;
}

// A value that was computed directly into the buffer needs no copy.
void ChainBuilder::store(std::int32_t result, std::int32_t buffer) {
  if (chain_.registers[at(result)].buffer != buffer) chain_.stores.push_back({result, buffer, 0, {}});
}

void ChainBuilder::store(std::int32_t result, const Strided& to) {
  if (to.is_row_major() && to.offset == 0) return store(result, to.buffer);
  chain_.stores.push_back({result, to.buffer, to.offset, loops_over<1>(to.shape, {to.strides})});
}

Chain ChainBuilder::finish(std::int32_t kept, std::vector<std::int32_t>& buffers) {
  store_in_place();
  place_registers(kept);
  for (const Register& entry : chain_.registers)
    if (entry.buffer >= 0) buffers.push_back(entry.buffer);
  for (const auto* instructions : {&chain_.once, &chain_.block})
    for (const Instruction& instruction : *instructions)
      if (instruction.from >= 0) buffers.push_back(instruction.from);
  for (const ChainStore& store : chain_.stores) buffers.push_back(store.buffer);
  return std::move(chain_);
}

// Computes a value directly into the buffer that stores it. Not for a variable, whose old content the chain
// may still read.
void ChainBuilder::store_in_place() {
  for (Instruction& instruction : chain_.block) {
    const auto found = std::ranges::find(chain_.stores, instruction.result, &ChainStore::result);
    if (found == chain_.stores.end() || found->loops || lowering_.is_variable(found->buffer)) continue;
    chain_.registers[at(instruction.result)] = {found->buffer, 0};
    chain_.stores.erase(found);
  }
}

// A register of the workspace is reused after its last read.
void ChainBuilder::place_registers(std::int32_t kept) {
  const auto count = static_cast<std::int32_t>(chain_.block.size());
  std::vector<std::int32_t> last(chain_.registers.size(), -1);
  for (std::int32_t i = 0; i < count; ++i)
    for (const std::int32_t operand : chain_.block[at(i)].operands)
      if (operand >= 0) last[at(operand)] = i;
  for (const ChainStore& store : chain_.stores) last[at(store.result)] = count;
  for (const Instruction& instruction : chain_.once) last[at(instruction.result)] = count;
  if (kept >= 0) last[at(kept)] = count;

  std::vector<std::int64_t> unused;
  std::int64_t end = 0;
  const auto give = [&](std::int32_t result) {
    Register& entry = chain_.registers[at(result)];
    if (entry.buffer >= 0) return;
    if (unused.empty()) {
      unused.push_back(end);
      end += kBlock;
    }
    entry.offset = unused.back();
    unused.pop_back();
  };
  for (const Instruction& instruction : chain_.once) give(instruction.result);
  for (std::int32_t i = 0; i < count; ++i) {
    const Instruction& instruction = chain_.block[at(i)];
    std::array<std::int32_t, 3> operands = instruction.operands;
    std::ranges::sort(operands);
    for (std::size_t slot = 0; slot < operands.size(); ++slot) {
      const std::int32_t operand = operands[slot];
      if (operand < 0 || (slot > 0 && operand == operands[slot - 1])) continue;
      if (last[at(operand)] == i && chain_.registers[at(operand)].buffer < 0)
        unused.push_back(chain_.registers[at(operand)].offset);
    }
    give(instruction.result);
  }
  chain_.scratch = end;
  lowering_.workspace_ = std::max(lowering_.workspace_, end);
}

}  // namespace imprint::cpu
