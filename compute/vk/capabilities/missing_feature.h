#pragma once
// Optional features that a device lacks: their cost, and how the host can enable them.

#include <cstdint>
#include <span>
#include <string>

namespace imprint::vk {

enum class RemedyKind : std::uint8_t {
  none,            // nothing helps on this device
  declare_less,    // the description declares more than the device has
  raise_version,   // or enable the extension
  enable_feature,  // and its extension, where api_version does not include it
  enable_extension,
  enable_instance_extension,
  other_queue_family,
};

// A line of the adoption report.
struct MissingFeature {
  std::string item;    // "timelineSemaphore", "VK_KHR_synchronization2", ...
  std::string cause;   // "not declared", "declared but not supported by the device"
  std::string cost;    // what is unavailable or slower
  std::string remedy;  // for a host that creates its own device
  RemedyKind kind = RemedyKind::none;
  std::string feature, extension;  // to enable; empty where the remedy is another
  std::uint32_t core_since = 0;    // the version that includes the feature without the extension; 0: none
};

// A feature or extension that Imprint never uses, declared or not.
struct UnusedFeature {
  const char* item;
  const char* reason;
};
std::span<const UnusedFeature> unused_features();

}  // namespace imprint::vk
