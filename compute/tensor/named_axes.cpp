#include "compute/tensor/named_axes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compute/base/text.h"
#include "compute/tensor/extent.h"
#include "compute/tensor/extent_sums.h"
#include "compute/tensor/made_nodes.h"

namespace imprint::tensor {
namespace {

constexpr std::string_view kExtentLabel = "extent: ";
constexpr std::int64_t kMostCounts = 1 << 16;  // elements of a table of counts

class Namer {
 public:
  Namer(Op op, std::span<const NodeRef> inputs, const Attributes& attributes, Shape& out)
      : op_(op), inputs_(inputs), attributes_(attributes), out_(out) {}

  Result<> name() {
    out_.clear_names();
    switch (op_info(op_).kind) {
      case OpKind::leaf:
      case OpKind::page:
        return as_given();
      case OpKind::generate:
        return generate();
      case OpKind::elementwise:
        return join_all();
      case OpKind::reduce:
        if (op_ == Op::argmax || op_ == Op::argmin) IMPRINT_CHECK(positions(static_cast<int>(ints(0))));
        return join(0, [&](int axis) { return is_folded(axis) ? -1 : axis; });
      case OpKind::contract:
        return contract();
      default:
        return by_op();
    }
  }

 private:
  const Shape& shape(std::size_t input) const { return inputs_[input]->shape; }
  std::int64_t ints(std::size_t i) const { return attributes_.ints[i]; }
  bool is_folded(int axis) const {
    return std::ranges::find(attributes_.ints, axis) != attributes_.ints.end();
  }

  Error refuse(std::size_t input, int axis, std::string_view expected) const {
    return make_error(ErrorCode::unsupported,
                      text(op_info(op_).name, ": found ", describe(*inputs_[input]), " with axis ", axis,
                           " named '", named_axis(shape(input).name(axis)).text(), "', expected ", expected));
  }
  Error refuse_here(std::size_t input, int axis) const {
    return refuse(input, axis, "a fixed extent there. Give the axis a number instead of an Extent.");
  }

  Result<> put(int axis, AxisName name) {
    if (!name) return {};
    const AxisName before = out_.name(axis);
    if (before && before != name)
      return make_error(ErrorCode::shape_mismatch,
                        text(op_info(op_).name, ": found axis ", axis, " named '", named_axis(before).text(),
                             "' and '", named_axis(name).text(), "', expected one name"));
    out_.set_name(axis, name);
    return {};
  }

  // The names of an input, whose axis a becomes axis map(a) of the result; -1: none.
  template <class Map>
  Result<> join(std::size_t input, Map map) {
    for (int axis = 0; axis < shape(input).rank(); ++axis)
      if (const int target = map(axis); target >= 0) IMPRINT_CHECK(put(target, shape(input).name(axis)));
    return {};
  }
  Result<> join_all() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) IMPRINT_CHECK(join(i, [](int axis) { return axis; }));
    return {};
  }
  Result<> as_given() {
    for (int axis = 0; axis < out_.rank(); ++axis) out_.set_name(axis, attributes_.shape.name(axis));
    return {};
  }

  // Random numbers count elements: those of the first rows do not depend on the number of rows.
  Result<> generate() {
    IMPRINT_CHECK(as_given());
    if (op_ != Op::random_uniform && op_ != Op::random_permutation) return {};
    for (int axis = op_ == Op::random_uniform || out_.rank() > 1 ? 1 : 0; axis < out_.rank(); ++axis)
      if (const AxisName name = out_.name(axis))
        return make_error(ErrorCode::unsupported,
                          text(op_info(op_).name, ": found axis ", axis, " named '", named_axis(name).text(),
                               "', expected a name only for the first axis"));
    return {};
  }

  Result<> contract() {
    const int rank = out_.rank();
    IMPRINT_CHECK(join(0, [&](int axis) { return axis == rank - 1 ? -1 : axis; }));
    return join(1, [&](int axis) { return axis == rank - 2 ? -1 : axis; });
  }

