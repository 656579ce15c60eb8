#include "compute/tensor/extent_sums.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

#include "compute/base/text.h"
#include "compute/tensor/named_axes.h"

namespace imprint::tensor {
namespace {

constexpr std::int64_t kMostNumber = std::int64_t{1} << 24;  // an extent's bound
constexpr std::string_view kPlus = " + ", kTimes = " * ", kBound = "<=", kFromZero = " from 0", kBy = " by ",
                           kOver = ") / ";

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool fits = error == std::errc() && stop == text.data() + text.size() && number <= kMostNumber &&
                    number >= -kMostNumber;
  return fits ? std::optional(number) : std::nullopt;
}

std::int64_t floor_of(std::int64_t number, std::int64_t by) {
  return number / by - (number % by < 0 ? 1 : 0);
}

// The first term of a sum's text, and what follows it. A sum inside of a quotient ends before kOver, which no
// extent's name holds.
std::pair<std::string_view, std::string_view> first_term(std::string_view text) {
  const std::size_t star = text.find(kTimes), open = text.find('(');
  const bool divides = open == 0 || (star < open && open == star + kTimes.size());
  const std::size_t over = divides ? text.find(kOver) : std::string_view::npos;
  const std::size_t end = text.find(kPlus, over == std::string_view::npos ? 0 : over);
  if (end == std::string_view::npos) return {text, {}};
  return {text.substr(0, end), text.substr(end + kPlus.size())};
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

std::int64_t ExtentSum::least() const {
  std::int64_t least = more;
  for (const SumTerm& term : terms) least += term.times * (term.times > 0 ? 1 : term.bound);
  return least;
}

std::int64_t ExtentSum::most() const {
  std::int64_t most = more;
  for (const SumTerm& term : terms) most += term.times * (term.times > 0 ? term.bound : 1);
  return most;
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
    std::string_view term;
    std::tie(term, rest) = first_term(rest);
    if (const auto number = number_in(term)) {
      sum.more += *number;
      continue;
    }
    std::int64_t times = 1;
    if (const std::size_t star = term.find(kTimes); star < term.find('(')) {
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

std::optional<ExtentQuotient> quotient_of(const std::string& extent) {
  const std::size_t over = extent.rfind(kOver);
  if (over == std::string::npos || !extent.starts_with('(')) return std::nullopt;
  const auto by = number_in(std::string_view(extent).substr(over + kOver.size()));
  const auto sum = by && *by > 1 ? sum_of(extent.substr(1, over - 1)) : std::nullopt;
  return sum ? std::optional(ExtentQuotient{*sum, *by}) : std::nullopt;
}

std::vector<SumTerm> terms_of(const std::string& extent) {
  std::vector<SumTerm> terms;
  if (const auto sum = sum_of(extent)) terms = sum->terms;
  if (const auto quotient = quotient_of(extent)) terms = quotient->sum.terms;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::vector<SumTerm> inner = terms_of(terms[i].extent);
    terms.insert(terms.end(), inner.begin(), inner.end());
  }
  return terms;
}

std::optional<std::int64_t> derived_value(
    const std::string& extent, const std::function<std::int64_t(const std::string&)>& extent_of_run) {
  const auto of_term = [&](const std::string& term) {
    return derived_value(term, extent_of_run).value_or(extent_of_run(term));
  };
  if (const auto sum = sum_of(extent)) return std::max<std::int64_t>(0, sum->value(of_term));
  const auto quotient = quotient_of(extent);
  if (!quotient) return std::nullopt;
  return std::max<std::int64_t>(0, floor_of(quotient->sum.value(of_term), quotient->by));
}

std::optional<ExtentSum> divided(const ExtentSum& sum, std::int64_t by) {
  if (by < 1 || by > kMostNumber) return std::nullopt;
  ExtentSum whole, rest;
  whole.more = floor_of(sum.more, by);
  rest.more = sum.more - whole.more * by;
  for (const SumTerm& term : sum.terms) {
    const std::int64_t times = floor_of(term.times, by), over = term.times - times * by;
    if (times != 0) whole.terms.push_back({term.extent, term.bound, times});
    if (over != 0) rest.terms.push_back({term.extent, term.bound, over});
  }
  if (rest.terms.empty()) return whole;
  // A quotient of a quotient is one: ((x / a) + b) / c = (x + a * b) / (a * c).
  if (rest.terms.size() == 1 && rest.terms[0].times == 1)
    if (auto inner = quotient_of(rest.terms[0].extent)) {
      inner->sum.more += rest.more * inner->by;
      const auto both = divided(inner->sum, inner->by * by);
      return both && whole.add(*both) ? std::optional(whole) : std::nullopt;
    }
  if (std::ranges::any_of(rest.terms,
                          [](const SumTerm& term) { return quotient_of(term.extent).has_value(); }))
    return std::nullopt;
  // Extents begin at 1.
  const std::int64_t raised = 1 - floor_of(rest.least(), by);
  rest.more += raised * by;
  whole.more -= raised;
  const std::int64_t most = floor_of(rest.most(), by);
  if (most < 2) {
    whole.more += most;
    return whole;
  }
  ExtentSum quotient;
  quotient.terms.push_back({text("(", name_of(rest), kOver, by), most, 1});
  const bool fits = most <= kMostNumber && quotient_of(quotient.terms[0].extent) && whole.add(quotient);
  return fits ? std::optional(whole) : std::nullopt;
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

namespace {

std::optional<ShapeAxis> axis_with(const ExtentSum& sum) {
  const std::int64_t most = sum.most();
  ShapeAxis axis(most);
  if (sum.terms.empty()) return axis;
  const SumTerm& first = sum.terms[0];
  const bool is_single = sum.terms.size() == 1 && sum.more == 0 && first.times > 0;
  if (!is_single && !sum_of(name_of(sum))) return std::nullopt;  // its numbers are too large
  axis.name = axis_name(is_single ? std::vector<AxisPart>{{first.extent, first.bound, first.times}}
                                  : std::vector<AxisPart>{{name_of(sum), most, 1}});
  return axis.name ? std::optional(axis) : std::nullopt;
}

}  // namespace

std::optional<ShapeAxis> axis_of(const ExtentSum& sum) {
  return sum.least() < 0 ? std::nullopt : axis_with(sum);
}

std::optional<ShapeAxis> windows_along(const ExtentSum& places, const WindowSteps& steps) {
  ExtentSum room = places;
  room.more -= steps.reach();
  auto windows = divided(room, steps.stride);
  if (!windows) return std::nullopt;
  windows->more += 1;
  return windows->most() < 1 ? std::nullopt : axis_with(*windows);
}

bool is_extent_name(std::string_view name) {
  constexpr auto kNone = std::string_view::npos;
  return given_extent(std::string(name)).is_given() && !name.starts_with('(') &&
         std::ranges::all_of(std::array{kBound, kPlus, kTimes, kOver},
                             [&](std::string_view sign) { return name.find(sign) == kNone; });
}

std::string from_zero(std::string_view extent) { return text(extent, kFromZero); }

std::string in_steps(std::string_view extent, std::int64_t step) { return text(extent, kBy, step); }

GivenExtent given_extent(const std::string& name) {
  if (name.ends_with(kFromZero)) return {name.substr(0, name.size() - kFromZero.size()), 1, 1};
  const std::size_t by = name.rfind(kBy);
  const auto step =
      by == std::string::npos ? std::nullopt : number_in(std::string_view(name).substr(by + kBy.size()));
  return step && *step > 1 ? GivenExtent{name.substr(0, by), 0, *step} : GivenExtent{name};
}

std::string extent_text(const std::string& extent) {
  const auto quotient = quotient_of(extent);
  if (quotient) return text("(", extent_text(name_of(quotient->sum)), kOver, quotient->by);
  const auto sum = sum_of(extent);
  if (!sum) {
    const GivenExtent given = given_extent(extent);
    if (given.step > 1) return text("(", given.name, kOver, given.step);
    return given.less > 0 ? text(given.name, kPlus, given.less) : extent;
  }
  std::string out;
  std::int64_t more = sum->more;
  for (const SumTerm& term : sum->terms) {
    const GivenExtent given = given_extent(term.extent);
    more += given.less * term.times;
    out += out.empty() ? "" : kPlus;
    if (term.times != 1) out += text(term.times, kTimes);
    out += given.less > 0 ? given.name : extent_text(term.extent);
  }
  return more == 0 ? out : text(out, kPlus, more);
}

}  // namespace imprint::tensor
