#pragma once
// How to enable a missing feature in an engine that creates the device itself. Sources: Unity's
// IUnityGraphicsVulkanV2, Unreal's IVulkanDynamicRHI, Godot 4's drivers/vulkan, VulkanSceneGraph's
// WindowTraits.

#include <array>
#include <cstddef>
#include <string>

#include "compute/vk/device.h"

namespace imprint::bridge {

enum class Engine : std::size_t { unity, unreal, godot, vulkan_scene_graph };
inline constexpr std::size_t kEngineCount = 4;

// Indexed by Engine. MissingFeature::remedy where the engine does not matter.
std::array<std::string, kEngineCount> engine_remedies(const vk::MissingFeature& missing);

}  // namespace imprint::bridge
