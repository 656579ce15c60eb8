#include "compute/model/onnx/symbolic.h"

#include <algorithm>
#include <iterator>

#include "compute/base/text.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/extent_sums.h"
#include "compute/tensor/named_axes.h"

namespace imprint::onnx {

using tensor::AxisName;
using tensor::AxisPart;
using tensor::ShapeAxis;

namespace {

constexpr std::int64_t kMostNumber = std::int64_t{1} << 40;  // sums of a few stay far from overflow
constexpr std::size_t kMostTerms = 16, kMostFactors = 8;

bool is_small(std::int64_t number) { return number >= -kMostNumber && number <= kMostNumber; }

// Nothing beyond kMostNumber.
std::optional<std::int64_t> small_product(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  const auto size = [](std::int64_t number) { return number < 0 ? -number : number; };
  if (!is_small(a) || !is_small(b) || size(a) > kMostNumber / size(b)) return std::nullopt;
  return a * b;
}

const AxisPart& part_of(const AxisName& factor) { return tensor::named_axis(factor).parts[0]; }

}  // namespace

// Larger numbers are ends of axes that no axis reaches.
SymbolicInt::SymbolicInt(std::int64_t number) { add({}, std::clamp(number, -kMostNumber, kMostNumber)); }

SymbolicInt SymbolicInt::of(const Shape& shape, int axis) {
  Maybe extent(1);
  for (const AxisPart& part : shape.parts(axis)) {
    SymbolicInt places(part.extent.empty() ? part.places() : part.factor);
    if (!part.extent.empty()) {
      const auto sum = tensor::sum_of(part.extent);
      SymbolicInt own(sum ? sum->more : 0);
      if (!sum) own.add_extent(part.extent, part.bound, 1);
      for (std::size_t i = 0; sum && i < sum->terms.size(); ++i)
        own.add_extent(sum->terms[i].extent, sum->terms[i].bound, sum->terms[i].times);
      places = product(places, own).value_or(not_ok());
    }
    if (extent) extent = product(*extent, places);
  }
  return extent.value_or(not_ok());
}

SymbolicInt SymbolicInt::not_ok() {
  SymbolicInt out;
  out.ok_ = false;
  return out;
}

void SymbolicInt::add_extent(const std::string& extent, std::int64_t bound, std::int64_t times) {
  const AxisName name = tensor::axis_name({{extent, bound, 1}});
  ok_ = ok_ && name && add({name}, times);
}

std::int64_t SymbolicInt::size() const {
  std::int64_t size = 1;
  for (const auto& term : terms_) size += 1 + static_cast<std::int64_t>(term.first.size());
  return size;
}

bool SymbolicInt::add(const Factors& factors, std::int64_t times) {
  const auto [term, fresh] = terms_.try_emplace(factors, 0);
  term->second += times;
  const bool fits = is_small(term->second) && factors.size() <= kMostFactors;
  if (term->second == 0) terms_.erase(term);
  return fits && terms_.size() <= kMostTerms;
}

std::optional<std::int64_t> SymbolicInt::number() const {
  if (!ok_) return std::nullopt;
  if (terms_.empty()) return 0;
  return terms_.size() == 1 && terms_.begin()->first.empty() ? std::optional(terms_.begin()->second)
                                                             : std::nullopt;
}

std::int64_t SymbolicInt::range(bool upper) const {
  if (!ok_) return upper ? kMostNumber : -kMostNumber;
  std::int64_t sum = 0;
  for (const auto& [factors, times] : terms_) {
    std::int64_t value = times;
    if ((times > 0) == upper)
      for (const AxisName& factor : factors) {
        const auto larger = small_product(value, part_of(factor).bound);
        value = larger ? *larger : upper ? kMostNumber : -kMostNumber;
      }
    sum += value;
  }
  return sum;
}

SymbolicInt::Maybe added(const SymbolicInt& a, const SymbolicInt& b, std::int64_t times_b) {
  if (!a.ok_ || !b.ok_) return std::nullopt;
  SymbolicInt sum = a;
  for (const auto& [factors, times] : b.terms_) {
    const auto more = small_product(times, times_b);
    if (!more || !sum.add(factors, *more)) return std::nullopt;
  }
  return sum;
}

SymbolicInt::Maybe product(const SymbolicInt& a, const SymbolicInt& b) {
  if (!a.ok_ || !b.ok_) return std::nullopt;
  SymbolicInt out;
  for (const auto& [left, times_left] : a.terms_)
    for (const auto& [right, times_right] : b.terms_) {
      SymbolicInt::Factors factors;
      std::ranges::merge(left, right, std::back_inserter(factors));
      const auto times = small_product(times_left, times_right);
      if (!times || !out.add(factors, *times)) return std::nullopt;
    }
  return out;
}

SymbolicInt::Maybe SymbolicInt::over(std::int64_t by) const {
  const auto sum = ok_ && by > 0 && least() >= 0 ? extent_sum() : std::nullopt;
  const auto whole = sum ? tensor::divided(*sum, by) : std::nullopt;
  if (!whole) return std::nullopt;
  SymbolicInt out(whole->more);
  for (const tensor::SumTerm& term : whole->terms) out.add_extent(term.extent, term.bound, term.times);
  return out.ok() ? Maybe(out) : std::nullopt;
}

SymbolicInt::Maybe quotient(const SymbolicInt& a, const SymbolicInt& b) {
  if (!a.ok_ || b.terms_.size() != 1) return std::nullopt;
  const auto& [divisor, by] = *b.terms_.begin();
  SymbolicInt out;
  for (const auto& [factors, times] : a.terms_) {
    if (times % by != 0 || !std::ranges::includes(factors, divisor)) return std::nullopt;
    SymbolicInt::Factors rest;
    std::ranges::set_difference(factors, divisor, std::back_inserter(rest));
    out.add(rest, times / by);
  }
  return out;
}

std::optional<ShapeAxis> SymbolicInt::axis() const {
  if (const auto fixed = number()) return *fixed >= 0 ? std::optional(ShapeAxis(*fixed)) : std::nullopt;
  if (!ok_) return std::nullopt;
  if (terms_.size() != 1) return sum_axis();
  if (terms_.begin()->second < 0) return std::nullopt;
  std::vector<AxisPart> parts;
  for (const AxisName& factor : terms_.begin()->first) parts.push_back(part_of(factor));
  parts.push_back({{}, terms_.begin()->second, 1});
  ShapeAxis axis(most());
  axis.name = tensor::axis_name(parts);
  if (!axis.name || tensor::named_axis(axis.name).places != axis.extent) return std::nullopt;
  return axis;
}

std::optional<tensor::ExtentSum> SymbolicInt::extent_sum() const {
  tensor::ExtentSum sum;
  for (const auto& [factors, times] : terms_) {
    tensor::ExtentSum term;
    if (factors.size() > 1) return std::nullopt;
    factors.empty() ? void(term.more = 1)
                    : term.terms.push_back({part_of(factors[0]).extent, part_of(factors[0]).bound, 1});
    if (!sum.add(term, times)) return std::nullopt;
  }
  return sum;
}

std::optional<ShapeAxis> SymbolicInt::sum_axis() const {
  const auto sum = extent_sum();
  return sum ? tensor::axis_of(*sum) : std::nullopt;
}

Tensor SymbolicInt::tensor() const {
  if (most() > INT32_MAX || least() < INT32_MIN)
    return Tensor(make_error(ErrorCode::unsupported,
                             imprint::text("found ", text(), ", up to ", most(), ", expected 32 bits")));
  Tensor sum;
  for (const auto& [factors, times] : terms_) {
    Tensor term(static_cast<int>(times));
    for (const AxisName& factor : factors) term = term * tensor::extent_input(part_of(factor).extent);
    sum = sum.ok() ? sum + term : term;
  }
  return sum.ok() ? sum : Tensor(0);
}

std::string SymbolicInt::text() const {
  if (!ok_) return "a sum of too many extents";
  std::string out;
  std::int64_t more = 0;  // extents from 0 are shown as such, without the 1 that they are stored with
  for (const auto& [factors, times] : terms_) {
    const auto shown = [](const AxisName& factor) {
      const tensor::GivenExtent given = tensor::given_extent(part_of(factor).extent);
      return given.less > 0 ? given.name : tensor::extent_text(part_of(factor).extent);
    };
    if (factors.empty()) more += times;
    if (factors.size() == 1) more += times * tensor::given_extent(part_of(factors[0]).extent).less;
    if (factors.empty()) continue;
    std::string term = times != 1 ? imprint::text(times) : "";
    for (const AxisName& factor : factors) term += (term.empty() ? "" : " * ") + shown(factor);
    out += (out.empty() ? "" : " + ") + term;
  }
  return out.empty() ? imprint::text(more) : more == 0 ? out : imprint::text(out, " + ", more);
}

std::optional<SymbolicInt> symbolic_count(const Shape& shape) {
  std::optional<SymbolicInt> count(1);
  for (int axis = 0; axis < shape.rank() && count; ++axis)
    count = product(*count, SymbolicInt::of(shape, axis));
  return count;
}

std::optional<Shape> shape_of_extents(const std::vector<SymbolicInt>& extents) {
  Shape shape;
  for (const SymbolicInt& extent : extents) {
    const auto axis = extent.axis();
    if (!axis || shape.rank() == Shape::kMaxRank) return std::nullopt;
    shape.append(axis->extent);
    shape.set_name(shape.rank() - 1, axis->name);
  }
  return shape;
}

}  // namespace imprint::onnx
