#pragma once
// A Program: a function of tensors compiled once (fused, planned, recorded) and replayed. Running it again is
// a submit or an execute; nothing is encoded, allocated or rewritten. Compiled for the CPU's runtime it is
// the same schedule's kernels on the calling thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/runtime.h"
#include "compute/program/schedule_figures.h"
#include "compute/tensor/tensor.h"

namespace imprint {

// What a run leaves in a variable. All reads of variables see their content from before the run; updates are
// applied in place.
struct Update {
  Variable target;
  Tensor value;
  Tensor rows;  // empty for a whole assignment
  bool by_rows = false;

  // target = value; equal shape and dtype.
  static Update assign(Variable target, Tensor value);
  // target[rows[i], ...] = value[i, ...] for 0 <= rows[i] < target extent 0; other rows keep their content,
  // negative rows are skipped. rows: int32 [n]; value: [n, rest of target's shape]. Rows must be distinct (of
  // equal rows any may win).
  static Update scatter_rows(Variable target, Tensor rows, Tensor value);
};

// mixed16: products read float16 where that serves them, and sum in float32; all else, weights and gradients
// among it, stays float32 (compute/graph/narrow_products.h lists it). Gradients below float16's smallest,
// 6e-8, are then lost in products unless the loss is scaled: nn::LossScaler. A device without 16-bit storage,
// and the CPU, compute in float32, and the log says so.
enum class Precision : std::uint8_t { float32, mixed16 };

struct ProgramDescription {
  std::string name = {};
  std::vector<Tensor> inputs = {};  // tensors made by input(); each is fed at every run, used or not
  std::vector<Tensor> outputs = {};
  std::vector<Update> updates = {};  // at most one whole assignment a variable
  std::uint32_t slots = 3;           // runs whose inputs and outputs may be in flight at once; >= 1
  bool fuse = true;                  // false: one kernel an operation, for comparison and debugging
  Precision precision = Precision::float32;
  bool yields = false;  // its intermediates lie where destroying the program really gives them back
};

// Counted at compile time, by the schedule that will run.
struct ProgramStats {
  std::uint32_t dispatches = 0;
  std::uint32_t kernels = 0;          // tasks before they were packed into dispatches
  std::uint32_t barriers = 0;         // inside the program, upload and download included
  std::uint64_t arena_bytes = 0;      // intermediates, after planning
  std::uint64_t unplanned_bytes = 0;  // the same without reuse
  std::uint64_t io_bytes = 0;         // inputs and outputs, all slots, host-visible and device side
  std::uint64_t bytes_moved = 0;      // read and written by the kernels of one run, each tensor once a kernel
  std::uint64_t flops = 0;            // floating-point operations of one run
};

struct ProgramSequence;  // program_sequence.h

// Movable. Destroying it retires its memory behind the newest ticket. Methods are for one thread at a time
// unless marked any-thread.
class Program {
 public:
  struct Impl;  // of a device
  class Body;   // either, for this room
  Body& body() { return *body_; }

  // Fuses, plans, compiles (waits for the workers) and records. Never on a frame thread. Where a fused kernel
  // would need more than the device binds, the program is not fused, and the log says so. Errors: any error
  // carried by a tensor of the description, invalid_argument (an input listed twice, an unlisted input that
  // is used, two assignments of one variable, a variable of another device), unsupported (a tensor beyond the
  // device's buffer range; custom_rows on the CPU), out_of_*_memory, compile_failed, not_found (a library
  // without a compiler, and a kernel that its archive lacks).
  static Result<Program> compile(Runtime& runtime, const ProgramDescription& description);

  // Many steps in one submit: the parts of the sequence, one after the other, as one program. Errors besides:
  // invalid_argument (more than kMaxSequenceDispatches), shape_mismatch (inputs of one name in two shapes).
  static Result<Program> compile(Runtime& runtime, const ProgramSequence& sequence);

  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  const std::string& name() const;
  const ProgramStats& stats() const;
  std::string explain()
      const;  // the schedule in words: dispatches, kernels, shapes, bytes, operations, barriers
  std::vector<ScheduleFigures> schedule() const;  // the same in figures; of a sequence, its parts in order
  std::vector<std::string> glsl() const;          // the generated source of each dispatch

  // ---- inputs and outputs, by index into the description, per slot < slots ----
  // Row-major elements of four bytes (bool as 0 or 1). Write inputs before the run is submitted; read outputs
  // when it is complete. A slot or index that does not exist gives nothing: no bytes, no pieces, a null
  // command buffer.
  std::uint32_t slot_count() const;
  std::span<std::byte> input_bytes(std::uint32_t slot, std::size_t index);
  std::span<const std::byte> output_bytes(std::uint32_t slot, std::size_t index) const;
  const Shape& output_shape(std::size_t index) const;
  const Shape& input_shape(std::size_t index) const;

  // ---- recorded pieces ----
  // One run is the pieces [0, piece_count()) in order: 0 uploads the slot's inputs, the last one downloads
  // the slot's outputs, each piece between is one dispatch with the barrier that it needs. A run may be cut
  // between any two pieces, with other programs' work in between, as long as Runtime::barrier() stands before
  // each slice and no two runs of one program overlap. The result is the same to the last bit. On the CPU a
  // piece is one kernel, or nothing (the first and the last), run by run_pieces on the calling thread; there
  // are no command buffers.
  std::uint32_t piece_count() const;
  std::uint32_t first_state_write()
      const;  // the first piece that writes a variable; piece_count() when none does
  // The same for variables that others may use while a run is under way: all but those a sequence calls its
  // own. What comes before may run early and unseen.
  std::uint32_t first_shared_write() const;
  // The piece that waits, with all behind it, until a run may show: first_shared_write(), or the last, which
  // hands the outputs to the host.
  std::uint32_t commit_piece() const;
  std::span<const VkCommandBuffer> pieces(std::uint32_t slot, VkCommandBufferLevel level) const;
  // The pieces before commit_piece() in one command buffer, with the barrier in front, and those from there
  // on in another, whose barrier in front is the caller's. Null where all can be cut at leisure: of a
  // sequence, and of what writes no variable.
  VkCommandBuffer head(std::uint32_t slot, VkCommandBufferLevel level) const;
  VkCommandBuffer tail(std::uint32_t slot, VkCommandBufferLevel level) const;
  VkCommandBuffer whole(std::uint32_t slot, VkCommandBufferLevel level)
      const;  // all pieces in one command buffer, with the barrier in front
  // Writes all pieces into a command buffer that the caller is recording, outside a render pass, on a queue
  // family with compute: four commands a dispatch of the processor's time, and none of the gaps that devices
  // leave round a command buffer. The barrier in front is the caller's. Nothing on the CPU.
  void encode(VkCommandBuffer commands, std::uint32_t slot) const;

  // Runs `count` pieces from `first` on, on the CPU. Errors: unsupported (compiled for a device: submit its
  // pieces), invalid_argument (no such slot or piece).
  Status run_pieces(std::uint32_t slot, std::uint32_t first, std::uint32_t count);

 private:
  explicit Program(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace imprint
