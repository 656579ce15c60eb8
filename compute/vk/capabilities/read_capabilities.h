#pragma once
// Reads what a device offers Imprint: what its host declared and the physical device supports (R1).

#include <vector>

#include "compute/base/result.h"
#include "compute/vk/capabilities/capabilities.h"
#include "compute/vk/capabilities/missing_feature.h"
#include "compute/vk/device_options.h"
#include "compute/vk/functions.h"

namespace imprint::vk {

struct CapabilityReport {
  Capabilities capabilities;
  std::vector<MissingFeature> missing_features;
};

// Errors: unsupported (api_version below 1.1). Does not call the driver.
Result<> check_declared_version(const DeviceDescription& description);

// Reads the description and queries the physical device; enables nothing. Errors: invalid_argument (a null
// extension name, a features chain that vkCreateDevice would not take, a queue family that does not exist),
// unsupported (a version below 1.1, a queue family without compute).
Result<CapabilityReport> read_capabilities(const DeviceDescription& description, const Functions& functions);

}  // namespace imprint::vk
