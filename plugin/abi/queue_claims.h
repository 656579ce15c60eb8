#pragma once
// Which queues the contexts of this process submit to. Two that name the same VkQueue share it, whatever each
// of them was told: where the host gives no lock of its own to hold round a submission, they take one of
// ours.

#include <utility>

#include "compute/base/result.h"
#include "engine-bridge/context.h"

namespace imprint::abi {

struct ClaimedQueue;

// A share of a queue, for as long as it lives.
class QueueClaim {
 public:
  QueueClaim() = default;
  QueueClaim(QueueClaim&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
  QueueClaim& operator=(QueueClaim&& other) noexcept {
    std::swap(queue_, other.queue_);
    return *this;
  }
  ~QueueClaim();

  // Claims the queue of `access`, which passed bridge::check_queue_access; nothing without one. Turns
  // single_thread into the lock that contexts on this queue share, and gives it to exclusive ones: the claim
  // must outlive its use. Errors: invalid_argument when another context submits to the queue in another way
  // (names both), unsupported when there are too many queues.
  static Result<QueueClaim> take(bridge::QueueAccess& access);

 private:
  explicit QueueClaim(ClaimedQueue* queue) : queue_(queue) {}

  ClaimedQueue* queue_ = nullptr;
};

}  // namespace imprint::abi
