#include "plugin/abi/queue_claims.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <type_traits>

#include "compute/base/process_mutex.h"
#include "compute/base/text.h"
#include "plugin/abi/handles.h"

namespace imprint::abi {

struct ClaimedQueue {
  VkQueue queue = VK_NULL_HANDLE;
  const char* way = "";
  std::uint32_t contexts = 0;  // 0: free
  ProcessMutex submitting;
};

namespace {

// Like the registry of contexts: loading the library constructs nothing, unloading destroys nothing (R31).
struct Claims {
  ProcessMutex mutex;
  std::array<ClaimedQueue, kContextSlots> queues;
};
constinit Claims claims;
static_assert(std::is_trivially_destructible_v<Claims>);

const char* way_of(const bridge::QueueAccess& access) {
  if (access.exclusive) return "IMP_QUEUE_EXCLUSIVE";
  if (access.lock) return "IMP_QUEUE_LOCK";
  if (access.submit) return "IMP_QUEUE_SUBMIT_CALLBACK";
  if (access.run) return "IMP_QUEUE_RUN_ON_QUEUE";
  return access.internally_synchronized ? "IMP_QUEUE_INTERNALLY_SYNCHRONIZED" : "IMP_QUEUE_SINGLE_THREAD";
}

}  // namespace

QueueClaim::~QueueClaim() {
  if (!queue_) return;
  const std::lock_guard lock(claims.mutex);
  --queue_->contexts;
}

Result<QueueClaim> QueueClaim::take(bridge::QueueAccess& access) {
  if (!access.queue) return QueueClaim();
  const char* way = way_of(access);
  const std::lock_guard lock(claims.mutex);
  auto found = std::ranges::find_if(
      claims.queues, [&](const ClaimedQueue& one) { return one.contexts > 0 && one.queue == access.queue; });
  if (found == claims.queues.end()) found = std::ranges::find(claims.queues, 0u, &ClaimedQueue::contexts);
  if (found == claims.queues.end())
    return make_error(ErrorCode::unsupported,
                      text("context_create: device.queue.queue: found ", kContextSlots,
                           " queues in use, the most of a process. Destroy a context first."));
  if (found->contexts > 0 && found->way != std::string_view(way)) {
    return make_error(ErrorCode::invalid_argument, text("context_create: device.queue.access: found ", way,
                                                        ", but another context shares this queue by ",
                                                        found->way, ". Give both the same access."));
  }
  if (found->contexts++ == 0) {
    found->queue = access.queue;
    found->way = way;
  }
  if (access.single_thread || (access.exclusive && !access.lock)) {
    access.single_thread = false;
    access.lock = [](void* claimed, VkQueue) { static_cast<ClaimedQueue*>(claimed)->submitting.lock(); };
    access.unlock = [](void* claimed, VkQueue) { static_cast<ClaimedQueue*>(claimed)->submitting.unlock(); };
    access.user = &*found;
  }
  return QueueClaim(&*found);
}

}  // namespace imprint::abi
