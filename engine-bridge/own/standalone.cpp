#include "engine-bridge/own/standalone.h"

#include "compute/base/text.h"
#include "compute/vk/capabilities/read_capabilities.h"
#include "engine-bridge/own/device_link.h"
#include "engine-bridge/own/own_copy_queue.h"
#include "engine-bridge/own/own_device.h"
#include "engine-bridge/own/own_instance.h"

namespace imprint::bridge {
namespace {

class StandaloneDevice final : public Standalone {
 public:
  Context& context() override { return *context_; }
  Session& session() override { return *session_; }
  DeviceLink* link() override { return link_.get(); }
  const std::string& link_text() const override { return link_text_; }
  std::uint64_t validation_messages() const override { return instance_->validation_messages(); }
  std::string first_validation_message() const override { return instance_->first_validation_message(); }

  // Destroyed from the last to the first.
  std::unique_ptr<OwnInstance> instance_;
  std::unique_ptr<OwnDevice> device_;
  std::unique_ptr<OwnCopyQueue> copies_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<DeviceLink> link_;
  std::string link_text_;
  std::unique_ptr<Session> session_;
};

// The same GPU if it is usable, else one of the same name (two drivers may serve one GPU), else any.
Result<std::size_t> choose_beside(const OwnInstance& instance, const std::vector<Candidate>& list,
                                  const vk::DeviceDescription& host) {
  const GpuIdentity wanted = identify(host);
  if (wanted.known)
    if (const std::size_t same = find(instance, list, wanted.device); same < list.size()) return same;
  const Result<std::size_t> named = choose(list, wanted.name);
  return named ? named : choose(list, {});
}

}  // namespace

Result<std::unique_ptr<Standalone>> Standalone::open(const StandaloneOptions& options) {
  if (options.api_version && options.api_version < VK_API_VERSION_1_1)
    return make_error(ErrorCode::invalid_argument,
                      text("standalone: api_version: found ", vk::version_text(options.api_version),
                           ", expected at least 1.1, or 0 for the highest."));
  auto standalone = std::make_unique<StandaloneDevice>();
  IMPRINT_ASSIGN(standalone->instance_, OwnInstance::create({options.validation, options.optional_features,
                                                             options.api_version, options.options.log}));
  const OwnInstance& instance = *standalone->instance_;
  IMPRINT_ASSIGN(const std::vector<Candidate> list, candidates(instance));
  const Result<std::size_t> chosen =
      options.beside ? choose_beside(instance, list, *options.beside) : choose(list, options.device);
  if (!chosen && options.device == "cpu")
    return make_error(
        ErrorCode::not_found,
        "standalone: device: found 'cpu', expected a Vulkan device. Runtime::create_on_cpu computes "
        "on the CPU without Vulkan, and Context::on_cpu with the bridge's schedule.");
  if (!chosen) return chosen.error();
  const Candidate& candidate = list[*chosen];
  IMPRINT_ASSIGN(const auto setup,
                 DeviceSetup::make(instance, candidate.physical_device, options.optional_features,
                                   options.beside ? link_extensions() : std::vector<const char*>()));
  IMPRINT_ASSIGN(standalone->device_, OwnDevice::create(instance, candidate, *setup, options.copy_queues));

  ContextDescription description;
  description.device = setup->describe(instance, candidate);
  description.device.device = standalone->device_->handle();
  description.options = options.options;
  description.queue.queue = standalone->device_->queue();
  description.queue.family = candidate.queue_family;
  description.queue.single_thread = true;
  description.budget = options.budget;
  const bool has_copy_family = options.copy_queues && candidate.copy_queue_count > 0;
  if (has_copy_family) description.options.memory.families = {candidate.queue_family, candidate.copy_family};
  IMPRINT_ASSIGN(standalone->context_, Context::adopt(description));
  if (Context& context = *standalone->context_;
      options.copy_queues && context.completed_by() == CompletedBy::timeline) {
    IMPRINT_ASSIGN(standalone->copies_,
                   OwnCopyQueue::create(context.device(), static_cast<HostQueue&>(*context.queue()),
                                        has_copy_family ? candidate.copy_family : candidate.queue_family,
                                        standalone->device_->copy_queues()));
    context.runtime().set_copy_queue(standalone->copies_.get());
  }
  if (options.beside) {
    Result<std::unique_ptr<DeviceLink>> link =
        DeviceLink::make(*options.beside, description.device, *standalone->context_);
    if (link) standalone->link_ = std::move(link).value();
    standalone->link_text_ = standalone->link_ ? DeviceLink::kText : link.error().message;
  }
  standalone->session_ =
      std::make_unique<Session>(standalone->context_->runtime(), *standalone->context_->queue());
  return std::unique_ptr<Standalone>(std::move(standalone));
}

Result<std::vector<PhysicalDeviceSummary>> list_devices() {
  IMPRINT_ASSIGN(const auto instance, OwnInstance::create({}));
  IMPRINT_ASSIGN(const std::vector<Candidate> list, candidates(*instance));
  vk::Functions functions;  // of the instance; no device is created
  functions.vkGetPhysicalDeviceProperties2 = instance->vkGetPhysicalDeviceProperties2;
  functions.vkGetPhysicalDeviceFeatures2 = instance->vkGetPhysicalDeviceFeatures2;
  functions.vkGetPhysicalDeviceMemoryProperties = instance->vkGetPhysicalDeviceMemoryProperties;
  functions.vkGetPhysicalDeviceQueueFamilyProperties = instance->vkGetPhysicalDeviceQueueFamilyProperties;
  functions.vkEnumerateDeviceExtensionProperties = instance->vkEnumerateDeviceExtensionProperties;
  functions.vkGetDeviceProcAddr = instance->vkGetDeviceProcAddr;
#define X(name)    \
  functions.name = \
      reinterpret_cast<PFN_##name>(instance->get_instance_proc_addr()(instance->handle(), #name));
  IMPRINT_VK_OPTIONAL_INSTANCE_FUNCTIONS(X)
#undef X

  std::vector<PhysicalDeviceSummary> summaries;
  for (std::size_t i = 0; i < list.size(); ++i) {
    PhysicalDeviceSummary summary;
    summary.index = static_cast<std::uint32_t>(i);
    summary.name = list[i].properties.deviceName;
    summary.compute_queue_count = list[i].compute_queue_count;
    if (list[i].usable()) {
      IMPRINT_ASSIGN(const auto setup, DeviceSetup::make(*instance, list[i].physical_device, true));
      IMPRINT_ASSIGN(vk::CapabilityReport report,
                     vk::read_capabilities(setup->describe(*instance, list[i]), functions));
      summary.capabilities = std::move(report.capabilities);
      summary.driver = summary.capabilities.driver_name;
    } else {
      summary.capabilities.api_version = list[i].properties.apiVersion;
      summary.capabilities.device_type = list[i].properties.deviceType;
    }
    VkPhysicalDeviceMemoryProperties memory{};
    instance->vkGetPhysicalDeviceMemoryProperties(list[i].physical_device, &memory);
    for (std::uint32_t heap = 0; heap < memory.memoryHeapCount; ++heap) {
      if (memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
        summary.device_memory_bytes += memory.memoryHeaps[heap].size;
    }
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace imprint::bridge
