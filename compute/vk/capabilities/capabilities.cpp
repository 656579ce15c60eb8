#include "compute/vk/capabilities/capabilities.h"

#include "compute/base/text.h"

namespace imprint::vk {

std::string version_text(std::uint32_t version) {
  return text(VK_API_VERSION_MAJOR(version), ".", VK_API_VERSION_MINOR(version));
}

}  // namespace imprint::vk
