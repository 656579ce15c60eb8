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

  Result<> submit_and_wait(VkCommandBuffer commands);
  Result<> run_whole(Program& program);
  Result<std::vector<HostTensor>> evaluate(Session& session, std::span<const Tensor> tensors);
  Result<std::vector<HostTensor>> run(Program& program, std::span<const HostTensor> inputs,
                                      const std::vector<program::Port>& input_ports,
                                      const std::vector<program::Port>& output_ports);

  Runtime& runtime;
  vk::Queue* queue;           // null on the CPU
  std::uint64_t written = 0;  // bytes, since writes were last uploaded without a run
  // By structure; constants are inputs of these programs.
  std::unordered_map<Hash128, Program, Hash128Hasher> evaluated;
};

}  // namespace imprint
