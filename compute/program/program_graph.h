#pragma once
// A program's function as a graph, before fusion, with the layout of its inputs and outputs.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/result.h"
#include "compute/graph/graph.h"
#include "compute/graph/plan/fusion.h"
#include "compute/graph/schedule/schedule.h"
#include "compute/program/program.h"
#include "compute/program/program_sequence.h"

namespace imprint::program {

// Alignment of the parts of one allocation, in bytes.
inline constexpr std::uint64_t kAlignment = 256;
inline std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

inline std::uint64_t tensor_bytes(const Shape& shape, DType dtype) {
  return static_cast<std::uint64_t>(shape.element_count()) * dtype_size(dtype);
}

// An input or output of a program.
struct Port {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  std::uint64_t offset = 0;  // bytes from the first input or output
  std::uint64_t bytes = 0;
  // > 0: the input holds a named extent (Extent), which is the bound until a caller sets it.
  std::int64_t bound = 0;
};

struct ProgramGraph {
  std::string name;
  graph::Graph graph;
  graph::FusionRequest request;
  std::vector<Port> inputs, outputs;
  std::vector<Variable> keep;  // handles of all variables
  std::uint32_t slot_count = 3;
  bool fuse = true;
  bool is_expanded = false;  // pages are replaced for the device already (page_expand.h)
  Precision precision = Precision::float32;
  bool yields = false;
  bool writes_late = true;  // graph::FusionOptions

  std::vector<graph::RunExtent> extents() const;
  std::size_t listed_inputs() const;  // without those of extents, which come last
};

// Errors: those of the description (Program::compile).
Result<ProgramGraph> build_program_graph(const ProgramDescription& description);

// ---- parts of a sequence ----

// Without slot_count: the sequence has them.
Result<ProgramGraph> build_part_graph(const ProgramSequence& sequence, std::size_t part);
// The offset of the sequence's input with this port's name; a new input lies at `end`. Errors:
// shape_mismatch.
Result<std::uint64_t> input_offset(std::vector<Port>& inputs, const Port& port, std::uint64_t& end);
// Puts the inputs of extents after the others.
void list_extents_last(std::vector<Port>& inputs);

// Turns of a part, one after the other.
struct PartRun {
  std::size_t part = 0;
  std::uint32_t turns = 1;
};
// All turns of the sequence, in order.
std::vector<PartRun> runs_of(const ProgramSequence& sequence);
std::uint32_t turns_of(std::size_t part, std::span<const PartRun> runs);

// Adds a compiled part's dispatches of all turns to `dispatches`. Errors: invalid_argument beyond
// kMaxSequenceDispatches.
Result<> add_turns(std::uint32_t turns, std::uint32_t dispatches_per_turn, std::uint64_t& dispatches);
// Adds the names of the sequence and the part to the error.
Error in_sequence(const ProgramSequence& sequence, std::size_t part, Error error);

}  // namespace imprint::program
