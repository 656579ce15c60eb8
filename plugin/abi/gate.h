#pragma once
// Who may call what, when: the thread and state tags of imprint.h, checked at run time.

#include <atomic>
#include <cstdint>
#include <thread>

#include "compute/base/result.h"

namespace imprint::abi {

enum class Tag : std::uint8_t {
  create,           // no frame is open
  frame_or_create,  // no frame is open, or on the frame's thread
  frame_begin,      // no frame is open; opens one
  frame,            // a frame is open, on its thread
  frame_before,     // the same, before submit / record
  frame_submit,     // the same; closes the part before
  frame_end         // a frame is open, on its thread; closes it
};

// One per context. Calls of one context must not overlap; an overlap that is seen is refused rather than run.
class Gate {
 public:
  // Checks the tag and marks the context as busy until leave(). Errors: wrong_state, naming the call, what was found and what to do.
  Status enter(Tag tag, const char* call);
  // `done`: the call succeeded, so that the state that its tag leads to is reached.
  void leave(Tag tag, bool done);
  // Of the call that entered: whether it is the frame's.
  bool in_frame(Tag tag) const { return tag == Tag::frame_begin || state_.load(std::memory_order_relaxed) != State::closed; }

 private:
  enum class State : std::uint8_t { closed, open, submitted };

  std::atomic<bool> busy_{false};
  std::atomic<State> state_{State::closed};
  std::atomic<std::thread::id> thread_{};
};

}  // namespace imprint::abi
