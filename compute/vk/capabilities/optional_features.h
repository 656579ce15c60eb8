#pragma once
// The optional features that Imprint uses: where Vulkan declares each, and the cost of not having it.

#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>

#include "compute/vk/capabilities/capabilities.h"
#include "compute/vk/capabilities/missing_feature.h"
#include "compute/vk/functions.h"

namespace imprint::vk {

inline constexpr std::uint32_t kNeverCore = ~0u;  // an extension that no version includes

// A version and extensions: what a host declares, or what a physical device has.
struct FeatureSource {
  std::uint32_t version = 0;
  std::unordered_set<std::string> extensions;
  bool has(const char* extension, std::uint32_t core_since) const {
    return (core_since != kNeverCore && version >= core_since) ||
           (extension && extensions.contains(extension));
  }
};

struct OptionalFeature {
  bool Capabilities::*member;
  const char* feature;  // null: enabling the extension is enough
  const char* extension;
  std::uint32_t core_since;
  const char* cost;  // of not having it
};
std::span<const OptionalFeature> optional_features();

// The features that a features chain sets.
struct ChainFeatures {
  Capabilities usable;     // the source includes their struct
  Capabilities too_early;  // the source's version and extensions do not
};
ChainFeatures read_chain(const void* chain, const FeatureSource& source);
// Checks the rules of vkCreateDevice for the structs that read_chain reads; passes over all others.
// `fields`: the names of the two in messages. Errors: invalid_argument (a struct twice,
// VkPhysicalDeviceFeatures2 beside enabled features, a chain without an end).
struct ChainFields {
  const char* chain;
  const char* enabled_features;
};
Result<> check_chain(const void* chain, const VkPhysicalDeviceFeatures* enabled_features,
                     const ChainFields& fields);
// Sets the features that are extensions alone.
void read_extensions(const FeatureSource& source, Capabilities& found);
// The features that the physical device, with these versions and extensions, supports.
Capabilities supported_features(VkPhysicalDevice physical_device, const Functions& functions,
                                const FeatureSource& device);

// Why a feature is missing.
struct FeatureState {
  bool declared = false, declared_too_early = false, supported = false;
  bool usable = false;  // supported in the form that kernels are written for
};
MissingFeature missing_feature(const OptionalFeature& feature, const FeatureState& state,
                               const FeatureSource& host);

}  // namespace imprint::vk
