#include "plugin/agent/models/model_program.h"

#include <algorithm>
#include <map>
#include <set>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/import.h"
#include "compute/tensor/composites/composites.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {

using namespace tensor;

namespace {

constexpr const char* kCall = "model_create";

// Names from a file, for a message.
class ListedNames {
 public:
  void add(const std::string& name) {
    if (++count_ <= kMostNames) list_ += (count_ == 1 ? "" : ", ") + quote(name);
  }
  std::string text(const char* otherwise) const {
    if (count_ == 0) return otherwise;
    return count_ > kMostNames ? list_ + " and more" : list_;
  }

 private:
  static constexpr std::size_t kMostNames = 32;
  std::size_t count_ = 0;
  std::string list_;
};

std::string names_of(const std::vector<ImportedValue>& values) {
  ListedNames names;
  for (const ImportedValue& value : values) names.add(value.name);
  return names.text("none");
}

Result<onnx::Model> read_model(const ModelSpec& spec) {
  if (spec.path.empty() == spec.file.empty())
    return bad_field(kCall, "path, data", spec.path.empty() ? "neither" : "both", "one of them");
  auto model = spec.path.empty() ? onnx::parse(spec.file) : onnx::load(spec.path, spec.constant_limit_bytes);
  if (!model) return make_error(model.error().code, text(kCall, ": ", model.error().message));
  return model;
}

// Shapes of all inputs: free dimensions are what the host says, else 1.
class Extents {
 public:
  explicit Extents(const ModelSpec& spec) : spec_(spec) {}

  Result<std::map<std::string, Shape>> shapes(const onnx::Model& model) {
    for (std::size_t i = 0; i < spec_.extents.size(); ++i) IMPRINT_CHECK(check(i));
    std::map<std::string, Shape> shapes;
    for (const onnx::ValueInfo& input : model_inputs(model)) {
      if (!input.shape)
        return make_error(ErrorCode::unsupported,
                          text(kCall, ": model '", spec_.name, "', input ", quote(input.name),
                               ": found no shape, expected one. Export the model with shapes."));
      if (input.shape->size() > Shape::kMaxRank)
        return make_error(ErrorCode::unsupported,
                          text(kCall, ": model '", spec_.name, "', input ", quote(input.name), ": found ",
                               input.shape->size(), " axes, expected at most ", Shape::kMaxRank));
      Shape shape;
      for (std::size_t axis = 0; axis < input.shape->size(); ++axis)
        shape.append(extent(input.name, axis, (*input.shape)[axis]));
      shapes.emplace(input.name, shape);
    }
    if (const Result<> bounded = bound_dimensions(model, spec_.bounds, shapes); !bounded)
      return make_error(ErrorCode::invalid_argument, text(kCall, ": desc.bounds: ", bounded.error().message));
    for (const ModelExtent& given : spec_.extents)
      if (!used_.contains(given.name))
        return bad_field(kCall, "desc.extents", text("'", given.name, "'"),
                         text("a free dimension of model '", spec_.name, "': ", free_names()));
    return shapes;
  }

 private:
  Result<> check(std::size_t i) const {
    const ModelExtent& given = spec_.extents[i];
    if (given.value < 1 || given.value > INT32_MAX)
      return bad_field(kCall, text("desc.extents[", i, "].value"), text(given.value),
                       text("1 to ", INT32_MAX));
    for (std::size_t j = 0; j < i; ++j)
      if (spec_.extents[j].name == given.name)
        return bad_field(kCall, text("desc.extents[", i, "].name"), text("'", given.name, "' again"),
                         "each name once");
    if (std::ranges::find(spec_.bounds, given.name, &DimensionBound::name) != spec_.bounds.end())
      return bad_field(kCall, text("desc.extents[", i, "].name"),
                       text("'", given.name, "', which has a bound"), "each name in one list");
    return {};
  }

  std::int64_t extent(const std::string& input, std::size_t axis, const onnx::Dimension& dimension) {
    if (dimension.value) return *dimension.value;
    const std::string place = text(input, ":", axis);
    free_.insert(dimension.symbol.empty() ? place : dimension.symbol);
    std::int64_t found = 1;
    for (const ModelExtent& given : spec_.extents) {
      if (given.name.empty() || (given.name != dimension.symbol && given.name != place)) continue;
      used_.insert(given.name);
      found = given.value;
    }
    return found;
  }

  std::string free_names() const {
    ListedNames names;
    for (const std::string& name : free_) names.add(name);
    return names.text("it has none");
  }

  const ModelSpec& spec_;
  std::set<std::string> free_, used_;
};

const ImportedValue* find(const std::vector<ImportedValue>& values, const std::string& name) {
  const auto found = std::ranges::find(values, name, &ImportedValue::name);
  return found == values.end() ? nullptr : &*found;
}

// Splits a model into what runs hand over and what stays on the device.
class Describer {
 public:
  Describer(const ModelSpec& spec, const ImportedModel& model) : spec_(spec), model_(model) {}

