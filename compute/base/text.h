#pragma once
// Joins parts into one string: text("batch: found ", found, ", expected 1 .. ", limit).

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace imprint {

namespace detail {

inline void append_text(std::string& out, std::string_view part) { out += part; }
inline void append_text(std::string& out, char part) { out += part; }
// A template, so that a pointer does not become a bool.
void append_text(std::string& out, std::same_as<bool> auto part) { out += part ? "true" : "false"; }

// Writes floating-point numbers with the fewest digits that read back as the same number. Ignores the
// process's locale, which belongs to the host.
template <class Number>
requires(std::is_arithmetic_v<Number> && !std::same_as<Number, char> &&
         !std::same_as<Number, bool>) void append_text(std::string& out, Number part) {
  char digits[64];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, part);
  if (error == std::errc()) out.append(digits, end);
}

}  // namespace detail

// Joins strings, characters, booleans and numbers in order.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (detail::append_text(out, parts), ...);
  return out;
}

}  // namespace imprint
