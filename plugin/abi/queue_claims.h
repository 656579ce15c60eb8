#pragma once
// Queues that the contexts of this process submit to. Contexts with the same VkQueue share it. If the host
// gives no lock, they hold one of Imprint's around each submission.

#include <utility>

#include "compute/base/result.h"
#include "engine-bridge/context.h"

namespace imprint::abi {

struct ClaimedQueue;

// A share of a queue, until it is destroyed.
class QueueClaim {
 public:
  QueueClaim() = default;
  QueueClaim(QueueClaim&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
  QueueClaim& operator=(QueueClaim&& other) noexcept {
    std::swap(queue_, other.queue_);
    return *this;
  }
  ~QueueClaim();

  // Claims the queue of `access`, if it has one. `access` passed bridge::check_queue_access. Replaces
  // single_thread by the shared lock, and adds that lock to exclusive: the claim must outlive its use.
  // Errors: invalid_argument (another context uses the queue by another access), unsupported (too many
  // queues).
  static Result<QueueClaim> take(bridge::QueueAccess& access);

 private:
  explicit QueueClaim(ClaimedQueue* queue) : queue_(queue) {}

  ClaimedQueue* queue_ = nullptr;
};

}  // namespace imprint::abi
