// The floor of a device: an empty submission, and chains of dependent dispatches, in hand-written Vulkan
// without any graph.

#include <array>
#include <string>

#include "tools/imprint/bench.h"

namespace imprint::tools {
namespace {

// Each dispatch adds one to the same 64 numbers: each must wait for the one before, and the sum proves that
// all ran.
constexpr const char* kAddOne = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Numbers { uint numbers[]; };
void main() { numbers[gl_GlobalInvocationID.x] += 1u; }
)";
constexpr std::uint64_t kBytes = 64 * sizeof(std::uint32_t);

// The descriptor set of the kernel interface, for one small buffer.
class AddOne {
 public:
  explicit AddOne(vk::Device& device) : device_(device), f_(device.functions()) {}
  AddOne(const AddOne&) = delete;
  AddOne& operator=(const AddOne&) = delete;

  ~AddOne() {
    if (pool_) f_.vkDestroyDescriptorPool(device_.handle(), pool_, device_.allocation_callbacks());
    if (numbers_) device_.memory().free(numbers_);
    if (readback_) device_.memory().free(readback_);
    if (table_) device_.memory().free(table_);
  }

  Result<> init() {
    const vk::KernelSource source{.name = "add_one", .glsl = kAddOne};
    IMPRINT_ASSIGN(const std::vector<vk::Kernel> kernels, device_.pipelines().get(std::span(&source, 1)));
    kernel_ = kernels[0];
    // The numbers stay on the device: a mapped buffer would measure the bus.
    IMPRINT_ASSIGN(numbers_, device_.memory().allocate(kBytes, 256, vk::MemoryUse::device));
    IMPRINT_ASSIGN(readback_, device_.memory().allocate(kBytes, 256, vk::MemoryUse::readback));
    IMPRINT_ASSIGN(table_, device_.memory().allocate(vk::kTableBytes, 256, vk::MemoryUse::upload));

    const std::array sizes{VkDescriptorPoolSize{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1},
                           VkDescriptorPoolSize{VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC, 1}};
    VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.maxSets = 1;
    pool.poolSizeCount = static_cast<std::uint32_t>(sizes.size());
    pool.pPoolSizes = sizes.data();
    VkResult result =
        f_.vkCreateDescriptorPool(device_.handle(), &pool, device_.allocation_callbacks(), &pool_);
    if (result != VK_SUCCESS) return vk::vulkan_error(device_, "vkCreateDescriptorPool", result);
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = pool_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &kernel_.set_layout;
    result = f_.vkAllocateDescriptorSets(device_.handle(), &allocate, &set_);
    if (result != VK_SUCCESS) return vk::vulkan_error(device_, "vkAllocateDescriptorSets", result);

    const VkDescriptorBufferInfo numbers{numbers_.buffer, numbers_.offset, kBytes};
    const VkDescriptorBufferInfo table{table_.buffer, table_.offset, vk::kTableBytes};
    std::array<VkWriteDescriptorSet, 2> writes{};
    for (VkWriteDescriptorSet& write : writes) {
      write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
      write.dstSet = set_;
      write.descriptorCount = 1;
    }
    writes[0].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[0].pBufferInfo = &numbers;
    writes[1].dstBinding = vk::kTableBinding;
    writes[1].descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
    writes[1].pBufferInfo = &table;
    f_.vkUpdateDescriptorSets(device_.handle(), static_cast<std::uint32_t>(writes.size()), writes.data(), 0,
                              nullptr);
    return {};
  }

  void record(VkCommandBuffer commands, std::uint32_t count) {
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    const std::uint32_t table_offset = 0;
    f_.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel_.pipeline);
    f_.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel_.layout, 0, 1, &set_, 1,
                               &table_offset);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i > 0) {
        f_.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
      }
      f_.vkCmdDispatch(commands, 1, 1, 1);
    }
  }

  // Reads the first number: copies it and waits.
  Result<std::uint32_t> read(GpuTimer& timer) {
    IMPRINT_CHECK(timer.time({.warmup = 1, .measured = 1}, [&](VkCommandBuffer commands) {
      VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
      barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
      barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
      f_.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                              0, 1, &barrier, 0, nullptr, 0, nullptr);
      const VkBufferCopy region{numbers_.offset, readback_.offset, kBytes};
      f_.vkCmdCopyBuffer(commands, numbers_.buffer, readback_.buffer, 1, &region);
      barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
      barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
      f_.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                              &barrier, 0, nullptr, 0, nullptr);
    }));
    return *static_cast<const std::uint32_t*>(readback_.mapped);
  }

 private:
  vk::Device& device_;
  const vk::Functions& f_;
  vk::Kernel kernel_;
  vk::Allocation numbers_, readback_, table_;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
};

BenchResult to_result(const std::string& name, const Timing& timing) {
  BenchResult result;
  result.name = name;
  result.gpu_us = spread(timing.gpu_us);
  result.samples = timing.gpu_us.size();
  result.wall_us = spread(timing.wall_us);
  result.frame_cpu_us = spread(timing.cpu_us);
  return result;
}

Result<BenchResult> run_empty(BenchDevice& device, const std::string& name) {
  IMPRINT_ASSIGN(const Timing timing, device.timer->time(device.repeats, [](VkCommandBuffer) {}));
  return to_result(name, timing);
}

Result<BenchResult> run_dispatches(BenchDevice& device, const std::string& name, std::uint32_t count) {
  vk::Device& vulkan = device.context().device();
  AddOne add_one(vulkan);
  IMPRINT_CHECK(add_one.init());
  IMPRINT_ASSIGN(const std::uint32_t before, add_one.read(*device.timer));
  const std::uint64_t allocations = vulkan.counters().allocations;
  IMPRINT_ASSIGN(const Timing timing, device.timer->time(device.repeats, [&](VkCommandBuffer commands) {
    add_one.record(commands, count);
  }));
  const auto expected = static_cast<std::uint32_t>(timing.submissions * count);
  const std::uint64_t made = vulkan.counters().allocations - allocations;
  IMPRINT_ASSIGN(const std::uint32_t after, add_one.read(*device.timer));
  if (after - before != expected) {
    return make_error(ErrorCode::internal, name + ": " + std::to_string(after - before) +
                                               " dispatches took effect, expected " +
                                               std::to_string(expected));
  }
  BenchResult result = to_result(name, timing);
  result.dispatches = count;
  result.barriers = count - 1;
  result.allocations = made;
  result.bytes = 2 * kBytes * count;
  if (count > 1) {
    result.chained_us = {result.gpu_us.median / count, result.gpu_us.p95 / count};
  }
  return result;
}

}  // namespace

std::vector<BenchCase> floor_cases() {
  std::vector<BenchCase> cases{
      {"floor/empty", [](BenchDevice& device) { return run_empty(device, "floor/empty"); }}};
  for (const std::uint32_t count : {1u, 10u, 100u, 1000u}) {
    const std::string name = "floor/dependent-dispatches/n" + std::to_string(count);
    cases.push_back(
        {name, [name, count](BenchDevice& device) { return run_dispatches(device, name, count); }});
  }
  return cases;
}

}  // namespace imprint::tools