  // A position along merged axes would count the places of the bounds, not those of a run.
  Result<> positions(int along) const {
    const std::vector<AxisPart> parts = shape(0).parts(along);
    for (std::size_t i = 1; i < parts.size(); ++i)
      if (!parts[i].extent.empty()) return refuse(0, along, "one extent. Search one axis after the other.");
    return {};
  }

  Result<> by_op() {
    switch (op_) {
      case Op::reshape:
        return reshape();
      case Op::permute:
        for (int axis = 0; axis < out_.rank(); ++axis)
          out_.set_name(axis, shape(0).name(static_cast<int>(ints(static_cast<std::size_t>(axis)))));
        return {};
      case Op::expand:
        for (int axis = 0; axis < out_.rank(); ++axis)
          out_.set_name(axis,
                        shape(0)[axis] == out_[axis] ? shape(0).name(axis) : attributes_.shape.name(axis));
        return {};
      case Op::slice:
      case Op::pad:
        return cut_or_pad();
      case Op::concat:
        return concat(static_cast<int>(ints(0)));
      case Op::window:
      case Op::unwindow:
        return windows(static_cast<int>(ints(0)));
      case Op::gather:
      case Op::scatter_add:
        return select(static_cast<int>(ints(0)));
      case Op::take:
        return take(static_cast<int>(ints(0)));
      case Op::cumsum:
      case Op::linear_recurrence:
        return join_all();
      case Op::custom:
        return rows();
      case Op::loop_output:
        return as_given();
      default:
        return {};
    }
  }

  Result<> cut_or_pad() {
    const bool is_slice = op_ == Op::slice;
    for (int axis = 0; axis < out_.rank(); ++axis) {
      const AxisName name = shape(0).name(axis);
      if (!name) continue;
      const std::size_t a = 2 * static_cast<std::size_t>(axis);
      if (out_[axis] == shape(0)[axis] && ints(a) == 0 && ints(a + 1) == (is_slice ? 1 : 0))
        out_.set_name(axis, name);
      else if (is_slice && ints(a + 1) == 1 && out_[axis] < shape(0)[axis] &&
               attributes_.shape.is_named(axis))  // cut where the places of a run end: trimmed
        out_.set_name(axis, attributes_.shape.name(axis));
      else if (!is_slice)
        IMPRINT_CHECK(pad(axis, ints(a) + ints(a + 1)));
      else if (out_[axis] > 1 || ints(a) != 0)
        return refuse(0, axis,
                      "the whole axis or its first place. For others, use take with positions below "
                      "actual(extent).");
    }
    return {};
  }

  Result<> pad(int axis, std::int64_t more) {
    auto places = sum_of_axis(shape(0), axis);
    if (places) places->more += more;
    return put_made(axis, places ? axis_of(*places) : std::nullopt, "one extent or a sum, below 2^24.");
  }

  // A name that follows from that of the axis; nothing: it has none.
  Result<> put_made(int axis, const std::optional<ShapeAxis>& made, std::string_view expected) {
    if (!made || made->extent != out_[axis])
      return refuse(0, axis, text(expected, " Give the axis a number instead of an Extent."));
    return put(axis, made->name);
  }

  // Windows along a named axis have a quotient of its places; sums of such windows, what they were of.
  Result<> windows(int along) {
    IMPRINT_CHECK(join(0, [&](int axis) { return axis == along || axis >= out_.rank() ? -1 : axis; }));
    const AxisName given =
        attributes_.shape.rank() == out_.rank() ? attributes_.shape.name(along) : AxisName();
    if (op_ == Op::unwindow && given) return put(along, given);
    if (!shape(0).is_named(along)) return {};
    auto places = sum_of_axis(shape(0), along);
    const WindowSteps steps{ints(1), ints(2), ints(3)};
    std::optional<ShapeAxis> made;
    if (places && op_ == Op::window) made = windows_along(*places, steps);
    if (places && op_ == Op::unwindow) {
      ExtentSum reached;
      const bool fits = reached.add(*places, steps.stride);
      reached.more += steps.reach() - steps.stride;
      if (fits) made = axis_of(reached);
    }
    return put_made(along, made, "one extent, a sum or a quotient of one, in which a window fits.");
  }

