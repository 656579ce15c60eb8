#include "tests/hosts/buffer_host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "shaders/buffer_host_comp.h"
#include "shaders/buffer_host_frag.h"
#include "shaders/buffer_host_vert.h"

namespace imprint::bridge {
namespace {

constexpr VkDeviceSize kLeastMemory =
    2 << 20;  // a game would share one block; this size satisfies the best-practice checks

struct Push {
  std::uint32_t mode, seed, count;
};

void expect(VkResult result, const char* what) { EXPECT_EQ(result, VK_SUCCESS) << what; }

VkMemoryBarrier barrier_between(VkAccessFlags before, VkAccessFlags after) {
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = before;
  barrier.dstAccessMask = after;
  return barrier;
}

}  // namespace

BufferHost::BufferHost(PlainHost& host) : host_(host), vk_(host.vk()), device_(host.device()) {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = kResultFloats * sizeof(float);
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  const VkMemoryPropertyFlags mapped =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  result_ = make_memory(info, mapped);
  info.size = kPicture * kPicture * 4;
  info.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  picture_pixels_ = make_memory(info, mapped);
  expect(vk_.vkMapMemory(device_, result_.memory, 0, VK_WHOLE_SIZE, 0, &result_mapped_), "vkMapMemory");
  expect(vk_.vkMapMemory(device_, picture_pixels_.memory, 0, VK_WHOLE_SIZE, 0, &picture_mapped_),
         "vkMapMemory");
  make_compute();
  make_drawing();
}

BufferHost::~BufferHost() {
  host_.wait_idle();
  drawing_.destroy();
  target_.destroy();
  vk_.vkDestroyPipeline(device_, compute_, nullptr);
  vk_.vkDestroyPipelineLayout(device_, layout_, nullptr);
  vk_.vkDestroyDescriptorPool(device_, descriptors_, nullptr);
  vk_.vkDestroyDescriptorSetLayout(device_, set_layout_, nullptr);
  buffers_.push_back(result_);
  buffers_.push_back(picture_pixels_);
  for (const Memory& each : buffers_) {
    vk_.vkDestroyBuffer(device_, each.buffer, nullptr);
    vk_.vkFreeMemory(device_, each.memory, nullptr);
  }
}

std::uint32_t BufferHost::memory_type(std::uint32_t allowed, VkMemoryPropertyFlags wanted) const {
  VkPhysicalDeviceMemoryProperties properties{};
  vkGetPhysicalDeviceMemoryProperties(host_.physical_device(), &properties);
  for (std::uint32_t i = 0; i < properties.memoryTypeCount; ++i)
    if (allowed >> i & 1u && (properties.memoryTypes[i].propertyFlags & wanted) == wanted) return i;
  ADD_FAILURE() << "no memory type with flags " << wanted;
  return 0;
}

BufferHost::Memory BufferHost::make_memory(const VkBufferCreateInfo& info, VkMemoryPropertyFlags wanted) {
  Memory made;
  expect(vk_.vkCreateBuffer(device_, &info, nullptr, &made.buffer), "vkCreateBuffer");
  VkMemoryRequirements needs{};
  vk_.vkGetBufferMemoryRequirements(device_, made.buffer, &needs);
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.allocationSize = std::max(needs.size, kLeastMemory);
  allocate.memoryTypeIndex = memory_type(needs.memoryTypeBits, wanted);
  expect(vk_.vkAllocateMemory(device_, &allocate, nullptr, &made.memory), "vkAllocateMemory");
  expect(vk_.vkBindBufferMemory(device_, made.buffer, made.memory, 0), "vkBindBufferMemory");
  return made;
}

HostBuffer BufferHost::make_buffer(std::uint64_t size, VkBufferUsageFlags usage,
                                   std::vector<std::uint32_t> families) {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = size;
  info.usage = usage;
  if (families.size() > 1) {
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = static_cast<std::uint32_t>(families.size());
    info.pQueueFamilyIndices = families.data();
  }
  buffers_.push_back(make_memory(info, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT));
  HostBuffer declared;
  declared.name = "host buffer";
  declared.buffer = buffers_.back().buffer;
  declared.size = size;
  declared.usage = usage;
  declared.sharing = info.sharingMode;
  declared.families = std::move(families);
  declared.memory_flags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  declared.stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  declared.access = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  return declared;
}

VkShaderModule BufferHost::make_module(std::span<const std::uint32_t> words) {
  VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = words.size_bytes();
  info.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  expect(vk_.vkCreateShaderModule(device_, &info, nullptr, &module), "vkCreateShaderModule");
  return module;
}

void BufferHost::make_compute() {
  VkDescriptorSetLayoutBinding bindings[2]{};
  for (std::uint32_t i = 0; i < 2; ++i)
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set_info.bindingCount = 2;
  set_info.pBindings = bindings;
  expect(vk_.vkCreateDescriptorSetLayout(device_, &set_info, nullptr, &set_layout_),
         "vkCreateDescriptorSetLayout");
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 32};
  VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool.maxSets = 16;
  pool.poolSizeCount = 1;
  pool.pPoolSizes = &size;
  expect(vk_.vkCreateDescriptorPool(device_, &pool, nullptr, &descriptors_), "vkCreateDescriptorPool");
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Push)};
  VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &set_layout_;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  expect(vk_.vkCreatePipelineLayout(device_, &layout, nullptr, &layout_), "vkCreatePipelineLayout");
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = make_module(buffer_host_comp);
  info.stage.pName = "main";
  info.layout = layout_;
  expect(vk_.vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &compute_),
         "vkCreateComputePipelines");
  vk_.vkDestroyShaderModule(device_, info.stage.module, nullptr);
}

