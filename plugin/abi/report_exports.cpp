// The device and queue of a context, as text and as structs.

#include <cstring>
#include <span>

#include "compute/cpu/kernels.h"
#include "plugin/abi/calls.h"
#include "plugin/abi/convert.h"
#include "plugin/abi/exports.h"

namespace imprint::abi {
namespace {

static_assert(static_cast<int>(bridge::CompletedBy::timeline) == IMP_COMPLETED_BY_TIMELINE);
static_assert(static_cast<int>(bridge::CompletedBy::fences) == IMP_COMPLETED_BY_FENCES);
static_assert(static_cast<int>(bridge::CompletedBy::frames) == IMP_COMPLETED_BY_FRAMES);
static_assert(static_cast<int>(bridge::Engine::unity) == 0 &&
              static_cast<int>(bridge::Engine::vulkan_scene_graph) ==
                  IMP_ENGINE_VULKAN_SCENE_GRAPH - IMP_ENGINE_UNITY);

std::span<const vk::MissingFeature> missing_features(ContextEntry& entry) {
  vk::Device* device = entry.world->context().vulkan();
  return device ? std::span<const vk::MissingFeature>(device->missing_features())
                : std::span<const vk::MissingFeature>();
}

Result<const vk::MissingFeature*> find_missing(const char* call, ContextEntry& entry, std::uint32_t index) {
  const std::span<const vk::MissingFeature> missing = missing_features(entry);
  if (index < missing.size()) return &missing[index];
  return make_error(ErrorCode::not_found, text(call, ": index: found ", index, ", expected less than ",
                                               missing.size(), ", the missing_feature_count"));
}

}  // namespace

imp_result IMP_CALL context_get_report_text(imp_context context, char* buffer, size_t* size) {
  return with_context(
      context, Tag::create, "context_get_report_text",
      [&](ContextEntry& entry) -> Result<> {
        IMPRINT_CHECK(check_pointer("context_get_report_text", "size", size));
        const std::string report = entry.world->report();
        if (buffer && *size < report.size() + 1)
          return refuse("context_get_report_text",
                        text("size: found ", *size, ", expected at least ", report.size() + 1, " bytes"));
        *size = report.size() + 1;
        if (buffer) std::memcpy(buffer, report.c_str(), report.size() + 1);
        return {};
      },
      AfterLoss::serves);
}

imp_result IMP_CALL context_get_report(imp_context context, imp_report* report) {
  return with_context(
      context, Tag::create, "context_get_report",
      [&](ContextEntry& entry) -> Result<> {
        IMPRINT_CHECK(check_filled_struct("context_get_report", "report", report));
        bridge::Context& bridge = entry.world->context();
        fill_struct(report, [&](imp_report& filled) {
          filled.submits = bridge.submits();
          filled.completion = static_cast<imp_completion>(bridge.completed_by());
          if (!bridge.vulkan()) {
            filled.device = "CPU";
            filled.driver = cpu::kernels().name;
            return;
          }
          const vk::Capabilities& has = bridge.device().capabilities();
          filled.device = has.device_name.c_str();
          filled.driver = has.driver_name.c_str();
          filled.api_version = has.api_version;
          filled.queue_family = bridge.device().queue_family();
          filled.measures_gpu_time = has.timestamp_valid_bits > 0;
          filled.own_device = entry.world->owns_device();
          filled.tensor_sharing = entry.world->link() ? IMP_TENSORS_ACROSS_DEVICES
                                  : filled.own_device ? IMP_TENSORS_NOT_SHARED
                                                      : IMP_TENSORS_ON_ONE_DEVICE;
          filled.missing_feature_count =
              static_cast<std::uint32_t>(bridge.device().missing_features().size());
        });
        return {};
      },
      AfterLoss::serves);
}

imp_result IMP_CALL context_get_missing_feature(imp_context context, uint32_t index,
                                                imp_missing_feature* feature) {
  constexpr const char* call = "context_get_missing_feature";
  return with_context(
      context, Tag::create, call,
      [&](ContextEntry& entry) -> Result<> {
        IMPRINT_CHECK(check_filled_struct(call, "feature", feature));
        IMPRINT_ASSIGN(const vk::MissingFeature* found, find_missing(call, entry, index));
        fill_struct(feature, [&](imp_missing_feature& filled) {
          filled.item = found->item.c_str();
          filled.cause = found->cause.c_str();
          filled.cost = found->cost.c_str();
        });
        return {};
      },
      AfterLoss::serves);
}

imp_result IMP_CALL missing_feature_remedy(imp_context context, uint32_t index, imp_engine engine,
                                           const char** text) {
  constexpr const char* call = "missing_feature_remedy";
  return with_context(
      context, Tag::create, call,
      [&](ContextEntry& entry) -> Result<> {
        IMPRINT_CHECK(check_pointer(call, "text", text));
        IMPRINT_CHECK(check_enum(call, "engine", engine, IMP_ENGINE_VULKAN_SCENE_GRAPH));
        IMPRINT_ASSIGN(const vk::MissingFeature* found, find_missing(call, entry, index));
        if (engine == IMP_ENGINE_OWN) {
          *text = found->remedy.c_str();
          return {};
        }
        if (entry.remedies.empty())
          for (const vk::MissingFeature& one : missing_features(entry))
            entry.remedies.push_back(bridge::engine_remedies(one));
        *text = entry.remedies[index][number_of(engine) - IMP_ENGINE_UNITY].c_str();
        return {};
      },
      AfterLoss::serves);
}

}  // namespace imprint::abi
