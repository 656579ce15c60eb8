#include <algorithm>
#include <map>

#include "compute/program/program_impl.h"

namespace imprint {

using namespace kernels;
using namespace program;

// Makes one set per distinct list of buffers. Offsets are in the table, so most dispatches share a set.
Result<> Program::Impl::make_descriptor_sets() {
  if (dispatches.empty()) return {};
  vk::Device& device = runtime.device();
  const vk::Functions& functions = device.functions();
  std::map<std::vector<std::int32_t>, VkDescriptorSet> known;
  std::uint32_t descriptors = 0;
  for (const DispatchSource& dispatch : dispatches)
    if (known.try_emplace(dispatch.buffers, VK_NULL_HANDLE).second)
      descriptors += static_cast<std::uint32_t>(dispatch.buffers.size());

  const auto set_count = static_cast<std::uint32_t>(known.size());
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, std::max(1u, descriptors)},
                                        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC, set_count}};
  VkDescriptorPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool_info.maxSets = set_count;
  pool_info.poolSizeCount = 2;
  pool_info.pPoolSizes = sizes;
  VkResult result = functions.vkCreateDescriptorPool(device.handle(), &pool_info,
                                                     device.allocation_callbacks(), &descriptor_pool);
  if (result != VK_SUCCESS) return vk::vulkan_error(device, "vkCreateDescriptorPool", result);

  for (std::size_t i = 0; i < dispatches.size(); ++i) {
    VkDescriptorSet& set = known.at(dispatches[i].buffers);
    if (set == VK_NULL_HANDLE) {
      VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
      allocate.descriptorPool = descriptor_pool;
      allocate.descriptorSetCount = 1;
      allocate.pSetLayouts = &kernels[i].set_layout;
      result = functions.vkAllocateDescriptorSets(device.handle(), &allocate, &set);
      if (result != VK_SUCCESS) return vk::vulkan_error(device, "vkAllocateDescriptorSets", result);

      std::vector<VkDescriptorBufferInfo> infos;
      for (std::int32_t buffer : dispatches[i].buffers) {
        const Buffer& bound = buffers[static_cast<std::size_t>(buffer)];
        infos.push_back({bound.buffer, bound.offset, bound.size});
      }
      infos.push_back({tables.buffer, tables.offset, vk::kTableBytes});
      std::vector<VkWriteDescriptorSet> writes;
      for (std::size_t binding = 0; binding < infos.size(); ++binding) {
        const bool is_table = binding + 1 == infos.size();
        VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
        write.dstSet = set;
        write.dstBinding = is_table ? vk::kTableBinding : static_cast<std::uint32_t>(binding);
        write.descriptorCount = 1;
        write.descriptorType =
            is_table ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        write.pBufferInfo = &infos[binding];
        writes.push_back(write);
      }
      functions.vkUpdateDescriptorSets(device.handle(), static_cast<std::uint32_t>(writes.size()),
                                       writes.data(), 0, nullptr);
    }
    sets.push_back(set);
  }
  return {};
}

void Program::Impl::record_upload(VkCommandBuffer commands, std::uint32_t slot) const {
  if (input_bytes == 0) return;
  each_port_copy(graph::PlaceKind::input, upload_slots[slot].offset,
                 [&](VkBuffer section, const VkBufferCopy& region) {
                   runtime.device().functions().vkCmdCopyBuffer(commands, upload_slots[slot].buffer, section,
                                                                1, &region);
                 });
}

void Program::Impl::record_dispatch(VkCommandBuffer commands, std::size_t dispatch,
                                    bool after_barrier) const {
  const vk::Functions& functions = runtime.device().functions();
  if (barrier_before[dispatch] && !after_barrier) {
    // The first barrier also waits for the upload. The last one also lets the download start if it has no
    // barrier of its own. Between them there are only kernels.
    constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    const auto here = barrier_before.begin() + static_cast<std::ptrdiff_t>(dispatch);
    const bool first = std::find(barrier_before.begin(), here, 1) == here;
    const bool last = std::find(here + 1, barrier_before.end(), 1) == barrier_before.end();
    global_barrier(functions, commands, first ? kWorkStages : kCompute,
                   last && !download_barrier ? kWorkStages : kCompute);
  }
  functions.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernels[dispatch].pipeline);
  functions.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernels[dispatch].layout, 0, 1,
                                    &sets[dispatch], 1, &table_offset[dispatch]);
  if (const std::vector<std::int32_t>& table = pushed[dispatch]; !table.empty())
    functions.vkCmdPushConstants(commands, kernels[dispatch].layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                 static_cast<std::uint32_t>(table.size() * 4), table.data());
  functions.vkCmdDispatch(commands, dispatches[dispatch].groups_x, dispatches[dispatch].groups_y, 1);
}