  // Along the joined axis the last one alone may be named: what lies beyond its places lies beyond all.
  Result<> concat(int along) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (i + 1 < inputs_.size() && shape(i).is_named(along)) return refuse_here(i, along);
      IMPRINT_CHECK(join(i, [&](int axis) { return axis == along ? -1 : axis; }));
    }
    const std::size_t last = inputs_.size() - 1;
    if (!shape(last).is_named(along)) return {};
    ExtentSum total;
    const auto places = sum_of_axis(shape(last), along);
    const bool fits = places && total.add(*places);
    total.more += out_[along] - shape(last)[along];
    const auto axis = fits ? axis_of(total) : std::nullopt;
    if (!axis || axis->extent != out_[along]) return refuse_here(last, along);
    out_.set_name(along, axis->name);
    return {};
  }

  // gather: the result has the indices' extents. scatter_add: the base's.
  Result<> select(int along) {
    const std::size_t owner = op_ == Op::gather ? 1 : 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      IMPRINT_CHECK(join(i, [&](int axis) { return axis == along && i != owner ? -1 : axis; }));
    return {};
  }
  Result<> take(int along) {
    const int inserted = shape(1).rank();
    IMPRINT_CHECK(join(0, [&](int axis) {
      return axis == along ? -1 : axis < along ? axis : axis + inserted - 1;
    }));
    return join(1, [&](int axis) { return along + axis; });
  }

  Result<> rows() {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      for (int axis = shape(i).rank() == 2 ? 1 : 0; axis < shape(i).rank(); ++axis)
        if (shape(i).is_named(axis)) return refuse_here(i, axis);
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (shape(i).rank() == 2) IMPRINT_CHECK(put(0, shape(i).name(0)));
    return {};
  }

  // Merges the axes into one list of parts, and cuts it where the axes of the result end.
  Result<> reshape() {
    if (!shape(0).is_named()) return as_given();
    if (out_.element_count() == 0) return {};
    std::vector<AxisPart> rest;  // the next part last
    for (int axis = shape(0).rank() - 1; axis >= 0; --axis) {
      std::vector<AxisPart> parts = shape(0).parts(axis);
      rest.insert(rest.end(), parts.rbegin(), parts.rend());
    }
    for (int axis = 0; axis < out_.rank(); ++axis) {
      std::vector<AxisPart> own;
      for (std::int64_t missing = out_[axis]; missing > 1;) {
        const AxisPart part = rest.back();
        rest.pop_back();
        if (missing % part.places() == 0) {
          missing /= part.places();
          own.push_back(part);
          continue;
        }
        // The inner places stay for the next axes.
        const std::int64_t inner = part.places() / missing;
        const bool whole = part.places() % missing == 0 && (part.extent.empty() || part.factor % inner == 0);
        if (!whole)
          return make_error(
              ErrorCode::unsupported,
              text("reshape: found ", describe(*inputs_[0]), " and target ", attributes_.shape.text(),
                   ", expected a target that keeps the places of a named axis together"));
        const bool is_named = !part.extent.empty();
        own.push_back(is_named ? AxisPart{part.extent, part.bound, part.factor / inner}
                               : AxisPart{{}, missing, 1});
        rest.push_back({{}, inner, 1});
        missing = 1;
      }
      const bool is_named =
          std::ranges::any_of(own, [](const AxisPart& part) { return !part.extent.empty(); });
      const AxisName name = axis_name(std::move(own));
      if (is_named && !name)
        return make_error(
            ErrorCode::unsupported,
            text("reshape: found ", describe(*inputs_[0]),
                 ", expected at most 65,535 names of axes at once in one process. Destroy models that "
                 "the host no longer runs."));
      out_.set_name(axis, name);
    }
    return {};
  }

  Op op_;
  std::span<const NodeRef> inputs_;
  const Attributes& attributes_;
  Shape& out_;
};

}  // namespace

