// The C++ coat, after Vulkan's header.
#include <vulkan/vulkan_core.h>
//
#include <imprint/imprint.hpp>

static_assert(sizeof(imp_header) == 16);
