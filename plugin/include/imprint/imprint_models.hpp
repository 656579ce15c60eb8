#ifndef IMPRINT_IMPRINT_MODELS_HPP_
#define IMPRINT_IMPRINT_MODELS_HPP_
// Part of imprint.hpp, which includes it: models, imprint_models.h in C++.
//
//   Made<Model> voice = context.create_model(ModelDesc{.path = "voice.onnx"});
//   const Made<std::uint64_t> run = voice->run({{"samples", samples}});    // in a frame
//   if (voice->read(*run, {{"speech", speech}}).ready()) use(speech);      // two frames later

#include <initializer_list>

#include "imprint_owner.hpp"
#include "imprint_types.hpp"

namespace imprint::game {

// The extent of a free dimension, or the bound of one. The name of a bound may say all:
// "past=0..128".
struct ModelExtent : imp_model_extent {
  ModelExtent(Text dimension, std::uint64_t extent = 0)
      : imp_model_extent{dimension.c_str(), extent} {}
};
// State from an output to an input of the next run.
struct ModelState : imp_model_state {
  ModelState(Text input_name, Text output_name)
      : imp_model_state{input_name.c_str(), output_name.c_str()} {}
};
// An input or output in a tensor, which may be a Tensor.
struct ModelBinding : imp_model_binding {
  ModelBinding(Text value, imp_tensor with) : imp_model_binding{value.c_str(), with} {}
  template <class Owner>
  requires std::is_same_v<decltype(std::declval<const Owner&>().handle()), imp_tensor> ModelBinding(
      Text value, const Owner& with)
      : ModelBinding(value, with.handle()) {}
};

// imp_policy_names: the parts of a policy by name, for PolicyDesc::names.
struct PolicyNames {
  Names observations{};
  Names actions{};
  std::span<const ModelState> states{};
  Names zeros{};

  operator imp_policy_names() const {
    imp_policy_names names = imp_policy_names_init();
    names.observations = observations.data();
    names.actions = actions.data();
    names.states = states.data();
    names.zeros = zeros.data();
    names.observation_count = detail::count_of(observations.size());
    names.action_count = detail::count_of(actions.size());
    names.state_count = detail::count_of(states.size());
    names.zero_count = detail::count_of(zeros.size());
    return names;
  }
};

// imp_model_desc. It borrows names and lists until create_model has returned.
struct ModelDesc {
  Text name = "model";
  Text path{};  // or:
  std::span<const std::byte> file{};
  std::span<const ModelExtent> extents{};
  std::span<const ModelExtent> bounds{};
  std::span<const ModelState> states{};
  std::span<const ModelBinding> bindings{};
  std::uint32_t run_capacity = 3;
  std::uint32_t latency_frames = 2;
  std::uint64_t constant_limit_bytes = std::uint64_t{1} << 30;
  std::uint64_t operation_limit = std::uint64_t{1} << 36;

  operator imp_model_desc() const {
    static_assert(sizeof(ModelExtent) == sizeof(imp_model_extent) &&
                  sizeof(ModelState) == sizeof(imp_model_state) &&
                  sizeof(ModelBinding) == sizeof(imp_model_binding));
    imp_model_desc desc = imp_model_desc_init();
    desc.name = name.c_str();
    desc.path = path.c_str();
    desc.data = file.data();
    desc.size = file.size();
    desc.extents = extents.data();
    desc.bounds = bounds.data();
    desc.states = states.data();
    desc.bindings = bindings.data();
    desc.extent_count = detail::count_of(extents.size());
    desc.bound_count = detail::count_of(bounds.size());
    desc.state_count = detail::count_of(states.size());
    desc.binding_count = detail::count_of(bindings.size());
    desc.run_capacity = run_capacity;
    desc.latency_frames = latency_frames;
    desc.constant_limit_bytes = constant_limit_bytes;
    desc.operation_limit = operation_limit;
    return desc;
  }
};

// Numbers for an input: a span, an array or a vector. Without a name by position.
struct ModelInput : imp_model_input {
  template <class Values>
  ModelInput(Text input, const Values& values)
      : imp_model_input{input.c_str(), std::span(values).data(), std::span(values).size_bytes()} {}
  template <class Values>
  requires(!std::is_base_of_v<imp_model_input, Values>) ModelInput(const Values& values)
      : ModelInput(Text(), values) {}
};

// Room for an output.
struct ModelOutput : imp_model_output {
  template <class Values>
  ModelOutput(Text output, Values&& values)
      : imp_model_output{output.c_str(), std::span(values).data(), std::span(values).size_bytes()} {
  }
  template <class Values>
  requires(!std::is_base_of_v<imp_model_output, std::remove_cvref_t<Values>>)
      ModelOutput(Values&& values)
      : ModelOutput(Text(), values) {}
};

class Model : public detail::Owner<imp_model, &imp_models_api::model_destroy> {
 public:
  using Owner::Owner;

  Made<imp_model_info> info() const {
    return fill(imp_model_info_init(), &imp_models_api::model_get_info);
  }
  Made<imp_model_value> input(std::uint32_t index) const {
    return fill(imp_model_value_init(), &imp_models_api::model_get_input, index);
  }
  Made<imp_model_value> output(std::uint32_t index) const {
    return fill(imp_model_value_init(), &imp_models_api::model_get_output, index);
  }

  // Sets a dimension of ModelDesc::bounds for runs that begin afterwards.
  Outcome set_extent(Text name, std::uint64_t value) {
    return call(&imp_models_api::model_set_extent, name.c_str(), value);
  }

  // The number of the run. False also while run_capacity runs are under way or unread:
  // outcome.code() is then Code::not_ready.
  Made<std::uint64_t> run(std::span<const ModelInput> inputs) {
    static_assert(sizeof(ModelInput) == sizeof(imp_model_input));
    return fill(std::uint64_t{}, &imp_models_api::model_run,
                static_cast<const imp_model_input*>(inputs.data()),
                detail::count_of(inputs.size()));
  }
  Made<std::uint64_t> run(std::initializer_list<ModelInput> inputs) {
    return run(std::span<const ModelInput>(inputs.begin(), inputs.size()));
  }
  // ready() once the outputs are there; ok() also before.
  Outcome read(std::uint64_t run, std::span<const ModelOutput> outputs) {
    static_assert(sizeof(ModelOutput) == sizeof(imp_model_output));
    return call(&imp_models_api::model_read, run,
                static_cast<const imp_model_output*>(outputs.data()),
                detail::count_of(outputs.size()));
  }
  Outcome read(std::uint64_t run, std::initializer_list<ModelOutput> outputs) {
    return read(run, std::span<const ModelOutput>(outputs.begin(), outputs.size()));
  }
  Outcome discard(std::uint64_t run) { return call(&imp_models_api::model_discard, run); }
  Outcome reset_state() { return call(&imp_models_api::model_reset); }
};

}  // namespace imprint::game

#endif  // IMPRINT_IMPRINT_MODELS_HPP_
