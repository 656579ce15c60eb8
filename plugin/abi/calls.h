#pragma once
// The start of every export: finds the handle, checks the tag, keeps other calls out, stops exceptions.

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "plugin/abi/contexts.h"
#include "plugin/abi/error.h"

namespace imprint::abi {

inline imp_result stale(const char* call, const char* kind) {
  return fail(IMP_ERROR_INVALID_HANDLE,
              (std::string(call) + ": the " + kind + " handle is zero, destroyed or foreign").c_str());
}

// The calls after a failed create meet its zero handle. The first failure is the one to know.
inline imp_result zero_handle(const char* call, const char* kind) {
  constexpr const char* kBefore = " The failure before: ";
  std::string before = last_error();
  if (const std::size_t at = before.find(kBefore); at != std::string::npos)
    before.erase(0, at + std::strlen(kBefore));
  std::string text = std::string(call) + ": the " + kind + " handle is zero.";
  if (!before.empty()) text += kBefore + before;
  return fail(IMP_ERROR_INVALID_HANDLE, text.c_str());
}

// A call that passed the gate, until its end. Its time counts as the frame's if it belongs to a frame.
class GatePass {
 public:
  GatePass(ContextEntry& entry, Tag tag) : entry_(entry), tag_(tag) {
    bridge::Context& context = entry.world->context();
    if (!Gate::in_frame(tag, context.frame_state())) return;
    frame_ = &context;
    frame_->enter_frame_call();
  }
  ~GatePass() {
    if (frame_) frame_->leave_frame_call();
    HostDevice& device = entry_.device;
    const bool lost = entry_.world->context().lost();
    if (lost && !device.work_ended) {  // before the host is told
      entry_.world->stop_device_work();
      device.work_ended = true;
    }
    if (lost && !device.loss_reported.exchange(true) && device.lost)
      device.lost(device.user, "the device was lost. Make a new context on a new device.");
  }
  GatePass(const GatePass&) = delete;
  GatePass& operator=(const GatePass&) = delete;

  imp_result finish(const Result<>& status) {
    if (tag_ == Tag::frame_begin && status) entry_.gate.opened();
    // After an error that the caller can correct, it may call again in this frame; after others it may not.
    if (tag_ == Tag::frame_submit && !status && status.error().code != ErrorCode::invalid_argument &&
        status.error().code != ErrorCode::unsupported)
      entry_.world->context().give_up_issue();
    return translate(status);
  }

