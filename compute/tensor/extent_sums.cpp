#include "compute/tensor/extent_sums.h"

#include <algorithm>
#include <charconv>

#include "compute/base/text.h"
#include "compute/tensor/named_axes.h"

namespace imprint::tensor {
namespace {

constexpr std::int64_t kMostNumber = std::int64_t{1} << 24;  // an extent's bound
constexpr std::string_view kPlus = " + ", kTimes = " * ", kBound = "<=", kFromZero = " from 0";

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool fits = error == std::errc() && stop == text.data() + text.size() && number <= kMostNumber &&
                    number >= -kMostNumber;
  return fits ? std::optional(number) : std::nullopt;
}

std::string name_of(const ExtentSum& sum) {
  std::string name;
  for (const SumTerm& term : sum.terms) {
    name += name.empty() ? "" : kPlus;
    if (term.times != 1) name += text(term.times, kTimes);
    name += text(term.extent, kBound, term.bound);
  }
  return sum.more == 0 ? name : text(name, kPlus, sum.more);
}

}  // namespace

bool ExtentSum::add(const ExtentSum& other, std::int64_t times_other) {
  more += other.more * times_other;
  for (const SumTerm& term : other.terms) {
    const auto place = std::ranges::lower_bound(terms, term.extent, {}, &SumTerm::extent);
    const bool is_known = place != terms.end() && place->extent == term.extent;
    if (is_known && place->bound != term.bound) return false;
    if (is_known)
      place->times += term.times * times_other;
    else
      terms.insert(place, {term.extent, term.bound, term.times * times_other});
  }
  std::erase_if(terms, [](const SumTerm& term) { return term.times == 0; });
  return true;
}

std::int64_t ExtentSum::value(const std::function<std::int64_t(const std::string&)>& extent_of_run) const {
  std::int64_t total = more;
  for (const SumTerm& term : terms) total += term.times * extent_of_run(term.extent);
  return total;
}

Tensor ExtentSum::tensor() const {
  Tensor sum(static_cast<int>(more));
  for (const SumTerm& term : terms) {
    const Tensor extent = extent_input(term.extent);
    sum = sum + (term.times == 1 ? extent : extent * static_cast<int>(term.times));
  }
  return sum;
}

std::optional<ExtentSum> sum_of(const std::string& extent) {
  ExtentSum sum;
  std::string_view rest = extent;
  while (!rest.empty()) {
    const std::size_t end = rest.find(kPlus);
    std::string_view term = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + kPlus.size());
    if (const auto number = number_in(term)) {
      sum.more += *number;
      continue;
    }
    std::int64_t times = 1;
    if (const std::size_t star = term.find(kTimes); star != std::string_view::npos) {
      const auto factor = number_in(term.substr(0, star));
      if (!factor) return std::nullopt;
      times = *factor;
      term = term.substr(star + kTimes.size());
    }
    const std::size_t limit = term.rfind(kBound);
    const auto bound =
        limit == std::string_view::npos ? std::nullopt : number_in(term.substr(limit + kBound.size()));
    if (!bound) return std::nullopt;
    sum.terms.push_back({std::string(term.substr(0, limit)), *bound, times});
  }
  return sum.terms.empty() ? std::nullopt : std::optional(std::move(sum));
}

std::optional<ExtentSum> sum_of_axis(const Shape& shape, int axis) {
  const std::vector<AxisPart> parts = shape.parts(axis);
  if (parts.size() != 1) return std::nullopt;
  const AxisPart& part = parts[0];
  ExtentSum places;
  if (part.extent.empty()) {
    places.more = part.places();
    return places;
  }
  const auto sum = sum_of(part.extent);
  const ExtentSum own = sum ? *sum : ExtentSum{{{part.extent, part.bound, 1}}, 0};
  return places.add(own, part.factor) ? std::optional(places) : std::nullopt;
}

std::optional<ShapeAxis> axis_of(const ExtentSum& sum) {
  std::int64_t least = sum.more, most = sum.more;
  for (const SumTerm& term : sum.terms) {
    least += term.times * (term.times > 0 ? 1 : term.bound);
    most += term.times * (term.times > 0 ? term.bound : 1);
  }
  if (least < 0) return std::nullopt;
  ShapeAxis axis(most);
  if (sum.terms.empty()) return axis;
  const SumTerm& first = sum.terms[0];
  const bool is_single = sum.terms.size() == 1 && sum.more == 0 && first.times > 0;
  axis.name = axis_name(is_single ? std::vector<AxisPart>{{first.extent, first.bound, first.times}}
                                  : std::vector<AxisPart>{{name_of(sum), most, 1}});
  return axis.name == 0 ? std::nullopt : std::optional(axis);
}

bool is_extent_name(std::string_view name) {
  return name.find(kBound) == std::string_view::npos && !name.ends_with(kFromZero);
}

std::string from_zero(std::string_view extent) { return text(extent, kFromZero); }

std::optional<std::string> of_from_zero(const std::string& name) {
  return name.ends_with(kFromZero) ? std::optional(name.substr(0, name.size() - kFromZero.size()))
                                   : std::nullopt;
}

std::string extent_text(const std::string& extent) {
  const auto sum = sum_of(extent);
  if (!sum) {
    const auto shown = of_from_zero(extent);
    return shown ? text(*shown, kPlus, 1) : extent;
  }
  std::string out;
  std::int64_t more = sum->more;
  for (const SumTerm& term : sum->terms) {
    const auto shown = of_from_zero(term.extent);
    if (shown) more += term.times;
    out += out.empty() ? "" : kPlus;
    if (term.times != 1) out += text(term.times, kTimes);
    out += shown.value_or(term.extent);
  }
  return more == 0 ? out : text(out, kPlus, more);
}

}  // namespace imprint::tensor
