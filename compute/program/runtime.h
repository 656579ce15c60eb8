#pragma once
// State that the programs of one device share: storage of variables and constants, transfers between host and
// state, and command pools. A Runtime never submits. It returns command buffers, and the owner of the queue
// (the engine bridge, or run.h) submits them in order.
//
// On the CPU, state lies in the process's memory, writes take effect at once, and programs run on the calling
// thread (Program::run_pieces), with the help of others if CpuThreads asks for them. No Vulkan library is
// needed.

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/base/host_jobs.h"
#include "compute/base/log.h"
#include "compute/base/result.h"
#include "compute/base/shared_bytes.h"
#include "compute/graph/schedule/variants.h"
#include "compute/tensor/tensor.h"

namespace imprint {

class Program;

namespace program {
class CopyQueue;     // compute/program/copy_queue.h
class VariantTuner;  // compute/tuning/tuner.h implements it
}  // namespace program
namespace vk {
class Device;
class Queue;
struct Capabilities;
}  // namespace vk

// Work of the calling thread instead of commands. May run any number of times.
class CpuWork {
 public:
  virtual ~CpuWork() = default;
  virtual void run() = 0;
};

// Threads of one run of a program on the CPU, the calling one included. One, unless the host gives more: a
// game's cores do its own work, and a small program is over before a second thread wakes. Results have the
// same bits for any number. host: lends the other threads; null: threads of the runtime's own, which sleep
// between runs.
inline constexpr std::uint32_t kMostCpuThreads = 256;
struct CpuThreads {
  std::uint32_t count = 1;  // 1 .. kMostCpuThreads
  HostJobs host;
};

// The same commands at both levels: submit the primary, or execute the secondary in a host's command buffer.
// On the CPU only `work` is set.
struct Commands {
  VkCommandBuffer primary = VK_NULL_HANDLE;
  VkCommandBuffer secondary = VK_NULL_HANDLE;
  CpuWork* work = nullptr;
  VkCommandBuffer get(VkCommandBufferLevel level) const {
    return level == VK_COMMAND_BUFFER_LEVEL_PRIMARY ? primary : secondary;
  }
};

// A range of another owner's buffer, for a variable to live in.
struct BufferRange {
  VkBuffer buffer = VK_NULL_HANDLE;
  // Bytes. The offset is a multiple of buffer_range_alignment, the size at most max_storage_buffer_range.
  std::uint64_t offset = 0, size = 0;
  bool copy_source = false, copy_target = false;  // the usage allows read() and write()
  std::shared_ptr<const void> keep;               // held while Imprint uses the range; may be null
};

// Bytes: the device's alignment of storage buffers, at least 16, since kernels load four elements at once.
std::uint64_t buffer_range_alignment(const vk::Capabilities& capabilities);

// A copy of variables to the host. Run commands(); when they are complete, read bytes().
class StateReadback {
 public:
  virtual ~StateReadback() = default;  // only when its commands are complete or never ran
  virtual const Commands& commands() const = 0;
  // Bytes of the index-th variable; valid while this lives.
  virtual std::span<const std::byte> bytes(std::size_t index) const = 0;
};

// A copy of variables beside them, on the device. Run keep(), then what changes the variables, then
// put_back().
class StateCopy {
 public:
  virtual ~StateCopy() = default;  // frees the memory after the newest ticket
  virtual const Commands& keep() const = 0;
  virtual const Commands& put_back() const = 0;
};

// Thread-safe. Outlives its programs; must be destroyed before its device.
class Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> create(vk::Device& device);
  // For hosts without compute, and for brains too small to be worth a submit. Runtimes of the CPU may share
  // variables, if no two threads use one at the same time. memory_cap: bytes of variables, intermediates,
  // inputs and outputs together; beyond it place, read and Program::compile return out_of_device_memory. 0:
  // no cap.
  static std::unique_ptr<Runtime> create_on_cpu(LogSink log = {}, std::uint64_t memory_cap = 0,
                                                const CpuThreads& threads = {});
  virtual ~Runtime() = default;

  virtual bool on_cpu() const = 0;