 private:
  ContextEntry& entry_;
  const Tag tag_;
  bridge::Context* frame_ = nullptr;  // null: not a call of a frame
};

// Whether a function still works after a device loss.
enum class AfterLoss : std::uint8_t { refuses, serves };

inline Error lost_error(const char* call) {
  return make_error(ErrorCode::device_lost,
                    std::string(call) + ": the device was lost. Make a new context on a new device.");
}

// Enters the context of `hold`, for a handle of this kind. Returns IMP_OK, or the code of the refusal.
inline imp_result enter(const ContextHold& hold, Tag tag, const char* call, const char* kind,
                        AfterLoss after) {
  if (hold.busy())
    return fail(IMP_ERROR_WRONG_STATE,
                (std::string(call) + ": another call of this context is under way, on another thread or "
                                     "around this callback. Calls of one "
                                     "context must not overlap.")
                    .c_str());
  if (!hold.entry()) return stale(call, kind);
  const ContextEntry& entry = *hold.entry();
  bridge::Context& context = entry.world->context();
  const Result<> entered = entry.gate.enter(tag, context.frame_state(), call);
  // On a lost device no frame begins: the loss explains a call out of turn.
  if (!entered && after == AfterLoss::refuses && context.lost()) return fail(lost_error(call));
  return translate(entered);
}

// body: imp_result(GatePass&, ContextEntry&)
template <class Handle, class Body>
imp_result in_context(Handle handle, const char* kind, Tag tag, const char* call, AfterLoss after,
                      Body&& body) noexcept {
  return guarded([&]() -> imp_result {
    if (handle.id == 0) return zero_handle(call, kind);
    const ContextHold hold(handle);
    if (const imp_result refused = enter(hold, tag, call, kind, after); refused != IMP_OK) return refused;
    ContextEntry& entry = *hold.entry();
    GatePass pass(entry, tag);
    if (after == AfterLoss::refuses && entry.world->context().lost()) return pass.finish(lost_error(call));
    return body(pass, entry);
  });
}

// body: Result<>(ContextEntry&)
template <class Body>
imp_result with_context(imp_context context, Tag tag, const char* call, Body&& body,
                        AfterLoss after = AfterLoss::refuses) noexcept {
  return in_context(context, "context", tag, call, after,
                    [&](GatePass& pass, ContextEntry& entry) { return pass.finish(body(entry)); });
}

// find(entry, handle): a pointer to the object, null for a stale handle. body: Result<>(ContextEntry&,
// object&)
template <class Handle, class Find, class Body>
imp_result with_found(Handle handle, const char* kind, Tag tag, const char* call, AfterLoss after,
                      const Find& find, Body&& body) noexcept {
  return in_context(handle, kind, tag, call, after, [&](GatePass& pass, ContextEntry& entry) {
    auto* found = find(entry, handle);
    return found ? pass.finish(body(entry, *found)) : stale(call, kind);
  });
}

// body: Result<>(ContextEntry&, const std::shared_ptr<agent::Brain>&)
template <class Body>
imp_result with_brain(imp_brain brain, Tag tag, const char* call, Body&& body,
                      AfterLoss after = AfterLoss::refuses) noexcept {
  return with_found(brain, "brain", tag, call, after, find_brain, body);
}

// body: Result<>(ContextEntry&, AgentPlace&)
template <class Body>
imp_result with_place(imp_agent agent, Tag tag, const char* call, Body&& body,
                      AfterLoss after = AfterLoss::refuses) noexcept {
  return with_found(agent, "agent", tag, call, after, find_agent, body);
}

// body: Result<>(agent::Brain&, std::uint32_t index)
template <class Body>
imp_result with_agent(imp_agent agent, Tag tag, const char* call, Body&& body) noexcept {
  return with_place(agent, tag, call,
                    [&](ContextEntry&, AgentPlace& place) { return body(*place.brain, place.index); });
}

// body: Result<>(ContextEntry&, agent::SharedTensor&)
template <class Body>
imp_result with_tensor(imp_tensor tensor, Tag tag, const char* call, Body&& body,
                       AfterLoss after = AfterLoss::refuses) noexcept {
  return with_found(tensor, "tensor", tag, call, after, find_tensor, body);
}

// body: Result<>(ContextEntry&, const std::shared_ptr<agent::Model>&)
template <class Body>
imp_result with_model(imp_model model, Tag tag, const char* call, Body&& body,
                      AfterLoss after = AfterLoss::refuses) noexcept {
  return with_found(model, "model", tag, call, after, find_model, body);
}

// For [any] calls, which may overlap all others. Holds the registry, so body must be short.
// body: Result<>(ContextEntry&)
template <class Body>
imp_result with_context_any(imp_context context, const char* call, Body&& body) noexcept {
  return guarded([&]() -> imp_result {
    if (context.id == 0) return zero_handle(call, "context");
    const std::lock_guard lock(registry_mutex());
    ContextEntry* entry = find_context(context);
    if (!entry) return stale(call, "context");
    return translate(body(*entry));
  });
}

// find(entry, handle): a pointer to a shared_ptr of the object. body: Result<>(object&)
template <class Handle, class Find, class Body>
imp_result with_found_any(Handle handle, const char* kind, const char* call, const Find& find,
                          Body&& body) noexcept {
  return guarded([&]() -> imp_result {
    if (handle.id == 0) return zero_handle(call, kind);
    const std::lock_guard lock(registry_mutex());
    ContextEntry* entry = find_context_of(handle);
    const auto* found = entry ? find(*entry, handle) : nullptr;
    if (!found) return stale(call, kind);
    return translate(body(**found));
  });
}

template <class Body>
imp_result with_brain_any(imp_brain brain, const char* call, Body&& body) noexcept {
  return with_found_any(brain, "brain", call, find_brain, body);
}

template <class Body>
imp_result with_model_any(imp_model model, const char* call, Body&& body) noexcept {
  return with_found_any(model, "model", call, find_model, body);
}

}  // namespace imprint::abi