bool has_named_axes(std::span<const NodeRef> inputs, const Attributes& attributes) {
  return attributes.shape.is_named() ||
         std::ranges::any_of(inputs, [](const NodeRef& input) { return input->shape.is_named(); });
}

Result<> name_axes(Op op, std::span<const NodeRef> inputs, const Attributes& attributes, Shape& out) {
  return Namer(op, inputs, attributes, out).name();
}

Tensor extent_input(const std::string& name) { return input(text(kExtentLabel, name), {}, DType::int32); }

std::string_view extent_of_input(std::string_view label) {
  return label.starts_with(kExtentLabel) ? label.substr(kExtentLabel.size()) : std::string_view();
}

Tensor used_positions(const Tensor& positions, const AxisName& name) {
  Tensor used;
  const NamedAxis& axis = named_axis(name);
  std::int64_t inner = axis.places;
  for (const AxisPart& part : axis.parts) {
    inner /= part.places();
    if (part.extent.empty()) continue;
    Tensor place = inner == 1 ? positions : positions / static_cast<int>(inner);
    if (inner * part.places() != axis.places) place = remainder(place, static_cast<int>(part.places()));
    const Tensor count = extent_input(part.extent);
    const Tensor own = less(place, part.factor == 1 ? count : count * static_cast<int>(part.factor));
    used = is_empty(used) ? own : logical_and(used, own);
  }
  return used;
}

// A table, computed in double, so that the result has the bits of a program with fixed extents.
Tensor inverse_count(const Shape& shape, std::span<const int> axes, double correction) {
  double fixed = 1;
  std::int64_t counts = 1;
  std::vector<AxisPart> named;
  for (const int axis : axes)
    for (const AxisPart& part : shape.parts(axis)) {
      fixed *= static_cast<double>(part.extent.empty() ? part.places() : part.factor);
      if (part.extent.empty()) continue;
      named.push_back(part);
      counts *= part.bound + 1;
    }
  const auto inverse = [&](double places) {
    const double freedom = places * fixed - correction;
    return freedom > 0 ? 1 / freedom : std::numeric_limits<double>::quiet_NaN();
  };
  if (named.empty()) return Tensor(inverse(1));
  if (counts > kMostCounts) {
    Tensor places = Tensor(fixed);
    for (const AxisPart& part : named) places = places * cast(extent_input(part.extent), DType::float32);
    const Tensor freedom = places - Tensor(correction);
    return where(freedom > 0.0f, 1.0f / freedom, Tensor(std::numeric_limits<double>::quiet_NaN()));
  }
  count_table(counts);
  std::vector<float> table;
  for (std::int64_t i = 0; i < counts; ++i) {
    double places = 1;
    std::int64_t rest = i;
    for (auto part = named.rbegin(); part != named.rend(); ++part) {
      places *= static_cast<double>(rest % (part->bound + 1));
      rest /= part->bound + 1;
    }
    table.push_back(static_cast<float>(inverse(places)));
  }
  Tensor position = extent_input(named[0].extent);
  for (std::size_t i = 1; i < named.size(); ++i)
    position = position * static_cast<int>(named[i].bound + 1) + extent_input(named[i].extent);
  return imprint::take(Tensor::from(table, {counts}), 0, position);
}

}  // namespace imprint::tensor

namespace imprint {

Tensor actual(const Extent& extent) { return tensor::extent_input(extent.name()); }

}  // namespace imprint
