#include <algorithm>

#include "plugin/abi/calls.h"
#include "plugin/abi/convert.h"
#include "plugin/abi/exports.h"
#include "plugin/abi/take_tensor.h"

namespace imprint::abi {
namespace {

Result<> take_lists(const imp_model_desc& given, ContextEntry& entry, agent::ModelSpec& spec) {
  constexpr const char* call = "model_create";
  IMPRINT_CHECK(check_array(call, "desc.extents", given.extents, given.extent_count, kMostListed));
  IMPRINT_CHECK(check_array(call, "desc.bindings", given.bindings, given.binding_count, kMostListed));
  for (std::uint32_t i = 0; i < given.extent_count; ++i) {
    IMPRINT_ASSIGN(std::string name,
                   to_name(call, text("desc.extents[", i, "].name"), given.extents[i].name));
    spec.extents.push_back({std::move(name), static_cast<std::int64_t>(std::min(given.extents[i].value,
                                                                                std::uint64_t{INT64_MAX}))});
  }
  IMPRINT_CHECK(check_array(call, "desc.bounds", given.bounds, given.bound_count, kMostListed));
  for (std::uint32_t i = 0; i < given.bound_count; ++i) {
    IMPRINT_ASSIGN(std::string name, to_name(call, text("desc.bounds[", i, "].name"), given.bounds[i].name));
    DimensionBound bound{
        name, static_cast<std::int64_t>(std::min(given.bounds[i].value, std::uint64_t{INT64_MAX}))};
    if (bound.most == 0 && name.find('=') != std::string::npos) {
      auto parsed = parse_bound(name);
      if (!parsed) return refuse(call, text("desc.bounds[", i, "].name: ", parsed.error().message));
      bound = std::move(*parsed);
    }
    spec.bounds.push_back(std::move(bound));
  }
  IMPRINT_ASSIGN(const auto states, to_states(call, "desc.states", given.states, given.state_count));
  for (const auto& [input, output] : states) spec.states.push_back({input, output});
  for (std::uint32_t i = 0; i < given.binding_count; ++i) {
    const std::string field = text("desc.bindings[", i, "]");
    agent::ModelBinding binding;
    IMPRINT_ASSIGN(binding.name, to_name(call, field + ".name", given.bindings[i].name));
    IMPRINT_CHECK(take_tensor(entry, call, field + ".tensor", given.bindings[i].tensor, binding.tensor));
    if (!binding.tensor.buffer) return refuse(call, field + ".tensor: found zero, expected a tensor");
    spec.bindings.push_back(std::move(binding));
  }
  return {};
}

// Borrows desc's bytes.
Result<agent::ModelSpec> to_model_spec(ContextEntry& entry, const imp_model_desc* desc) {
  constexpr const char* call = "model_create";
  IMPRINT_ASSIGN(const imp_model_desc given, read_struct(call, "desc", desc));
  agent::ModelSpec spec;
  if (given.name) spec.name = given.name;
  if (given.path) {
    IMPRINT_ASSIGN(spec.path, to_name(call, "desc.path", given.path));
  }
  if (given.size > 0) IMPRINT_CHECK(check_pointer(call, "desc.data", given.data));
  spec.file = {static_cast<const std::byte*>(given.data), given.size};
  spec.run_capacity = given.run_capacity;
  spec.latency_frames = given.latency_frames;
  spec.constant_limit_bytes = given.constant_limit_bytes;
  spec.operation_limit = given.operation_limit;
  IMPRINT_CHECK(take_lists(given, entry, spec));
  return spec;
}

// Array: agent::ModelInput or agent::ModelOutput, whose bytes begin at Byte.
template <class Array, class Byte, class Given>
Result<std::vector<Array>> to_arrays(const char* call, const char* list, const Given* given,
                                     std::uint32_t count) {
  IMPRINT_CHECK(check_array(call, list, given, count, kMostListed));
  std::vector<Array> arrays;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (given[i].size > 0)
      IMPRINT_CHECK(check_pointer(call, text(list, "[", i, "].data").c_str(), given[i].data));
    arrays.push_back({given[i].name, {static_cast<Byte*>(given[i].data), given[i].size}});
  }
  return arrays;
}

imp_result get_value(imp_model model, const char* call, const char* kind, std::uint32_t index,
                     imp_model_value* value,
                     std::span<const agent::ModelValue> (agent::Model::*values)() const) {
  return with_model_any(model, call, [&](agent::Model& found) -> Result<> {
    IMPRINT_CHECK(check_filled_struct(call, "value", value));
    const std::span<const agent::ModelValue> all = (found.*values)();
    if (index >= all.size())
      return refuse(call, text("index: found ", index, ", expected below ", all.size(), ", the ", kind,
                               "s of model '", found.name(), "'"));
    const agent::ModelValue& one = all[index];
    const Shape shape = found.shape_now(one);
    fill_struct(value, [&](imp_model_value& filled) {
      filled.name = one.name.c_str();
      filled.element = static_cast<imp_element>(one.type);
      filled.rank = static_cast<std::uint32_t>(shape.rank());
      for (int axis = 0; axis < shape.rank(); ++axis)
        filled.shape[axis] = static_cast<std::uint64_t>(shape[axis]);
      filled.size = one.bytes_of(shape);
    });
    return {};
  });
}

}  // namespace

