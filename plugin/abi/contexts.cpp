#include "plugin/abi/contexts.h"

#include <array>
#include <atomic>
#include <cstring>
#include <type_traits>

namespace imprint::abi {
namespace {

struct Registration {
  std::atomic<ContextEntry*> entry{nullptr};
  std::atomic<std::uint32_t> generation{0};
  std::atomic<bool> held{false};  // not in the context, which may be gone when a caller asks
};

struct Registry {
  ProcessMutex mutex;
  std::array<Registration, kContextSlots> slots;
};

// Loading the library constructs nothing; unloading destroys nothing (R31).
constinit Registry registry;
static_assert(std::is_trivially_destructible_v<Registry>);

ContextEntry* find(const HandleParts& parts) {
  const Registration& slot = registry.slots[parts.context_slot];
  if (parts.context_generation == 0 ||
      slot.generation.load(std::memory_order_acquire) != parts.context_generation)
    return nullptr;
  return slot.entry.load(std::memory_order_acquire);
}

bool names_context(const HandleParts& parts) { return parts.slot == 0 && parts.generation == 1; }

}  // namespace

LogSink HostLog::sink() {
  if (!function) return otherwise;
  return {[](void* self, LogLevel level, std::string_view message) {
            const auto& log = *static_cast<const HostLog*>(self);
            log.function(log.user, static_cast<imp_log_level>(level), std::string(message).c_str());
          },
          this};
}

vk::DeviceMemoryCalls HostDevice::memory() {
  if (!allocate) return {};
  vk::DeviceMemoryCalls calls;
  calls.user = this;
  calls.allocate = [](void* self, const VkMemoryAllocateInfo& info, VkDeviceMemory* memory) {
    const auto& host = *static_cast<const HostDevice*>(self);
    std::uint64_t number = 0;
    const auto result = static_cast<VkResult>(host.allocate(host.memory_user, &info, &number));
    std::memcpy(memory, &number, sizeof *memory);
    return result;
  };
  calls.free = [](void* self, VkDeviceMemory memory) {
    const auto& host = *static_cast<const HostDevice*>(self);
    std::uint64_t number = 0;
    std::memcpy(&number, &memory, sizeof memory);
    host.free(host.memory_user, number);
  };
  return calls;
}

ProcessMutex& registry_mutex() { return registry.mutex; }

Result<imp_context> publish(std::unique_ptr<ContextEntry> entry) {
  const std::lock_guard lock(registry.mutex);
  std::uint32_t spent = 0;
  for (std::uint32_t i = 0; i < kContextSlots; ++i) {
    Registration& slot = registry.slots[i];
    if (slot.entry.load(std::memory_order_relaxed)) continue;
    const std::uint32_t generation = slot.generation.load(std::memory_order_relaxed);
    if (generation == kContextGenerations) {
      ++spent;
      continue;
    }
    // Held without an entry: a context is being destroyed.
    if (slot.held.exchange(true, std::memory_order_acquire)) continue;
    entry->slot = i;
    entry->generation = generation + 1;
    const imp_context context{pack_handle({HandleKind::context, i, entry->generation, 0, 1})};
    slot.generation.store(entry->generation, std::memory_order_release);
    slot.entry.store(entry.release(), std::memory_order_release);
    slot.held.store(false, std::memory_order_release);
    return context;
  }
  if (spent == kContextSlots)
    return make_error(ErrorCode::unsupported,
                      text("context_create: this process has created ", kContextSlots * kContextGenerations,
                           " contexts, the most possible. Keep one for longer."));
  return make_error(ErrorCode::unsupported,
                    text("context_create: ", kContextSlots - spent,
                         " contexts are alive, the most possible. Destroy one first."));
}

std::unique_ptr<ContextEntry> withdraw(ContextEntry& entry) {
  const std::lock_guard lock(registry.mutex);
  return std::unique_ptr<ContextEntry>(
      registry.slots[entry.slot].entry.exchange(nullptr, std::memory_order_acq_rel));
}

ContextEntry* find_context(imp_context context) {
  const HandleParts parts = unpack_handle(context.id);
  return parts.kind == HandleKind::context && names_context(parts) ? find(parts) : nullptr;
}

ContextEntry* find_context_of(imp_brain brain) {
  const HandleParts parts = unpack_handle(brain.id);
  return parts.kind == HandleKind::brain ? find(parts) : nullptr;
}

ContextEntry* find_context_of(imp_tensor tensor) {
  const HandleParts parts = unpack_handle(tensor.id);
  return parts.kind == HandleKind::tensor ? find(parts) : nullptr;
}

ContextEntry* find_context_of(imp_model model) {
  const HandleParts parts = unpack_handle(model.id);
  return parts.kind == HandleKind::model ? find(parts) : nullptr;
}

ContextHold::ContextHold(const HandleParts& parts, HandleKind kind) : slot_(parts.context_slot) {
  if (parts.kind != kind || (kind == HandleKind::context && !names_context(parts)) || !find(parts)) return;
  Registration& slot = registry.slots[slot_];
  const bool mine = !slot.held.exchange(true, std::memory_order_acquire);
  // Looked up again: the context may have been destroyed, and another may have taken the slot.
  ContextEntry* found = find(parts);
  if (mine)
    entry_ = found;
  else
    busy_ = found != nullptr;
  if (mine && !found) slot.held.store(false, std::memory_order_release);
}

ContextHold::ContextHold(imp_context context) : ContextHold(unpack_handle(context.id), HandleKind::context) {}
ContextHold::ContextHold(imp_brain brain) : ContextHold(unpack_handle(brain.id), HandleKind::brain) {}
ContextHold::ContextHold(imp_agent agent) : ContextHold(unpack_handle(agent.id), HandleKind::agent) {}
ContextHold::ContextHold(imp_tensor tensor) : ContextHold(unpack_handle(tensor.id), HandleKind::tensor) {}
ContextHold::ContextHold(imp_model model) : ContextHold(unpack_handle(model.id), HandleKind::model) {}

ContextHold::~ContextHold() {
  if (entry_) registry.slots[slot_].held.store(false, std::memory_order_release);
}

std::shared_ptr<agent::Brain>* find_brain(ContextEntry& entry, imp_brain brain) {
  const HandleParts parts = unpack_handle(brain.id);
  return entry.brains.find(parts.slot, parts.generation);
}

AgentPlace* find_agent(ContextEntry& entry, imp_agent agent) {
  const HandleParts parts = unpack_handle(agent.id);
  return entry.agents.find(parts.slot, parts.generation);
}

agent::SharedTensor* find_tensor(ContextEntry& entry, imp_tensor tensor) {
  const HandleParts parts = unpack_handle(tensor.id);
  return entry.tensors.find(parts.slot, parts.generation);
}

std::shared_ptr<agent::Model>* find_model(ContextEntry& entry, imp_model model) {
  const HandleParts parts = unpack_handle(model.id);
  return entry.models.find(parts.slot, parts.generation);
}

}  // namespace imprint::abi
