// The installed adapter for plain Vulkan, as plugin/docs/engines.md names it.

#include <volk.h>

#include <imprint/adapters/vulkan.h>
#include <imprint/imprint.hpp>

int main() {
  const imprint::adapters::VulkanGuest guest;
  return guest.record_only(3).queue.family == 3 ? 0 : 1;
}
