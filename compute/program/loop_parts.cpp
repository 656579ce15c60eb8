#include "compute/program/loop_parts.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "compute/base/pointer_map.h"
#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/loop.h"

namespace imprint::program {

using namespace tensor;

namespace {

using Replacements = PointerMap<Node, NodeRef>;

std::vector<Tensor> roots_of(const ProgramDescription& description) {
  std::vector<Tensor> roots = description.outputs;
  for (const Update& update : description.updates) {
    roots.push_back(update.value);
    if (update.by_rows) roots.push_back(update.rows);
  }
  return roots;
}

// Values that need no memory of their own between parts: leaves, literals and views of them.
bool is_free(const Node& node) {
  const Node* walk = &node;
  while (op_info(walk->op).kind == OpKind::view) walk = walk->inputs[0].get();
  return op_info(walk->op).kind == OpKind::leaf || walk->op == Op::full || walk->op == Op::iota ||
         walk->op == Op::loop_output;
}

// Stages: a loop's outputs are one stage after what it needs. The values of one stage are one part of the
// sequence, and the loops of that stage follow it.
class Splitter {
 public:
  explicit Splitter(const ProgramDescription& description) : description_(description) {}

  Result<ProgramSequence> run() {
    find_stages();
    IMPRINT_CHECK(check_variables());
    std::vector<ProgramPart> backwards;
    for (int stage = last_; stage >= 0; --stage) {
      for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop)
        if (stage_of(*loop->node) == stage) backwards.push_back(body_part(*loop));
      backwards.push_back(values_part(stage));
    }
    IMPRINT_CHECK(check_variables());
    ProgramSequence sequence{description_.name, {}, {}, {}, description_.slot_count};
    sequence.parts.assign(backwards.rbegin(), backwards.rend());
    list_inputs(sequence);
    sequence.own = own_;
    return sequence;
  }

 private:
  struct LoopState {
    NodeRef node;
    Variable counter;
    std::vector<Variable> carry;
    std::map<std::size_t, Variable> results;  // those that something reads, by output
  };

  LoopState& loop_of(const Node& node) { return loops_[*loop_of_.find(&node)]; }
  int stage_of(const Node& node) const { return *stage_.find(&node); }

  Variable make_variable(const std::string& name, const Shape& shape, DType dtype) {
    own_.push_back(Variable::zeros(text(description_.name, ".", name, " ", own_.size()), shape, dtype));
    return own_.back();
  }

  Result<> check_variables() const {
    for (const Variable& variable : own_)
      if (const Tensor value = variable.value(); !value.ok()) return value.error();
    return {};
  }

  void find_stages() {
    const std::vector<Tensor> roots = roots_of(description_);
    for (const NodeRef* place : reachable(roots)) {
      const NodeRef& node = *place;
      int stage = 0;
      for (const NodeRef& input : node->inputs) stage = std::max(stage, stage_of(*input));
      if (node->op == Op::loop) add_loop(node);
      if (node->op == Op::loop_output) {
        ++stage;
        add_output(*node);
      }
      stage_[node.get()] = stage;
      last_ = std::max(last_, stage);
    }
  }

  void add_loop(const NodeRef& node) {
    LoopState state{node, make_variable("step", {1}, DType::int32), {}, {}};
    for (const NodeRef& carry : node->loop->carry)
      state.carry.push_back(make_variable("carry", carry->shape, carry->dtype));
    loop_of_[node.get()] = loops_.size();
    loops_.push_back(std::move(state));
  }

  void add_output(const Node& node) {
    LoopState& loop = loop_of(*node.inputs[0]);
    const auto position = static_cast<std::size_t>(node.ints[0]);
    if (position < loop.carry.size()) return;
    if (!loop.results.contains(position))
      loop.results.emplace(position, make_variable("results", node.shape, node.dtype));
  }

  // The value that stands for the node in a part of the stage; null: the node itself is computed there.
  NodeRef replacement(const NodeRef& node, int stage) {
    const int* known = stage_.find(node.get());
    if (!known) return nullptr;  // inside a body
    if (node->op == Op::loop_output) {
      const LoopState& loop = loop_of(*node->inputs[0]);
      const auto position = static_cast<std::size_t>(node->ints[0]);
      const bool is_carry = position < loop.carry.size();
      return (is_carry ? loop.carry[position] : loop.results.at(position)).value().node();
    }
    if (*known >= stage || is_free(*node)) return nullptr;
    return stored(node).value().node();
  }

