#include "plugin/abi/gate.h"

#include <string>

namespace imprint::abi {
namespace {

Error wrong(const char* call, const char* what) {
  return make_error(ErrorCode::wrong_state, std::string(call) + ": " + what);
}

}  // namespace

Result<> Gate::enter(Tag tag, const char* call) const {
  const State state = state_;
  const bool own_thread = thread_ == std::this_thread::get_id();
  const char* fault = nullptr;
  if (tag == Tag::create || tag == Tag::frame_begin) {
    if (state != State::closed)
      fault = tag == Tag::frame_begin ? "a frame is open. Call frame_end first."
                                      : "a frame is open. Call it before frame_begin or after frame_end.";
  } else if (state == State::closed) {
    if (tag != Tag::frame_or_create) fault = "no frame is open. Call frame_begin first.";
  } else if (!own_thread) {
    fault = "the open frame belongs to another thread. Call it on the thread that called frame_begin.";
  } else if (state == State::submitted && (tag == Tag::frame_before || tag == Tag::frame_submit)) {
    fault =
        "this frame's work is already submitted or recorded. Call it in the next frame, before submit or "
        "record.";
  }
  if (!fault) return {};
  return wrong(call, fault);
}

void Gate::leave(Tag tag, bool done) {
  if (done && tag == Tag::frame_begin) {
    thread_ = std::this_thread::get_id();
    state_ = State::open;
  } else if (done && tag == Tag::frame_submit) {
    state_ = State::submitted;
  } else if (done && tag == Tag::frame_end) {
    state_ = State::closed;
  }
}

}  // namespace imprint::abi
