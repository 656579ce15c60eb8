#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

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

// References to entries stay valid: a deque grows at its end only.
struct Names {
  std::mutex mutex;
  std::deque<NamedAxis> entries{NamedAxis{}};
  std::map<std::vector<AxisPart>, AxisName> known;
};

Names& names() {
  static Names* const kept = new Names;  // also while static objects are destroyed
  return *kept;
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
    return 0;
  Names& all = names();
  const std::lock_guard lock(all.mutex);
  const auto [found, fresh] = all.known.try_emplace(*parts, AxisName{0});
  if (!fresh) return found->second;
  if (all.entries.size() > kMostNames) {
    all.known.erase(found);
    return 0;
  }
  ++named_here;
  found->second = static_cast<AxisName>(all.entries.size());
  all.entries.push_back({*parts, places_of(*parts)});
  return found->second;
}

std::uint64_t made_axis_names() { return named_here; }

const NamedAxis& named_axis(AxisName name) {
  Names& all = names();
  const std::lock_guard lock(all.mutex);
  return all.entries[name];
}

}  // namespace imprint::tensor

namespace imprint {

using namespace tensor;

Extent::Extent(std::string_view name, std::int64_t bound)
    : axis_name_(is_extent_name(name) ? tensor::axis_name({{std::string(name), bound, 1}}) : 0) {}

const std::string& Extent::name() const {
  static const std::string kNone;
  const NamedAxis& axis = named_axis(axis_name_);
  return axis.parts.empty() ? kNone : axis.parts[0].extent;
}

std::int64_t Extent::bound() const { return named_axis(axis_name_).places; }

}  // namespace imprint