void BufferHost::make_drawing() {
  target_.make(vkGetDeviceProcAddr, device_, {kPicture, kPicture}, kLeastMemory);
  const VkVertexInputBindingDescription binding{0, 2 * sizeof(float), VK_VERTEX_INPUT_RATE_VERTEX};
  const VkVertexInputAttributeDescription attribute{0, 0, VK_FORMAT_R32G32_SFLOAT, 0};
  VkPipelineVertexInputStateCreateInfo vertices{VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
  vertices.vertexBindingDescriptionCount = vertices.vertexAttributeDescriptionCount = 1;
  vertices.pVertexBindingDescriptions = &binding;
  vertices.pVertexAttributeDescriptions = &attribute;
  hosts::DrawPipelineDescription description;
  description.vertex_shader = buffer_host_vert;
  description.fragment_shader = buffer_host_frag;
  description.topology = VK_PRIMITIVE_TOPOLOGY_POINT_LIST;
  description.vertices = &vertices;
  drawing_.make(target_.functions(), device_, target_.render_pass(), description);
}

void BufferHost::dispatch(VkCommandBuffer commands, const HostBuffer& shared, std::uint32_t mode,
                          std::uint32_t seed, std::uint32_t count) {
  auto known = std::ranges::find(sets_, shared.buffer, &std::pair<VkBuffer, VkDescriptorSet>::first);
  if (known == sets_.end()) {
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = descriptors_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &set_layout_;
    VkDescriptorSet set = VK_NULL_HANDLE;
    expect(vk_.vkAllocateDescriptorSets(device_, &allocate, &set), "vkAllocateDescriptorSets");
    const VkDescriptorBufferInfo infos[] = {{shared.buffer, shared.offset, shared.size},
                                            {result_.buffer, 0, VK_WHOLE_SIZE}};
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set;
    write.descriptorCount = 2;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = infos;
    vk_.vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
    known = sets_.insert(sets_.end(), {shared.buffer, set});
  }
  const Push push{mode, seed, count};
  vk_.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, compute_);
  vk_.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &known->second, 0,
                              nullptr);
  vk_.vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
  vk_.vkCmdDispatch(commands, (count + 63) / 64, 1, 1);
}

void BufferHost::write_rows(VkCommandBuffer commands, const HostBuffer& into, std::uint32_t seed,
                            std::uint32_t rows) {
  dispatch(commands, into, 0, seed, rows);
}

void BufferHost::fill(VkCommandBuffer commands, const HostBuffer& into, std::uint32_t value,
                      std::uint32_t count) {
  dispatch(commands, into, 2, value, count);
}

void BufferHost::double_and_add_one(VkCommandBuffer commands, const HostBuffer& from, std::uint32_t count) {
  dispatch(commands, from, 1, 0, count);
  const VkMemoryBarrier done =
      barrier_between(VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT);
  vk_.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                           VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &done, 0,
                           nullptr, 0, nullptr);
}

void BufferHost::copy(VkCommandBuffer commands, const HostBuffer& from) {
  const VkBufferCopy region{from.offset, 0,
                            std::min<std::uint64_t>(from.size, kResultFloats * sizeof(float))};
  vk_.vkCmdCopyBuffer(commands, from.buffer, result_.buffer, 1, &region);
  const VkMemoryBarrier done =
      barrier_between(VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT);
  vk_.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                           VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &done, 0,
                           nullptr, 0, nullptr);
}

void BufferHost::draw_points(VkCommandBuffer commands, const HostBuffer& places, std::uint32_t count) {
  target_.begin(commands);
  target_.use_whole(commands);
  vk_.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, drawing_.handle());
  vk_.vkCmdBindVertexBuffers(commands, 0, 1, &places.buffer, &places.offset);
  vk_.vkCmdDraw(commands, count, 1, 0, 0);
  target_.end(commands);
  target_.copy(commands, picture_pixels_.buffer);
  // The compute shader above declares writes that another mode uses, so it must wait for the vertices too.
  const VkMemoryBarrier done =
      barrier_between(VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT);
  vk_.vkCmdPipelineBarrier(
      commands, VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_VERTEX_INPUT_BIT,
      VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0,
      1, &done, 0, nullptr, 0, nullptr);
}

std::vector<std::uint8_t> BufferHost::picture() const {
  const auto* bytes = static_cast<const std::uint8_t*>(picture_mapped_);
  std::vector<std::uint8_t> red(kPicture * kPicture);
  for (std::size_t i = 0; i < red.size(); ++i) red[i] = bytes[4 * i];
  return red;
}

}  // namespace imprint::bridge
