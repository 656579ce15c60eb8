#include "engine-bridge/frame/frame.h"

#include "compute/base/text.h"

namespace imprint::bridge {

Result<> check_frame_closed(FrameState state, const char* call) {
  if (state == FrameState::closed) return {};
  return make_error(ErrorCode::wrong_state, text(call, ": a frame is open. Call frame_end first."));
}

Result<> check_frame_open(FrameState state, const char* call) {
  const char* done = nullptr;
  switch (state) {
    case FrameState::open:
      return {};
    case FrameState::closed:
      return make_error(ErrorCode::wrong_state, text(call, ": no frame is open. Call frame_begin first."));
    case FrameState::submitted:
      done = "submitted";
      break;
    case FrameState::recorded:
      done = "recorded";
      break;
  }
  return make_error(ErrorCode::wrong_state,
                    text(call, ": this frame's work is already ", done,
                         ". A frame has one submit or record, and other calls come before it."));
}

}  // namespace imprint::bridge
