#include "compute/model/policy.h"

#include "compute/base/quote.h"
#include "compute/base/text.h"

namespace imprint {
namespace {

Error no_policy(const std::string& reason) {
  return make_error(ErrorCode::unsupported, "onnx policy: " + reason);
}

Result<std::map<std::string, Shape>> batch_shapes(const std::vector<onnx::ValueInfo>& inputs,
                                                  std::int64_t batch) {
  std::map<std::string, Shape> shapes;
  for (const onnx::ValueInfo& input : inputs) {
    const std::string what = text("input ", quote(input.name), " ", input.shape_text());
    if (!input.is_tensor || !input.shape || input.shape->empty())
      return no_policy(what + " has no batch axis in front");
    Shape shape{batch};
    if (input.shape->size() > static_cast<std::size_t>(Shape::kMaxRank))
      return no_policy(what + " has too many axes");
    const onnx::Dimension& first = input.shape->front();
    if (first.value && *first.value != batch)
      return no_policy(text(what, " is fixed to a batch of ", *first.value, ", expected ", batch,
                            ": export it with a free batch axis"));
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
                      text("onnx policy: batch: found ", batch, ", expected at least 1"));
  const std::vector<onnx::ValueInfo> inputs = model_inputs(model);
  if (inputs.empty()) return no_policy("the model has no input to observe with");
  IMPRINT_ASSIGN(const auto shapes, batch_shapes(inputs, batch));
  Policy policy;
  IMPRINT_ASSIGN(policy.model, import_onnx(model, shapes, options));

  const std::vector<ImportedValue>& from = policy.model.inputs;
  const std::vector<ImportedValue>& to = policy.model.outputs;
  if (to.size() != from.size())
    return no_policy(text("found ", from.size(), " inputs and ", to.size(),
                          " outputs, expected one action, and for each state input its next value"));
  for (const ImportedValue& value : from)
    if (value.tensor.dtype() != DType::float32)
      return no_policy(
          text("input ", quote(value.name), ": found ", element_type_name(value.type), ", expected float32"));
  const Shape& action = to[0].tensor.shape();
  if (to[0].tensor.dtype() != DType::float32 || action.rank() < 1 || action[0] != batch)
    return no_policy(text("output ", quote(to[0].name), ": found ", action.text(),
                          ", expected a row of float32 per agent"));
  PolicyDescription& description = policy.description;
  description.observation = from[0].name;
  description.action = to[0].name;
  description.observation_shape = without_batch(from[0].tensor.shape());
  description.observation_count = description.observation_shape.element_count();
  description.action_count = without_batch(action).element_count();
  for (std::size_t i = 1; i < from.size(); ++i) {
    const Tensor &state = from[i].tensor, &next = to[i].tensor;
    if (state.shape() != next.shape() || next.dtype() != DType::float32)
      return no_policy(text("state input ", quote(from[i].name), " ", state.shape().text(), " and output ",
                            quote(to[i].name), " ", next.shape().text(),
                            " differ: the output at a state input's position must be its next value"));
    const Shape shape = without_batch(state.shape());
    description.states.push_back({from[i].name, to[i].name, shape, shape.element_count()});
  }
  return policy;
}

}  // namespace imprint
