#pragma once
// Implementation of Runtime, for programs: staging uploads, command buffers, storage of variables.

#include <atomic>
#include <deque>
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

// Outlives the runtime, for variables that outlive it: `runtime` is null once the runtime is gone.
struct RuntimeLink {
  std::mutex mutex;
  RuntimeImpl* runtime = nullptr;
};

// A variable's memory. When the last handle to the variable goes, it is retired after the newest ticket.
class DeviceVariable : public tensor::VariableStorage {
 public:
  DeviceVariable(std::shared_ptr<RuntimeLink> link, vk::Allocation allocation)
      : link_(std::move(link)), allocation_(allocation) {}
  DeviceVariable(std::shared_ptr<RuntimeLink> link, const BufferRange& borrowed);
  ~DeviceVariable() override;
  const vk::Allocation& allocation() const { return allocation_; }
  const RuntimeLink* link() const { return link_.get(); }
  const std::optional<BufferRange>& borrowed() const { return borrowed_; }  // none: Imprint owns the memory

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
  Result<> open();

  vk::Device& device() { return device_; }
  bool on_cpu() const override { return false; }
  const Commands& barrier() const override { return barrier_; }
  Result<> place(const Variable& variable, bool yields) override;
  Result<> place_together(std::span<const Variable> variables) override;
  Result<> displace(const Variable& variable) override;
  Result<> place_in(const Variable& variable, const BufferRange& range) override;
  Result<> write(const Variable& variable, std::span<const std::byte> bytes) override;
  Result<> write(const Variable& variable, SharedBytes bytes) override;
  Result<> write_zeros(const Variable& variable) override;
  Result<Commands> take_uploads(std::uint64_t most) override;
  void put_back_uploads(const Commands& commands) override;
  bool has_uploads() const override;
  Result<std::unique_ptr<StateReadback>> read(std::span<const Variable> variables, bool yields) override;
  Result<std::unique_ptr<StateCopy>> copy(std::span<const Variable> variables) override;
  void set_variants(std::shared_ptr<const VariantTable> table) override;
  std::shared_ptr<const VariantTable> variants() const override;
  void set_tuner(std::shared_ptr<VariantTuner> tuner) override;
  void set_copy_queue(CopyQueue* copies) override { copies_ = copies; }

  // ---- for programs ----
  CopyQueue* copy_queue() const { return copies_; }
  std::shared_ptr<VariantTuner> tuner() const;
  Result<> place(tensor::VariableState& variable, bool yields = false);
  Result<> settle(tensor::VariableState& variable,
                  std::shared_ptr<DeviceVariable> storage);  // with its initial content
  // Queues bytes for a range of device memory; copies them at once.
  Result<> upload(const vk::Allocation& target, std::span<const std::byte> bytes);
  // Keeps them where more than a ring is queued already.
  Result<> upload(const vk::Allocation& target, SharedBytes bytes);
  // Records the same commands at both levels; they may be resubmitted while pending. Call `release` when the
  // GPU is done with them.
  Result<Commands> record(const std::function<void(VkCommandBuffer)>& body);
  void release(const Commands& commands);  // frees at once
  void retire(const Commands& commands);   // frees after the newest ticket
  // Frees memory after the newest ticket; drops uploads that were queued for it.
  void retire(const vk::Allocation& allocation);
  void forget_uploads(const vk::Allocation& target);

 private:
  // Without staging and source: zeros.
  struct Upload {
    vk::Allocation staging, target;
    SharedBytes source;  // not staged yet
  };
  // The result of one take_uploads. Its owner frees it once the GPU is done.
  struct Batch {
    std::vector<Upload> uploads;
    Commands commands;
    std::atomic<bool> put_back{false};  // nothing to free here: the uploads are queued again
  };

  // A variable's memory; longer than a descriptor binds if that is its size.
  Result<vk::Allocation> device_memory(std::uint64_t size, bool yields);
  void queue(Upload upload);
  // at_once: copies the bytes to staging memory.
  Result<> upload(const vk::Allocation& target, const SharedBytes& bytes, bool at_once);
  std::uint64_t room_to_stage() const;  // bytes that the ring has left
  Result<vk::Allocation> staged(std::span<const std::byte> bytes);
  // Moves uploads out of the queue. most: bytes of their staging. The caller holds upload_mutex_.
  Result<std::vector<Upload>> take_some(std::uint64_t most);
  // the placed variable's range; `bytes` must be its size
  Result<vk::Allocation> write_target(const Variable& variable, std::size_t bytes);

  vk::Device& device_;
  CopyQueue* copies_ = nullptr;
  std::shared_ptr<RuntimeLink> link_ = std::make_shared<RuntimeLink>();
  VkCommandPool command_pool_ = VK_NULL_HANDLE;
  mutable std::mutex pool_mutex_;
  mutable std::mutex upload_mutex_;
  std::deque<Upload> uploads_;
  std::uint64_t staged_bytes_ = 0;  // in uploads_
  std::weak_ptr<Batch> taken_;      // the newest
  Commands barrier_;
  mutable std::mutex variants_mutex_;
  std::shared_ptr<const VariantTable> variants_;
  std::shared_ptr<VariantTuner> tuner_;
};

}  // namespace imprint::program
