#include "compute/program/program_extents.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "compute/base/text.h"
#include "compute/program/program_body.h"
#include "compute/tensor/extent_sums.h"
#include "compute/tensor/named_axes.h"

namespace imprint {

using namespace program;
using namespace tensor;

namespace {

const Port* extent_port(const std::vector<Port>& inputs, std::string_view name) {
  for (const Port& port : inputs)
    if (port.bound > 0 && tensor::extent_of_input(port.name) == name) return &port;
  return nullptr;
}

bool is_derived(const std::string& extent) { return !terms_of(extent).empty(); }

// The input of an extent that callers name, and how its value follows from theirs.
struct NamedPort {
  const Port* port = nullptr;
  GivenExtent given;
};
NamedPort named_port(const std::vector<Port>& inputs, std::string_view name) {
  if (const Port* port = extent_port(inputs, name)) return {port, {std::string(name)}};
  for (const Port& port : inputs)
    if (port.bound > 0)
      if (const GivenExtent given = given_extent(std::string(extent_of_input(port.name))); given.name == name)
        return {&port, given};
  return {};
}

}  // namespace

void Program::Body::reset_extents() {
  for (std::uint32_t slot = 0; slot < source.slot_count; ++slot) {
    bool any = false;
    for (const Port& port : source.inputs) {
      if (port.bound == 0) continue;
      const auto bound = static_cast<std::int32_t>(port.bound);
      std::memcpy(input_memory(slot) + port.offset, &bound, sizeof bound);
      any = true;
    }
    if (any) extents_changed(slot);
  }
}

Result<> Program::set_extent(std::uint32_t slot, std::string_view name, std::int64_t extent) {
  const auto [port, given] = named_port(body_->source.inputs, name);
  if (!port || is_derived(std::string(name)))
    return make_error(ErrorCode::not_found, text("set_extent '", this->name(), "': found '", name,
                                                 "', expected the name of an axis of the program"));
  const std::int64_t least = given.shown(1), most = given.shown(port->bound);
  if (slot >= body_->source.slot_count || extent < least || extent > most ||
      (extent + given.less) % given.step != 0)
    return make_error(
        ErrorCode::invalid_argument,
        text("set_extent '", this->name(), "': found ", name, " = ", extent, " in slot ", slot, ", expected ",
             least, " .. ", most, given.step > 1 ? text(" in steps of ", given.step) : "", " in one of ",
             slot_count(), " slots"));
  const auto value = static_cast<std::int32_t>((extent + given.less) / given.step);
  std::byte* at = body_->input_memory(slot) + port->offset;
  if (std::memcmp(at, &value, sizeof value) == 0) return {};
  std::memcpy(at, &value, sizeof value);
  const auto of_run = [&](const std::string& term) { return this->extent(slot, term); };
  for (const Port& other : body_->source.inputs) {
    if (other.bound == 0) continue;
    const auto places = derived_value(std::string(extent_of_input(other.name)), of_run);
    if (!places) continue;
    const auto derived = static_cast<std::int32_t>(*places);
    std::memcpy(body_->input_memory(slot) + other.offset, &derived, sizeof derived);
  }
  body_->extents_changed(slot);
  return {};
}

std::int64_t Program::extent(std::uint32_t slot, std::string_view name) const {
  const auto [port, given] = named_port(body_->source.inputs, name);
  if (!port || slot >= body_->source.slot_count) return 0;
  std::int32_t value = 0;
  std::memcpy(&value, body_->input_memory(slot) + port->offset, sizeof value);
  return given.shown(value);
}

Shape Program::used_shape(std::uint32_t slot, const Shape& shape) const {
  Shape used = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!shape.is_named(axis)) continue;
    std::int64_t places = 1;
    for (const AxisPart& part : shape.parts(axis))
      places *= part.extent.empty() ? part.places() : extent(slot, part.extent) * part.factor;
    used[axis] = places;
  }
  return used;
}

void program::each_used_run(const Program& program, std::uint32_t slot, const Shape& full,
                            std::size_t element_bytes,
                            const std::function<void(std::size_t, std::size_t, std::size_t)>& use) {
  // A merged axis is as many axes as it has parts: a run uses the first places of each.
  std::vector<std::int64_t> used, all;
  for (int axis = 0; axis < full.rank(); ++axis)
    for (const AxisPart& part : full.parts(axis)) {
      all.push_back(part.places());
      used.push_back(part.extent.empty() ? part.places() : program.extent(slot, part.extent) * part.factor);
      if (used.back() == 0) return;
    }
  // The innermost axes of which all is used are one run with the next axis.
  std::size_t outer = all.size();
  auto run = static_cast<std::int64_t>(element_bytes);
  for (; outer > 0 && used[outer - 1] == all[outer - 1]; --outer) run *= all[outer - 1];
  std::int64_t runs = 1, stride = run;
  if (outer > 0) {
    --outer;
    stride = run * all[outer];
    run *= used[outer];
  }
  for (std::size_t axis = 0; axis < outer; ++axis) runs *= used[axis];
  for (std::int64_t r = 0; r < runs; ++r) {
    std::int64_t offset = 0, step = stride;
    for (std::size_t axis = outer, rest = static_cast<std::size_t>(r); axis-- > 0; step *= all[axis]) {
      const auto count = static_cast<std::size_t>(used[axis]);
      offset += static_cast<std::int64_t>(rest % count) * step;
      rest /= count;
    }
    use(static_cast<std::size_t>(r * run), static_cast<std::size_t>(offset), static_cast<std::size_t>(run));
  }
}

Result<> program::take_extents(Program& program, std::uint32_t slot, const Shape& found, const Shape& port) {
  if (found.rank() != port.rank()) return {};
  for (int axis = 0; axis < port.rank(); ++axis) {
    if (!port.is_named(axis)) continue;
    const AxisPart& part = named_axis(port.name(axis)).parts[0];
    if (const auto sum = sum_of(part.extent)) {
      const GivenExtent given = sum->terms.size() == 1 ? given_extent(sum->terms[0].extent) : GivenExtent();
      if (given.less == 1 && sum->more == -1 && sum->terms[0].times == 1 && part.factor == 1)
        IMPRINT_CHECK(program.set_extent(slot, given.name, found[axis]));
      continue;  // other axes say what other sums have
    }
    if (quotient_of(part.extent)) continue;
    const std::int64_t extent = found[axis] / part.factor;
    if (found[axis] % part.factor != 0 || extent < 1 || extent > part.bound)
      return make_error(ErrorCode::shape_mismatch,
                        text("run '", program.name(), "': found shape ", found.text(), " for ", port.text(),
                             ", expected axis ", axis, " to have ", part.factor, " .. ", part.places(),
                             " places, in steps of ", part.factor));
    IMPRINT_CHECK(program.set_extent(slot, part.extent, extent));
  }
  return {};
}

}  // namespace imprint
