#pragma once
// Reads bytes of unknown origin in order: parts of them, and little-endian numbers.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace imprint {

class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes, std::size_t at = 0) : bytes_(bytes), at_(at) {}

  // False once the bytes ended before what was asked for. All that is read after that is empty or 0.
  bool ok() const { return ok_; }
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  std::span<const std::byte> rest() const { return bytes_.subspan(at_); }

  std::span<const std::byte> take(std::uint64_t count) {
    ok_ = ok_ && count <= left();
    if (!ok_) return {};
    const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += taken.size();
    return taken;
  }
  std::string_view words(std::uint64_t count) {
    const auto taken = take(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  // A number, or a struct or array of them without padding.
  template <class T>
  T number() {
    static_assert(std::endian::native == std::endian::little);
    T value{};
    if (const auto taken = take(sizeof value); ok_) std::memcpy(&value, taken.data(), sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_;
  bool ok_ = true;
};

}  // namespace imprint
