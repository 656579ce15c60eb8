// Free dimensions whose extents each run chooses, or that follow from those.

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/import.h"
#include "compute/tensor/extent_sums.h"
#include "compute/tensor/made_nodes.h"

namespace imprint {
namespace {

constexpr std::int64_t kMostBound = std::int64_t{1} << 24;

class Bounds {
 public:
  explicit Bounds(std::span<const DimensionBound> bounds) : bounds_(bounds) {}

  Result<> check() const {
    std::set<std::string> names;
    for (const DimensionBound& bound : bounds_) {
      if (!tensor::is_extent_name(bound.name))
        return make_error(ErrorCode::invalid_argument,
                          text("extent ", quote(bound.name),
                               ": found \"<=\", \" from 0\" or a sign between blanks in its name, expected "
                               "neither. Name the dimension by its place, as input:0."));
      const bool is_sum = !bound.sum.empty(), is_new = names.insert(bound.name).second;
      const bool fits = (bound.least == 0 || bound.least == 1) &&
                        (is_sum ? bound.most == 0 : bound.most >= 1 && bound.most < kMostBound + bound.least);
      const bool in_steps = bound.step == 1 || (bound.step > 1 && bound.least == 1 && !is_sum &&
                                                bound.step <= kMostBound && bound.most % bound.step == 0);
      if (!in_steps)
        return make_error(ErrorCode::invalid_argument,
                          text("extent ", quote(bound.name), ": found steps of ", bound.step, " up to ",
                               bound.most, ", expected a bound that is a multiple of them"));
      if (fits && is_new) continue;
      return make_error(ErrorCode::invalid_argument,
                        text("extent ", quote(bound.name), ": found ", fits ? "it again" : text(bound.most),
                             ", expected ", fits ? "each once" : "a bound of 1 to 16777216"));
    }
    return {};
  }

  // A free dimension with this extent is a number in sums.
  void know(const std::string& symbol, std::int64_t extent) { extents_.emplace(symbol, extent); }

  // The axis of the dimension; nothing: it keeps its number.
  Result<std::optional<tensor::ShapeAxis>> axis_of(const std::string& position, const std::string& symbol,
                                                   std::int64_t extent) {
    const auto bound = std::ranges::find_if(bounds_, [&](const DimensionBound& one) {
      return one.name == position || (!symbol.empty() && one.name == symbol);
    });
    // As exporters name what grows: "past_sequence_length + 1".
    std::string sum = bound == bounds_.end() ? symbol : bound->sum;
    if (bound != bounds_.end()) used_.insert(bound->name);
    if (bound == bounds_.end() || !sum.empty()) {
      const auto places = sum.empty() ? std::nullopt : parsed(sum);
      if (!places && bound != bounds_.end())
        return make_error(ErrorCode::invalid_argument,
                          text("extent ", quote(bound->name), ": found ", quote(sum),
                               ", expected a sum of bounded dimensions and numbers, such as \"past + 1\""));
      return places ? tensor::axis_of(*places) : std::nullopt;
    }
    if (extent > bound->most)
      return make_error(ErrorCode::invalid_argument, text("found ", extent, ", expected at most ",
                                                          bound->most, " for ", quote(bound->name)));
    return tensor::axis_of(places_of(*bound));
  }

  bool uses(const std::string& name) const { return used_.contains(name); }

 private:
  // A sum in which one term at least has a bound.
  std::optional<tensor::ExtentSum> parsed(const std::string& given) const {
    constexpr std::string_view kPlus = "+";
    tensor::ExtentSum sum;
    for (std::size_t at = 0; at <= given.size();) {
      const std::size_t end = std::min(given.find(kPlus, at), given.size());
      const auto term = term_of(trimmed(given.substr(at, end - at)));
      if (!term || !sum.add(*term)) return std::nullopt;
      at = end + kPlus.size();
    }
    return sum.terms.empty() ? std::nullopt : std::optional(std::move(sum));
  }

  std::optional<tensor::ExtentSum> term_of(const std::string& name) const {
    tensor::ExtentSum term;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), term.more);
    if (error == std::errc() && stop == name.data() + name.size() && term.more <= kMostBound &&
        term.more >= -kMostBound)
      return term;
    const auto bound = std::ranges::find(bounds_, name, &DimensionBound::name);
    const auto extent = extents_.find(name);
    if (bound != bounds_.end()) return bound->sum.empty() ? std::optional(places_of(*bound)) : std::nullopt;
    if (extent == extents_.end()) return std::nullopt;
    term.more = extent->second;
    return term;
  }

