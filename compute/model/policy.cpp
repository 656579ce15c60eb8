#include "compute/model/policy.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <set>
#include <string_view>

#include "compute/base/amount.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/tensor/composites/composites.h"

namespace imprint {
namespace {

Error no_policy(const std::string& reason) {
  return make_error(ErrorCode::unsupported, "onnx policy: " + reason);
}

Result<std::map<std::string, Shape>> batch_shapes(const std::vector<onnx::ValueInfo>& inputs,
                                                  std::int64_t batch) {
  std::map<std::string, Shape> shapes;
  for (const onnx::ValueInfo& input : inputs) {
    const auto refuse = [&](const std::string& why) {
      return no_policy(text("input ", quote(input.name), " ", input.shape_text(), why));
    };
    if (!input.is_tensor || !input.shape || input.shape->empty())
      return refuse(" has no batch axis in front");
    Shape shape{batch};
    if (input.shape->size() > static_cast<std::size_t>(Shape::kMaxRank)) return refuse(" has too many axes");
    const onnx::Dimension& first = input.shape->front();
    if (first.value && *first.value != batch)
      return refuse(text(" is fixed to a batch of ", *first.value, ", expected ", batch,
                         ": export it with a free batch axis"));
    for (std::size_t axis = 1; axis < input.shape->size(); ++axis) {
      const onnx::Dimension& dimension = (*input.shape)[axis];
      if (!dimension.value) return refuse(" has a free dimension beside the batch");
      shape.append(*dimension.value);
    }
    shapes.emplace(input.name, shape);
  }
  return shapes;
}

Shape without_batch(const Shape& shape) {
  Shape out;
  for (int axis = 1; axis < shape.rank(); ++axis) out.append(shape[axis]);
  return out;
}

// Which values play which part, as positions among the inputs and outputs.
struct Parts {
  std::string rule;
  std::vector<std::size_t> observations, actions;
  std::vector<std::pair<std::size_t, std::size_t>> states;
  std::vector<std::pair<std::size_t, double>> fixed;  // inputs with one value
};

std::optional<std::size_t> find(const std::vector<ImportedValue>& values, std::string_view name) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].name == name) return i;
  return std::nullopt;
}

std::optional<Parts> ml_agents(const ImportedModel& model) {
  Parts parts{"ML-Agents", {}, {}, {}, {}};
  const auto first_of = [&](std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
      if (const auto found = find(model.outputs, name)) return parts.actions.push_back(*found);
  };
  first_of({"deterministic_continuous_actions", "continuous_actions", "action"});
  first_of({"deterministic_discrete_actions", "discrete_actions"});
  const auto next = find(model.outputs, "recurrent_out");
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    const std::string& name = model.inputs[i].name;
    if (name.starts_with("obs_") || name == "vector_observation")
      parts.observations.push_back(i);
    else if (name == "action_masks" || name == "epsilon")
      parts.fixed.emplace_back(i, name == "epsilon" ? 0 : 1);
    else if (name == "recurrent_in" && next)
      parts.states.emplace_back(i, *next);
    else
      return std::nullopt;
  }
  if (parts.observations.empty() || parts.actions.empty()) return std::nullopt;
  return parts;
}

std::optional<Parts> godot_rl(const ImportedModel& model) {
  const auto observation = find(model.inputs, "obs"), state = find(model.inputs, "state_ins"),
             action = find(model.outputs, "output"), next = find(model.outputs, "state_outs");
  if (!observation || !state || !action || !next || model.inputs.size() != 2) return std::nullopt;
  return Parts{"Godot RL", {*observation}, {*action}, {{*state, *next}}, {}};
}

Result<Parts> by_rule(const ImportedModel& model) {
  if (const auto parts = ml_agents(model)) return *parts;
  if (const auto parts = godot_rl(model)) return *parts;
  const std::size_t inputs = model.inputs.size(), outputs = model.outputs.size();
  if (inputs == 1 && outputs > 1)
    return Parts{outputs == 3 ? "Stable-Baselines3" : "CleanRL", {0}, {0}, {}, {}};
  if (inputs != outputs)
    return no_policy(text("found ", amount(inputs, "input"), " and ", amount(outputs, "output"),
                          ", expected one action, and for each state input its next value"));
  Parts parts{"positions", {0}, {0}, {}, {}};
  for (std::size_t i = 1; i < inputs; ++i) parts.states.emplace_back(i, i);
  return parts;
}

