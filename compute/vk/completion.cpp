#include "compute/vk/completion.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace imprint::vk {

Completion::~Completion() { run_through(std::numeric_limits<std::uint64_t>::max()); }

Ticket Completion::next() {
  const std::lock_guard lock(mutex_);
  return Ticket{++last_};
}

Ticket Completion::last() const {
  const std::lock_guard lock(mutex_);
  return Ticket{last_};
}

Ticket Completion::upcoming() const {
  const std::lock_guard lock(mutex_);
  return Ticket{last_ + 1};
}

void Completion::completed(Ticket upto) {
  const std::lock_guard lock(mutex_);
  completed_ = std::max(completed_, upto.value);
}

Ticket Completion::completed_through() const {
  const std::lock_guard lock(mutex_);
  return Ticket{completed_};
}

void Completion::set_poll(std::function<Ticket()> newest_completed) {
  const std::lock_guard lock(poll_mutex_);
  poll_ = std::move(newest_completed);
}

Ticket Completion::poll() {
  {
    const std::lock_guard lock(poll_mutex_);
    if (poll_) completed(poll_());
  }
  return completed_through();
}

void Completion::retire(Ticket ticket, std::function<void()> destroy) {
  {
    const std::lock_guard lock(mutex_);
    if (ticket.value > completed_) {
      retired_.emplace(ticket.value, std::move(destroy));
      return;
    }
  }
  destroy();
}

std::size_t Completion::collect() { return run_through(completed_through().value); }

std::size_t Completion::retired() const {
  const std::lock_guard lock(mutex_);
  return retired_.size();
}

// Runs one deleter at a time: a deleter may retire another object, which must also run in order.
std::size_t Completion::run_through(std::uint64_t value) {
  std::size_t count = 0;
  for (;;) {
    std::function<void()> destroy;
    {
      const std::lock_guard lock(mutex_);
      const auto first = retired_.begin();
      if (first == retired_.end() || first->first > value) return count;
      destroy = std::move(first->second);
      retired_.erase(first);
    }
    destroy();
    ++count;
  }
}

}  // namespace imprint::vk
