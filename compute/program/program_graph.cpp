#include "compute/program/program_graph.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "compute/base/text.h"
#include "compute/program/extent_masks.h"
#include "compute/tensor/build.h"
#include "compute/tensor/named_axes.h"

namespace imprint::program {

using namespace graph;
using namespace tensor;

namespace {

std::uint64_t add_port(std::vector<Port>& ports, std::uint64_t offset, std::string name, DType dtype,
                       const Shape& shape) {
  const std::uint64_t bytes = tensor_bytes(shape, dtype);
  ports.push_back({std::move(name), dtype, shape, offset, bytes});
  return offset + aligned(bytes);
}

Error bad_update(const Update& update, ErrorCode code, const std::string& text) {
  return make_error(code, "update of variable '" + update.target.name() + "' " +
                              update.target.shape().text() + ": " + text);
}

Result<> check_update(const Update& update) {
  if (!update.target.ok())
    return make_error(ErrorCode::invalid_argument,
                      "update: target: found an empty or invalid variable, expected a valid one");
  if (!update.value.ok()) return update.value.error();
  if (update.value.dtype() != update.target.dtype())
    return bad_update(update, ErrorCode::dtype_mismatch,
                      "found a value of " + std::string(dtype_name(update.value.dtype())) + ", expected " +
                          std::string(dtype_name(update.target.dtype())));
  if (!update.by_rows) {
    if (!(update.value.shape() == update.target.shape()))
      return bad_update(update, ErrorCode::shape_mismatch,
                        "value: found shape " + update.value.shape().text() + ", expected the variable's");
    return {};
  }
  if (!update.rows.ok()) return update.rows.error();
  const Shape& rows = update.rows.shape();
  const Shape& value = update.value.shape();
  const Shape& target = update.target.shape();
  if (!dtype_is_integer(update.rows.dtype()) || rows.rank() != 1)
    return bad_update(update, ErrorCode::shape_mismatch,
                      "rows: found " + std::string(dtype_name(update.rows.dtype())) + rows.text() +
                          ", expected integers of rank 1");
  bool fits = target.rank() >= 1 && value.rank() == target.rank() && value[0] == rows[0];
  for (int axis = 1; fits && axis < target.rank(); ++axis) fits = value[axis] == target[axis];
  if (!fits)
    return bad_update(update, ErrorCode::shape_mismatch,
                      "value: found " + value.text() + " for rows " + rows.text() +
                          ", expected [rows, ...rest of the variable]");
  return {};
}

// Returns the variables that the program writes.
Result<std::set<const VariableState*>> check_updates(const ProgramDescription& description) {
  std::set<const VariableState*> assigned, scattered;
  for (const Update& update : description.updates) {
    IMPRINT_CHECK(check_update(update));
    const VariableState* target = update.target.state().get();
    const bool is_first = !assigned.contains(target) && (update.by_rows || !scattered.contains(target));
    (update.by_rows ? scattered : assigned).insert(target);
    if (!is_first)
      return bad_update(update, ErrorCode::invalid_argument,
                        "found a second update, expected one assignment or updates of rows");
  }
  assigned.merge(scattered);
  return assigned;
}

// Copies the content of a variable that the program overwrites, so that swaps work.
Tensor kept(const Tensor& tensor, const std::set<const VariableState*>& targets) {
  const Node* node = tensor.node().get();
  while (node->op == Op::reshape || node->op == Op::stop_gradient) node = node->inputs[0].get();
  const bool overwritten = node->op == Op::variable && targets.contains(node->variable.get());
  return overwritten ? make(Op::cast, {tensor}, {.dtype = tensor.dtype()}) : tensor;
}

// Adds input ports. An input that the graph does not read has node -1.
Result<> add_inputs(const std::string& program, std::span<const Tensor> inputs, ProgramGraph& result) {
  std::uint64_t offset = 0;
  std::unordered_multimap<std::string_view, NodeIndex> nodes;  // of inputs, by name
  for (NodeIndex n = 0; n < result.graph.size(); ++n)
    if (result.graph[n].op == Op::input) nodes.emplace(result.graph[n].source->label, n);
  std::unordered_set<std::string_view> listed;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Node& node = *inputs[i].node();
    if (node.op != Op::input)
      return make_error(ErrorCode::invalid_argument, "program '" + program + "': input " + std::to_string(i) +
                                                         ": found another tensor, expected one of input()");
    if (!listed.insert(node.label).second)
      return make_error(ErrorCode::invalid_argument, "program '" + program + "': inputs: found '" +
                                                         node.label + "' twice, expected it once");
    offset = add_port(result.inputs, offset, node.label, node.dtype, node.shape);
    NodeIndex found = -1;
    const auto [first, last] = nodes.equal_range(node.label);
    for (auto named = first; named != last; ++named) {
      const Node& other = *result.graph[named->second].source;
      if (!(other.shape == node.shape) || other.dtype != node.dtype)
        return make_error(ErrorCode::shape_mismatch, "program '" + program + "': input '" + node.label +
                                                         "': found two shapes or dtypes, expected one");
      found = std::max(found, named->second);
    }
    result.request.inputs.push_back(found);
  }
  return {};
}

// In a variable that takes a value with named axes, only the elements that a run uses change. The value keeps
// its names: a run does not write the elements that it leaves out.
Tensor used_part(const Update& update) {
  if (update.by_rows || !update.value.shape().is_named()) return update.value;
  return where(used_elements(update.value), update.value, update.target.value());
}

}  // namespace