Result<Parts> by_name(const ImportedModel& model, const PolicyNames& names) {
  const auto found = [](const std::vector<ImportedValue>& values, const char* kind,
                        const std::string& name) -> Result<std::size_t> {
    if (const auto at = find(values, name)) return *at;
    std::string all;
    for (const ImportedValue& value : values) all += (all.empty() ? "" : ", ") + quote(value.name);
    return make_error(ErrorCode::not_found,
                      text("onnx policy: ", kind, ": found ", quote(name), ", expected one of ", all));
  };
  Parts parts{"names", {}, {}, {}, {}};
  std::set<std::size_t> taken;
  const auto input = [&](const char* kind, const std::string& name) -> Result<std::size_t> {
    IMPRINT_ASSIGN(const std::size_t at, found(model.inputs, kind, name));
    if (taken.insert(at).second) return at;
    return make_error(ErrorCode::invalid_argument, text("onnx policy: ", kind, ": found input ", quote(name),
                                                        " again, expected one part for each input"));
  };
  for (const std::string& name : names.observations) {
    IMPRINT_ASSIGN(const std::size_t at, input("observation", name));
    parts.observations.push_back(at);
  }
  for (const std::string& name : names.actions) {
    IMPRINT_ASSIGN(const std::size_t at, found(model.outputs, "action", name));
    parts.actions.push_back(at);
  }
  for (const auto& [state, next] : names.states) {
    IMPRINT_ASSIGN(const std::size_t from, input("state", state));
    IMPRINT_ASSIGN(const std::size_t to, found(model.outputs, "state", next));
    parts.states.emplace_back(from, to);
  }
  for (const std::string& name : names.zeros) {
    IMPRINT_ASSIGN(const std::size_t at, input("zeros", name));
    parts.fixed.emplace_back(at, 0);
  }
  if (parts.observations.empty() || parts.actions.empty())
    return make_error(
        ErrorCode::invalid_argument,
        text("onnx policy: names: found ", amount(parts.observations.size(), "observation"), " and ",
             amount(parts.actions.size(), "action"), ", expected one or more of each"));
  if (taken.size() == model.inputs.size()) return parts;
  std::string left;
  for (std::size_t i = 0; i < model.inputs.size(); ++i)
    if (!taken.contains(i)) left += (left.empty() ? "" : ", ") + quote(model.inputs[i].name);
  return no_policy(text("found no part for input ", left, ", expected an observation, a state or zeros"));
}

Result<> check_parts(const ImportedModel& model, const Parts& parts, std::int64_t batch) {
  for (const ImportedValue& value : model.inputs)
    if (value.tensor.dtype() != DType::float32)
      return no_policy(
          text("input ", quote(value.name), ": found ", element_type_name(value.type), ", expected float32"));
  for (const std::size_t at : parts.actions) {
    const ImportedValue& action = model.outputs[at];
    const Shape& shape = action.tensor.shape();
    if (action.tensor.dtype() == DType::boolean || shape.rank() < 1 || shape[0] != batch)
      return no_policy(text("output ", quote(action.name), ": found ", shape.text(), " of ",
                            element_type_name(action.type), ", expected a row of numbers per agent"));
  }
  for (const auto& [from, to] : parts.states) {
    const ImportedValue &state = model.inputs[from], &next = model.outputs[to];
    if (state.tensor.shape() != next.tensor.shape() || next.tensor.dtype() != DType::float32)
      return no_policy(
          text("state input ", quote(state.name), " ", state.tensor.shape().text(), " and output ",
               quote(next.name), " ", next.tensor.shape().text(), " differ: the ",
               parts.rule == "positions" ? "output at a state input's position" : "output of a state",
               " must be its next value"));
  }
  return {};
}

std::string joined_names(const std::vector<ImportedValue>& values, const std::vector<std::size_t>& which) {
  std::string out;
  for (const std::size_t i : which) out += (out.empty() ? "" : " + ") + values[i].name;
  return out;
}

// [batch, n] of all of them.
Tensor row_of(const std::vector<ImportedValue>& values, const std::vector<std::size_t>& which,
              std::int64_t batch) {
  std::vector<Tensor> rows;
  for (const std::size_t i : which)
    rows.push_back(reshape(cast(values[i].tensor, DType::float32),
                           {batch, without_batch(values[i].tensor.shape()).element_count()}));
  return rows.size() == 1 ? rows[0] : concat(rows, 1);
}

