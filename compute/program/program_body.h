#pragma once
// The implementation behind a Program: recorded commands for a device (program_impl.h), or kernels for the
// CPU (cpu_program.h).

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/program/program.h"
#include "compute/program/program_graph.h"
#include "compute/program/program_sequence.h"
#include "compute/vk/event.h"
#include "compute/vk/queue.h"

namespace imprint {

namespace program {

// For a device or for the CPU. Errors: those of Program::compile.
Result<Program> compile_graph(Runtime& runtime, ProgramGraph source);

}  // namespace program

// Numbers that processes add up: a stretch computes them.
struct StretchSum {
  std::span<float> numbers;         // host memory, for all_reduce
  std::span<float* const> padding;  // of the numbers: no variable's
  // Set once the numbers are computed and, without `to_host`, in host memory.
  vk::Event* there = nullptr;
  // On the copy queue: the numbers to the host, and their sums to the device. Null: `commands` of this
  // stretch and of the next copy them.
  VkCommandBuffer to_host = VK_NULL_HANDLE, to_device = VK_NULL_HANDLE;
};

// A part of a run that needs no sum over processes after its beginning (ProgramSequence::all_reduce).
struct Stretch {
  VkCommandBuffer commands = VK_NULL_HANDLE;  // primary
  bool needs_sums = false;                    // starts from the sums of the stretch before it
  std::vector<StretchSum> sums;               // in the order in which it computes them
  std::uint32_t copies = 0;                   // of summed variables, to the host and back
};

class Program::Body {
 public:
  virtual ~Body() = default;
  static Program wrap(std::unique_ptr<Body> body) { return Program(std::move(body)); }

  virtual const Runtime& owner() const = 0;
  virtual std::string explain() const = 0;
  virtual std::vector<ScheduleFigures> schedule_figures() const = 0;
  virtual std::vector<std::string> glsl() const = 0;
  virtual void add_pipelines(std::vector<VkPipeline>& list) const = 0;
  // The memory of an existing slot's ports; null if it has none.
  virtual std::byte* input_memory(std::uint32_t slot) = 0;
  virtual const std::byte* output_memory(std::uint32_t slot) const = 0;
  // The first dispatch that writes a variable that `except` does not list; past the end if there is none.
  virtual std::uint32_t first_write(std::span<const Variable> except) const = 0;
  virtual std::span<const VkCommandBuffer> pieces(std::uint32_t slot, VkCommandBufferLevel level) const = 0;
  virtual VkCommandBuffer head(std::uint32_t slot, VkCommandBufferLevel level) const = 0;
  virtual VkCommandBuffer tail(std::uint32_t slot, VkCommandBufferLevel level) const = 0;
  virtual VkCommandBuffer whole(std::uint32_t slot, VkCommandBufferLevel level) const = 0;
  virtual void encode(VkCommandBuffer commands, std::uint32_t slot) const = 0;
  // Runs of `count` slots from `first`, in their order and modulo the number of slots, as one primary command
  // buffer: it costs a device less than one for each. Recorded when it is first asked for. Null on the CPU.
  virtual Result<VkCommandBuffer> several_runs(std::uint32_t first, std::uint32_t count) = 0;
  // An extent in the slot's inputs has another value.
  virtual void extents_changed(std::uint32_t) {}
  void reset_extents();  // of all slots, to their bounds
  virtual Result<> run_pieces(std::uint32_t slot, std::uint32_t first, std::uint32_t count) = 0;
  // A device's sequence with all_reduce has some; else empty.
  virtual std::span<const Stretch> stretches(std::uint32_t) const { return {}; }

  program::ProgramGraph source;  // for a sequence: only its ports
  ProgramStats stats;
  std::vector<Variable> own;  // for a sequence
  // For a device's sequence.
  std::function<void(std::span<float>)> all_reduce;
  std::shared_ptr<SharedSums> shared_sums;  // null: all_reduce
  SharedSums::Memory shared_memory;
  program::CopyQueue* copies = nullptr;   // null: the main queue copies
  bool waits_by_polling = false;          // a GPU, whose answers take less time than to wake a thread
  vk::Ticket unfinished;                  // of a run with sums that failed: its events may be set yet
  std::array<std::uint64_t, 2> copied{};  // the last points of the copy queue, by direction
};

}  // namespace imprint
