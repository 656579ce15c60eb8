#pragma once
// A Program: a function of tensors, compiled once (fused, planned, recorded) and replayed. Running it again
// is a submit or an execute, without encoding or allocation. For the CPU's runtime it runs the same schedule
// on the calling thread.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/runtime.h"
#include "compute/program/schedule_figures.h"
#include "compute/tensor/tensor.h"

namespace imprint {

// A write that a run makes to a variable, in place. All reads in the run see the content from before it.
struct Update {
  Variable target;
  Tensor value;
  Tensor rows;  // empty for a whole assignment
  bool by_rows = false;

  // target = value; equal shape and dtype.
  static Update assign(Variable target, Tensor value);
  // target[rows[i], ...] = value[i, ...] for 0 <= rows[i] < target extent 0; other indices are skipped. rows:
  // int32 [n]; value: [n, rest of target's shape]. If rows repeat, any one of them wins.
  static Update scatter_rows(Variable target, Tensor rows, Tensor value);
};

// mixed16: products read float16 where that is faster, and sum in float32. Everything else stays float32,
// including weights and gradients (compute/graph/passes/narrow_products.h). Products lose gradients below
// 6e-8, float16's smallest, unless the loss is scaled (nn::LossScaler). The CPU and devices without 16-bit
// storage compute in float32; the log says so.
// float16: as mixed16. A program without updates also keeps images between convolutions and pools as float16,
// for all their readers, so that memory moves half the bytes. Values beyond 65,504 become infinite.
enum class Precision : std::uint8_t { float32, mixed16, float16 };

struct ProgramDescription {
  std::string name = {};
  std::vector<Tensor> inputs = {};  // tensors made by input(); fed at every run, used or not
  std::vector<Tensor> outputs = {};
  std::vector<Update> updates = {};  // at most one whole assignment per variable
  std::uint32_t slot_count = 3;      // runs whose inputs and outputs may be in flight at once; >= 1
  bool fuse = true;                  // false: one kernel per operation, for comparison and debugging
  Precision precision = Precision::float32;
  bool yields = false;  // destroying the program frees the memory of its intermediates
};

// Counted from the schedule at compile time.
struct ProgramStats {
  std::uint32_t dispatches = 0;
  std::uint32_t kernels = 0;          // tasks before they were packed into dispatches
  std::uint32_t barriers = 0;         // inside the program, upload and download included
  std::uint64_t arena_bytes = 0;      // intermediates, after planning
  std::uint64_t unplanned_bytes = 0;  // the same without reuse
  std::uint64_t io_bytes = 0;         // inputs and outputs, all slots, host-visible and device side
  std::uint64_t bytes_moved = 0;      // by the kernels of one run, each tensor once per kernel
  std::uint64_t flops = 0;            // floating-point operations of one run
  // What a run costs, in the time of one sum: casts and generated numbers count too, and functions such as
  // exp several times. For limits on models that a host does not trust.
  std::uint64_t work = 0;
};

struct ProgramSequence;  // program_sequence.h

// Movable. Destroying it frees its memory after the newest ticket. One thread at a time.
class Program {
 public:
  struct Impl;  // for a device
  class Body;   // for a device or the CPU; internal
  Body& body() { return *body_; }

  // Fuses, plans, compiles and records; waits for the compiler. Never on a frame thread. Planning takes
  // near-linear time in the tensors. A fused kernel that needs more than the device binds is split into its
  // operations; the log says so. Errors: the error of any tensor of the description, invalid_argument (an
  // input listed twice, a used input that is not listed, two assignments of one variable, a variable of
  // another device), unsupported (a tensor beyond the device's buffer range; custom_rows on the CPU),
  // out_of_*_memory, compile_failed, not_found (without a compiler: a kernel that the archive lacks).
  static Result<Program> compile(Runtime& runtime, const ProgramDescription& description);