// The network with one observation in front, then states, and one action in front, then next states.
ImportedModel arranged(ImportedModel model, const Parts& parts, std::int64_t batch) {
  std::vector<Tensor> from, to, outputs;
  ImportedValue observation = model.inputs[parts.observations[0]], action = model.outputs[parts.actions[0]];
  if (parts.observations.size() > 1) {
    std::int64_t width = 0;
    for (const std::size_t i : parts.observations)
      width += without_batch(model.inputs[i].tensor.shape()).element_count();
    observation.name = joined_names(model.inputs, parts.observations);
    observation.tensor = input(observation.name, {batch, width});
    std::int64_t begin = 0;
    for (const std::size_t i : parts.observations) {
      const Tensor& own = model.inputs[i].tensor;
      const std::int64_t count = without_batch(own.shape()).element_count();
      from.push_back(own);
      to.push_back(reshape(narrow(observation.tensor, 1, begin, count), own.shape()));
      begin += count;
    }
  }
  for (const auto& [at, value] : parts.fixed) {
    from.push_back(model.inputs[at].tensor);
    to.push_back(full(model.inputs[at].tensor.shape(), value));
  }
  if (parts.actions.size() > 1 || action.tensor.dtype() != DType::float32 || action.tensor.rank() < 2) {
    action.name = joined_names(model.outputs, parts.actions);
    action.tensor = row_of(model.outputs, parts.actions, batch);
    action.type = onnx::ElementType::float32;
  }
  std::vector<ImportedValue> inputs{observation}, results{action};
  for (const auto& [in, out] : parts.states) {
    inputs.push_back(model.inputs[in]);
    results.push_back(model.outputs[out]);
  }
  if (!from.empty()) {
    for (const ImportedValue& result : results) outputs.push_back(result.tensor);
    const std::vector<Tensor> replaced = substitute(outputs, from, to);
    for (std::size_t i = 0; i < results.size(); ++i) results[i].tensor = replaced[i];
  }
  model.inputs = std::move(inputs);
  model.outputs = std::move(results);
  return model;
}

}  // namespace

std::string PolicyDescription::text() const {
  std::string out = imprint::text(clipped(rule), ": ", clipped(observation), " ", observation_shape.text(),
                                  " -> ", clipped(action), " [", action_count, "]");
  constexpr std::size_t kMost = 16;
  for (std::size_t i = 0; i < std::min(kMost, states.size()); ++i)
    out += imprint::text(", state ", clipped(states[i].input), " -> ", clipped(states[i].output));
  return states.size() > kMost ? out + " and more" : out;
}

Result<Policy> import_policy(const onnx::Model& model, std::int64_t batch, const ImportOptions& options,
                             const PolicyNames& names) {
  IMPRINT_ASSIGN(const auto shapes, policy_shapes(model, batch));
  IMPRINT_ASSIGN(ImportedModel imported, import_onnx(model, shapes, options));
  return policy_of(std::move(imported), batch, names);
}

Result<std::map<std::string, Shape>> policy_shapes(const onnx::Model& model, std::int64_t batch) {
  if (batch < 1)
    return make_error(ErrorCode::invalid_argument,
                      text("onnx policy: batch: found ", batch, ", expected at least 1"));
  const std::vector<onnx::ValueInfo> inputs = model_inputs(model);
  if (inputs.empty()) return no_policy("the model has no input to observe with");
  return batch_shapes(inputs, batch);
}

Result<Policy> policy_of(ImportedModel imported, std::int64_t batch, const PolicyNames& names) {
  if (imported.outputs.empty()) return no_policy("the model has no output of numbers");
  const bool named =
      !names.observations.empty() || !names.actions.empty() || !names.states.empty() || !names.zeros.empty();
  IMPRINT_ASSIGN(const Parts parts, named ? by_name(imported, names) : by_rule(imported));
  IMPRINT_CHECK(check_parts(imported, parts, batch));

  Policy policy;
  PolicyDescription& description = policy.description;
  description.rule = parts.rule;
  policy.model = arranged(std::move(imported), parts, batch);
  const std::vector<ImportedValue>&from = policy.model.inputs, &to = policy.model.outputs;
  for (const ImportedValue& value : to)
    if (!value.tensor.ok()) return value.tensor.error();
  description.observation = from[0].name;
  description.action = to[0].name;
  description.observation_shape = without_batch(from[0].tensor.shape());
  description.observation_count = description.observation_shape.element_count();
  description.action_count = without_batch(to[0].tensor.shape()).element_count();
  for (std::size_t i = 1; i < from.size(); ++i) {
    const Shape shape = without_batch(from[i].tensor.shape());
    description.states.push_back({from[i].name, to[i].name, shape, shape.element_count()});
  }
  return policy;
}

}  // namespace imprint
