#ifndef IMPRINT_IMPRINT_OWNER_HPP_
#define IMPRINT_IMPRINT_OWNER_HPP_
// Part of imprint.hpp, which includes it: the base of all owners.

#include "imprint_types.hpp"

namespace imprint::game {
namespace detail {

// A handle and its library. Move-only; empty after a move. release() gives the handle away.
template <class Handle, auto kDestroy>
class Owner {
 public:
  Owner() = default;
  Owner(const imp_api* api, Handle handle) : api_(api), handle_(handle) {}
  Owner(Owner&& other) noexcept
      : api_(other.api_), handle_(std::exchange(other.handle_, Handle{})) {}
  Owner& operator=(Owner&& other) noexcept {
    if (this != &other) {
      reset();
      api_ = other.api_;
      handle_ = std::exchange(other.handle_, Handle{});
    }
    return *this;
  }
  ~Owner() { reset(); }

  Handle handle() const { return handle_; }
  const imp_api* api() const { return api_; }
  explicit operator bool() const { return handle_.id != 0; }
  Handle release() { return std::exchange(handle_, Handle{}); }
  void reset() {
    if (handle_.id != 0) (void)(table(kDestroy).*kDestroy)(std::exchange(handle_, Handle{}));
  }

 protected:
  // An object that was never made has no table to ask.
  template <class Table, class... Taken, class... Given>
  Outcome call(imp_result (IMP_CALL* Table::*function)(Handle, Taken...), Given... given) const {
    if (!api_) return {};
    return {api_, (table(function).*function)(handle_, given...)};
  }
  // As call, for a function that fills its last argument.
  template <class T, class Function, class... Given>
  Made<T> fill(T filled, Function function, Given... given) const {
    Made<T> made{filled, {}};
    made.outcome = call(function, given..., &made.value);
    return made;
  }
  // As call, for a function that fills a buffer: an empty one asks for the size.
  template <class T, class Function>
  Made<std::size_t> copy_out(Function function, std::span<T> into) const {
    Made<std::size_t> made{into.size(), {}};
    made.outcome = call(function, into.empty() ? nullptr : into.data(), &made.value);
    return made;
  }

  const imp_api* api_ = nullptr;
  Handle handle_{};

 private:
  template <class R>
  const imp_api& table(R imp_api::*) const {
    return *api_;
  }
  template <class R>
  const imp_vulkan_api& table(R imp_vulkan_api::*) const {
    return *api_->vulkan;
  }
  template <class R>
  const imp_tools_api& table(R imp_tools_api::*) const {
    return *api_->tools;
  }
  template <class R>
  const imp_models_api& table(R imp_models_api::*) const {
    return *api_->models;
  }
};

}  // namespace detail
}  // namespace imprint::game

#endif  // IMPRINT_IMPRINT_OWNER_HPP_
