#pragma once
// The part of a host that shares buffers with Imprint: its buffers, a compute shader that writes and reads
// them, and a vertex shader that draws from them.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/hosts/colour_target.h"
#include "tests/hosts/plain_host.h"

namespace imprint::bridge {

class BufferHost {
 public:
  static constexpr std::uint32_t kPicture = 64;  // pixels per side

  explicit BufferHost(PlainHost& host);  // failures are gtest failures
  ~BufferHost();                         // the device is idle
  BufferHost(const BufferHost&) = delete;
  BufferHost& operator=(const BufferHost&) = delete;

  // A host buffer for its compute shader, and its declaration. Several families: concurrent.
  HostBuffer make_buffer(std::uint64_t size, VkBufferUsageFlags usage,
                         std::vector<std::uint32_t> families = {});

  // ---- recorded into the host's command buffer, with the host's own barriers ----
  void write_rows(VkCommandBuffer commands, const HostBuffer& into, std::uint32_t seed,
                  std::uint32_t rows);  // x0 .. x3, y
  void fill(VkCommandBuffer commands, const HostBuffer& into, std::uint32_t value, std::uint32_t count);
  void double_and_add_one(VkCommandBuffer commands, const HostBuffer& from,
                          std::uint32_t count);  // into result()
  void draw_points(VkCommandBuffer commands, const HostBuffer& places,
                   std::uint32_t count);                        // into picture()
  void copy(VkCommandBuffer commands, const HostBuffer& from);  // into result(), unchanged

  // Results of completed work.
  std::span<const float> result() const { return {static_cast<const float*>(result_mapped_), kResultFloats}; }
  std::vector<std::uint8_t> picture() const;  // the red of each pixel

 private:
  static constexpr std::uint32_t kResultFloats = 4096;
  struct Memory {
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
  };

  void dispatch(VkCommandBuffer commands, const HostBuffer& shared, std::uint32_t mode, std::uint32_t seed,
                std::uint32_t count);
  std::uint32_t memory_type(std::uint32_t allowed, VkMemoryPropertyFlags wanted) const;
  Memory make_memory(const VkBufferCreateInfo& info, VkMemoryPropertyFlags wanted);
  VkShaderModule make_module(std::span<const std::uint32_t> words);
  void make_compute();
  void make_drawing();

  PlainHost& host_;
  const VolkDeviceTable& vk_;
  VkDevice device_;
  std::vector<Memory> buffers_;
  Memory result_, picture_pixels_;
  void* result_mapped_ = nullptr;
  void* picture_mapped_ = nullptr;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline compute_ = VK_NULL_HANDLE;
  hosts::ColourTarget target_;
  hosts::DrawPipeline drawing_;
  std::vector<std::pair<VkBuffer, VkDescriptorSet>> sets_;
};

// The values that buffer_host.comp writes: exact in float.
inline float number_of(std::uint32_t seed, std::uint32_t index) {
  std::uint32_t state = (seed * 2654435761u + index) * 1664525u + 1013904223u;
  state ^= state >> 15;
  state = state * 2246822519u + 12345u;
  return static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
}

}  // namespace imprint::bridge