  Result<ModelProgram> describe() {
    made_.parameter_count = model_.parameter_count;
    made_.description.name = spec_.name;
    made_.description.slot_count = spec_.run_capacity;
    IMPRINT_CHECK(add_states());
    IMPRINT_CHECK(add_bound_inputs());
    for (const ImportedValue& value : model_.inputs) {
      if (from_.contains(value.name)) continue;
      IMPRINT_CHECK(add_value("input", value, made_.inputs));
      made_.description.inputs.push_back(value.tensor);
    }
    if (reset_.ok()) {
      made_.reset = static_cast<int>(made_.description.inputs.size());
      made_.description.inputs.push_back(reset_);
    }
    IMPRINT_CHECK(add_outputs());
    return std::move(made_);
  }

 private:
  Result<const ImportedValue*> named(const std::vector<ImportedValue>& values, const std::string& name,
                                     const std::string& field, const char* kind) const {
    if (const ImportedValue* found = find(values, name)) return found;
    return bad_field(kCall, field, text("'", name, "'"),
                     text("an ", kind, " of model '", spec_.name, "': ", names_of(values)));
  }

  Result<> replace(const ImportedValue& value, Tensor replacement, const std::string& field) {
    if (!from_.insert(value.name).second)
      return bad_field(kCall, field, text("input ", quote(value.name), " again"), "each input once");
    inputs_.push_back(value.tensor);
    replacements_.push_back(std::move(replacement));
    return {};
  }

  // A state that grows in a run, such as a decoder's keys, has more places after it.
  static bool fits_state(const Shape& before, const Shape& after) {
    if (before.rank() != after.rank()) return false;
    for (int axis = 0; axis < before.rank(); ++axis) {
      const bool grows = before.is_named(axis) && after.is_named(axis) && after[axis] > before[axis];
      if (before[axis] != after[axis] && !grows) return false;
    }
    return true;
  }

  // The places that the next run reads.
  static Tensor first_places(const Tensor& held, const Shape& before) {
    Shape shape;
    for (int axis = 0; axis < before.rank(); ++axis)
      held.extent(axis) == before[axis] ? shape.append(before, axis) : shape.append(held.extent(axis));
    Tensor places = reshape(held, shape);
    for (int axis = 0; axis < before.rank(); ++axis) {
      if (held.extent(axis) == before[axis]) continue;
      Shape along;
      along.append(before, axis);
      places = take(places, axis, iota(along, 0));
    }
    return places;
  }

  Result<> add_states() {
    for (std::size_t i = 0; i < spec_.states.size(); ++i) {
      const ModelState& state = spec_.states[i];
      const std::string field = text("desc.states[", i, "]");
      IMPRINT_ASSIGN(const ImportedValue* const in,
                     named(model_.inputs, state.input, field + ".input", "input"));
      IMPRINT_ASSIGN(const ImportedValue* const out,
                     named(model_.outputs, state.output, field + ".output", "output"));
      const Tensor &before = in->tensor, &after = out->tensor;
      if (!fits_state(before.shape(), after.shape()))
        return make_error(
            ErrorCode::shape_mismatch,
            text(kCall, ": ", field, ": found input '", state.input, "' ", before.shape().text(),
                 " and output '", state.output, "' ", after.shape().text(),
                 ", expected equal shapes, or an output that is longer along dimensions with bounds"));
      if (before.dtype() != after.dtype() || before.dtype() == DType::boolean)
        return make_error(ErrorCode::dtype_mismatch,
                          text(kCall, ": ", field, ": found input '", state.input, "' ",
                               dtype_name(before.dtype()), " and output '", state.output, "' ",
                               dtype_name(after.dtype()), ", expected both float or both whole numbers"));
      Shape held = after.shape();
      held.clear_names();  // all places of the bounds: a run changes those that it uses
      made_.state.push_back(Variable::zeros(state.input, held, before.dtype()));
      if (!reset_.ok()) reset_ = input("reset", {1}, DType::int32);
      Shape ones;
      for (int axis = 0; axis < before.shape().rank(); ++axis) ones.append(1);
      const Tensor fresh = equal(reshape(reset_, ones), 1);
      IMPRINT_CHECK(replace(*in,
                            where(fresh, zeros(before.shape(), before.dtype()),
                                  first_places(made_.state.back().value(), before.shape())),
                            field));
      taken_.insert(state.output);
    }
    return {};
  }