  static tensor::ExtentSum places_of(const DimensionBound& bound) {
    if (bound.least == 0) return {{{tensor::from_zero(bound.name), bound.most + 1, 1}}, -1};
    if (bound.most == bound.step) return {{}, bound.step};
    if (bound.step > 1)
      return {{{tensor::in_steps(bound.name, bound.step), bound.most / bound.step, bound.step}}, 0};
    return {{{bound.name, bound.most, 1}}, 0};
  }

  static std::string trimmed(const std::string& name) {
    const std::size_t first = name.find_first_not_of(' '), last = name.find_last_not_of(' ');
    return first == std::string::npos ? std::string() : name.substr(first, last - first + 1);
  }

  std::span<const DimensionBound> bounds_;
  std::map<std::string, std::int64_t> extents_;
  std::set<std::string> used_;
};

// The symbol of a free dimension, or "" for one without; nothing for a fixed one.
std::optional<std::string> free_symbol(const onnx::ValueInfo& input, int axis) {
  const auto place = static_cast<std::size_t>(axis);
  if (!input.shape || place >= input.shape->size()) return std::string();
  const onnx::Dimension& dimension = (*input.shape)[place];
  return dimension.value ? std::nullopt : std::optional(dimension.symbol);
}

}  // namespace

Result<DimensionBound> parse_bound(const std::string& given) {
  constexpr std::string_view kFromZero = "0..";
  const std::size_t split = given.rfind('=');
  if (split == std::string::npos || split == 0 || split + 1 == given.size())
    return make_error(
        ErrorCode::invalid_argument,
        text("found ", quote(given),
             ", expected a name and a bound, such as batch=64, past=0..128 or height=640/32, or a sum, such "
             "as total=past+1"));
  DimensionBound bound{given.substr(0, split), 0};
  const std::string value = given.substr(split + 1);
  const std::size_t skipped = value.starts_with(kFromZero) ? kFromZero.size() : 0;
  const std::size_t slash = skipped > 0 ? std::string::npos : value.find('/');
  const auto read = [&](std::size_t from, std::size_t to, std::int64_t& number) {
    const char* const end = value.data() + to;
    return std::from_chars(value.data() + from, end, number) == std::from_chars_result{end, std::errc()};
  };
  if (read(skipped, std::min(slash, value.size()), bound.most) &&
      (slash == std::string::npos || read(slash + 1, value.size(), bound.step))) {
    bound.least = skipped > 0 ? 0 : 1;
  } else {
    bound.most = 0;
    bound.step = 1;
    bound.sum = value;
  }
  return bound;
}

Result<> bound_dimensions(const onnx::Model& model, std::span<const DimensionBound> given,
                          std::map<std::string, Shape>& shapes) {
  Bounds bounds(given);
  IMPRINT_CHECK(bounds.check());
  const std::uint64_t names_before = tensor::made_axis_names();
  std::set<std::string> free;
  const auto each_free = [&](const auto& visit) -> Result<> {
    for (const onnx::ValueInfo& input : model_inputs(model)) {
      const auto found = shapes.find(input.name);
      for (int axis = 0; found != shapes.end() && axis < found->second.rank(); ++axis)
        if (const auto symbol = free_symbol(input, axis))
          IMPRINT_CHECK(visit(input.name, axis, *symbol, found->second));
    }
    return {};
  };
  IMPRINT_CHECK(
      each_free([&](const std::string&, int axis, const std::string& symbol, Shape& shape) -> Result<> {
        if (!symbol.empty()) bounds.know(symbol, shape[axis]);
        return {};
      }));
  IMPRINT_CHECK(
      each_free([&](const std::string& input, int axis, const std::string& symbol, Shape& shape) -> Result<> {
        const std::string position = text(input, ":", axis);
        free.insert(symbol.empty() ? position : symbol);
        const auto made = bounds.axis_of(position, symbol, shape[axis]);
        if (!made)
          return make_error(made.error().code,
                            text("input ", quote(input), ": axis ", axis, ": ", made.error().message));
        if (!*made) return {};
        if (tensor::made_axis_names() - names_before > tensor::kMostAxisNames)
          return make_error(ErrorCode::unsupported,
                            text("input ", quote(input), ": axis ", axis, ": found more than ",
                                 tensor::kMostAxisNames, " extents before it, expected at most these"));
        shape[axis] = (*made)->extent;
        shape.set_name(axis, (*made)->name);
        return {};
      }));
  std::string known;
  for (const std::string& name : free) known += (known.empty() ? "" : ", ") + quote(name);
  for (const DimensionBound& bound : given)
    if (!bounds.uses(bound.name))
      return make_error(ErrorCode::not_found,
                        text("extent: found ", quote(bound.name), ", expected a free dimension: ",
                             known.empty() ? "the model has none" : clipped(known, 2000)));
  return {};
}

}  // namespace imprint
