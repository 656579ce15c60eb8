#include "plugin/abi/gate.h"

#include "compute/base/text.h"

namespace imprint::abi {

Result<> Gate::enter(Tag tag, bridge::FrameState state, const char* call) const {
  if (tag == Tag::create || tag == Tag::frame_begin) return bridge::check_frame_closed(state, call);
  if (state == bridge::FrameState::closed)
    return tag == Tag::frame_or_create ? Result<>() : bridge::check_frame_open(state, call);
  if (thread_ != std::this_thread::get_id())
    return make_error(
        ErrorCode::wrong_state,
        text(call,
             ": the open frame belongs to another thread. Call it on the thread that called frame_begin."));
  if (tag == Tag::frame_before || tag == Tag::frame_submit) return bridge::check_frame_open(state, call);
  return {};
}

}  // namespace imprint::abi
