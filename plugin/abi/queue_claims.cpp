#include "plugin/abi/queue_claims.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <type_traits>

#include "compute/base/process_mutex.h"
#include "plugin/abi/handles.h"

namespace imprint::abi {

struct ClaimedQueue {
  VkQueue queue = VK_NULL_HANDLE;
  const char* way = "";
  std::uint32_t contexts = 0;  // 0: free
  ProcessMutex submitting;
};

namespace {

// Like the registry of contexts: nothing to construct when the library is loaded, nothing to destroy when it
// goes (R31).
struct Claims {
  ProcessMutex mutex;
  std::array<ClaimedQueue, kContextSlots> queues;
};
constinit Claims claims;
static_assert(std::is_trivially_destructible_v<Claims>);

const char* way_of(const bridge::QueueAccess& access) {
  if (access.exclusive) return "exclusive";
  if (access.lock) return "lock and unlock";
  if (access.submit) return "submit";
  if (access.run) return "run_on_queue";
  return access.internally_synchronized ? "internally_synchronized" : "single_thread";
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
    return make_error(ErrorCode::unsupported, "queue access: too many queues are in use");
  if (found->contexts > 0 && found->way != std::string_view(way)) {
    return make_error(ErrorCode::invalid_argument,
                      std::string("queue access: another context submits to this queue by ") + found->way +
                          ", this one would by " + way +
                          ": give both the same way, for neither can keep the other out");
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
