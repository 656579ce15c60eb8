#pragma once
// The order in which the work of one device completes, and what is to be destroyed when it does. Knows no
// Vulkan object: whoever owns the submissions (the engine bridge) tells it how far the GPU has come, in one
// of three ways:
//   a timeline semaphore   set_poll([=] { return Ticket{counter value}; }), the value signalled being the
//   ticket's a ring of fences       set_poll with a walk over the ring in the order of submission, stopping
//   at the first unsignalled fence host frame numbers     no poll; completed(newest ticket issued in a frame
//   <= safe_frame) at the start of a frame
// They may be mixed; the newest answer counts.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "compute/vk/queue.h"

namespace imprint::vk {

// Thread-safe. No lock is held while a deleter runs, so a deleter may call anything here.
class Completion {
 public:
  Completion() = default;
  ~Completion();  // runs every deleter that is left, in order: the caller has seen to it that the GPU is done
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  // Hands out the next ticket. Call it when the submission has succeeded; one that failed must not leave a
  // ticket which nothing completes. A value needed before (to be signalled by a timeline semaphore) is
  // upcoming(): one submitting thread, so nobody takes it in between.
  Ticket next();
  Ticket last() const;      // the newest handed out; {0} before the first
  Ticket upcoming() const;  // what next() will return

  // Everything up to and including `upto` is complete. Lower than what is known: ignored.
  void completed(Ticket upto);
  Ticket completed_through() const;  // as known, without asking the GPU

  // How to ask for the newest completed ticket without blocking. Calls are serialised, so the function needs
  // no lock of its own; it may call completed(), but neither poll() nor set_poll(). Returns only when no poll
  // is under way: set_poll({}) before what it uses goes.
  void set_poll(std::function<Ticket()> newest_completed);
  Ticket poll();  // asks, and returns completed_through()

  // Runs `destroy` once `ticket` is complete; at once, here, if it is known to be. The ticket may be one not
  // handed out yet.
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
