#pragma once
// How a loss of the adoption report is mended in an engine, whose device the game does not make itself.
// Written from the engines' public interfaces: Unity's IUnityGraphicsVulkanV2, Unreal's IVulkanDynamicRHI,
// Godot 4's drivers/vulkan and VulkanSceneGraph's WindowTraits.

#include <array>
#include <cstddef>
#include <string>

#include "compute/vk/device.h"

namespace imprint::bridge {

enum class Engine : std::size_t { unity, unreal, godot, vulkan_scene_graph };
inline constexpr std::size_t kEngineCount = 4;

// What to do in each, [Engine]. Where nothing is particular to an engine it is MissingFeature::remedy.
std::array<std::string, kEngineCount> engine_remedies(const vk::MissingFeature& loss);

}  // namespace imprint::bridge
