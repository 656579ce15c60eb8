#include "plugin/agent/decide/policy.h"

#include <algorithm>

#include "compute/base/text.h"
#include "compute/model/onnx/format/proto.h"
#include "compute/tensor/composites/composites.h"
#include "plugin/agent/decide/shared_tensor.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {

using namespace tensor;

namespace {

// [1, A] flags as a condition over [A, ...].
Tensor condition(const Tensor& flags, const Shape& shape) {
  Shape column{shape[0]};
  while (column.rank() < shape.rank()) column.append(1);
  return equal(reshape(flags, column), 1);
}

Result<Policy> read_policy(const PolicySpec& spec) {
  const auto in_policy = [&spec](const Error& error) {
    return make_error(error.code, text("brain_create_from_onnx: policy '", spec.name, "': ", error.message));
  };
  const auto file = onnx::parse(spec.file);
  if (!file) return in_policy(file.error());
  auto policy = import_policy(*file, spec.agent_capacity, {.constant_limit_bytes = spec.constant_limit_bytes},
                              spec.names);
  if (!policy) return in_policy(policy.error());
  return policy;
}

// Before the state is made, on the host.
Result<> check_state_bytes(const PolicySpec& spec, std::span<const Tensor> states) {
  std::uint64_t bytes = 0;
  for (const Tensor& state : states)
    bytes += static_cast<std::uint64_t>(state.shape().element_count()) * sizeof(float);
  if (bytes <= spec.state_limit_bytes) return {};
  return make_error(ErrorCode::out_of_device_memory,
                    text("brain_create_from_onnx: policy '", spec.name, "': found ", bytes,
                         " bytes of state, expected at most ", spec.state_limit_bytes,
                         ", which is memory_cap_bytes. Lower agent_capacity, or raise the cap"));
}

}  // namespace

Result<std::unique_ptr<PolicyModel>> make_policy(const PolicySpec& spec, const SharedVariables& shared) {
  constexpr const char* call = "brain_create_from_onnx";
  if (spec.file.empty()) return bad_field(call, "size", "0 bytes", "an ONNX file");
  IMPRINT_CHECK(check_name(call, spec.name));
  IMPRINT_CHECK(check_range(call, "agent_capacity", spec.agent_capacity, 1, 1u << 20));
  IMPRINT_CHECK(check_range(call, "action_latency_frames", spec.action_latency_frames, 0, 64));
  IMPRINT_ASSIGN(const Policy policy, read_policy(spec));
  const PolicyDescription& found = policy.description;

  auto model = std::make_unique<PolicyModel>();
  model->parameter_count = policy.model.parameter_count;
  model->parts = found.text();
  BrainSpec& brain = model->spec;
  brain.name = spec.name;
  brain.observation.count = static_cast<std::uint32_t>(found.observation_count);
  brain.action.continuous_count = static_cast<std::uint32_t>(found.action_count);
  brain.agents_per_brain = spec.agent_capacity;
  brain.action_latency_frames = spec.action_latency_frames;
  brain.exploration = 0;

  InferGraph& graph = model->graph;
  graph.agents = spec.agent_capacity;
  ProgramDescription& program = graph.description;
  program.name = spec.name + " infer";
  program.slot_count = inference_slots(spec.action_latency_frames);
  const std::vector<Tensor> fed = policy.model.input_tensors();
  program.inputs = {fed[0]};
  graph.observation = 0;

  const auto feed = [&](int& index, Tensor tensor) {
    index = static_cast<int>(program.inputs.size());
    program.inputs.push_back(tensor);
    return tensor;
  };

  // Inputs that replace the network's own.
  std::vector<Tensor> states(fed.begin() + 1, fed.end()), exchanged(fed.begin() + 1, fed.end()), replacements;
  Tensor active, reset;
  if (!states.empty()) {
    const Shape flags{1, spec.agent_capacity};
    active = feed(graph.active, input("active", flags, DType::int32));
    reset = feed(graph.reset, input("reset", flags, DType::int32));
  }
  IMPRINT_CHECK(check_state_bytes(spec, states));
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Shape& shape = states[i].shape();
    model->state.push_back(Variable::zeros(found.states[i].input, shape));
    replacements.push_back(where(condition(reset, shape), zeros(shape), model->state[i].value()));
  }
  if (!shared.observations.empty()) {
    const Tensor given = reshape(fed[0], {1, spec.agent_capacity, found.observation_count});
    const Tensor offset = feed(graph.offset, input("offset", {1, spec.agent_capacity}, DType::int32));
    exchanged.push_back(fed[0]);
    replacements.push_back(reshape(read_observations(given, shared.observations, offset), fed[0].shape()));
  }
  const std::vector<Tensor> results = substitute(policy.model.output_tensors(), exchanged, replacements);
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Variable& state = model->state[i];
    program.updates.push_back(
        Update::assign(state, where(condition(active, state.shape()), results[i + 1], state.value())));
  }
  program.outputs = {results[0]};
  if (!shared.actions.empty()) {
    const Tensor rows = feed(graph.action_rows, input("action rows", {spec.agent_capacity}, DType::int32));
    const std::vector<Update> written = scatter_to(
        shared.actions, rows, reshape(program.outputs[0], {spec.agent_capacity, found.action_count}));
    program.updates.insert(program.updates.end(), written.begin(), written.end());
  }
  graph.continuous = 0;
  graph.values = 0;
  // More is refused in warm-up, before it stops the game: a file of a hundred bytes can ask for 2^47.
  graph.most_operations =
      std::min(spec.operation_limit, UINT64_MAX / spec.agent_capacity) * spec.agent_capacity;
  return model;
}

}  // namespace imprint::agent
