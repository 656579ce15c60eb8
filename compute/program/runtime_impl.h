#pragma once
// The inside of Runtime, for programs: staging uploads, command buffers, storage of variables.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "compute/program/runtime.h"
#include "compute/vk/barrier.h"
#include "compute/vk/device.h"
#include "compute/vk/handle.h"

namespace imprint::program {

class RuntimeImpl;

// What outlives the runtime for the sake of variables that do: null once the runtime is gone.
struct RuntimeLink {
  std::mutex mutex;
  RuntimeImpl* runtime = nullptr;
};

// A variable's memory. Retired behind the newest ticket when the last handle to the variable goes.
class DeviceVariable : public tensor::VariableStorage {
 public:
  DeviceVariable(std::shared_ptr<RuntimeLink> link, vk::Allocation allocation)
      : link_(std::move(link)), allocation_(allocation) {}
  DeviceVariable(std::shared_ptr<RuntimeLink> link, const BufferRange& borrowed);
  ~DeviceVariable() override;
  const vk::Allocation& allocation() const { return allocation_; }
  const RuntimeLink* link() const { return link_.get(); }
  const std::optional<BufferRange>& borrowed() const { return borrowed_; }  // none: the memory is ours

 private:
  std::shared_ptr<RuntimeLink> link_;
  vk::Allocation allocation_;
  std::optional<BufferRange> borrowed_;
};

// A global memory barrier between compute or transfer work before and after.
void global_barrier(const vk::Functions& functions, VkCommandBuffer commands, VkPipelineStageFlags after,
                    VkPipelineStageFlags before);
using vk::kWorkStages;

class RuntimeImpl : public Runtime {
 public:
  explicit RuntimeImpl(vk::Device& device) : device_(device) {}
  ~RuntimeImpl() override;
  Status open();

  vk::Device& device() { return device_; }
  bool on_cpu() const override { return false; }
  const Commands& barrier() const override { return barrier_; }
  Status place(const Variable& variable, bool yields) override;
  Status place_together(std::span<const Variable> variables) override;
  Status displace(const Variable& variable) override;
  Status place_in(const Variable& variable, const BufferRange& range) override;
  Status write(const Variable& variable, std::span<const std::byte> bytes) override;
  Status write_zeros(const Variable& variable) override;
  Result<Commands> take_uploads() override;
  void put_back_uploads(const Commands& commands) override;
  bool has_uploads() const override;
  Result<std::unique_ptr<StateReadback>> read(std::span<const Variable> variables, bool yields) override;
  void set_variants(std::shared_ptr<const VariantTable> table) override;
  std::shared_ptr<const VariantTable> variants() const override;
  void set_tuner(std::shared_ptr<VariantTuner> tuner) override;

  // ---- for programs ----
  std::shared_ptr<VariantTuner> tuner() const;
  Status place(tensor::VariableState& variable, bool yields = false);
  Status settle(tensor::VariableState& variable,
                std::shared_ptr<DeviceVariable> storage);  // with its initial content
  // Queues bytes for a range of device memory; copied at once.
  Status upload(const vk::Allocation& target, std::span<const std::byte> bytes);
  // Records the same commands at both levels, resubmittable while pending. `release` them when the GPU is
  // done.
  Result<Commands> record(const std::function<void(VkCommandBuffer)>& body);
  void release(const Commands& commands);  // at once
  void retire(const Commands& commands);   // behind the newest ticket
  // Frees memory behind the newest ticket; what was still to be uploaded there is forgotten.
  void retire(const vk::Allocation& allocation);
  void forget_uploads(const vk::Allocation& target);

 private:
  struct Upload {
    vk::Allocation staging, target;
  };  // without staging: zeros
  // What one take_uploads gave. Owned by what frees it once the GPU is done.
  struct Batch {
    std::vector<Upload> uploads;
    Commands commands;
    std::atomic<bool> put_back{false};  // nothing to free here: it waits again
  };

  Status queue(const vk::Allocation& staging, const vk::Allocation& target);
  Result<vk::Allocation> write_target(const Variable& variable);  // placed; of as many bytes as it has

  vk::Device& device_;
  std::shared_ptr<RuntimeLink> link_ = std::make_shared<RuntimeLink>();
  VkCommandPool command_pool_ = VK_NULL_HANDLE;
  mutable std::mutex pool_mutex_;
  mutable std::mutex upload_mutex_;
  std::vector<Upload> uploads_;
  std::weak_ptr<Batch> taken_;  // the newest
  Commands barrier_;
  mutable std::mutex variants_mutex_;
  std::shared_ptr<const VariantTable> variants_;
  std::shared_ptr<VariantTuner> tuner_;
};

}  // namespace imprint::program
