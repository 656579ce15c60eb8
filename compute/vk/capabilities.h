#pragma once
// What a device can do for us: what its host declares enabled, and what the physical device supports, both at
// once (R1).

#include <cstdint>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/device.h"

namespace imprint::vk {

// "1.3" of VK_API_VERSION_1_3, as messages and engines name versions.
std::string version_text(std::uint32_t version);

struct CapabilityReport {
  Capabilities capabilities;
  std::vector<CapabilityLoss> losses;
};

// Refuses a version below 1.1, naming the field to raise. Asks nothing of the driver.
Status check_declared_version(const DeviceDescription& description);

// Reads the description and asks the physical device; enables nothing.
// Errors: invalid_argument (a null extension name, a features struct of a foreign type, a queue family that
// does not exist), unsupported (a version below 1.1, a queue family without compute).
Result<CapabilityReport> read_capabilities(const DeviceDescription& description, const Functions& functions);

}  // namespace imprint::vk