  Result<> check_tensor(const ImportedValue& value, const SharedTensor& tensor,
                        const std::string& field) const {
    if (tensor.dtype != value.tensor.dtype())
      return make_error(
          ErrorCode::dtype_mismatch,
          text(kCall, ": ", field, ": found tensor '", tensor.name, "' of ", dtype_name(tensor.dtype),
               ", expected ", dtype_name(value.tensor.dtype()), " for ", quote(value.name)));
    if (tensor.shape.element_count() == value.tensor.shape().element_count()) return {};
    return make_error(
        ErrorCode::shape_mismatch,
        text(kCall, ": ", field, ": found tensor '", tensor.name, "' ", tensor.shape.text(),
             ", expected as many elements as ", quote(value.name), " ", value.tensor.shape().text()));
  }

  Result<> add_bound_inputs() {
    for (std::size_t i = 0; i < spec_.bindings.size(); ++i) {
      const ModelBinding& binding = spec_.bindings[i];
      const std::string field = text("desc.bindings[", i, "]");
      const ImportedValue* value = find(model_.inputs, binding.name);
      if (!value) {
        IMPRINT_ASSIGN(value, named(model_.outputs, binding.name, field + ".name", "input or output"));
        continue;
      }
      IMPRINT_CHECK(check_tensor(*value, binding.tensor, field));
      std::vector<Tensor> parts;
      for (const Variable& part : binding.tensor.parts)
        parts.push_back(reshape(part.value(), {part.shape().element_count()}));
      const Tensor whole = parts.size() == 1 ? parts[0] : concat(parts, 0);
      IMPRINT_CHECK(replace(*value, reshape(whole, value->tensor.shape()), field));
    }
    return {};
  }

  // Writes an output to a shared tensor, part by part.
  void give(const Tensor& value, const SharedTensor& tensor) {
    const Tensor flat = reshape(value, {value.shape().element_count()});
    std::int64_t first = 0;
    for (const Variable& part : tensor.parts) {
      const std::int64_t count = part.shape().element_count();
      made_.description.updates.push_back(
          Update::assign(part, reshape(narrow(flat, 0, first, count), part.shape())));
      first += count;
    }
  }

  Result<> add_outputs() {
    const std::vector<Tensor> results = substitute(model_.output_tensors(), inputs_, replacements_);
    for (std::size_t i = 0; i < spec_.states.size(); ++i) {
      const ImportedValue* out = find(model_.outputs, spec_.states[i].output);
      made_.description.updates.push_back(
          Update::assign(made_.state[i], results[static_cast<std::size_t>(out - model_.outputs.data())]));
    }
    for (std::size_t i = 0; i < spec_.bindings.size(); ++i) {
      const ModelBinding& binding = spec_.bindings[i];
      if (find(model_.inputs, binding.name)) continue;
      const std::string field = text("desc.bindings[", i, "]");
      const ImportedValue& out = *find(model_.outputs, binding.name);
      IMPRINT_CHECK(check_tensor(out, binding.tensor, field));
      if (!taken_.insert(binding.name).second)
        return bad_field(kCall, field, text("output '", binding.name, "' again"), "each output once");
      give(results[static_cast<std::size_t>(&out - model_.outputs.data())], binding.tensor);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (taken_.contains(model_.outputs[i].name)) continue;
      IMPRINT_CHECK(add_value("output", model_.outputs[i], made_.outputs));
      made_.description.outputs.push_back(results[i]);
    }
    return {};
  }

  Result<> add_value(const char* kind, const ImportedValue& value, std::vector<ModelValue>& to) const {
    if (!can_exchange(value.type, value.tensor.dtype()))
      return make_error(
          ErrorCode::unsupported,
          text(kCall, ": model '", spec_.name, "', ", kind, " ", quote(value.name), ": found ",
               onnx::element_type_name(value.type), ", expected floats, whole numbers or bool"));
    to.push_back({value.name, value.type, value.tensor.dtype(), value.tensor.shape()});
    return {};
  }

  const ModelSpec& spec_;
  const ImportedModel& model_;
  ModelProgram made_;
  Tensor reset_;
  std::vector<Tensor> inputs_, replacements_;
  std::set<std::string> from_;   // inputs that stay on the device
  std::set<std::string> taken_;  // outputs that do
};

}  // namespace

Result<ModelProgram> describe_model(const ModelSpec& spec) {
  IMPRINT_CHECK(check_name(kCall, spec.name));
  IMPRINT_CHECK(check_range(kCall, "run_capacity", spec.run_capacity, 1, 64));
  IMPRINT_CHECK(check_range(kCall, "latency_frames", spec.latency_frames, 1, 64));
  IMPRINT_ASSIGN(const onnx::Model file, read_model(spec));
  IMPRINT_ASSIGN(const auto shapes, Extents(spec).shapes(file));
  IMPRINT_ASSIGN(const ImportedModel model,
                 import_onnx(file, shapes, {.constant_limit_bytes = spec.constant_limit_bytes}));
  return Describer(spec, model).describe();
}

}  // namespace imprint::agent
