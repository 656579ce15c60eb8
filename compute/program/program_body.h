#pragma once
// What Program forwards to: recorded commands of a device (program_impl.h), or kernels of the processor
// (cpu_program.h).

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/graph/fusion.h"
#include "compute/graph/graph.h"
#include "compute/graph/schedule.h"
#include "compute/program/program.h"
#include "compute/program/program_sequence.h"

namespace imprint::program {

inline constexpr std::uint64_t kAlignment =
    256;  // bytes, of what a program keeps side by side in one allocation
inline std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// A named end of a program: an input or an output.
struct Port {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  std::uint64_t offset = 0;  // bytes from the start of its region
  std::uint64_t bytes = 0;
};

// A program's function as a graph, before fusion.
struct ProgramGraph {
  std::string name;
  graph::Graph graph;
  graph::FusionRequest request;
  std::vector<Port> inputs, outputs;
  std::vector<Variable> keep;  // handles of all variables
  std::uint32_t slots = 3;
  bool fuse = true;
  Precision precision = Precision::float32;
  bool yields = false;
};

// Checks the description and turns it into a graph.
Result<ProgramGraph> build_program_graph(const ProgramDescription& description);

// For where float16 and bfloat16 cannot be held, and why: unsupported when the graph has some.
Status check_narrow_floats(const graph::Graph& graph, const std::string& program, std::string_view reason);

// Of one part of a sequence; without slots, which the sequence has.
Result<ProgramGraph> build_part_graph(const ProgramSequence& sequence, std::size_t part);
// Where the sequence's input of this port's name is, or a new one at `end`. Errors: shape_mismatch.
Result<std::uint64_t> input_offset(std::vector<Port>& inputs, const Port& port, std::uint64_t& end);
// Adds the turns of a compiled part to those before it. Errors: invalid_argument beyond
// kMaxSequenceDispatches.
Status add_turns(const ProgramPart& part, std::uint32_t dispatches_per_turn, std::uint64_t& dispatches);
Error in_sequence(const ProgramSequence& sequence, std::size_t part, Error error);

// Whether the task writes a variable other than those listed.
bool writes_state(const graph::Schedule& schedule, const graph::Task& task, std::span<const Variable> but);
// Adds a kernel and its bytes and operations to the figures.
void add_work(const graph::Graph& graph, const graph::Schedule& schedule, const graph::Task& task,
              ProgramStats& stats);
std::string explain_task(const graph::Graph& graph, const graph::Schedule& schedule,
                         const graph::Task& task);  // a line
KernelFigures kernel_figures(const graph::Graph& graph, const graph::Schedule& schedule,
                             const graph::Task& task, bool on_matrix_units = false);

}  // namespace imprint::program

namespace imprint {

class Program::Body {
 public:
  virtual ~Body() = default;
  static Result<std::unique_ptr<Body>> compile(Runtime& runtime, program::ProgramGraph source);
  static Program wrap(std::unique_ptr<Body> body) { return Program(std::move(body)); }

  virtual const Runtime& owner() const = 0;
  virtual std::string explain() const = 0;
  virtual std::vector<ScheduleFigures> schedule_figures() const = 0;
  virtual std::vector<std::string> glsl() const = 0;
  // Of an existing slot: where its ports begin; null where there are none.
  virtual std::byte* input_memory(std::uint32_t slot) = 0;
  virtual const std::byte* output_memory(std::uint32_t slot) const = 0;
  // Counted in dispatches: the first that writes a variable other than those listed; past the end when none
  // does.
  virtual std::uint32_t first_write(std::span<const Variable> but) const = 0;
  virtual std::span<const VkCommandBuffer> pieces(std::uint32_t slot, VkCommandBufferLevel level) const = 0;
  virtual VkCommandBuffer head(std::uint32_t slot, VkCommandBufferLevel level) const = 0;
  virtual VkCommandBuffer tail(std::uint32_t slot, VkCommandBufferLevel level) const = 0;
  virtual VkCommandBuffer whole(std::uint32_t slot, VkCommandBufferLevel level) const = 0;
  virtual void encode(VkCommandBuffer commands, std::uint32_t slot) const = 0;
  virtual Status run_pieces(std::uint32_t slot, std::uint32_t first, std::uint32_t count) = 0;

  program::ProgramGraph source;  // of a sequence its ports alone
  ProgramStats stats;
  std::vector<Variable> own;  // of a sequence
};

}  // namespace imprint
