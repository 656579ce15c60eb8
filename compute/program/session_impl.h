#pragma once
// Implementation of Session.

#include <unordered_map>

#include "compute/program/program_impl.h"
#include "compute/program/run.h"

namespace imprint {

namespace program {

HostTensor host_tensor(DType dtype, const Shape& shape, std::span<const std::byte> bytes);

}  // namespace program

struct Session::Impl {
  Impl(Runtime& used_runtime, vk::Queue* used_queue) : runtime(used_runtime), queue(used_queue) {}

  // A run that was started and not finished. `ticket`: 0 where it was computed at once.
  struct Started {
    Program::Body* program = nullptr;
    std::uint32_t slot = 0;
    vk::Ticket ticket = {};
    bool is_waiting = false;  // for a submission
  };

  // Uploads, the runs that wait, then the commands; null: none.
  Result<vk::Ticket> submit(VkCommandBuffer commands);
  bool has_waiting() const { return !started.empty() && started.back().is_waiting; }
  Result<> add_waiting(std::vector<VkCommandBuffer>& buffers);
  Result<> start_whole(Program& program, std::uint32_t slot, Submit when);
  Result<> wait(vk::Ticket ticket);
  Result<> submit_and_wait(VkCommandBuffer commands);
  std::vector<Started>::iterator started_in(Program& program, std::uint32_t slot);
  Result<> start(Program& program, std::uint32_t slot, std::span<const HostTensor> inputs,
                 const std::vector<program::Port>& ports, Submit when);
  Result<std::vector<HostTensor>> finish(Program& program, std::uint32_t slot,
                                         const std::vector<program::Port>& ports);
  Result<std::vector<HostTensor>> evaluate(Session& session, std::span<const Tensor> tensors);
  Result<std::vector<HostTensor>> run(Program& program, std::span<const HostTensor> inputs,
                                      const std::vector<program::Port>& input_ports,
                                      const std::vector<program::Port>& output_ports);

  Runtime& runtime;
  vk::Queue* queue;              // null on the CPU
  std::vector<Started> started;  // in their order: those that wait are the last
  std::uint64_t written = 0;     // bytes, since writes were last uploaded without a run
  // By structure; constants are inputs of these programs.
  std::unordered_map<Hash128, Program, Hash128Hasher> evaluated;
};

}  // namespace imprint
