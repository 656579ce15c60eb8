#pragma once
// Tracks the order in which a device's work completes, and destroys objects when their work is complete. Uses
// no Vulkan object. The owner of the submissions (the engine bridge) reports the GPU's progress in one of
// three ways:
//   timeline semaphore   set_poll([=] { return Ticket{counter value}; }). The signalled value is the
//   ticket's. ring of fences       set_poll with a walk over the ring in submission order, up to the first
//   unsignalled
//                        fence.
//   host frame numbers   no poll; completed(newest ticket issued in a frame <= safe_frame) at frame start.
// The ways may be mixed; the newest answer counts.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "compute/vk/queue.h"

namespace imprint::vk {

// Thread-safe. Deleters run without a lock, so a deleter may call anything here.
class Completion {
 public:
  Completion() = default;
  ~Completion();  // runs every remaining deleter, in order; the GPU must be done, which the caller ensures
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  // Issues the next ticket. Call it after a submission succeeded: a failed one must not leave a ticket that
  // nothing completes. upcoming() gives the value earlier, for a timeline semaphore to signal. Only one
  // thread submits, so no other thread takes it in between.
  Ticket next();
  Ticket last() const;      // the newest issued; {0} before the first
  Ticket upcoming() const;  // what next() will return

  // Marks everything up to and including `upto` as complete. Ignored when lower than the known value.
  void completed(Ticket upto);
  Ticket completed_through() const;  // as known, without asking the GPU

  // Sets the function that finds the newest completed ticket without blocking. Calls are serialised, so it
  // needs no lock of its own. It may call completed(), but neither poll() nor set_poll(). set_poll returns
  // only when no poll runs: call set_poll({}) before destroying what the function uses.
  void set_poll(std::function<Ticket()> newest_completed);
  Ticket poll();  // asks, and returns completed_through()

  // Runs `destroy` once `ticket` is complete; immediately, on this thread, if that is known. The ticket may
  // be one that is not issued yet.
  void retire(Ticket ticket, std::function<void()> destroy);
  std::size_t collect();  // runs what is due by completed_through(), in order of tickets; returns how many
                          // ran. Does not poll.
  std::size_t retired() const;  // waiting to be due

 private:
  std::size_t run_through(std::uint64_t value);

  mutable std::mutex mutex_;
  std::mutex poll_mutex_;
  std::function<Ticket()> poll_;
  std::uint64_t last_ = 0;
  std::uint64_t completed_ = 0;
  std::multimap<std::uint64_t, std::function<void()>> retired_;  // equal tickets keep the order of retirement
};

}  // namespace imprint::vk
