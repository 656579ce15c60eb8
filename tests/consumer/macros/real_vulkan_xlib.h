/* Vulkan's header with Xlib's surfaces: it includes Xlib. */
#pragma once

#define VK_USE_PLATFORM_XLIB_KHR
#include <vulkan/vulkan.h>
