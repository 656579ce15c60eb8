// Learns the forces that swing a rope's end to a target, by the gradient of the game's own physics (rope.h).
// Returns 1 when the end misses the target. 05-own-physics [cpu]
#include <engine-bridge/own/standalone.h>
#include <imprint/compute.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "rope.h"

using namespace imprint;

constexpr std::int64_t kSteps = 100;  // of 10 ms each

// Distance of the rope's end from the target after learning, metres.
static Result<float> learn(Session& session) {
  std::vector<float> hanging;
  for (int i = 0; i < rope::kMasses; ++i)
    hanging.insert(hanging.end(), {0, -rope::kRest * static_cast<float>(i)});
  const Tensor start[] = {Tensor::from(hanging, {rope::kMasses, 2}), zeros({rope::kMasses, 2})};
  const Tensor target = Tensor::from({0.6f, -0.8f}, {2});

  // All steps: the body is recorded and compiled once. Each step takes one row of the forces.
  const Variable forces = Variable::zeros("forces", {kSteps, 2});
  const Tensor rows[] = {forces.value()};
  const auto body = [](std::span<const Tensor> state, std::span<const Tensor> force) {
    return ScanStep{.carry = rope::step(state[0], state[1], force[0]), .results = {}};
  };
  IMPRINT_ASSIGN(const Scanned end, scan(body, start, rows));

  const Tensor miss = reshape(narrow(end.carry[0], 0, rope::kMasses - 1, 1), {2}) - target;
  const Tensor loss = sum(square(miss)) + 1e-5f * mean(square(forces.value()));  // with little effort
  nn::Parameters parameters;
  parameters.add("forces", forces);
  IMPRINT_ASSIGN(const std::vector<Tensor> gradient, gradients(loss, parameters.values()));
  IMPRINT_ASSIGN(const std::vector<Update> updates, nn::Adam(parameters).step(gradient, 0.5));
  const ProgramDescription description{
      .name = "swing", .outputs = {sqrt(sum(square(miss)))}, .updates = updates};
  IMPRINT_ASSIGN(Program program, Program::compile(session.runtime(), description));

  float distance = 0;
  for (int turn = 0; turn <= 100; ++turn) {
    IMPRINT_ASSIGN(const std::vector<HostTensor> outputs, session.run(program));
    distance = outputs[0].floats[0];
    if (turn % 20 == 0) std::printf("turn %3d  the end misses by %.3f m\n", turn, distance);
  }
  return distance;
}

static Result<float> run(bool on_cpu) {
  if (on_cpu) {
    const auto runtime = Runtime::create_on_cpu();
    Session session(*runtime);
    return learn(session);
  }
  IMPRINT_ASSIGN(const auto device, bridge::Standalone::open({}));
  return learn(device->session());
}

int main(int count, char** arguments) {
  const auto distance = run(count > 1 && std::string_view(arguments[1]) == "cpu");
  if (!distance) return std::fprintf(stderr, "%s\n", distance.error().message.c_str()), 1;
  return *distance < 0.05f ? 0 : 1;
}