  Variable stored(const NodeRef& node) {
    std::map<std::uint64_t, std::pair<NodeRef, Variable>>& stores = stores_[stage_of(*node)];
    const auto known = stores.find(node->id);
    if (known != stores.end()) return known->second.second;
    const Variable variable = make_variable("value", node->shape, node->dtype);
    stores.emplace(node->id, std::pair{node, variable});
    return variable;
  }

  // The roots with everything replaced that other parts compute, or that `replaced` names.
  std::vector<Tensor> rewritten(std::span<const Tensor> roots, int stage, Replacements replaced = {}) {
    std::vector<const NodeRef*> stack, order;
    for (const Tensor& root : roots) stack.push_back(&root.node());
    PointerSet<Node> seen;
    while (!stack.empty()) {
      const NodeRef* node = stack.back();
      stack.pop_back();
      if (!seen.insert(node->get()) || replaced.contains(node->get())) continue;
      if (NodeRef other = replacement(*node, stage)) {
        replaced[node->get()] = std::move(other);
        continue;
      }
      order.push_back(node);
      for (const NodeRef& input : (*node)->inputs) stack.push_back(&input);
    }
    std::ranges::sort(order, {}, [](const NodeRef* node) { return (*node)->id; });
    for (const NodeRef* node : order) {
      std::vector<NodeRef> inputs = (*node)->inputs;
      bool changed = false;
      for (NodeRef& input : inputs)
        if (const NodeRef* other = replaced.find(input.get())) {
          input = *other;
          changed = true;
        }
      if (changed) replaced[node->get()] = with_inputs(**node, std::move(inputs));
    }
    std::vector<Tensor> result;
    for (const Tensor& root : roots) {
      const NodeRef* other = replaced.find(root.node().get());
      result.push_back(other ? Tensor(*other) : root);
    }
    return result;
  }

  ProgramDescription part_description(const std::string& name) const {
    ProgramDescription part;
    part.name = name;
    part.fuse = description_.fuse;
    part.precision = description_.precision;
    part.yields = description_.yields;
    return part;
  }

  ProgramPart body_part(LoopState& state) {
    const Node& node = *state.node;
    const Loop& loop = *node.loop;
    const int after = stage_of(node) + 1;  // all that the body takes from outside is from before
    const Tensor step = state.counter.value();
    const Tensor row = loop.reverse ? Tensor(static_cast<std::int32_t>(loop.steps - 1)) - step : step;
    Replacements replaced;
    for (std::size_t i = 0; i < loop.carry.size(); ++i)
      replaced[loop.carry[i].get()] = state.carry[i].value().node();
    for (std::size_t i = 0; i < loop.rows.size(); ++i) {
      const Tensor whole[] = {Tensor(node.inputs[loop.carry.size() + i])};
      const Tensor stack = rewritten(whole, after)[0];
      replaced[loop.rows[i].get()] = reshape(take(stack, 0, row), loop.rows[i]->shape).node();
    }
    for (std::size_t i = 0; i < loop.shared.size(); ++i) {
      const Tensor value[] = {Tensor(node.inputs[loop.carry.size() + loop.rows.size() + i])};
      replaced[loop.shared[i].get()] = rewritten(value, after)[0].node();
    }
    std::vector<Tensor> roots;
    for (const NodeRef& next : loop.next) roots.emplace_back(next);
    for (const auto& [position, variable] : state.results)
      roots.emplace_back(loop.results[position - loop.carry.size()]);
    roots = rewritten(roots, after, std::move(replaced));

    const std::string name = loop.label.empty() ? text("loop ", *loop_of_.find(&node)) : loop.label;
    ProgramPart part{part_description(name), static_cast<std::uint32_t>(loop.steps)};
    std::size_t root = 0;
    for (const Variable& carry : state.carry)
      part.description.updates.push_back(Update::assign(carry, roots[root++]));
    for (const auto& [position, variable] : state.results) {
      Shape one{1};
      for (std::int64_t extent : roots[root].shape().extents()) one.append(extent);
      part.description.updates.push_back(Update::scatter_rows(variable, row, reshape(roots[root++], one)));
    }
    part.description.updates.push_back(Update::assign(state.counter, step + 1));
    return part;
  }