std::size_t ProgramGraph::listed_inputs() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(inputs, [](const Port& port) { return port.bound == 0; }));
}

std::vector<RunExtent> ProgramGraph::extents() const {
  std::vector<RunExtent> found;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].bound > 0)
      found.push_back(
          {std::string(extent_of_input(inputs[i].name)), static_cast<std::int32_t>(i), inputs[i].bound});
  return found;
}

void list_extents_last(std::vector<Port>& inputs) {
  std::ranges::stable_partition(inputs, [](const Port& port) { return port.bound == 0; });
}

Result<ProgramGraph> build_program_graph(const ProgramDescription& description) {
  ProgramGraph result;
  result.name = description.name;
  result.slot_count = std::max(1u, description.slot_count);
  result.fuse = description.fuse;
  result.precision = description.precision;
  result.yields = description.yields;

  for (const std::vector<Tensor>* tensors : {&description.inputs, &description.outputs})
    for (const Tensor& tensor : *tensors)
      if (!tensor.ok()) return tensor.error();
  IMPRINT_ASSIGN(const std::set<const VariableState*> targets, check_updates(description));

  std::vector<Tensor> roots = description.outputs;
  for (const Update& update : description.updates) {
    roots.push_back(kept(used_part(update), targets));
    if (update.by_rows) roots.push_back(kept(used_rows(as_indices(update.rows)), targets));
  }
  for (const Tensor& root : roots)
    if (!root.ok()) return root.error();
  IMPRINT_ASSIGN(const MaskedRoots masked, with_extent_masks(roots, description.inputs));
  const std::vector<ProgramExtent>& extents = masked.extents;
  IMPRINT_ASSIGN(result.graph, build_graph(masked.roots));

  std::unordered_map<const VariableState*, std::int32_t> variable_index;
  const auto add_variable = [&](const std::shared_ptr<VariableState>& state) {
    const auto [found, fresh] =
        variable_index.try_emplace(state.get(), static_cast<std::int32_t>(result.request.variables.size()));
    if (fresh) result.request.variables.push_back(state);
    return found->second;
  };
  for (const GraphNode& node : result.graph.nodes)
    if (node.op == Op::variable) add_variable(node.source->variable);

  std::size_t root = 0;
  std::uint64_t offset = 0;
  for (const Tensor& output : description.outputs) {
    result.request.outputs.push_back({result.graph.roots[root++]});
    offset = add_port(result.outputs, offset, output.node()->label, output.dtype(), output.shape());
  }
  for (const Update& update : description.updates) {
    GraphUpdate entry{add_variable(update.target.state()), result.graph.roots[root++], -1};
    if (update.by_rows) entry.rows = result.graph.roots[root++];
    result.request.updates.push_back(entry);
    result.keep.push_back(update.target);
  }

  std::vector<Tensor> inputs = description.inputs;
  for (const ProgramExtent& extent : extents) inputs.push_back(extent_input(extent.name));
  IMPRINT_CHECK(add_inputs(description.name, inputs, result));
  for (std::size_t i = 0; i < extents.size(); ++i)
    result.inputs[description.inputs.size() + i].bound = extents[i].bound;
  return result;
}