  // A global barrier (compute and transfer, all accesses), for the start of a slice that follows another
  // program's work. Never changes. On the CPU without handles.
  virtual const Commands& barrier() const = 0;

  // ---- host to state ----
  // Gives the variable storage on this device, if it has none, and queues its initial bytes. Program::compile
  // does this too. yields: displacing the variable frees its memory (vk::MemoryPool).
  virtual Result<> place(const Variable& variable, bool yields = false) = 0;
  // Puts several variables into one block of memory, if one block can hold them; none yields. Kernels depend
  // on which variables share a block. With a kernel archive, place together the variables that were baked
  // together.
  virtual Result<> place_together(std::span<const Variable> variables) = 0;
  // Frees its memory and content after the newest ticket. Destroy its programs and readbacks first; compile
  // them again after placing and writing it. Errors: unsupported (external; on the CPU).
  virtual Result<> displace(const Variable& variable) = 0;
  // Places a variable made by Variable::external in the range, which stays its owner's memory. If the last
  // handle to the variable goes, its pending writes are dropped. Errors: invalid_argument (the variable is
  // not external or already has a place; the range is null, misaligned, too long, or shorter than the
  // variable), unsupported (on the CPU).
  virtual Result<> place_in(const Variable& variable, const BufferRange& range) = 0;
  // Queues new content; bytes.size() must equal the variable's. Takes effect in call order when the pending
  // uploads run; on the CPU at once.
  virtual Result<> write(const Variable& variable, std::span<const std::byte> bytes) = 0;
  // Keeps the bytes instead of a copy, until they are uploaded.
  virtual Result<> write(const Variable& variable, SharedBytes bytes) = 0;
  // Errors: unsupported (on a device: not a whole number of four-byte words).
  virtual Result<> write_zeros(const Variable& variable) = 0;
  // Uploads queued since the last call, with barriers at both ends, to submit before anything else; null
  // handles without uploads. The next submission must carry them: its ticket frees the staging memory. most:
  // bytes of staging; where more is queued, has_uploads() stays true, and the rest must come before programs
  // that need it.
  virtual Result<Commands> take_uploads(std::uint64_t most = UINT64_MAX) = 0;
  // The submission with the newest take_uploads failed: its uploads wait again, before those queued since.
  // Call before anything else is submitted; the commands are invalid. Does nothing for null handles.
  virtual void put_back_uploads(const Commands& commands) = 0;
  virtual bool has_uploads() const = 0;

  // ---- state to host ----
  // yields: destroying the readback frees its memory.
  virtual Result<std::unique_ptr<StateReadback>> read(std::span<const Variable> variables,
                                                      bool yields = false) = 0;

  // ---- state beside state ----
  // Errors: out_of_device_memory, unsupported (on the CPU).
  virtual Result<std::unique_ptr<StateCopy>> copy(std::span<const Variable> variables) = 0;

  // ---- variants of kernels ----
  // Sets the variants for programs compiled from now on; null, the initial value: the cost model's. No effect
  // on the CPU.
  virtual void set_variants(std::shared_ptr<const VariantTable> table) = 0;
  virtual std::shared_ptr<const VariantTable> variants() const = 0;
  // Measures the variants of each program before it is compiled, and sets the table; null, the initial value:
  // none.
  virtual void set_tuner(std::shared_ptr<program::VariantTuner> tuner) = 0;

  // For sums over processes: programs compiled from now on copy beside the main queue's work. It outlives
  // them. Null, the initial value: on the main queue. No effect on the CPU.
  virtual void set_copy_queue(program::CopyQueue*) {}

  // Changes the cap of create_on_cpu. No effect on a device, whose memory pool has its own cap.
  virtual void set_cpu_memory_cap(std::uint64_t) {}
};

namespace program {

// Bytes of staging memory that stream_uploads() uses at a time. Uploads queued beyond it wait in host memory,
// or in their file.
inline constexpr std::uint64_t kUploadRing = 16ull << 20;

// Submits all queued uploads except the last kUploadRing bytes, and waits for each submission. Returns the
// commands of the rest, as take_uploads().
Result<Commands> stream_uploads(Runtime& runtime, vk::Queue& queue);

}  // namespace program

}  // namespace imprint
