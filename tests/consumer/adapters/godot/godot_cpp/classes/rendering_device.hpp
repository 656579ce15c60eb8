#pragma once
// The part of godot-cpp that samples/adapters/godot.h compiles against: names and types only.

#include <cstdint>

namespace godot {

class RID {};

class RenderingDevice {
 public:
  enum DriverResource {
    DRIVER_RESOURCE_LOGICAL_DEVICE = 0,
    DRIVER_RESOURCE_PHYSICAL_DEVICE = 1,
    DRIVER_RESOURCE_TOPMOST_OBJECT = 2,
    DRIVER_RESOURCE_COMMAND_QUEUE = 3,
    DRIVER_RESOURCE_QUEUE_FAMILY = 4,
  };
  std::uint64_t get_driver_resource(DriverResource resource, const RID&, std::uint64_t) {
    return 0x100u + static_cast<std::uint64_t>(resource);
  }
};

}  // namespace godot