imp_result IMP_CALL model_create(imp_context context, const imp_model_desc* desc, imp_model* model) {
  return with_context(context, Tag::create, "model_create", [&](ContextEntry& entry) -> Result<> {
    IMPRINT_CHECK(check_pointer("model_create", "model", model));
    IMPRINT_ASSIGN(const agent::ModelSpec spec, to_model_spec(entry, desc));
    IMPRINT_ASSIGN(std::shared_ptr<agent::Model> made, entry.world->add_model(spec));
    const auto [place, placed] = [&] {
      const std::lock_guard lock(registry_mutex());
      return entry.models.insert(made);
    }();
    if (!placed) {
      entry.world->remove_model(made);
      return make_error(ErrorCode::unsupported, text("model_create: this context has ", kSlots,
                                                     " models, the most possible. Destroy one first."));
    }
    *model = {pack_handle({HandleKind::model, entry.slot, entry.generation, place.slot, place.generation})};
    return {};
  });
}

imp_result IMP_CALL model_destroy(imp_model model) {
  return with_model(
      model, Tag::create, "model_destroy",
      [&](ContextEntry& entry, const std::shared_ptr<agent::Model>& found) -> Result<> {
        const std::shared_ptr<agent::Model> last = found;
        {
          const std::lock_guard lock(registry_mutex());
          entry.models.erase(unpack_handle(model.id).slot);
        }
        entry.world->remove_model(last);
        return {};
      },
      AfterLoss::serves);
}

imp_result IMP_CALL model_get_info(imp_model model, imp_model_info* info) {
  return with_model_any(model, "model_get_info", [&](agent::Model& found) -> Result<> {
    IMPRINT_CHECK(check_filled_struct("model_get_info", "info", info));
    const agent::ModelStats stats = found.stats();
    fill_struct(info, [&](imp_model_info& filled) {
      filled.input_count = static_cast<std::uint32_t>(found.inputs().size());
      filled.output_count = static_cast<std::uint32_t>(found.outputs().size());
      filled.parameter_count = found.parameter_count();
      filled.runs = stats.runs;
      filled.late_runs = stats.late_runs;
      filled.operations = stats.operations;
      filled.dispatches = stats.dispatches;
      filled.latency_frames = found.latency_frames();
    });
    return {};
  });
}

imp_result IMP_CALL model_get_input(imp_model model, uint32_t index, imp_model_value* value) {
  return get_value(model, "model_get_input", "input", index, value, &agent::Model::inputs);
}

imp_result IMP_CALL model_get_output(imp_model model, uint32_t index, imp_model_value* value) {
  return get_value(model, "model_get_output", "output", index, value, &agent::Model::outputs);
}

imp_result IMP_CALL model_set_extent(imp_model model, const char* name, uint64_t value) {
  return with_model(model, Tag::frame_or_create, "model_set_extent",
                    [&](ContextEntry&, const std::shared_ptr<agent::Model>& found) -> Result<> {
                      IMPRINT_ASSIGN(const std::string extent, to_name("model_set_extent", "name", name));
                      return found->set_extent(
                          extent, static_cast<std::int64_t>(std::min(value, std::uint64_t{INT64_MAX})));
                    });
}

imp_result IMP_CALL model_run(imp_model model, const imp_model_input* inputs, uint32_t input_count,
                              uint64_t* run) {
  return with_model(model, Tag::frame_before, "model_run",
                    [&](ContextEntry&, const std::shared_ptr<agent::Model>& found) -> Result<> {
                      IMPRINT_CHECK(check_pointer("model_run", "run", run));
                      IMPRINT_ASSIGN(const auto arrays, (to_arrays<agent::ModelInput, const std::byte>(
                                                            "model_run", "inputs", inputs, input_count)));
                      IMPRINT_ASSIGN(*run, found->begin(arrays));
                      return {};
                    });
}

imp_result IMP_CALL model_read(imp_model model, uint64_t run, const imp_model_output* outputs,
                               uint32_t output_count) {
  return with_model(model, Tag::frame_or_create, "model_read",
                    [&](ContextEntry&, const std::shared_ptr<agent::Model>& found) -> Result<> {
                      IMPRINT_ASSIGN(const auto arrays, (to_arrays<agent::ModelOutput, std::byte>(
                                                            "model_read", "outputs", outputs, output_count)));
                      return found->read(run, arrays);
                    });
}

imp_result IMP_CALL model_discard(imp_model model, uint64_t run) {
  return with_model(
      model, Tag::frame_or_create, "model_discard",
      [&](ContextEntry&, const std::shared_ptr<agent::Model>& found) { return found->discard(run); });
}

imp_result IMP_CALL model_reset(imp_model model) {
  return with_model(model, Tag::frame_or_create, "model_reset",
                    [&](ContextEntry&, const std::shared_ptr<agent::Model>& found) -> Result<> {
                      found->reset();
                      return {};
                    });
}

}  // namespace imprint::abi
