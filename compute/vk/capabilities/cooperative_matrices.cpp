#include "compute/vk/capabilities/cooperative_matrices.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "compute/vk/capabilities/newer_vulkan.h"

namespace imprint::vk {
namespace {

template <class Properties>
std::vector<Properties> enumerate(VkPhysicalDevice physical_device,
                                  VkResult(VKAPI_PTR* ask)(VkPhysicalDevice, std::uint32_t*, Properties*),
                                  VkStructureType type) {
  std::uint32_t count = 0;
  if (!ask || ask(physical_device, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<Properties> list(count);
  for (Properties& one : list) one.sType = type;
  if (ask(physical_device, &count, list.data()) < 0) return {};
  list.resize(std::min<std::size_t>(count, list.size()));
  return list;
}

// Whether the device lists what kernels use: subgroup matrices of 16 x 16 x 16 float16. result: the member
// that holds the type of the sums.
template <class Properties>
bool has_subgroup_matrices(const std::vector<Properties>& list, VkComponentTypeKHR Properties::*result,
                           VkComponentTypeKHR sums) {
  return std::ranges::any_of(list, [&](const Properties& one) {
    return one.scope == VK_SCOPE_SUBGROUP_KHR && one.MSize == 16 && one.NSize == 16 && one.KSize == 16 &&
           one.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && one.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
           one.CType == sums && one.*result == sums;
  });
}

bool has_matrices_nv(VkPhysicalDevice physical_device, const Functions& functions) {
  const auto list = enumerate(physical_device, functions.vkGetPhysicalDeviceCooperativeMatrixPropertiesNV,
                              VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV);
  return has_subgroup_matrices(list, &VkCooperativeMatrixPropertiesNV::DType, VK_COMPONENT_TYPE_FLOAT32_KHR);
}

// KHR lists sums in float16 as a separate type.
bool has_matrices_khr(VkPhysicalDevice physical_device, const Functions& functions) {
  const auto list = enumerate(physical_device, functions.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR,
                              VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR);
  const auto sums_in = [&](VkComponentTypeKHR type) {
    return has_subgroup_matrices(list, &VkCooperativeMatrixPropertiesKHR::ResultType, type);
  };
  return sums_in(VK_COMPONENT_TYPE_FLOAT32_KHR) && sums_in(VK_COMPONENT_TYPE_FLOAT16_KHR);
}

bool has_workgroup_extents(VkPhysicalDevice physical_device, const Functions& functions) {
  VkPhysicalDeviceCooperativeMatrix2PropertiesNV most{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &most};
  functions.vkGetPhysicalDeviceProperties2(physical_device, &properties);
  return most.cooperativeMatrixWorkgroupScopeMaxWorkgroupSize >= 256 &&
         most.cooperativeMatrixFlexibleDimensionsMaxDimension >= 256;
}

// Workgroup matrices whose extents are multiples of 64 x 64 x 32, at most 256.
bool has_workgroup_matrices(VkPhysicalDevice physical_device, const Functions& functions) {
  const auto list =
      enumerate(physical_device, functions.vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV,
                VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV);
  const auto of = [&](std::uint32_t invocations) {
    return std::ranges::any_of(list, [&](const VkCooperativeMatrixFlexibleDimensionsPropertiesNV& one) {
      const bool divides = one.MGranularity > 0 && one.NGranularity > 0 && one.KGranularity > 0 &&
                           64 % one.MGranularity == 0 && 64 % one.NGranularity == 0 &&
                           32 % one.KGranularity == 0;
      return divides && one.scope == VK_SCOPE_WORKGROUP_KHR && one.workgroupInvocations == invocations &&
             one.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && one.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
             one.CType == VK_COMPONENT_TYPE_FLOAT32_KHR && one.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR;
    });
  };
  return of(128) && of(256);
}

}  // namespace

void keep_usable_matrices(VkPhysicalDevice physical_device, const Functions& functions,
                          const Capabilities& declared, Capabilities& found) {
  // A validation layer older than workgroup matrices reports the struct of their limits as an error, so the
  // limits are read only where the host declared the feature.
  found.cooperative_matrix_nv = found.cooperative_matrix_nv && has_matrices_nv(physical_device, functions);
  found.cooperative_matrix_khr = found.cooperative_matrix_khr && has_matrices_khr(physical_device, functions);
  found.cooperative_matrix2_nv =
      found.cooperative_matrix2_nv && has_workgroup_matrices(physical_device, functions) &&
      (!declared.cooperative_matrix2_nv || has_workgroup_extents(physical_device, functions));
}

}  // namespace imprint::vk
