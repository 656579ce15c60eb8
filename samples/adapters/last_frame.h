#ifndef IMPRINT_SAMPLES_ADAPTERS_LAST_FRAME_H_
#define IMPRINT_SAMPLES_ADAPTERS_LAST_FRAME_H_
// The end of a context that records (frame_record), with its saves on disk. Run by tests/hosts.

#include <vulkan/vulkan_core.h>
#include <imprint/imprint.hpp>

#include <utility>

namespace imprint::adapters {
namespace detail {

// One command buffer that is submitted once.
class LastBuffer {
 public:
  LastBuffer(const imp_vk_device_info& device, VkQueue queue) : device_(device), queue_(queue) {
    get_ = reinterpret_cast<PFN_vkGetDeviceProcAddr>(
        device.get_instance_proc_addr(device.instance, "vkGetDeviceProcAddr"));
  }
  LastBuffer(const LastBuffer&) = delete;
  LastBuffer& operator=(const LastBuffer&) = delete;
  ~LastBuffer() {
    if (pool_) load<PFN_vkDestroyCommandPool>("vkDestroyCommandPool")(device_.device, pool_, nullptr);
  }

  VkResult wait_idle() const { return load<PFN_vkDeviceWaitIdle>("vkDeviceWaitIdle")(device_.device); }
  // Null: not enough memory.
  VkCommandBuffer begin() {
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0, 0};
    pool.queueFamilyIndex = device_.queue.family;
    if (load<PFN_vkCreateCommandPool>("vkCreateCommandPool")(device_.device, &pool, nullptr, &pool_))
      return VK_NULL_HANDLE;
    VkCommandBufferAllocateInfo buffer{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool_,
                                       VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    VkCommandBufferBeginInfo once{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                  VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};
    const auto allocate = load<PFN_vkAllocateCommandBuffers>("vkAllocateCommandBuffers");
    if (allocate(device_.device, &buffer, &commands_) ||
        load<PFN_vkBeginCommandBuffer>("vkBeginCommandBuffer")(commands_, &once))
      return VK_NULL_HANDLE;
    return commands_;
  }
  void run() const {
    if (load<PFN_vkEndCommandBuffer>("vkEndCommandBuffer")(commands_)) return;
    VkSubmitInfo submit{
        VK_STRUCTURE_TYPE_SUBMIT_INFO, nullptr, 0, nullptr, nullptr, 1, &commands_, 0, nullptr};
    (void)load<PFN_vkQueueSubmit>("vkQueueSubmit")(queue_, 1, &submit, VK_NULL_HANDLE);
    (void)wait_idle();
  }

 private:
  template <class Function>
  Function load(const char* name) const {
    return reinterpret_cast<Function>(get_(device_.device, name));
  }

  const imp_vk_device_info& device_;
  VkQueue queue_;
  PFN_vkGetDeviceProcAddr get_ = nullptr;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

}  // namespace detail

// Ends `context` before its device goes. Call it while no frame is open and no other thread uses the queue.
// Waits for the device and calls save(), which may call Brain::save. Then submits one more frame with
// FrameScope::everything to `queue`, waits for the GPU and the files, and destroys the context.
// clock: of the frames so far. device: as the context was made with. queue: of its family.
// The context is gone afterwards, whatever fails. The outcome names a save that is not on disk; its text
// stays until this thread's next call.
template <class Save>
game::Outcome close_after_last_frame(game::Context& context, game::Frames& clock,
                                     const imp_vk_device_info& device, VkQueue queue, Save&& save) {
  if (!context) return {context.api(), IMP_OK};
  detail::LastBuffer last(device, queue);
  if (last.wait_idle() == VK_ERROR_DEVICE_LOST) (void)context.notify_device_lost();
  std::forward<Save>(save)();
  if (const VkCommandBuffer commands = last.begin()) {
    {
      game::Frame frame(context, clock.idle());
      frame.record(commands, game::FrameScope::everything);
    }
    last.run();
  }
  const game::Outcome closed = context.close();
  if (closed) return closed;
  const game::Outcome told{context.api(), closed.result(), game::detail::kept_text(closed.message())};
  context.reset();  // gives the save up
  return told;
}

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_LAST_FRAME_H_
