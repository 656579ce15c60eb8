#pragma once
// Who may call what, when: the thread and state tags of imprint.h, checked at run time.

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

// One per context, whose calls come one at a time: ContextHold sees to that.
class Gate {
 public:
  // Errors: wrong_state, naming the call, what was found and what to do. Without one, leave() is to follow.
  Status enter(Tag tag, const char* call) const;
  // `done`: the call succeeded, so that the state that its tag leads to is reached.
  void leave(Tag tag, bool done);
  // Of the call that entered: whether it is the frame's.
  bool in_frame(Tag tag) const { return tag == Tag::frame_begin || state_ != State::closed; }

 private:
  enum class State : std::uint8_t { closed, open, submitted };

  State state_ = State::closed;
  std::thread::id thread_;
};

}  // namespace imprint::abi
