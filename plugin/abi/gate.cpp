#include "plugin/abi/gate.h"

#include <string>

namespace imprint::abi {
namespace {

Error wrong(const char* call, const char* what) { return make_error(ErrorCode::wrong_state, std::string(call) + ": " + what); }

}  // namespace

Status Gate::enter(Tag tag, const char* call) {
  if (busy_.exchange(true, std::memory_order_acquire))
    return wrong(call, "another call for this context is under way, on another thread or in a callback; calls of one context must not overlap");
  const State state = state_.load(std::memory_order_relaxed);
  const bool own_thread = thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  const char* fault = nullptr;
  if (tag == Tag::create || tag == Tag::frame_begin) {
    if (state != State::closed) fault = "a frame is open; call it before frame_begin or after frame_end";
  } else if (state == State::closed) {
    if (tag != Tag::frame_or_create) fault = "no frame is open; call frame_begin first";
  } else if (!own_thread) {
    fault = "the open frame belongs to another thread; call it on the thread that called frame_begin";
  } else if (state == State::submitted && (tag == Tag::frame_before || tag == Tag::frame_submit)) {
    fault = "this frame's work is already submitted or recorded; call it before, in the next frame";
  }
  if (!fault) return {};
  busy_.store(false, std::memory_order_release);
  return wrong(call, fault);
}

void Gate::leave(Tag tag, bool done) {
  if (done && tag == Tag::frame_begin) {
    thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    state_.store(State::open, std::memory_order_relaxed);
  } else if (done && tag == Tag::frame_submit) {
    state_.store(State::submitted, std::memory_order_relaxed);
  } else if (done && tag == Tag::frame_end) {
    state_.store(State::closed, std::memory_order_relaxed);
  }
  busy_.store(false, std::memory_order_release);
}

}  // namespace imprint::abi
