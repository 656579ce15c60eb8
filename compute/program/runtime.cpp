#include "compute/program/runtime.h"

#include <algorithm>
#include <cstring>

#include "compute/graph/schedule/schedule.h"
#include "compute/program/runtime_impl.h"

namespace imprint {

using namespace graph;
using namespace program;
using namespace tensor;

namespace {

constexpr std::uint64_t kTensorAlignment = 256;

class Readback : public StateReadback {
 public:
  explicit Readback(RuntimeImpl& runtime) : runtime_(runtime) {}
  ~Readback() override {
    runtime_.retire(commands_);
    for (const vk::Allocation& allocation : allocations_) runtime_.retire(allocation);
  }
  const Commands& commands() const override { return commands_; }
  std::span<const std::byte> bytes(std::size_t index) const override {
    const vk::Allocation& allocation = allocations_[index];
    return {static_cast<const std::byte*>(allocation.mapped), static_cast<std::size_t>(sizes_[index])};
  }

  RuntimeImpl& runtime_;
  Commands commands_;
  std::vector<vk::Allocation> allocations_;
  std::vector<std::uint64_t> sizes_;
};

class DeviceCopy : public StateCopy {
 public:
  explicit DeviceCopy(RuntimeImpl& runtime) : runtime_(runtime) {}
  ~DeviceCopy() override {
    runtime_.retire(keep_);
    runtime_.retire(put_back_);
    for (const vk::Allocation& allocation : allocations_) runtime_.retire(allocation);
  }
  const Commands& keep() const override { return keep_; }
  const Commands& put_back() const override { return put_back_; }

