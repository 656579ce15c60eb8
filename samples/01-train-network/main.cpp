// Trains a small network to tell two spirals apart, on its own Vulkan device, and draws what it learned.
// Returns 1 when it did not learn.
#include <engine-bridge/own/standalone.h>
#include <imprint/compute.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using namespace imprint;

// `count` points on two spirals, from the centre to a distance of 4. Even points are on the first spiral, odd
// points on the second.
static Tensor spirals(int count) {
  std::vector<float> points;
  for (int i = 0; i < count; ++i) {
    const float distance = 4 * (static_cast<float>(i) + 1) / static_cast<float>(count),
                angle = 2.25f * distance + (i % 2 == 0 ? 0.0f : 3.14159265f);
    points.insert(points.end(), {distance * std::cos(angle), distance * std::sin(angle)});
  }
  return Tensor::from(points, {count, 2});
}
static Tensor labels(int count) { return remainder(arange(count), 2); }

static Result<float> train(Session& session) {
  const nn::Sequential network =
      nn::mlp("spirals", {2, 48, 48, 2}, {.activation = nn::Activation::tanh, .seed = 1});
  const Tensor loss = nn::cross_entropy(network(spirals(200)), labels(200));
  IMPRINT_ASSIGN(const std::vector<Tensor> gradient, gradients(loss, network.parameters().values()));
  IMPRINT_ASSIGN(const std::vector<Update> step, nn::Adam(network.parameters()).step(gradient, 5e-3));
  IMPRINT_ASSIGN(Program program,
                 Program::compile(session.runtime(), {.name = "train", .outputs = {loss}, .updates = step}));
  std::printf("dispatches of one training step: %u\n", program.stats().dispatches);

  for (int i = 0; i <= 500; ++i) {
    IMPRINT_ASSIGN(const std::vector<HostTensor> outputs, session.run(program));
    if (i % 100 == 0) std::printf("step %4d  loss %.4f\n", i, outputs[0].floats[0]);
  }

  // The network's answer at each point of a grid, and its share of right answers on new points.
  const Tensor column = arange(-4.0, 4.0, 0.125), row = arange(-4.0, 4.0, 0.25);
  const Shape plane{row.extent(0), column.extent(0)};
  const Tensor positions = stack({expand(column, plane), expand(unsqueeze(row, 1), plane)}, -1);
  IMPRINT_ASSIGN(const HostTensor picture, session.evaluate(argmax(network(positions), -1)));
  for (int y = 0; y < plane[0]; ++y) {
    std::string line;
    for (int x = 0; x < plane[1]; ++x)
      line += picture.ints[static_cast<size_t>(y * plane[1] + x)] == 0 ? '.' : '#';
    std::puts(line.c_str());
  }
  const Tensor right = equal(argmax(network(spirals(333)), -1), remainder(arange(333), 2));
  IMPRINT_ASSIGN(const HostTensor share, session.evaluate(mean(cast(right, DType::float32))));
  return share.floats[0];
}

int main() {
  auto device = bridge::Standalone::open({});
  if (!device) return std::fprintf(stderr, "%s\n", device.error().message.c_str()), 1;
  const auto right = train((*device)->session());
  if (!right) return std::fprintf(stderr, "%s\n", right.error().message.c_str()), 1;
  std::printf("%.1f %% of new points are classified correctly\n", 100 * *right);
  return *right > 0.95f ? 0 : 1;
}
