// Questions of a host before it makes its device.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine-bridge/host/requirements.h"
#include "plugin/abi/calls.h"
#include "plugin/abi/convert.h"
#include "plugin/abi/exports.h"

namespace imprint::abi {
namespace {

Result<bridge::DevicePlan> to_plan(const char* call, const imp_vk_plan* plan) {
  IMPRINT_ASSIGN(const imp_vk_plan given, read_struct(call, "plan", plan));
  return bridge::DevicePlan{reinterpret_cast<PFN_vkGetInstanceProcAddr>(given.get_instance_proc_addr),
                            given.instance, given.physical_device, given.api_version};
}

template <std::size_t size>
void put(char (&field)[size], const std::string& text) {
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(field, text.data(), length);
  field[length] = '\0';
}

// Gives the count of the plan's requirements of one kind. Fills `list` with them unless it is null.
// put_one(into, one)
template <class Into, class One, class PutOne>
imp_result list_of_plan(const char* call, const imp_vk_plan* plan, uint32_t* count, Into* list,
                        const char* what, std::vector<One> bridge::Requirements::*kind,
                        const PutOne& put_one) noexcept {
  return guarded([&]() -> imp_result {
    return translate([&]() -> Result<> {
      IMPRINT_CHECK(check_pointer(call, "count", count));
      IMPRINT_ASSIGN(const bridge::DevicePlan checked, to_plan(call, plan));
      IMPRINT_ASSIGN(const bridge::Requirements found, bridge::query_requirements(checked));
      const std::vector<One>& there = found.*kind;
      if (list && *count < there.size())
        return refuse(call, text("count: found ", *count, ", expected room for ", there.size(), " ", what));
      for (std::size_t i = 0; list && i < there.size(); ++i) put_one(list[i], there[i]);
      *count = static_cast<std::uint32_t>(there.size());
      return {};
    }());
  });
}

}  // namespace

imp_result IMP_CALL plan_query_requirements(const imp_vk_plan* plan, uint32_t* count, imp_vk_wish* wishes) {
  return list_of_plan("plan_query_requirements", plan, count, wishes, "wishes", &bridge::Requirements::wishes,
                      [](imp_vk_wish& into, const auto& wish) {
                        put(into.feature, wish.feature);
                        put(into.extension, wish.extension);
                        put(into.cost, wish.cost);
                      });
}

imp_result IMP_CALL plan_query_extra_queues(const imp_vk_plan* plan, uint32_t* count,
                                            imp_vk_extra_queue* queues) {
  return list_of_plan("plan_query_extra_queues", plan, count, queues, "families",
                      &bridge::Requirements::extra_queues, [](imp_vk_extra_queue& into, const auto& family) {
                        into = {family.index, family.queue_count, family.priority};
                      });
}

imp_result IMP_CALL plan_merge_device_create_info(const imp_vk_plan* plan, const void* create_info,
                                                  imp_vk_merged* merged) {
  return guarded([&]() -> imp_result {
    return translate([&]() -> Result<> {
      constexpr const char* call = "plan_merge_device_create_info";
      IMPRINT_CHECK(check_pointer(call, "create_info", create_info));
      IMPRINT_CHECK(check_filled_struct(call, "merged", merged));
      if (merged->owner)
        return refuse(
            call,
            "merged: found a filled one, expected an empty one. Pass it to merged_free first, or make "
            "another with imp_vk_merged_init.");
      IMPRINT_ASSIGN(const bridge::DevicePlan checked, to_plan(call, plan));
      const auto& host = *static_cast<const VkDeviceCreateInfo*>(create_info);
      if (host.sType != VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO)
        return refuse(call, text("create_info.sType: found ", static_cast<std::int32_t>(host.sType),
                                 ", expected VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO"));
      IMPRINT_ASSIGN(std::unique_ptr<bridge::MergedDevice> made, bridge::MergedDevice::make(checked, host));
      fill_struct(merged, [&](imp_vk_merged& filled) {
        filled.create_info = &made->create_info();
        filled.features = made->create_info().pNext;
        filled.device_extension_count = static_cast<std::uint32_t>(made->extensions().size());
        filled.device_extensions = made->extensions().data();
        filled.owner = made.get();
        filled.enabled_features = made->create_info().pEnabledFeatures;
        filled.left_off = made->left_off().c_str();
      });
      (void)made.release();  // merged_free deletes it
      return {};
    }());
  });
}

void IMP_CALL merged_free(imp_vk_merged* merged) {
  if (!merged || !merged->owner) return;
  const std::unique_ptr<bridge::MergedDevice> last(static_cast<bridge::MergedDevice*>(merged->owner));
  imp_vk_merged empty = imp_vk_merged_init();
  empty.header = merged->header;
  write_struct(&empty, kKind<imp_vk_merged>, merged);
}

}  // namespace imprint::abi
