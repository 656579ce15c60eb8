#pragma once
// Names of axes whose extent each run chooses (Extent). A table of the process has one entry per list of
// parts, up to 65,535. An entry goes when no AxisName and no Shape has it.

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace imprint::tensor {

// Axes that were merged into one, from the outermost: a part has bound * factor places, of which a run with
// extent n uses the first n * factor. Without a name it uses all.
struct AxisPart {
  std::string extent;
  std::int64_t bound = 1, factor = 1;
  std::int64_t places() const { return bound * factor; }
  auto operator<=>(const AxisPart&) const = default;
};

// The meaning of an axis name: parts of which one at least is named, and none unnamed follows a named one.
struct NamedAxis {
  std::vector<AxisPart> parts;
  std::int64_t places = 1;
  std::string text() const;  // "batch <= 64"
};

// False: the extent is fixed. Equal lists of parts have equal names.
class AxisName {
 public:
  AxisName() = default;
  AxisName(const AxisName& other) noexcept : AxisName(other.entry_) {}
  AxisName(AxisName&& other) noexcept : entry_(std::exchange(other.entry_, std::uint16_t{0})) {}
  AxisName& operator=(AxisName other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~AxisName() {
    if (entry_ != 0) release(entry_);
  }

  explicit operator bool() const { return entry_ != 0; }
  bool operator==(const AxisName& other) const { return entry_ == other.entry_; }
  std::strong_ordering operator<=>(const AxisName& other) const;  // by the parts: the same in every process

 private:
  friend class AxisNames;
  friend AxisName axis_name(std::vector<AxisPart> parts);
  friend const NamedAxis& named_axis(const AxisName& name);

  explicit AxisName(std::uint16_t entry) noexcept : entry_(entry) {
    if (entry_ != 0) hold(entry_);
  }
  static void hold(std::uint16_t entry) noexcept;
  static void release(std::uint16_t entry) noexcept;
  static const NamedAxis& axis(std::uint16_t entry) noexcept;

  std::uint16_t entry_ = 0;
};

// Those of a shape's axes. A copy costs two comparisons where there are none.
class AxisNames {
 public:
  static constexpr std::size_t kCount = 8;

  AxisNames() = default;
  AxisNames(const AxisNames& other) noexcept : entries_(other.entries_) {
    if (any()) hold_all();
  }
  AxisNames& operator=(const AxisNames& other) noexcept {
    AxisNames copy(other);
    std::swap(entries_, copy.entries_);
    return *this;
  }
  ~AxisNames() {
    if (any()) release_all();
  }

  bool any() const {
    const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(entries_);
    return (words[0] | words[1]) != 0;
  }
  bool has(std::size_t axis) const { return entries_[axis] != 0; }
  AxisName operator[](std::size_t axis) const { return AxisName(entries_[axis]); }
  const NamedAxis& axis(std::size_t axis) const { return AxisName::axis(entries_[axis]); }
  void set(std::size_t axis, AxisName name) { std::swap(entries_[axis], name.entry_); }

 private:
  void hold_all() const noexcept;
  void release_all() const noexcept;

  std::array<std::uint16_t, kCount> entries_{};
};

// False: none of the parts is named, there are 65,535 names already, or a number is out of range.
AxisName axis_name(std::vector<AxisPart> parts);
// Valid while the name, or a copy of it, exists.
const NamedAxis& named_axis(const AxisName& name);

}  // namespace imprint::tensor