  // The parts of the sequence, in order, as one program. Further errors: invalid_argument (more than
  // kMaxSequenceDispatches), shape_mismatch (inputs of one name with two shapes).
  // A template, so that a braced list always means a description: GCC 13 crashes where it could mean both.
  template <std::same_as<ProgramSequence> Sequence>
  static Result<Program> compile(Runtime& runtime, const Sequence& sequence) {
    return compile_sequence(runtime, sequence);
  }

  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  const std::string& name() const;
  const ProgramStats& stats() const;
  // Describes the schedule in text: dispatches, kernels, shapes, bytes, operations, barriers.
  std::string explain() const;
  std::vector<ScheduleFigures> schedule() const;  // the same in figures; for a sequence, its parts in order
  std::vector<std::string> glsl() const;          // the generated source of each dispatch
  std::vector<VkPipeline> pipelines() const;      // that its dispatches bind; none on the CPU

  // ---- inputs and outputs, by index into the description, per slot < slot_count ----
  // Row-major elements of four bytes (bool as 0 or 1). Write inputs before the submit; read outputs when the
  // run is complete. An unknown slot or index gives no bytes, no pieces, a null command buffer.
  std::uint32_t slot_count() const;
  std::span<std::byte> input_bytes(std::uint32_t slot, std::size_t index);
  std::span<const std::byte> output_bytes(std::uint32_t slot, std::size_t index) const;
  const Shape& output_shape(std::size_t index) const;
  const Shape& input_shape(std::size_t index) const;

  // ---- named extents (Extent; compute/docs/extents.md) ----
  // Arrays of inputs and outputs have the layout of the bounds; a run uses the first places of each named
  // axis. The extent of a slot's next runs: the bound until it is set. Errors: not_found (no axis has this
  // name), invalid_argument (no such slot; an extent outside 1 .. bound).
  Result<> set_extent(std::uint32_t slot, std::string_view name, std::int64_t extent);
  std::int64_t extent(std::uint32_t slot, std::string_view name) const;  // 0: no such slot or name
  Shape used_shape(std::uint32_t slot, const Shape& shape) const;        // with the extents of the slot

  // ---- recorded pieces ----
  // A run is the pieces [0, piece_count()) in order: the first uploads the slot's inputs, the last downloads
  // its outputs, each other piece is one dispatch with the barrier it needs. A run may be cut between any two
  // pieces, and other programs' work may run in between. Runtime::barrier() must precede each slice, and runs
  // of one program must not overlap. The result is the same to the last bit. On the CPU, run_pieces runs each
  // piece as one kernel, and nothing for the first and last; there are no command buffers.
  std::uint32_t piece_count() const;
  // A device's sequence that adds numbers up over processes: pieces and whole() leave the sums out. Run it by
  // run_adding_up() (run.h).
  bool adds_up() const;
  // The first piece that writes a variable; piece_count() when none does.
  std::uint32_t first_state_write() const;
  // The same, without the variables that a sequence owns. Pieces before it may run early: they have no
  // visible effect.
  std::uint32_t first_shared_write() const;
  // The first piece whose effect is visible: first_shared_write(), or the last piece, which gives the outputs
  // to the host.
  std::uint32_t commit_piece() const;
  std::span<const VkCommandBuffer> pieces(std::uint32_t slot, VkCommandBufferLevel level) const;
  // head: the pieces before commit_piece() in one command buffer, after a barrier. tail: the others; the
  // caller puts a barrier before it. Null for a sequence, and for a program that writes no variable: cut
  // those anywhere.
  VkCommandBuffer head(std::uint32_t slot, VkCommandBufferLevel level) const;
  VkCommandBuffer tail(std::uint32_t slot, VkCommandBufferLevel level) const;
  // All pieces in one command buffer, after a barrier.
  VkCommandBuffer whole(std::uint32_t slot, VkCommandBufferLevel level) const;
  // Writes all pieces into a command buffer that the caller is recording, outside a render pass, for a queue
  // family with compute. Costs four CPU-side commands per dispatch; avoids the gaps between command buffers.
  // The caller puts a barrier before it. Does nothing on the CPU.
  void encode(VkCommandBuffer commands, std::uint32_t slot) const;

  // Runs `count` pieces from `first` on the CPU. Errors: unsupported (compiled for a device),
  // invalid_argument (no such slot or piece).
  Result<> run_pieces(std::uint32_t slot, std::uint32_t first, std::uint32_t count);

 private:
  explicit Program(std::unique_ptr<Body> body);
  static Result<Program> compile_sequence(Runtime& runtime, const ProgramSequence& sequence);
  std::unique_ptr<Body> body_;
};

}  // namespace imprint
