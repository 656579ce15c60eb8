// Device::adopt checks the description, reads the capabilities and creates Imprint's objects on the device.

#include <atomic>
#include <optional>
#include <utility>

#include "compute/base/text.h"
#include "compute/vk/capabilities/read_capabilities.h"
#include "compute/vk/device.h"
#include "compute/vk/memory/block_pool.h"
#include "compute/vk/pipelines/compiling_store.h"

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
        missing_features_(std::move(report.missing_features)),
        options_(options) {
    if (options.ignore_16bit_storage) capabilities_.storage_16bit = false;
    if (const std::uint64_t range = options.storage_buffer_range; range > 0)
      capabilities_.max_storage_buffer_range =
          std::min<std::uint64_t>(capabilities_.max_storage_buffer_range, range);
    if (description.allocation_callbacks) callbacks_ = *description.allocation_callbacks;
    memory_ = create_block_pool(*this, options_.memory);
  }

  ~AdoptedDevice() override {
    completion_.reset();  // retired objects may use the pool and the pipelines
    pipelines_.reset();
    memory_.reset();
  }

  Result<> create_pipelines(VkPipelineCache host_cache) {
    IMPRINT_ASSIGN(pipelines_, create_compiling_store(*this, host_cache));
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
  const std::vector<MissingFeature>& missing_features() const override { return missing_features_; }
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
  std::vector<MissingFeature> missing_features_;
  DeviceOptions options_;
  Counters counters_;
  std::atomic<bool> lost_{false};
  std::unique_ptr<MemoryPool> memory_;
  std::unique_ptr<PipelineStore> pipelines_;
  std::unique_ptr<Completion> completion_ = std::make_unique<Completion>();
};

Error missing_field(const char* field) {
  return make_error(ErrorCode::invalid_argument, text(field, ": found null, expected the host's. Pass it."));
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

}  // namespace imprint::vk