void Program::Impl::record_download(VkCommandBuffer commands, std::uint32_t slot) const {
  if (output_bytes == 0) return;
  const vk::Functions& functions = runtime.device().functions();
  if (download_barrier) global_barrier(functions, commands, kWorkStages, VK_PIPELINE_STAGE_TRANSFER_BIT);
  each_port_copy(graph::PlaceKind::output, readback_slots[slot].offset,
                 [&](VkBuffer section, const VkBufferCopy& region) {
                   functions.vkCmdCopyBuffer(commands, section, readback_slots[slot].buffer, 1, &region);
                 });
  global_barrier(functions, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT);
}

void Program::Impl::encode(VkCommandBuffer commands, std::uint32_t slot) const {
  if (!parts.empty()) return encode_sequence(commands, slot);
  record_upload(commands, slot);
  for (std::size_t i = 0; i < dispatches.size(); ++i) record_dispatch(commands, i);
  record_download(commands, slot);
}

Result<VkCommandBuffer> Program::Impl::several_runs(std::uint32_t first, std::uint32_t count) {
  const std::pair wanted(first, count);
  const auto known = std::ranges::find(several_of, wanted);
  if (known != several_of.end())
    return several_commands[static_cast<std::size_t>(known - several_of.begin())].primary;
  IMPRINT_ASSIGN(const Commands made, runtime.record([&](VkCommandBuffer buffer) {
    const vk::Functions& functions = runtime.device().functions();
    const vk::CommandLabel label(functions, buffer, source.name.c_str());
    for (std::uint32_t i = 0; i < count; ++i) {
      global_barrier(functions, buffer, kWorkStages, kWorkStages);
      encode(buffer, (first + i) % source.slot_count);
    }
  }));
  several_commands.push_back(made);
  several_of.push_back(wanted);
  return made.primary;
}

Result<> Program::Impl::record() {
  const vk::Functions& functions = runtime.device().functions();
  for (std::size_t i = 0; i < dispatches.size(); ++i) {
    IMPRINT_ASSIGN(const Commands commands, runtime.record([&](VkCommandBuffer buffer) {
      const std::string name =
          source.name + " " + std::to_string(i + 1) + "/" + std::to_string(dispatches.size());
      const vk::CommandLabel label(functions, buffer, name.c_str());
      record_dispatch(buffer, i);
    }));
    dispatch_commands.push_back(commands);
  }
  // Commands of a run that takes two frames: before its first visible write, and from there on. Each command
  // buffer of a submission costs both CPU and GPU time.
  const std::size_t commit = std::min<std::size_t>(first_write(own), dispatches.size());
  const auto record_some = [&](std::uint32_t slot, bool from_start, std::size_t begin, std::size_t end) {
    return runtime.record([&](VkCommandBuffer buffer) {
      const vk::CommandLabel label(functions, buffer, source.name.c_str());
      if (from_start) {
        global_barrier(functions, buffer, kWorkStages, kWorkStages);
        record_upload(buffer, slot);
      }
      for (std::size_t i = begin; i < end; ++i) record_dispatch(buffer, i);
      if (!from_start) record_download(buffer, slot);
    });
  };
  for (std::uint32_t slot = 0; slot < source.slot_count; ++slot) {
    if (commit < dispatches.size()) {
      IMPRINT_ASSIGN(const Commands head, record_some(slot, true, 0, commit));
      head_commands.push_back(head);
      IMPRINT_ASSIGN(const Commands tail, record_some(slot, false, commit, dispatches.size()));
      tail_commands.push_back(tail);
    }
    IMPRINT_ASSIGN(const Commands upload,
                   runtime.record([&](VkCommandBuffer buffer) { record_upload(buffer, slot); }));
    upload_commands.push_back(upload);
    IMPRINT_ASSIGN(const Commands download,
                   runtime.record([&](VkCommandBuffer buffer) { record_download(buffer, slot); }));
    download_commands.push_back(download);
    IMPRINT_ASSIGN(const Commands whole, runtime.record([&](VkCommandBuffer buffer) {
      const vk::CommandLabel label(functions, buffer, source.name.c_str());
      global_barrier(functions, buffer, kWorkStages, kWorkStages);
      encode(buffer, slot);
    }));
    whole_commands.push_back(whole);

    std::vector<VkCommandBuffer> primary{upload.primary}, secondary{upload.secondary};
    for (const Commands& commands : dispatch_commands) {
      primary.push_back(commands.primary);
      secondary.push_back(commands.secondary);
    }
    primary.push_back(download.primary);
    secondary.push_back(download.secondary);
    primary_pieces.push_back(std::move(primary));
    secondary_pieces.push_back(std::move(secondary));
  }
  return {};
}

}  // namespace imprint
