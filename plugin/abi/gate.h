#pragma once
// The thread and state tags of imprint.h, checked at run time.

#include <cstdint>
#include <thread>

#include "compute/base/result.h"
#include "engine-bridge/frame/frame.h"

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

// One per context. ContextHold lets only one call of a context in at a time. The frame's state is the
// bridge's (Context::frame_state); the gate adds the thread that the frame belongs to.
class Gate {
 public:
  // Errors: wrong_state, with the call, the state found and what to do.
  Result<> enter(Tag tag, bridge::FrameState state, const char* call) const;
  // This thread's frame_begin opened a frame.
  void opened() { thread_ = std::this_thread::get_id(); }
  // Whether a call that entered belongs to a frame.
  static bool in_frame(Tag tag, bridge::FrameState state) {
    return tag == Tag::frame_begin || state != bridge::FrameState::closed;
  }

 private:
  std::thread::id thread_;
};

}  // namespace imprint::abi
