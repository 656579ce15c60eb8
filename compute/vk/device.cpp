#include "compute/vk/device.h"

#include <optional>
#include <utility>

#include "compute/vk/capabilities.h"

namespace imprint::vk {
namespace {

class AdoptedDevice final : public Device {
 public:
  AdoptedDevice(const DeviceDescription& description, const DeviceOptions& options,
                const Functions& functions, CapabilityReport report)
      : functions_(functions),
        handle_(description.device),
        physical_device_(description.physical_device),
        queue_family_(description.queue_family),
        capabilities_(std::move(report.capabilities)),
        losses_(std::move(report.losses)),
        options_(options) {
    if (description.allocation_callbacks) callbacks_ = *description.allocation_callbacks;
    memory_ = MemoryPool::create(*this, options_.memory);
  }

  ~AdoptedDevice() override {
    completion_.reset();  // what was retired may use the pool and the pipelines
    pipelines_.reset();
    memory_.reset();
  }

  Status create_pipelines(VkPipelineCache host_cache) {
    IMPRINT_ASSIGN(pipelines_, PipelineStore::create(*this, host_cache));
    return {};
  }

  const Functions& functions() const override { return functions_; }
  VkDevice handle() const override { return handle_; }
  VkPhysicalDevice physical_device() const override { return physical_device_; }
  const VkAllocationCallbacks* allocation_callbacks() const override {
    return callbacks_ ? &*callbacks_ : nullptr;
  }
  std::uint32_t queue_family() const override { return queue_family_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const std::vector<CapabilityLoss>& losses() const override { return losses_; }
  const DeviceOptions& options() const override { return options_; }
  MemoryPool& memory() override { return *memory_; }
  PipelineStore& pipelines() override { return *pipelines_; }
  Counters& counters() override { return counters_; }

  Completion& completion() override { return *completion_; }
  Ticket last_ticket() const override { return completion_->last(); }
  bool is_complete(Ticket ticket) override {
    if (ticket <= completion_->completed_through()) return true;
    return !lost() && ticket <= completion_->poll();
  }
  void retire(Ticket ticket, std::function<void()> destroy) override {
    completion_->retire(ticket, std::move(destroy));
  }
  void collect() override {
    if (!lost()) completion_->poll();
    completion_->collect();
  }

  void mark_lost() override { lost_.store(true, std::memory_order_relaxed); }
  bool lost() const override { return lost_.load(std::memory_order_relaxed); }

 private:
  Functions functions_;
  VkDevice handle_;
  VkPhysicalDevice physical_device_;
  std::optional<VkAllocationCallbacks> callbacks_;
  std::uint32_t queue_family_;
  Capabilities capabilities_;
  std::vector<CapabilityLoss> losses_;
  DeviceOptions options_;
  Counters counters_;
  std::atomic<bool> lost_{false};
  std::unique_ptr<MemoryPool> memory_;
  std::unique_ptr<PipelineStore> pipelines_;
  std::unique_ptr<Completion> completion_ = std::make_unique<Completion>();
};

const char* result_name(VkResult result) {
  switch (result) {
#define NAME(code) \
  case code:       \
    return #code
    NAME(VK_NOT_READY);
    NAME(VK_TIMEOUT);
    NAME(VK_INCOMPLETE);
    NAME(VK_ERROR_OUT_OF_HOST_MEMORY);
    NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY);
    NAME(VK_ERROR_INITIALIZATION_FAILED);
    NAME(VK_ERROR_DEVICE_LOST);
    NAME(VK_ERROR_MEMORY_MAP_FAILED);
    NAME(VK_ERROR_FEATURE_NOT_PRESENT);
    NAME(VK_ERROR_TOO_MANY_OBJECTS);
    NAME(VK_ERROR_FRAGMENTED_POOL);
    NAME(VK_ERROR_OUT_OF_POOL_MEMORY);
    NAME(VK_ERROR_FRAGMENTATION);
    NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE);
    NAME(VK_ERROR_INVALID_SHADER_NV);
    NAME(VK_PIPELINE_COMPILE_REQUIRED);
    NAME(VK_ERROR_UNKNOWN);
#undef NAME
    default:
      return nullptr;
  }
}

ErrorCode error_code_of(VkResult result) {
  switch (result) {
    case VK_NOT_READY:
    case VK_TIMEOUT:
      return ErrorCode::not_ready;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_MEMORY_MAP_FAILED:
      return ErrorCode::out_of_host_memory;
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTATION:
      return ErrorCode::out_of_device_memory;
    case VK_ERROR_DEVICE_LOST:
      return ErrorCode::device_lost;
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::internal;
  }
}

Error missing_field(const char* field) {
  return make_error(ErrorCode::invalid_argument, std::string("the device description has no ") + field);
}

}  // namespace

Result<std::unique_ptr<Device>> Device::adopt(const DeviceDescription& description,
                                              const DeviceOptions& options) {
  if (!description.get_instance_proc_addr) return missing_field("get_instance_proc_addr");
  if (!description.instance) return missing_field("instance");
  if (!description.physical_device) return missing_field("physical_device");
  if (!description.device) return missing_field("device");
  IMPRINT_CHECK(check_declared_version(description));

  IMPRINT_ASSIGN(Functions functions, load_functions(description.get_instance_proc_addr, description.instance,
                                                     description.device));
  IMPRINT_ASSIGN(CapabilityReport report, read_capabilities(description, functions));
  drop_undeclared(functions, report.capabilities);
  auto device = std::make_unique<AdoptedDevice>(description, options, functions, std::move(report));
  IMPRINT_CHECK(device->create_pipelines(description.pipeline_cache));
  return std::unique_ptr<Device>(std::move(device));
}

void set_debug_name(const Device& device, VkObjectType type, std::uint64_t handle, const std::string& name) {
  if (!device.capabilities().debug_utils || device.lost()) return;
  VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT};
  info.objectType = type;
  info.objectHandle = handle;
  info.pObjectName = name.c_str();
  device.functions().vkSetDebugUtilsObjectNameEXT(device.handle(), &info);
}

CommandLabel::CommandLabel(const Functions& functions, VkCommandBuffer commands, const char* name)
    : functions_(functions), commands_(commands) {
  if (!functions.vkCmdBeginDebugUtilsLabelEXT) return;
  VkDebugUtilsLabelEXT label{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT};
  label.pLabelName = name;
  functions.vkCmdBeginDebugUtilsLabelEXT(commands, &label);
}

CommandLabel::~CommandLabel() {
  if (functions_.vkCmdEndDebugUtilsLabelEXT) functions_.vkCmdEndDebugUtilsLabelEXT(commands_);
}

Error result_error(const char* call, VkResult result) {
  const char* name = result_name(result);
  return make_error(error_code_of(result),
                    std::string(call) + ": " + (name ? name : "VkResult " + std::to_string(result)));
}

Error vulkan_error(Device& device, const char* call, VkResult result) {
  if (result == VK_ERROR_DEVICE_LOST) device.mark_lost();
  return result_error(call, result);
}

}  // namespace imprint::vk
