#pragma once
// Bytes that have several owners and never change: in memory, or in a mapped file.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace imprint {

// A value. Copies share the bytes.
class SharedBytes {
 public:
  SharedBytes() = default;
  explicit SharedBytes(std::vector<std::byte> bytes) {
    auto kept = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    view_ = *kept;
    owner_ = std::move(kept);
  }
  // owner: keeps the bytes alive and unchanged.
  SharedBytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : view_(bytes), owner_(std::move(owner)) {}

  const std::byte* data() const { return view_.data(); }
  std::size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  auto begin() const { return view_.begin(); }
  auto end() const { return view_.end(); }
  std::byte operator[](std::size_t index) const { return view_[index]; }
  operator std::span<const std::byte>() const { return view_; }
  SharedBytes part(std::size_t offset, std::size_t length) const {
    return {view_.subspan(offset, length), owner_};
  }
  friend bool operator==(const SharedBytes& a, const SharedBytes& b) { return std::ranges::equal(a, b); }

 private:
  std::span<const std::byte> view_;
  std::shared_ptr<const void> owner_;
};

}  // namespace imprint
