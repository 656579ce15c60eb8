#pragma once
// The validation checks that hosts turn on beside core and thread safety, and the best-practice advice that
// Imprint does not follow.

#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace imprint::hosts {

inline constexpr VkValidationFeatureEnableEXT kChecks[] = {
    VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
    VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT};
inline constexpr VkValidationFeaturesEXT kValidation{
    VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT, nullptr, std::size(kChecks), kChecks, 0, nullptr};

struct Advice {
  std::string_view id;
  const char* why_not;
};
inline constexpr Advice kAdviceNotTaken[] = {
    {"UNASSIGNED-BestPractices-vkBeginCommandBuffer-simultaneous-use",
     "a program is recorded once and replayed, and its barriers lie between many runs: a run may begin while "
     "the one before is in flight"},
    {"UNASSIGNED-BestPractices-vkAllocateMemory-small-allocation",
     "a buffer that Imprint shares with the host has its own memory, however small: so the buffer is "
     "given back, and may be exported"},
    {"UNASSIGNED-BestPractices-vkBindMemory-small-dedicated-allocation", "the same"},
    {"UNASSIGNED-BestPractices-SpirvDeprecated_WorkgroupSize",
     "glslang writes this built-in into every compute shader; LocalSizeId instead needs "
     "VK_KHR_maintenance4, and the baseline is Vulkan 1.1"},
};

// Whether a message is advice that Imprint deliberately does not take. Any other message fails a test.
inline bool is_explained(const VkDebugUtilsMessengerCallbackDataEXT& message) {
  const std::string_view id = message.pMessageIdName ? message.pMessageIdName : "";
  return std::ranges::find(kAdviceNotTaken, id, &Advice::id) != std::end(kAdviceNotTaken);
}

}  // namespace imprint::hosts
