// What a context has to work with, as text and as structs.

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

}  // namespace

imp_result IMP_CALL context_report(imp_context context, char* buffer, size_t* size) {
  return with_context(
      context, Tag::create, "context_report",
      [&](ContextEntry& entry) -> Status {
        IMPRINT_CHECK(check_pointer("context_report", "size", size));
        const std::string report = entry.world->report();
        if (buffer && *size < report.size() + 1)
          return make_error(ErrorCode::invalid_argument,
                            "context_report: the buffer has " + std::to_string(*size) +
                                " bytes; the text needs " + std::to_string(report.size() + 1));
        *size = report.size() + 1;
        if (buffer) std::memcpy(buffer, report.c_str(), report.size() + 1);
        return {};
      },
      AfterLoss::serves);
}

imp_result IMP_CALL context_get_report(imp_context context, imp_report* report) {
  return with_context(
      context, Tag::create, "context_get_report",
      [&](ContextEntry& entry) -> Status {
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
          filled.loss_count = static_cast<std::uint32_t>(bridge.device().missing_features().size());
        });
        return {};
      },
      AfterLoss::serves);
}

imp_result IMP_CALL context_get_loss(imp_context context, uint32_t index, imp_loss* loss) {
  return with_context(
      context, Tag::create, "context_get_loss",
      [&](ContextEntry& entry) -> Status {
        IMPRINT_CHECK(check_filled_struct("context_get_loss", "loss", loss));
        vk::Device* device = entry.world->context().vulkan();
        const std::span<const vk::MissingFeature> losses =
            device ? std::span<const vk::MissingFeature>(device->missing_features())
                   : std::span<const vk::MissingFeature>();
        if (index >= losses.size())
          return make_error(ErrorCode::not_found, "context_get_loss: index is " + std::to_string(index) +
                                                      "; there are " + std::to_string(losses.size()) +
                                                      " losses");
        if (entry.remedies.empty())
          for (const vk::MissingFeature& one : losses) entry.remedies.push_back(bridge::engine_remedies(one));
        const EngineRemedies& remedies = entry.remedies[index];
        const auto remedy = [&](bridge::Engine engine) {
          return remedies[static_cast<std::size_t>(engine)].c_str();
        };
        fill_struct(loss, [&](imp_loss& filled) {
          filled.item = losses[index].item.c_str();
          filled.cause = losses[index].cause.c_str();
          filled.cost = losses[index].cost.c_str();
          filled.remedy = losses[index].remedy.c_str();
          filled.unity = remedy(bridge::Engine::unity);
          filled.unreal = remedy(bridge::Engine::unreal);
          filled.godot = remedy(bridge::Engine::godot);
          filled.vulkan_scene_graph = remedy(bridge::Engine::vulkan_scene_graph);
        });
        return {};
      },
      AfterLoss::serves);
}

}  // namespace imprint::abi
