#include "engine-bridge/host/queue_access.h"

#include <string>

#include "compute/base/text.h"

namespace imprint::bridge {
namespace {

template <class... Parts>
Error wrong_access(const Parts&... parts) {
  return make_error(ErrorCode::invalid_argument, text("queue access: ", parts...));
}

constexpr const char* kWays =
    "lock and unlock, submit, run_on_queue, single_thread (when the host uses the queue only on the thread "
    "that calls the frame functions), internally_synchronized, or exclusive (when the host never uses it)";

}  // namespace

Result<> check_queue_access(const QueueAccess& access) {
  std::string found;
  int ways = 0;
  const auto way = [&](bool given, const char* name) {
    if (given) found += text(ways++ ? ", " : "", name);
  };
  way(access.lock || access.unlock, "lock and unlock");
  way(access.submit, "submit");
  way(access.run, "run_on_queue");
  way(access.single_thread, "single_thread");
  way(access.internally_synchronized, "internally_synchronized");
  way(access.exclusive && !access.lock && !access.unlock, "exclusive");
  if (!access.queue) {
    if (ways == 0) return {};
    return wrong_access("queue: found null with ", found,
                        ", expected a VkQueue. Set it, or clear the rest to ", "record only.");
  }
  if (!access.lock != !access.unlock)
    return wrong_access(access.lock ? "unlock" : "lock",
                        ": found null, expected both lock and unlock. Set it.");
  if (ways == 0) return wrong_access("found a queue without a way to share it. Set one of: ", kWays, ".");
  if (ways > 1)
    return wrong_access("found ", found, ", expected exactly one way to share the queue. Keep one of them.");
  if (access.submit_without_fence && !access.submit)
    return wrong_access("submit_without_fence: found with ", found, ", expected with submit. Clear it.");
  return {};
}

}  // namespace imprint::bridge
