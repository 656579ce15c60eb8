#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "compute/base/text.h"
#include "compute/tensor/extent_sums.h"
#include "compute/tensor/made_nodes.h"
#include "compute/tensor/shape.h"

namespace imprint::tensor {
namespace {

constexpr std::int64_t kMostBound = 1 << 24;
constexpr std::int64_t kMostPlaces = std::int64_t{1} << 40;
constexpr std::size_t kMostNames = 65'535;

thread_local std::uint64_t named_here = 0;

struct Entry {
  NamedAxis axis;  // without parts: free
  std::atomic<std::uint32_t> holders{0};
};
constexpr std::size_t kChunk = 256;  // entries never move: they are read without the lock

struct Names {
  Names() = default;
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
  ~Names() {
    for (const std::atomic<Entry*>& chunk : chunks) delete[] chunk.load();
  }

  std::mutex mutex;  // of all but the entries that have holders
  std::array<std::atomic<Entry*>, (kMostNames + 1) / kChunk> chunks{};
  std::map<std::vector<AxisPart>, std::uint16_t> known;
  std::vector<std::uint16_t> free;
  std::size_t made = 1;  // entry 0 is no name

  Entry& operator[](std::size_t number) {
    return chunks[number / kChunk].load(std::memory_order_acquire)[number % kChunk];
  }
  // 0: there are too many. With the lock. Gives room in `free` too: a release never allocates.
  std::uint16_t fresh() {
    if (!free.empty()) {
      const std::uint16_t number = free.back();
      free.pop_back();
      return number;
    }
    if (made > kMostNames) return 0;
    std::atomic<Entry*>& chunk = chunks[made / kChunk];
    if (!chunk.load(std::memory_order_relaxed)) {
      free.reserve(made + kChunk);
      chunk.store(new Entry[kChunk], std::memory_order_release);
    }
    return static_cast<std::uint16_t>(made++);
  }
};

// A library that is unloaded leaves no memory behind. But names that static objects hold may be given back
// after this destructor: then the table stays.
struct KeptNames {
  KeptNames() = default;
  KeptNames(const KeptNames&) = delete;
  KeptNames& operator=(const KeptNames&) = delete;
  ~KeptNames() {
    if (names->free.size() + 1 == names->made) delete names;
  }
  Names* const names = new Names;
};

Names& names() {
  static const KeptNames kept;
  return *kept.names;
}

// A part without a name that follows a named one is a factor of it. Nothing: a number is out of range.
std::optional<std::vector<AxisPart>> joined(const std::vector<AxisPart>& parts) {
  std::vector<AxisPart> out;
  std::int64_t places = 1;
  for (const AxisPart& part : parts) {
    const bool fits = part.extent.empty() || (part.bound >= 2 && part.bound <= kMostBound);
    if (!fits || part.bound < 1 || part.factor < 1 || part.factor > kMostPlaces / part.bound ||
        part.places() > kMostPlaces / places)
      return std::nullopt;
    places *= part.places();
    if (part.extent.empty() && part.places() == 1) continue;
    if (part.extent.empty() && !out.empty())
      out.back().factor *= part.places();
    else
      out.push_back(part);
  }
  return out;
}

std::int64_t places_of(const std::vector<AxisPart>& parts) {
  std::int64_t places = 1;
  for (const AxisPart& part : parts) places *= part.places();
  return places;
}

}  // namespace

std::string NamedAxis::text() const {
  std::string out;
  for (const AxisPart& part : parts) {
    if (!out.empty()) out += " * ";
    out += part.extent.empty() ? imprint::text(part.places())
                               : imprint::text(extent_text(part.extent), " <= ", part.bound);
    if (!part.extent.empty() && part.factor > 1) out += imprint::text(" * ", part.factor);
  }
  return out;
}

AxisName axis_name(std::vector<AxisPart> given) {
  std::optional<std::vector<AxisPart>> parts = joined(given);
  if (!parts || std::ranges::all_of(*parts, [](const AxisPart& part) { return part.extent.empty(); }))
    return {};
  Names& all = names();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.known.find(*parts); found != all.known.end()) return AxisName(found->second);
  const std::uint16_t number = all.fresh();
  if (number == 0) return {};
  all.known.emplace(*parts, number);
  ++named_here;
  NamedAxis& axis = all[number].axis;
  axis.places = places_of(*parts);
  axis.parts = std::move(*parts);
  return AxisName(number);
}

std::uint64_t made_axis_names() { return named_here; }

const NamedAxis& named_axis(const AxisName& name) { return AxisName::axis(name.entry_); }

const NamedAxis& AxisName::axis(std::uint16_t entry) noexcept {
  static const NamedAxis kNone;
  return entry == 0 ? kNone : names()[entry].axis;
}

void AxisName::hold(std::uint16_t entry) noexcept {
  names()[entry].holders.fetch_add(1, std::memory_order_relaxed);
}

// Between the last release and the lock, axis_name may hold the entry again, and release it again.
void AxisName::release(std::uint16_t number) noexcept {
  Names& all = names();
  Entry& entry = all[number];
  if (entry.holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::lock_guard lock(all.mutex);
  if (entry.holders.load(std::memory_order_acquire) != 0 || entry.axis.parts.empty()) return;
  all.known.erase(entry.axis.parts);
  entry.axis = {};
  all.free.push_back(number);
}

std::strong_ordering AxisName::operator<=>(const AxisName& other) const {
  if (entry_ == other.entry_) return std::strong_ordering::equal;
  return axis(entry_).parts <=> axis(other.entry_).parts;
}

void AxisNames::hold_all() const noexcept {
  for (const std::uint16_t entry : entries_)
    if (entry != 0) AxisName::hold(entry);
}

void AxisNames::release_all() const noexcept {
  for (const std::uint16_t entry : entries_)
    if (entry != 0) AxisName::release(entry);
}

}  // namespace imprint::tensor

namespace imprint {

using namespace tensor;

Extent::Extent(std::string_view name, std::int64_t bound)
    : axis_name_(is_extent_name(name) ? tensor::axis_name({{std::string(name), bound, 1}}) : AxisName()) {}

const std::string& Extent::name() const {
  static const std::string kNone;
  const NamedAxis& axis = named_axis(axis_name_);
  return axis.parts.empty() ? kNone : axis.parts[0].extent;
}

std::int64_t Extent::bound() const { return named_axis(axis_name_).places; }

}  // namespace imprint