  RuntimeImpl& runtime_;
  Commands keep_, put_back_;
  std::vector<vk::Allocation> allocations_;
};

VkBufferCopy copy_region(const vk::Allocation& from, const vk::Allocation& to, std::uint64_t size) {
  return {from.offset, to.offset, size};
}

}  // namespace

std::uint64_t buffer_range_alignment(const vk::Capabilities& capabilities) {
  return std::max<std::uint64_t>(4 * kPlaceAlignment, capabilities.min_storage_buffer_offset_alignment);
}

void program::global_barrier(const vk::Functions& functions, VkCommandBuffer commands,
                             VkPipelineStageFlags after, VkPipelineStageFlags before) {
  vk::memory_barrier(functions, commands, vk::our_writes(after), vk::our_accesses(before));
}

DeviceVariable::DeviceVariable(std::shared_ptr<RuntimeLink> link, const BufferRange& borrowed)
    : link_(std::move(link)), borrowed_(borrowed) {
  allocation_.buffer = borrowed.buffer;
  allocation_.offset = allocation_.bound_offset = borrowed.offset;
  allocation_.size = allocation_.bound_size = borrowed.size;
}

DeviceVariable::~DeviceVariable() {
  const std::lock_guard lock(link_->mutex);
  if (!link_->runtime) return;
  if (!borrowed_) {
    link_->runtime->retire(allocation_);
    return;
  }
  link_->runtime->forget_uploads(allocation_);
  vk::Device& device = link_->runtime->device();
  // Releases Imprint's handle after the lock: the last handle may destroy the buffer, and give its memory to
  // the host.
  device.retire(device.last_ticket(), [keep = borrowed_->keep] {});
}

Result<std::unique_ptr<Runtime>> Runtime::create(vk::Device& device) {
  auto runtime = std::make_unique<RuntimeImpl>(device);
  IMPRINT_CHECK(runtime->open());
  return std::unique_ptr<Runtime>(std::move(runtime));
}

Result<> RuntimeImpl::open() {
  link_->runtime = this;
  VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  info.queueFamilyIndex = device_.queue_family();
  const VkResult result = device_.functions().vkCreateCommandPool(
      device_.handle(), &info, device_.allocation_callbacks(), &command_pool_);
  if (result != VK_SUCCESS) return vk::vulkan_error(device_, "vkCreateCommandPool", result);
  IMPRINT_ASSIGN(barrier_, record([&](VkCommandBuffer commands) {
                   global_barrier(device_.functions(), commands, kWorkStages, kWorkStages);
                 }));
  return {};
}

RuntimeImpl::~RuntimeImpl() {
  {
    const std::lock_guard lock(link_->mutex);
    link_->runtime = nullptr;
  }
  for (const Upload& upload : uploads_)
    if (upload.staging) device_.memory().free(upload.staging);
  // Retired commands return to the command pool, so the pool is retired last, after everything issued.
  if (command_pool_ != VK_NULL_HANDLE)
    device_.retire(device_.last_ticket(), [&device = device_, pool = command_pool_] {
      device.functions().vkDestroyCommandPool(device.handle(), pool, device.allocation_callbacks());
    });
}

Result<> RuntimeImpl::place(const Variable& variable, bool yields) {
  if (!variable.state())
    return make_error(ErrorCode::invalid_argument,
                      "place: variable: found an empty one, expected a valid one");
  return place(*variable.state(), yields);
}

Result<> RuntimeImpl::displace(const Variable& variable) {
  if (!variable.ok() || variable.state()->external)
    return make_error(
        ErrorCode::unsupported,
        "displace: variable: found an empty or external one, expected one with Imprint's memory");
  variable.state()->storage.reset();
  return {};
}

Result<> RuntimeImpl::place(VariableState& variable, bool yields) {
  if (variable.storage) {
    const auto* storage = dynamic_cast<const DeviceVariable*>(variable.storage.get());
    if (storage && storage->link() == link_.get()) return {};
    return make_error(
        ErrorCode::invalid_argument,
        "variable '" + variable.name + "': found it on another device. Make one for each device.");
  }
  if (variable.external)
    return make_error(
        ErrorCode::invalid_argument,
        "variable '" + variable.name + "': found an external one without a buffer. Call place_in first.");
  const std::uint64_t size = variable.bytes();
  auto allocated = device_memory(size == 0 ? 4 : size, yields);
  if (!allocated)
    return make_error(allocated.error().code, "variable '" + variable.name + "' " + variable.shape.text() +
                                                  ": " + allocated.error().message);
  const vk::Allocation allocation = *allocated;
  return settle(variable, std::make_shared<DeviceVariable>(link_, allocation));
}

Result<vk::Allocation> RuntimeImpl::device_memory(std::uint64_t size, bool yields) {
  vk::MemoryPool& pool = device_.memory();
  return size > device_.capabilities().max_storage_buffer_range / kTensorAlignment * kTensorAlignment
             ? pool.allocate_long(size, yields)
             : pool.allocate(size, kTensorAlignment, vk::MemoryUse::device, yields);
}

Result<> RuntimeImpl::place_together(std::span<const Variable> variables) {
  std::vector<VariableState*> homeless;
  std::vector<std::uint64_t> sizes;
  for (const Variable& variable : variables) {
    VariableState* state = variable.state().get();
    if (!state)
      return make_error(ErrorCode::invalid_argument,
                        "place_together: variable: found an empty one, expected a valid one");
    if (state->storage || state->external || std::ranges::find(homeless, state) != homeless.end()) continue;
    homeless.push_back(state);
    sizes.push_back(std::max<std::uint64_t>(4, state->bytes()));
  }
  if (homeless.size() > 1) {
    const auto together = device_.memory().allocate_together(sizes, kTensorAlignment, vk::MemoryUse::device);
    // If no range is that long, each variable gets its own place, or an error that says what is missing.
    std::vector<std::shared_ptr<DeviceVariable>> homes;
    if (together)
      for (const vk::Allocation& allocation : *together)
        homes.push_back(std::make_shared<DeviceVariable>(link_, allocation));
    for (std::size_t i = 0; i < homes.size(); ++i) IMPRINT_CHECK(settle(*homeless[i], std::move(homes[i])));
  }
  for (const Variable& variable : variables) IMPRINT_CHECK(place(variable, false));
  return {};
}

Result<> RuntimeImpl::settle(VariableState& variable, std::shared_ptr<DeviceVariable> storage) {
  vk::Allocation whole = storage->allocation();
  whole.size = (whole.size + 3) / 4 * 4;  // the pool allocates whole multiples of 16 bytes
  if (variable.shape.element_count() > 0) IMPRINT_CHECK(upload(whole, variable.initial));
  variable.storage = std::move(storage);
  variable.initial = {};
  return {};
}

Result<> RuntimeImpl::place_in(const Variable& variable, const BufferRange& range) {
  if (!variable.ok())
    return make_error(ErrorCode::invalid_argument,
                      "place_in: variable: found an empty or invalid one, expected a valid one");
  VariableState& state = *variable.state();
  const auto refuse = [&](const std::string& what) {
    return make_error(ErrorCode::invalid_argument,
                      "place_in: variable '" + state.name + "' " + state.shape.text() + ": " + what);
  };
  const vk::Capabilities& capabilities = device_.capabilities();
  const std::uint64_t size = state.bytes();
  if (!state.external) return refuse("found one with its own memory, expected one of Variable::external");
  if (state.storage) return refuse("found one that already has a buffer, expected one without");
  if (!range.buffer) return refuse("buffer: found null, expected a VkBuffer");
  if (size == 0) return refuse("found no elements, expected at least one");
  if (const std::uint64_t step = buffer_range_alignment(capabilities); range.offset % step != 0)
    return refuse("offset: found " + std::to_string(range.offset) + ", expected a multiple of " +
                  std::to_string(step) + " (minStorageBufferOffsetAlignment, at least 16)");
  if (const std::uint64_t least = (size + 3) / 4 * 4; range.size < least)  // kernels access whole words
    return refuse("size: found " + std::to_string(range.size) + " bytes, expected at least " +
                  std::to_string(least));
  if (range.size > capabilities.max_storage_buffer_range)
    return refuse("size: found " + std::to_string(range.size) + " bytes, expected at most " +
                  std::to_string(capabilities.max_storage_buffer_range) +
                  " (maxStorageBufferRange). Split the range between variables.");
  state.storage = std::make_shared<DeviceVariable>(link_, range);
  return {};
}

Result<> RuntimeImpl::write(const Variable& variable, std::span<const std::byte> bytes) {
  IMPRINT_ASSIGN(const vk::Allocation target, write_target(variable, bytes.size()));
  return bytes.empty() ? Result<>() : upload(target, bytes);
}

Result<> RuntimeImpl::write(const Variable& variable, SharedBytes bytes) {
  IMPRINT_ASSIGN(const vk::Allocation target, write_target(variable, bytes.size()));
  return bytes.empty() ? Result<>() : upload(target, std::move(bytes));
}

Result<> RuntimeImpl::write_zeros(const Variable& variable) {
  IMPRINT_ASSIGN(const vk::Allocation target, write_target(variable, variable.bytes()));
  if (target.size % 4 != 0)
    return make_error(ErrorCode::unsupported, "write_zeros to variable '" + variable.name() + "': found " +
                                                  std::to_string(target.size) +
                                                  " bytes, expected a multiple of 4");
  if (target.size > 0) queue({{}, target, {}});
  return {};
}

Result<vk::Allocation> RuntimeImpl::write_target(const Variable& variable, std::size_t bytes) {
  IMPRINT_CHECK(place(variable, false));
  const auto& storage = static_cast<const DeviceVariable&>(*variable.state()->storage);
  if (storage.borrowed() && !storage.borrowed()->copy_target)
    return make_error(ErrorCode::unsupported,
                      "write to variable '" + variable.name() +
                          "': buffer: found a usage without VK_BUFFER_USAGE_TRANSFER_DST_BIT. Declare it.");
  vk::Allocation target = storage.allocation();
  target.size = variable.bytes();  // a borrowed range may be longer
  if (bytes != target.size)
    return make_error(ErrorCode::shape_mismatch,
                      "write to variable '" + variable.name() + "' " + variable.shape().text() + ": found " +
                          std::to_string(bytes) + " bytes, expected " + std::to_string(target.size));
  return target;
}

Result<std::unique_ptr<StateReadback>> RuntimeImpl::read(std::span<const Variable> variables, bool yields) {
  auto readback = std::make_unique<Readback>(*this);
  for (const Variable& variable : variables) {
    IMPRINT_CHECK(place(variable, false));
    if (const auto& borrowed = static_cast<const DeviceVariable&>(*variable.state()->storage).borrowed();
        borrowed && !borrowed->copy_source)
      return make_error(ErrorCode::unsupported,
                        "read of variable '" + variable.name() +
                            "': buffer: found a usage without VK_BUFFER_USAGE_TRANSFER_SRC_BIT. Declare it.");
    const std::uint64_t size = variable.bytes();
    IMPRINT_ASSIGN(
        const vk::Allocation allocation,
        device_.memory().allocate(size == 0 ? 4 : size, kTensorAlignment, vk::MemoryUse::readback, yields));
    readback->allocations_.push_back(allocation);
    readback->sizes_.push_back(size);
  }
  IMPRINT_ASSIGN(
      readback->commands_, record([&](VkCommandBuffer buffer) {
        const vk::Functions& functions = device_.functions();
        const vk::CommandLabel label(functions, buffer, "imprint readback");
        global_barrier(functions, buffer, kWorkStages, VK_PIPELINE_STAGE_TRANSFER_BIT);
        for (std::size_t i = 0; i < variables.size(); ++i) {
          if (readback->sizes_[i] == 0) continue;
          const vk::Allocation& source =
              static_cast<const DeviceVariable*>(variables[i].state()->storage.get())->allocation();
          const VkBufferCopy region = copy_region(source, readback->allocations_[i], readback->sizes_[i]);
          functions.vkCmdCopyBuffer(buffer, source.buffer, readback->allocations_[i].buffer, 1, &region);
        }
        global_barrier(functions, buffer, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT);
      }));
  return std::unique_ptr<StateReadback>(std::move(readback));
}

Result<std::unique_ptr<StateCopy>> RuntimeImpl::copy(std::span<const Variable> variables) {
  auto copy = std::make_unique<DeviceCopy>(*this);
  std::vector<vk::Allocation> sources;
  for (const Variable& variable : variables) {
    const std::uint64_t size = variable.bytes();
    if (size == 0) continue;
    IMPRINT_CHECK(place(variable, false));
    vk::Allocation source = static_cast<const DeviceVariable&>(*variable.state()->storage).allocation();
    source.size = size;
    sources.push_back(source);
    IMPRINT_ASSIGN(const vk::Allocation allocation, device_memory(size, true));
    copy->allocations_.push_back(allocation);
  }
  const auto record_copies = [&](const std::vector<vk::Allocation>& from,
                                 const std::vector<vk::Allocation>& to) {
    return record([&](VkCommandBuffer buffer) {
      const vk::Functions& functions = device_.functions();
      const vk::CommandLabel label(functions, buffer, "imprint copy");
      global_barrier(functions, buffer, kWorkStages, VK_PIPELINE_STAGE_TRANSFER_BIT);
      for (std::size_t i = 0; i < from.size(); ++i) {
        const VkBufferCopy region = copy_region(from[i], to[i], sources[i].size);
        functions.vkCmdCopyBuffer(buffer, from[i].buffer, to[i].buffer, 1, &region);
      }
      global_barrier(functions, buffer, VK_PIPELINE_STAGE_TRANSFER_BIT, kWorkStages);
    });
  };
  IMPRINT_ASSIGN(copy->keep_, record_copies(sources, copy->allocations_));
  IMPRINT_ASSIGN(copy->put_back_, record_copies(copy->allocations_, sources));
  return std::unique_ptr<StateCopy>(std::move(copy));
}

void RuntimeImpl::set_variants(std::shared_ptr<const VariantTable> table) {
  const std::lock_guard lock(variants_mutex_);
  variants_ = std::move(table);
}

std::shared_ptr<const VariantTable> RuntimeImpl::variants() const {
  const std::lock_guard lock(variants_mutex_);
  return variants_;
}

void RuntimeImpl::set_tuner(std::shared_ptr<VariantTuner> tuner) {
  const std::lock_guard lock(variants_mutex_);
  tuner_ = std::move(tuner);
}

std::shared_ptr<VariantTuner> RuntimeImpl::tuner() const {
  const std::lock_guard lock(variants_mutex_);
  return tuner_;
}

Result<Commands> RuntimeImpl::record(const std::function<void(VkCommandBuffer)>& body) {
  const vk::Functions& functions = device_.functions();
  const std::lock_guard lock(pool_mutex_);
  Commands commands;
  for (const VkCommandBufferLevel level :
       {VK_COMMAND_BUFFER_LEVEL_PRIMARY, VK_COMMAND_BUFFER_LEVEL_SECONDARY}) {
    VkCommandBuffer& buffer =
        level == VK_COMMAND_BUFFER_LEVEL_PRIMARY ? commands.primary : commands.secondary;
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = command_pool_;
    allocate.level = level;
    allocate.commandBufferCount = 1;
    VkResult result = functions.vkAllocateCommandBuffers(device_.handle(), &allocate, &buffer);
    if (result == VK_SUCCESS) {
      VkCommandBufferInheritanceInfo inheritance{VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO};
      VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
      begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
      begin.pInheritanceInfo = level == VK_COMMAND_BUFFER_LEVEL_SECONDARY ? &inheritance : nullptr;
      result = functions.vkBeginCommandBuffer(buffer, &begin);
    }
    if (result == VK_SUCCESS) {
      body(buffer);
      result = functions.vkEndCommandBuffer(buffer);
    }
    if (result != VK_SUCCESS) {
      for (VkCommandBuffer made : {commands.primary, commands.secondary})
        if (made) functions.vkFreeCommandBuffers(device_.handle(), command_pool_, 1, &made);
      return vk::vulkan_error(device_, "recording commands", result);
    }
  }
  return commands;
}

void RuntimeImpl::release(const Commands& commands) {
  const std::lock_guard lock(pool_mutex_);
  for (VkCommandBuffer buffer : {commands.primary, commands.secondary})
    if (buffer) device_.functions().vkFreeCommandBuffers(device_.handle(), command_pool_, 1, &buffer);
}

void RuntimeImpl::retire(const Commands& commands) {
  if (!commands.primary && !commands.secondary) return;
  device_.retire(device_.last_ticket(), [link = link_, commands] {
    const std::lock_guard lock(link->mutex);
    if (link->runtime) link->runtime->release(commands);
  });
}

void RuntimeImpl::retire(const vk::Allocation& allocation) {
  if (!allocation) return;
  forget_uploads(allocation);
  device_.retire(device_.last_ticket(),
                 [&device = device_, allocation] { device.memory().free(allocation); });
}

}  // namespace imprint
