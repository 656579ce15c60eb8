#pragma once
// A value, or the text of an error. Every function of the pet that can fail returns one; nothing throws.

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace pet {

// `message` reads "what: found X, expected Y. Do Z.", with the parts that apply.
struct Error {
  std::string message;
  bool unreadable_pet = false;  // a saved pet that is damaged or has another shape
};

// Test with operator bool before value().
template <class T = void>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& value() {
    assert(*this);
    return *std::get_if<0>(&state_);
  }
  const T& value() const {
    assert(*this);
    return *std::get_if<0>(&state_);
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    assert(!*this);
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>  // Result<>: success or an Error
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), good_(false) {}

  explicit operator bool() const { return good_; }
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool good_ = true;
};

}  // namespace pet

#define PET_CONCAT_INNER(a, b) a##b
#define PET_CONCAT(a, b) PET_CONCAT_INNER(a, b)

// Evaluates a Result; returns its error to the caller.
#define PET_CHECK(expression)                                                   \
  do {                                                                          \
    if (auto pet_status = (expression); !pet_status) return pet_status.error(); \
  } while (false)

// Evaluates a Result<T>; returns its error to the caller, or assigns the value to `target`, a declaration or
// an lvalue.
#define PET_ASSIGN(target, expression) PET_ASSIGN_INNER(PET_CONCAT(pet_result_, __LINE__), target, expression)
#define PET_ASSIGN_INNER(result, target, expression) \
  auto result = (expression);                        \
  if (!result) return result.error();                \
  target = std::move(*result)
