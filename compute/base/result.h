#pragma once
// A value or an error. Every fallible function of Imprint returns a Result. No function throws, aborts or
// prints.

#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace imprint {

// Error classes that a host can act on. The plugin's imp_result codes map one to one to these.
enum class ErrorCode : std::int32_t {
  invalid_argument =
      1,               // a value outside its documented range, a null pointer, NaN where numbers are required
  shape_mismatch = 2,  // operand shapes do not fit together
  dtype_mismatch = 3,  // operand element types do not fit together
  unsupported = 4,     // this build or device cannot do it
  out_of_device_memory = 5,  // the memory cap or the device is exhausted
  out_of_host_memory = 6,
  device_lost = 7,
  not_ready = 8,        // the answer is still being computed; ask again later
  io = 9,               // the operating system refused a file
  corrupt_file = 10,    // bytes are damaged, truncated or in a foreign format
  compile_failed = 11,  // a shader did not compile; the message carries the log. A defect of Imprint, or of
                        // GLSL that a game supplied (nn::Environment)
  wrong_state = 12,     // calls in the wrong order
  not_found = 13,
  internal = 14,  // a broken invariant of Imprint
};

// The snake_case name of a code, for messages.
std::string_view error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;  // lower case: what was asked, what was found, what to do
};

// Either a T or an Error. Test with operator bool (or ok()) before value(), *, -> and error(): a wrong one is
// undefined, and asserts in a build without NDEBUG. IMPRINT_ASSIGN below tests and returns the error.
template <class T = void>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    assert(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>  // Result<>: success or an Error
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const& {
    assert(!ok_);
    return error_;
  }
  Error&& error() && {
    assert(!ok_);
    return std::move(error_);
  }

 private:
  Error error_;
  bool ok_ = true;
};

inline Error make_error(ErrorCode code, std::string message) { return Error{code, std::move(message)}; }

}  // namespace imprint

#define IMPRINT_CONCAT_INNER(a, b) a##b
#define IMPRINT_CONCAT(a, b) IMPRINT_CONCAT_INNER(a, b)

// Evaluates a Result; returns its error to the caller.
#define IMPRINT_CHECK(expression)                                                                           \
  do {                                                                                                      \
    if (auto imprint_status = (expression); !imprint_status.ok()) return std::move(imprint_status).error(); \
  } while (false)

// Evaluates a Result<T>. Returns its error to the caller, or assigns the value to the target: a declaration,
// an lvalue, or a structured binding of two to four names.
//   IMPRINT_ASSIGN(const Shape shape, shape_of(file));
//   IMPRINT_ASSIGN(const auto [inputs, labels], read_batch(file));
#define IMPRINT_ASSIGN(...)                                                                                \
  IMPRINT_ASSIGN_OF(__VA_ARGS__, IMPRINT_ASSIGN_4, IMPRINT_ASSIGN_3, IMPRINT_ASSIGN_2, IMPRINT_ASSIGN_1, ) \
  (IMPRINT_CONCAT(imprint_result_, __LINE__), __VA_ARGS__)
#define IMPRINT_ASSIGN_OF(a, b, c, d, expression, macro, ...) macro
#define IMPRINT_ASSIGN_1(result, a, expression) IMPRINT_ASSIGN_INNER(result, expression, a)
#define IMPRINT_ASSIGN_2(result, a, b, expression) IMPRINT_ASSIGN_INNER(result, expression, a, b)
#define IMPRINT_ASSIGN_3(result, a, b, c, expression) IMPRINT_ASSIGN_INNER(result, expression, a, b, c)
#define IMPRINT_ASSIGN_4(result, a, b, c, d, expression) IMPRINT_ASSIGN_INNER(result, expression, a, b, c, d)
#define IMPRINT_ASSIGN_INNER(result, expression, ...) \
  auto result = (expression);                         \
  if (!result.ok()) return std::move(result).error(); \
  __VA_ARGS__ = std::move(result).value()
