#ifndef IMPRINT_SAMPLES_ADAPTERS_GODOT_H_
#define IMPRINT_SAMPLES_ADAPTERS_GODOT_H_
// Godot 4: Imprint in a GDExtension (godot-cpp). WRITTEN AGAINST THE INTERFACE
// (RenderingDevice::get_driver_resource), NOT RUN; tests/hosts has a device like Godot's own.
//
// Godot has no command buffer to record into, so Imprint submits: on the queue that Godot draws with, between
// Godot's own submissions, which is the render thread. Make every call of a frame (frame_begin .. frame_end)
// in one Callable given to RenderingServer::call_on_render_thread, once a frame. Godot has neither timeline
// semaphores nor synchronization2 enabled and gives no loader: pass the vkGetInstanceProcAddr of the loader
// that it uses, such as the one that volk finds. There is no RenderingDevice with the compatibility renderer
// or headless; take context_create_standalone there.

#include <godot_cpp/classes/rendering_device.hpp>

#include "enabled.h"

namespace imprint::adapters {

inline imp_vk_device_info describe_godot(godot::RenderingDevice& rendering, imp_get_instance_proc_addr loader,
                                         const Enabled& enabled = {}) {
  using godot::RenderingDevice;
  const auto resource = [&](RenderingDevice::DriverResource which) {
    return rendering.get_driver_resource(which, godot::RID(), 0);
  };
  imp_vk_device_info info = begin_description(enabled);
  info.get_instance_proc_addr = loader;
  info.instance = reinterpret_cast<VkInstance>(resource(RenderingDevice::DRIVER_RESOURCE_TOPMOST_OBJECT));
  info.physical_device =
      reinterpret_cast<VkPhysicalDevice>(resource(RenderingDevice::DRIVER_RESOURCE_PHYSICAL_DEVICE));
  info.device = reinterpret_cast<VkDevice>(resource(RenderingDevice::DRIVER_RESOURCE_LOGICAL_DEVICE));
  info.queue.queue = reinterpret_cast<VkQueue>(resource(RenderingDevice::DRIVER_RESOURCE_COMMAND_QUEUE));
  info.queue.family = static_cast<std::uint32_t>(resource(RenderingDevice::DRIVER_RESOURCE_QUEUE_FAMILY));
  info.queue.access =
      IMP_QUEUE_SINGLE_THREAD;  // what is above: the frame's calls are made where Godot submits
  return info;
}

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_GODOT_H_
