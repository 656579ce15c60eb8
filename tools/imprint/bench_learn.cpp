// One minibatch of proximal policy optimisation, from forward to Adam, with its data on the device: 32
// observations, two hidden layers shared by policy and value, 8 actions.

#include <string>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/learners/ppo_loss.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/optimisers/loss_scaler.h"
#include "compute/nn/optimisers/optimiser.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/bench_noise.h"

namespace imprint::tools {
namespace {

Variable noise_variable(Noise& noise, const std::string& name, Shape shape, float low, float high) {
  std::vector<float> values(static_cast<std::size_t>(shape.element_count()));
  for (float& value : values) value = low + (high - low) * noise.next();
  return {name, shape, values};
}

Result<BenchResult> run_ppo(BenchDevice& device, const std::string& name, std::int64_t hidden,
                            std::int64_t batch, Precision precision) {
  constexpr std::int64_t kObservations = 32, kActions = 8;
  Noise noise;
  const Variable observation = noise_variable(noise, "observation", {batch, kObservations}, -1, 1);
  const Variable log_probability = noise_variable(noise, "log_probability", {batch}, -2.3f, -1.9f);
  const Variable advantage = noise_variable(noise, "advantage", {batch}, -2, 2);
  const Variable value_target = noise_variable(noise, "value_target", {batch}, -1, 1);
  std::vector<std::int32_t> actions(static_cast<std::size_t>(batch));
  for (std::int32_t& action : actions)
    action = static_cast<std::int32_t>(noise.next() * static_cast<float>(kActions));
  const Variable action("action", {batch}, actions);

  const nn::Sequential network = nn::mlp("ppo", {kObservations, hidden, hidden, kActions + 1},
                                         {.activation = nn::Activation::tanh, .seed = 1});
  const Tensor outputs = network(observation.value());
  const nn::PpoLoss loss =
      nn::ppo_loss(slice(outputs, 1, 0, kActions), squeeze(slice(outputs, 1, kActions, kActions + 1), 1),
                   {action.value(), log_probability.value(), advantage.value(), value_target.value()},
                   {.entropy_coefficient = 0.01});
  const bool mixed = precision == Precision::mixed16;
  const nn::LossScaler scaler("ppo");
  IMPRINT_ASSIGN(const std::vector<Tensor> gradient,
                 gradients(mixed ? scaler.scaled(loss.total) : loss.total, network.parameters().values()));
  IMPRINT_ASSIGN(const nn::ClippedGradients clipped,
                 nn::clip_by_global_norm(gradient, 0.5, 0, mixed ? scaler.scale() : Tensor()));
  const nn::Adam adam(network.parameters(), {.epsilon = 1e-5});
  ProgramDescription description{.name = "ppo", .slot_count = kChainedRuns, .precision = precision};
  IMPRINT_ASSIGN(description.updates,
                 adam.step(clipped.gradients, 3e-4, mixed ? scaler.active(clipped.norm) : Tensor()));
  if (mixed)
    for (Update& update : scaler.step(clipped.norm)) description.updates.push_back(std::move(update));
  const Variable metrics = Variable::zeros("metrics", {4});
  description.updates.push_back(
      Update::assign(metrics, stack({loss.policy, loss.value, loss.entropy, loss.divergence}, 0)));
  IMPRINT_ASSIGN(Program program, Program::compile(device.runtime(), description));
  return measure_program(device, program, name);
}

}  // namespace

std::vector<BenchCase> learn_cases() {
  std::vector<BenchCase> cases;
  const auto add = [&](std::int64_t hidden, std::int64_t batch, Precision precision) {
    const std::string name = "learn/ppo/h" + std::to_string(hidden) +
                             (precision == Precision::mixed16 ? "/f16/b" : "/f32/b") + std::to_string(batch);
    cases.push_back(
        {name, [=](BenchDevice& device) { return run_ppo(device, name, hidden, batch, precision); }});
  };
  const std::pair<std::int64_t, std::int64_t> sizes[] = {
      {64, 256}, {64, 2048}, {64, 16384}, {256, 256}, {256, 16384}};
  for (const auto& [hidden, batch] : sizes) add(hidden, batch, Precision::float32);
  add(256, 16384, Precision::mixed16);
  return cases;
}

}  // namespace imprint::tools
