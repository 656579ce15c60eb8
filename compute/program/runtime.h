#pragma once
// What the programs of one device share: the storage of variables and constants, transfers between host and
// state, and command pools. A Runtime never submits. It hands out command buffers, and whoever owns the queue
// (the engine bridge, or run.h) puts them in order.
//
// Or what the programs of the CPU share: there state lies in the process's memory, what is written is there
// at once, and programs run on the thread that asks for it (Program::run_pieces). No Vulkan function is
// called, and no library of it need be there.

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/base/log.h"
#include "compute/base/result.h"
#include "compute/graph/variants.h"
#include "compute/tensor/tensor.h"

namespace imprint {

class Program;

namespace program {
class VariantTuner;  // compute/tuning/tuner.h is one
}
namespace vk {
class Device;
struct Capabilities;
}  // namespace vk

// What the calling thread does in place of commands, as often as it is asked to.
class CpuWork {
 public:
  virtual ~CpuWork() = default;
  virtual void run() = 0;
};

// A command buffer of either level with the same content: submit the primary, or execute the secondary in a
// host's command buffer. On the CPU `work` instead.
struct Commands {
  VkCommandBuffer primary = VK_NULL_HANDLE;
  VkCommandBuffer secondary = VK_NULL_HANDLE;
  CpuWork* work = nullptr;
  VkCommandBuffer get(VkCommandBufferLevel level) const {
    return level == VK_COMMAND_BUFFER_LEVEL_PRIMARY ? primary : secondary;
  }
};

// A range of a buffer of somebody else's for a variable to live in.
struct BufferRange {
  VkBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t offset = 0, size = 0;  // bytes; the offset a multiple of buffer_range_alignment, the size up
                                       // to max_storage_buffer_range
  bool copy_source = false, copy_target = false;  // the usage allows read() and write()
  std::shared_ptr<const void> keep;  // held until nothing of ours uses the range any more; may be null
};

// Bytes: what the device asks of storage buffers' offsets, and 16 at least, since kernels load four elements
// at once.
std::uint64_t buffer_range_alignment(const vk::Capabilities& capabilities);

// A copy of variables on its way to the host. Run commands(), and once that work is complete take() the
// bytes.
class StateReadback {
 public:
  virtual ~StateReadback() = default;  // release only when its commands are complete or never ran
  virtual const Commands& commands() const = 0;
  virtual std::span<const std::byte> bytes(
      std::size_t index) const = 0;  // of the index-th variable asked for; valid while this lives
};

// Thread-safe. Outlives its programs; must be destroyed before its device.
class Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> create(vk::Device& device);
  // The processor's, for hosts without compute and for a brain too small to be worth a submission. Its
  // variables may be shared between runtimes of the CPU, if never used by two threads at once.
  // memory_cap: bytes of variables, intermediates, inputs and outputs together, beyond which place, read and
  // Program::compile return out_of_device_memory; 0 = no cap.
  static std::unique_ptr<Runtime> create_on_cpu(LogSink log = {}, std::uint64_t memory_cap = 0);
  virtual ~Runtime() = default;

  virtual bool on_cpu() const = 0;

  // A global barrier (compute and transfer, all accesses), for the start of any slice that follows work of
  // another program. Never changes. On the CPU without handles, as everything has finished when its call
  // returns.
  virtual const Commands& barrier() const = 0;

  // ---- host to state ----
  // Gives the variable storage on this device (if it has none) and queues its initial bytes. Program::compile
  // does this for its variables. yields: in memory that really comes free when the variable is displaced
  // (vk::MemoryPool).
  virtual Status place(const Variable& variable, bool yields = false) = 0;
  // For several at once, which then lie in one block of memory where that can be as long as they all are;
  // none of it yields. Kernels are written for what lies in one block and what does not: so whoever runs from
  // a kernel archive places together what is used together.
  virtual Status place_together(std::span<const Variable> variables) = 0;
  // Takes its memory away, content and all, behind the newest ticket. Programs and readbacks of the variable
  // must be gone: they are compiled and made anew when it has been placed and written again. Errors:
  // unsupported (external; on the processor).
  virtual Status displace(const Variable& variable) = 0;
  // Lets a variable made by Variable::external live in the range, which stays its owner's. What is still to
  // be written when the last handle to the variable goes is forgotten. Errors: invalid_argument (a variable
  // that is not external or has a place; a range that is null, misaligned, too long or shorter than the
  // variable), unsupported (on the processor).
  virtual Status place_in(const Variable& variable, const BufferRange& range) = 0;
  // Queues new content; bytes.size() must equal the variable's. Takes effect in the order of calls, when the
  // pending uploads run (CPU: at once).
  virtual Status write(const Variable& variable, std::span<const std::byte> bytes) = 0;
  virtual Status write_zeros(
      const Variable& variable) = 0;  // as write, without the bytes. Errors: unsupported (on a device: no
                                      // whole number of words)
  // Uploads queued since the last call, as commands to run before anything else (begins and ends with
  // barriers); null handles when there are none. The staging memory is retired after `Device::last_ticket() +
  // 1`, that is with the submission that carries the commands.
  virtual Result<Commands> take_uploads() = 0;
  // The submission that was to carry what the newest take_uploads gave did not happen: it waits again, in
  // front of what was queued since. Call it before anything else is submitted; the commands are gone.
  // Commands without handles: nothing to do.
  virtual void put_back_uploads(const Commands& commands) = 0;
  virtual bool has_uploads() const = 0;

  // ---- state to host ----
  // yields: in memory that really comes free with the readback.
  virtual Result<std::unique_ptr<StateReadback>> read(std::span<const Variable> variables,
                                                      bool yields = false) = 0;

  // ---- variants of kernels ----
  // What programs compiled from now on take where kernels could be made in several ways; null, as at first:
  // what the cost model expects to be fastest. On the processor without effect.
  virtual void set_variants(std::shared_ptr<const VariantTable> table) = 0;
  virtual std::shared_ptr<const VariantTable> variants() const = 0;
  // Measures the variants of programs before they are compiled, and sets the table by that; null, as at
  // first: nobody does.
  virtual void set_tuner(std::shared_ptr<program::VariantTuner> tuner) = 0;

  // Changes the cap of create_on_cpu. No effect on a device, whose memory pool has its own cap.
  virtual void set_cpu_memory_cap(std::uint64_t) {}
};

}  // namespace imprint
