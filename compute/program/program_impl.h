#pragma once
// The inside of Program. build makes everything but commands, record makes the commands.

#include <string>
#include <vector>

#include "compute/graph/fusion.h"
#include "compute/graph/graph.h"
#include "compute/graph/schedule.h"
#include "compute/kernels/dispatch_source.h"
#include "compute/program/program.h"
#include "compute/program/program_sequence.h"
#include "compute/program/runtime_impl.h"

namespace imprint {

// A named end of a program: an input or an output.
struct Port {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  std::uint64_t offset = 0;   // bytes from the start of its region
  std::uint64_t bytes = 0;
};

// A program's function as a graph, before fusion.
struct ProgramGraph {
  std::string name;
  Graph graph;
  FusionRequest request;
  std::vector<Port> inputs, outputs;
  std::vector<Variable> keep;          // handles of all variables
  std::uint32_t slots = 3;
  bool fuse = true;
};

// Checks the description and turns it into a graph.
Result<ProgramGraph> build_program_graph(const ProgramDescription& description);

struct Program::Impl {
  explicit Impl(RuntimeImpl& owner) : runtime(owner) {}
  ~Impl();

  static Result<std::unique_ptr<Impl>> compile(RuntimeImpl& runtime, ProgramGraph source);
  static Result<std::unique_ptr<Impl>> compile(RuntimeImpl& runtime, const ProgramSequence& sequence);
  static Program wrap(std::unique_ptr<Impl> impl) { return Program(std::move(impl)); }

  // ---- building ----
  Status build();
  Status place_variables();
  Status place_constants();
  void plan();                       // the arena: inputs, outputs, intermediates
  std::int32_t buffer_of(const Place& place);
  std::uint64_t byte_offset(const Place& place) const;   // in the place's buffer
  std::uint64_t byte_size(const Place& place) const;
  vk::Allocation allocation_of(const Place& place) const;
  Status make_kernels();
  Status make_tables();
  void count();
  std::string explain() const;

  // ---- recording ----
  Status make_descriptor_sets();
  Status make_io();
  Status record();
  void record_upload(VkCommandBuffer commands, std::uint32_t slot) const;
  void record_dispatch(VkCommandBuffer commands, std::size_t dispatch) const;
  void record_download(VkCommandBuffer commands, std::uint32_t slot) const;

  // ---- sequences: parts that run in turns, under inputs, outputs and commands of the sequence ----
  Status open_with_barrier();        // of a part
  Status place_ports(const Impl& part);
  void add_up_parts();
  Status make_slots();
  Status record_sequence();
  void record_copies_in(VkCommandBuffer commands, std::uint32_t slot) const;
  void record_copies_out(VkCommandBuffer commands, std::uint32_t slot) const;

  // The first piece that writes a variable other than those listed.
  std::uint32_t first_write(std::span<const Variable> but) const;

  RuntimeImpl& runtime;
  ProgramGraph source;
  Schedule schedule;
  ProgramStats stats;
  std::vector<DispatchSource> dispatches;
  std::vector<vk::Kernel> kernels;                     // per dispatch
  std::vector<std::uint8_t> barrier_before;            // per dispatch
  bool download_barrier = true;

  // Memory. The arena's layout: [inputs][outputs][intermediates].
  vk::Allocation arena, constants, tables;
  std::vector<vk::Allocation> upload_slots, readback_slots;
  std::uint64_t input_bytes = 0, output_bytes = 0;
  std::vector<std::uint64_t> temporary_offset;         // per node, in the arena
  std::vector<std::uint64_t> constant_offset;          // per node, in `constants`
  std::vector<std::uint32_t> table_offset;             // per dispatch, bytes in `tables`
  struct Buffer { VkBuffer buffer; std::uint64_t size; };
  std::vector<Buffer> buffers;                         // 0 is the arena's

  VkDescriptorPool descriptor_pool = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets;                   // per dispatch, shared where the buffers are the same

  std::vector<Commands> upload_commands, download_commands, whole_commands;  // per slot
  std::vector<Commands> dispatch_commands;
  std::vector<std::vector<VkCommandBuffer>> primary_pieces, secondary_pieces;  // per slot

  // Of a sequence alone, which has no dispatches of its own.
  struct Part { std::unique_ptr<Impl> impl; std::uint32_t repeat; };
  struct Copy { VkBuffer buffer; VkBufferCopy region; };   // between a part's arena and the start of a slot
  std::vector<Part> parts;
  std::vector<Variable> own;
  std::vector<Copy> upload_copies, download_copies;
};

}  // namespace imprint