Error in_sequence(const ProgramSequence& sequence, std::size_t part, Error error) {
  error.message = "sequence '" + sequence.name + "', part " + std::to_string(part) + " '" +
                  sequence.parts[part].description.name + "': " + error.message;
  return error;
}

Result<std::uint64_t> input_offset(std::vector<Port>& ports, const Port& wanted, std::uint64_t& end) {
  for (const Port& port : ports) {
    if (port.name != wanted.name) continue;
    if (!(port.shape == wanted.shape) || port.dtype != wanted.dtype)
      return make_error(ErrorCode::shape_mismatch,
                        "input '" + wanted.name + "': found " + std::string(dtype_name(wanted.dtype)) +
                            wanted.shape.text() + ", expected " + std::string(dtype_name(port.dtype)) +
                            port.shape.text() + " as in an earlier part");
    return port.offset;
  }
  ports.push_back(wanted);
  ports.back().offset = end;
  end += aligned(wanted.bytes);
  return ports.back().offset;
}

std::vector<PartRun> runs_of(const ProgramSequence& sequence) {
  std::vector<PartRun> runs;
  auto rounds = sequence.rounds.begin();
  for (std::size_t i = 0; i < sequence.parts.size();) {
    const bool together = rounds != sequence.rounds.end() && rounds->first == i;
    const std::size_t count = together ? rounds->parts : 1;
    for (std::uint32_t round = 0; round < (together ? rounds->repeat : 1); ++round)
      for (std::size_t part = i; part < i + count; ++part)
        if (sequence.parts[part].repeat > 0) runs.push_back({part, sequence.parts[part].repeat});
    i += count;
    if (together) ++rounds;
  }
  return runs;
}

std::uint32_t turns_of(std::size_t part, std::span<const PartRun> runs) {
  std::uint32_t turns = 0;
  for (const PartRun& run : runs) turns += run.part == part ? run.turns : 0;
  return turns;
}

Result<> add_turns(std::uint32_t turns, std::uint32_t dispatches_per_turn, std::uint64_t& dispatches) {
  dispatches += std::uint64_t{turns} * std::max(1u, dispatches_per_turn);
  if (dispatches <= kMaxSequenceDispatches) return {};
  return make_error(ErrorCode::invalid_argument,
                    "repeat: found " + std::to_string(dispatches) + " dispatches with " +
                        std::to_string(turns) + " turns of " + std::to_string(dispatches_per_turn) +
                        ", expected at most " + std::to_string(kMaxSequenceDispatches) +
                        ". Repeat less and run the sequence more often; of a loop take fewer turns.");
}

Result<ProgramGraph> build_part_graph(const ProgramSequence& sequence, std::size_t part) {
  const ProgramDescription& description = sequence.parts[part].description;
  auto graph = build_program_graph(description);
  if (!graph) return in_sequence(sequence, part, std::move(graph).error());
  graph->name = sequence.name + "." + (description.name.empty() ? std::to_string(part) : description.name);
  graph->slot_count = 0;
  // Sums over processes begin while the rest is computed.
  graph->writes_late = !sequence.all_reduce || sequence.parts[part].summed.empty();
  return graph;
}

}  // namespace imprint::program
