#ifndef IMPRINT_SAMPLES_ADAPTERS_GODOT_H_
#define IMPRINT_SAMPLES_ADAPTERS_GODOT_H_
// Godot 4: Imprint in a GDExtension (godot-cpp). WRITTEN AGAINST THE INTERFACE
// (RenderingDevice::get_driver_resource), NOT RUN; tests/hosts has a device like Godot's own.
//
// Imprint cannot record into a command buffer of Godot. It submits to Godot's drawing queue, between Godot's
// own submissions, on the render thread. Make all calls of a frame (frame_begin .. frame_end) in one Callable
// given to RenderingServer::call_on_render_thread, once per frame. Godot enables neither timeline semaphores
// nor synchronization2, and exposes no loader. Pass the vkGetInstanceProcAddr of the loader that Godot uses,
// for example the one that volk finds. The compatibility renderer and headless mode have no RenderingDevice.
// Use context_create_standalone there.

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
  info.queue.access = IMP_QUEUE_SINGLE_THREAD;  // all calls of a frame run on the thread that submits
  return info;
}

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_GODOT_H_
