// Suite nets: a perceptron, and networks of convolutions.

#include "compute/nn/losses/losses.h"
#include "compute/nn/modules/convolution.h"
#include "compute/nn/modules/pooling.h"
#include "compute/nn/modules/sequential.h"
#include "tools/imprint/bench_nets.h"

namespace imprint::tools {
namespace {

constexpr auto kRelu = nn::Activation::relu;

nn::Sequential perceptron() { return nn::mlp("mlp", {784, 512, 512, 10}, {.seed = 1}); }

// PyTorch's MNIST example without dropout.
nn::Sequential mnist_cnn() {
  nn::Sequential net("cnn");
  net.add<nn::Conv2d>(1, 32, 3).activation(kRelu);
  net.add<nn::Conv2d>(32, 64, 3).activation(kRelu).add(nn::MaxPool()).add(nn::Flatten());
  net.linear(9216, 128).activation(kRelu).linear(128, 10);
  return net;
}

// Mnih et al., Human-level control through deep reinforcement learning, 2015.
nn::Sequential nature_cnn() {
  nn::Sequential net("nature");
  net.add<nn::Conv2d>(4, 32, 8, nn::ConvOptions{.stride = 4}).activation(kRelu);
  net.add<nn::Conv2d>(32, 64, 4, nn::ConvOptions{.stride = 2}).activation(kRelu);
  net.add<nn::Conv2d>(64, 64, 3).activation(kRelu).add(nn::Flatten());
  net.linear(3136, 512).activation(kRelu).linear(512, 18);
  return net;
}

// A first convolution and four blocks of two, each added to its input.
class Residual {
 public:
  Residual() {
    for (int i = 0; i < 9; ++i) {
      const std::string name = "conv" + std::to_string(i);
      layers_.emplace_back(name, i == 0 ? 3 : 64, 64, 3, nn::ConvOptions{.padding = 1});
      parameters_.add(name, layers_.back().parameters());
    }
    parameters_.add("head", head_.parameters());
  }
  Tensor operator()(const Tensor& image) const {
    Tensor x = relu(layers_[0](image));
    for (std::size_t i = 1; i < layers_.size(); i += 2) x = relu(x + layers_[i + 1](relu(layers_[i](x))));
    return head_(nn::GlobalAvgPool()(x));
  }
  const nn::Parameters& parameters() const { return parameters_; }

 private:
  std::vector<nn::Conv2d> layers_;
  nn::Linear head_{"head", 64, 10};
  nn::Parameters parameters_;
};

struct Images {
  Shape shape, small;
  std::int64_t classes = 10;
};

// Rows of a network: a step, and inference; the step in mixed precision too.
template <class Make>
void add_classifier(std::vector<Net>& nets, const std::string& name, Make make, const Images& images) {
  const auto describe = [=](bool small, bool step, Precision precision) -> Result<ProgramDescription> {
    const auto net = make();
    const Shape& shape = small ? images.small : images.shape;
    const Tensor y = net(noise_values("image", shape).value());
    if (!step) return stored({y}, precision);
    const Variable label = noise_indices("label", {shape[0]}, images.classes);
    return trained(nn::cross_entropy(y, label.value()), net.parameters(), precision);
  };
  constexpr Precision kWhole = Precision::float32, kMixed = Precision::mixed16;
  nets.push_back({name + "/step", [=](bool small) { return describe(small, true, kWhole); }});
  nets.push_back({name + "/inference", [=](bool small) { return describe(small, false, kWhole); }});
  nets.push_back({name + "/step-16", [=](bool small) { return describe(small, true, kMixed); }});
}

// One convolution: its mean square's step.
Result<ProgramDescription> pointwise(bool small, bool step, Precision precision) {
  const nn::Conv2d layer("conv", 256, 256, 1);
  const Tensor y = layer(noise_values("image", small ? Shape{1, 256, 7, 7} : Shape{32, 256, 28, 28}).value());
  return step ? trained(mean(square(y)), layer.parameters(), precision) : stored({y}, precision);
}

}  // namespace

std::vector<Net> layer_nets() {
  std::vector<Net> nets;
  add_classifier(nets, "mlp784/b128", perceptron, {{128, 784}, {16, 784}});
  add_classifier(nets, "mnist-cnn/b64", mnist_cnn, {{64, 1, 28, 28}, {2, 1, 28, 28}});
  for (const std::int64_t batch : {32, 256})
    add_classifier(nets, "nature-cnn/b" + std::to_string(batch), nature_cnn,
                   {{batch, 4, 84, 84}, {1, 4, 84, 84}, 18});
  add_classifier(nets, "residual9/b64", [] { return Residual(); }, {{64, 3, 32, 32}, {1, 3, 16, 16}});
  for (const bool step : {true, false})
    for (const Precision precision : {Precision::float32, Precision::mixed16})
      nets.push_back({std::string("conv1x1/256x28x28/b32/") + (step ? "step" : "inference") +
                          (precision == Precision::mixed16 ? "-16" : ""),
                      [=](bool small) { return pointwise(small, step, precision); }});
  return nets;
}

}  // namespace imprint::tools