  ProgramPart values_part(int stage) {
    ProgramPart part{part_description(text("values ", stage)), 1};
    std::vector<Tensor> roots;
    std::vector<Variable> targets;
    for (const LoopState& loop : loops_) {
      if (stage_of(*loop.node) != stage) continue;
      for (std::size_t i = 0; i < loop.carry.size(); ++i) {
        roots.emplace_back(loop.node->inputs[i]);
        targets.push_back(loop.carry[i]);
      }
      roots.push_back(zeros({1}, DType::int32));
      targets.push_back(loop.counter);
    }
    for (const auto& [id, store] : stores_[stage]) {
      roots.emplace_back(store.first);
      targets.push_back(store.second);
    }
    if (stage == last_)
      for (const Tensor& root : roots_of(description_)) roots.push_back(root);
    roots = rewritten(roots, stage);
    for (std::size_t i = 0; i < targets.size(); ++i)
      part.description.updates.push_back(Update::assign(targets[i], roots[i]));
    if (stage != last_) return part;
    std::size_t root = targets.size();
    for (std::size_t i = 0; i < description_.outputs.size(); ++i)
      part.description.outputs.push_back(roots[root++]);
    for (Update update : description_.updates) {
      update.value = roots[root++];
      if (update.by_rows) update.rows = roots[root++];
      part.description.updates.push_back(std::move(update));
    }
    return part;
  }

  // The first part lists all inputs, so that they keep their order; the others what they read.
  void list_inputs(ProgramSequence& sequence) const {
    sequence.parts.front().description.inputs = description_.inputs;
    for (std::size_t i = 1; i < sequence.parts.size(); ++i) {
      ProgramDescription& part = sequence.parts[i].description;
      const std::vector<Tensor> roots = roots_of(part);
      std::unordered_set<std::string> read;
      for (const NodeRef* node : reachable(roots))
        if ((*node)->op == Op::input) read.insert((*node)->label);
      for (const Tensor& input : description_.inputs)
        if (read.contains(input.node()->label)) part.inputs.push_back(input);
    }
  }

  const ProgramDescription& description_;
  PointerMap<Node, int> stage_;
  int last_ = 0;
  std::vector<LoopState> loops_;  // ordered by creation
  PointerMap<Node, std::size_t> loop_of_;
  std::map<int, std::map<std::uint64_t, std::pair<NodeRef, Variable>>> stores_;  // by stage, by the node's id
  std::vector<Variable> own_;
};

}  // namespace

std::vector<const NodeRef*> reachable(std::span<const Tensor> roots) {
  std::vector<const NodeRef*> found, stack;
  for (const Tensor& root : roots) stack.push_back(&root.node());
  PointerSet<Node> seen;
  while (!stack.empty()) {
    const NodeRef* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node->get())) continue;
    for (const NodeRef& input : (*node)->inputs) stack.push_back(&input);
    found.push_back(node);
  }
  std::ranges::sort(found, {}, [](const NodeRef* node) { return (*node)->id; });
  return found;
}

bool has_loops(const ProgramDescription& description) {
  std::vector<const Node*> stack;
  for (const Tensor& root : roots_of(description))
    if (root.ok()) stack.push_back(root.node().get());
  PointerSet<Node> seen;
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (node->op == Op::loop) return true;
    if (!seen.insert(node)) continue;
    for (const NodeRef& input : node->inputs) stack.push_back(input.get());
  }
  return false;
}

Result<ProgramSequence> parts_of_loops(const ProgramDescription& description) {
  for (const Tensor& root : roots_of(description))
    if (!root.ok()) return root.error();
  for (const Tensor& input : description.inputs)
    if (!input.ok()) return input.error();
  return Splitter(description).run();
}

Result<ProgramSequence> without_loops(const ProgramSequence& sequence) {
  if (std::ranges::none_of(sequence.parts,
                           [](const ProgramPart& part) { return has_loops(part.description); }))
    return sequence;
  if (!sequence.rounds.empty())
    return make_error(ErrorCode::unsupported,
                      text("sequence '", sequence.name,
                           "': found loops and rounds, expected one of them. Repeat a "
                           "part instead."));
  ProgramSequence result{sequence.name,       {}, {}, sequence.own, sequence.slot_count, sequence.all_reduce,
                         sequence.shared_sums};
  for (const ProgramPart& part : sequence.parts) {
    if (!has_loops(part.description)) {
      result.parts.push_back(part);
      continue;
    }
    IMPRINT_ASSIGN(ProgramSequence parts, parts_of_loops(part.description));
    if (part.repeat != 1) result.rounds.push_back({result.parts.size(), parts.parts.size(), part.repeat});
    for (ProgramPart& own : parts.parts) result.parts.push_back(std::move(own));
    result.own.insert(result.own.end(), parts.own.begin(), parts.own.end());
  }
  return result;
}

}  // namespace imprint::program
