#pragma once
// The contexts of this process, by handle. The registry is constant-initialised and trivially destroyed.

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compute/base/process_mutex.h"
#include "engine-bridge/host/remedies.h"
#include "plugin/abi/convert.h"
#include "plugin/abi/gate.h"
#include "plugin/abi/handles.h"
#include "plugin/abi/queue_claims.h"
#include "plugin/agent/agent_system.h"

namespace imprint::abi {

// The host's log function, reached from a LogSink.
struct HostLog {
  void (*function)(void* user, imp_log_level level, const char* message) = nullptr;
  void* user = nullptr;
  LogSink otherwise;  // without a function

  LogSink sink();  // borrows this
};

// Callbacks of the host about its device, for the rooms below.
struct HostDevice {
  void (*lost)(void* user, const char* message) = nullptr;
  int32_t (*allocate)(void* user, const void* info, uint64_t* memory) = nullptr;
  void (*free)(void* user, uint64_t memory) = nullptr;
  void* user = nullptr;         // of `lost`
  void* memory_user = nullptr;  // of `allocate` and `free`
  std::atomic<bool> loss_reported{false};
  std::atomic<bool> work_ended{false};  // after a loss: all work on the device has ended

  vk::DeviceMemoryCalls memory();  // borrows this
};

struct AgentPlace {
  std::shared_ptr<agent::Brain> brain;
  std::uint32_t index = 0;  // among the brain's agents
};

using EngineRemedies = std::array<std::string, bridge::kEngineCount>;

// A context with its handles.
struct ContextEntry {
  HostLog log;  // up to `device`: before the world, which uses them until it is destroyed
  imp_vk_queue queue{};
  QueueClaim claim;
  HostDevice device;
  std::string close_error;                                // logged last
  std::vector<bridge::HostSemaphore> waits, completions;  // of frame_submit_with; kept to reuse their memory
  std::unique_ptr<agent::AgentSystem> world;
  Gate gate;
  HandleTable<std::shared_ptr<agent::Brain>> brains;
  HandleTable<std::shared_ptr<agent::Model>> models;
  HandleTable<AgentPlace> agents;
  std::vector<EngineRemedies> remedies;  // [missing features], made at the first query
  HandleTable<agent::SharedTensor> tensors;
  std::uint32_t slot = 0, generation = 0;  // filled by publish
};

// Guards the registry and the handle tables: held during each change, and for the whole of an [any] call.
ProcessMutex& registry_mutex();

// Takes a slot. Errors: unsupported when all kContextSlots are taken or spent.
Result<imp_context> publish(std::unique_ptr<ContextEntry> entry);
// Takes the entry out; its handles are stale from then on. The caller holds it.
std::unique_ptr<ContextEntry> withdraw(ContextEntry& entry);

// Null for a stale or foreign handle. Hold the mutex, or only compare the pointer: the entry may be destroyed
// at any time.
ContextEntry* find_context(imp_context context);
ContextEntry* find_context_of(imp_brain brain);
ContextEntry* find_context_of(imp_tensor tensor);
ContextEntry* find_context_of(imp_model model);

// A call's hold on the context of a handle. Meanwhile no other call enters that context or destroys it; an
// overlapping call is refused.
class ContextHold {
 public:
  explicit ContextHold(imp_context context);
  explicit ContextHold(imp_brain brain);
  explicit ContextHold(imp_agent agent);
  explicit ContextHold(imp_tensor tensor);
  explicit ContextHold(imp_model model);
  ~ContextHold();
  ContextHold(const ContextHold&) = delete;
  ContextHold& operator=(const ContextHold&) = delete;

  // Null: the handle is stale or foreign, or the context is busy.
  ContextEntry* entry() const { return entry_; }
  bool busy() const { return busy_; }  // another call holds the context

 private:
  ContextHold(const HandleParts& parts, HandleKind kind);

  ContextEntry* entry_ = nullptr;
  std::uint32_t slot_ = 0;
  bool busy_ = false;
};

std::shared_ptr<agent::Brain>* find_brain(ContextEntry& entry, imp_brain brain);
AgentPlace* find_agent(ContextEntry& entry, imp_agent agent);
agent::SharedTensor* find_tensor(ContextEntry& entry, imp_tensor tensor);
std::shared_ptr<agent::Model>* find_model(ContextEntry& entry, imp_model model);

}  // namespace imprint::abi
