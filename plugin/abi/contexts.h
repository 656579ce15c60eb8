#pragma once
// The contexts of this process, by handle: the one process-wide object of the library. Constant-initialised,
// trivially destroyed.

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

  LogSink sink();  // borrows this
};

// The host's functions round the device, reached from below.
struct HostDevice {
  void (*lost)(void* user, const char* message) = nullptr;
  int32_t (*allocate)(void* user, const void* info, uint64_t* memory) = nullptr;
  void (*free)(void* user, uint64_t memory) = nullptr;
  void* user = nullptr;         // of `lost`
  void* memory_user = nullptr;  // of `allocate` and `free`
  std::atomic<bool> told_lost{false};
  std::atomic<bool> stood_still{false};  // since the loss: what had begun on the device has ended

  vk::DeviceMemoryCalls memory();  // borrows this
};

struct AgentPlace {
  std::shared_ptr<agent::Brain> brain;
  std::uint32_t seat = 0;
};

using EngineRemedies = std::array<std::string, bridge::kEngineCount>;

// A context as the interface sees it.
struct ContextEntry {
  HostLog log;  // these before the world, which uses them to the end
  imp_vk_queue queue{};
  QueueClaim claim;
  HostDevice device;
  std::vector<bridge::HostSemaphore> waits,
      signals;  // of the submission being asked for; kept for their memory
  std::unique_ptr<agent::AgentSystem> world;
  Gate gate;
  HandleTable<std::shared_ptr<agent::Brain>> brains;
  HandleTable<AgentPlace> agents;
  std::vector<EngineRemedies> remedies;  // [missing features], made when the first is read
  HandleTable<agent::SharedTensor> tensors;
  std::uint32_t slot = 0, generation = 0;  // filled by publish
};

// Guards the registry and every table of brains and agents against [any] calls: held while they are changed,
// and for the whole of an [any] call.
ProcessMutex& registry_mutex();

// Takes a slot. Errors: unsupported when kContextSlots contexts are alive, fewer where slots have had all
// their kContextGenerations.
Result<imp_context> publish(std::unique_ptr<ContextEntry> entry);
// Takes the entry out again, for who holds it; its handles are stale from here on.
std::unique_ptr<ContextEntry> withdraw(ContextEntry& entry);

// Null for a stale or foreign handle. With the mutex held, or only to be compared: else it may be destroyed
// meanwhile.
ContextEntry* find_context(imp_context context);
ContextEntry* find_context_of(imp_brain brain);
ContextEntry* find_context_of(imp_tensor tensor);

// A call's hold on the context that a handle is of, or is of something in. While it lasts, no other call of
// that context gets in, and none destroys it: a host that lets calls overlap, be it with the end of the
// context, is told so.
class ContextHold {
 public:
  explicit ContextHold(imp_context context);
  explicit ContextHold(imp_brain brain);
  explicit ContextHold(imp_agent agent);
  explicit ContextHold(imp_tensor tensor);
  ~ContextHold();
  ContextHold(const ContextHold&) = delete;
  ContextHold& operator=(const ContextHold&) = delete;

  ContextEntry* entry() const {
    return entry_;
  }  // null: the handle is stale or foreign, or another call holds its context
  bool busy() const { return busy_; }  // the latter

 private:
  ContextHold(const HandleParts& parts, HandleKind kind);

  ContextEntry* entry_ = nullptr;
  std::uint32_t slot_ = 0;
  bool busy_ = false;
};

std::shared_ptr<agent::Brain>* find_brain(ContextEntry& entry, imp_brain brain);
AgentPlace* find_agent(ContextEntry& entry, imp_agent agent);
agent::SharedTensor* find_tensor(ContextEntry& entry, imp_tensor tensor);

}  // namespace imprint::abi
