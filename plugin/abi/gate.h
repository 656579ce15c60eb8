#pragma once
// The thread and state tags of imprint.h, checked at run time.

#include <cstdint>
#include <thread>

#include "compute/base/result.h"

namespace imprint::abi {

enum class Tag : std::uint8_t {
  create,           // no frame is open
  frame_or_create,  // no frame is open, or the frame's thread calls
  frame_begin,      // no frame is open; opens one
  frame,            // a frame is open, on its thread
  frame_before,     // the same, before submit / record
  frame_submit,     // the same; closes the part before
  frame_end         // a frame is open, on its thread; closes it
};

// One per context. ContextHold lets only one call of a context in at a time.
class Gate {
 public:
  // After success, call leave(). Errors: wrong_state, with the call, the state found and what to do.
  Result<> enter(Tag tag, const char* call) const;
  // done: the call succeeded, and the gate moves to the state that `tag` leads to.
  void leave(Tag tag, bool done);
  // Whether the call that entered belongs to a frame.
  bool in_frame(Tag tag) const { return tag == Tag::frame_begin || state_ != State::closed; }

 private:
  enum class State : std::uint8_t { closed, open, submitted };

  State state_ = State::closed;
  std::thread::id thread_;
};

}  // namespace imprint::abi
