#include "compute/model/policy.h"

namespace imprint {
namespace {

Error no_policy(const std::string& reason) {
  return make_error(ErrorCode::unsupported, "onnx policy: " + reason);
}

Result<std::map<std::string, Shape>> batch_shapes(const std::vector<onnx::ValueInfo>& inputs,
                                                  std::int64_t batch) {
  std::map<std::string, Shape> shapes;
  for (const onnx::ValueInfo& input : inputs) {
    const std::string what = "input '" + input.name + "' " + input.shape_text();
    if (!input.is_tensor || !input.shape || input.shape->empty())
      return no_policy(what + " has no batch axis in front");
    Shape shape{batch};
    if (input.shape->size() > static_cast<std::size_t>(Shape::kMaxRank))
      return no_policy(what + " has too many axes");
    const onnx::Dimension& first = input.shape->front();
    if (first.value && *first.value != batch)
      return no_policy(what + " is fixed to a batch of " + std::to_string(*first.value) + ", asked for " +
                       std::to_string(batch) + ": export it with a free batch axis");
    for (std::size_t axis = 1; axis < input.shape->size(); ++axis) {
      const onnx::Dimension& dimension = (*input.shape)[axis];
      if (!dimension.value) return no_policy(what + " has a free dimension beside the batch");
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

}  // namespace

Result<Policy> import_policy(const onnx::Model& model, std::int64_t batch, const ImportOptions& options) {
  if (batch < 1)
    return make_error(ErrorCode::invalid_argument,
                      "onnx policy: a batch of " + std::to_string(batch) + ": at least 1 is needed");
  const std::vector<onnx::ValueInfo> inputs = model_inputs(model);
  if (inputs.empty()) return no_policy("the model has no input to observe with");
  IMPRINT_ASSIGN(const auto shapes, batch_shapes(inputs, batch));
  Policy policy;
  IMPRINT_ASSIGN(policy.model, import_onnx(model, shapes, options));

  const std::vector<ImportedValue>& from = policy.model.inputs;
  const std::vector<ImportedValue>& to = policy.model.outputs;
  if (to.size() != from.size())
    return no_policy(std::to_string(from.size()) + " inputs and " + std::to_string(to.size()) +
                     " outputs: one action, and for each state input its next value, are expected");
  for (const ImportedValue& value : from)
    if (value.tensor.dtype() != DType::float32)
      return no_policy("input '" + value.name + "' is " + element_type_name(value.type) +
                       ": float32 is expected");
  const Shape& action = to[0].tensor.shape();
  if (to[0].tensor.dtype() != DType::float32 || action.rank() < 1 || action[0] != batch)
    return no_policy("output '" + to[0].name + "' " + action.text() + " is not one row of float32 an agent");
  PolicyDescription& description = policy.description;
  description.observation = from[0].name;
  description.action = to[0].name;
  description.observation_shape = without_batch(from[0].tensor.shape());
  description.observation_count = description.observation_shape.element_count();
  description.action_count = without_batch(action).element_count();
  for (std::size_t i = 1; i < from.size(); ++i) {
    const Tensor &state = from[i].tensor, &next = to[i].tensor;
    if (state.shape() != next.shape() || next.dtype() != DType::float32)
      return no_policy("state input '" + from[i].name + "' " + state.shape().text() + " and output '" +
                       to[i].name + "' " + next.shape().text() +
                       " differ: the output at the place of a state input has to be its next value");
    const Shape shape = without_batch(state.shape());
    description.states.push_back({from[i].name, to[i].name, shape, shape.element_count()});
  }
  return policy;
}

}  // namespace imprint
