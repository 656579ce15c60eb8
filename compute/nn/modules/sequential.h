#pragma once
// Layers in sequence, and multilayer perceptrons.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compute/nn/module.h"
#include "compute/nn/modules/activation.h"
#include "compute/nn/modules/convolution.h"
#include "compute/nn/modules/linear.h"
#include "compute/nn/modules/normalisation.h"
#include "compute/nn/modules/norms.h"

namespace imprint::nn {

class DtypePolicy;

// Parameters are named by position, as in PyTorch: "0.weight", "0.bias", "2.weight". Activations count as
// positions.
class Sequential {
 public:
  explicit Sequential(std::string name) : name_(std::move(name)) {}

  // The layers' variables are named "<name>.<position>.weight".
  Sequential& linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {});
  Sequential& conv2d(std::int64_t in, std::int64_t out, const PerAxis& kernel,
                     const ConvOptions& options = {});
  Sequential& batch_norm(std::int64_t channels, const BatchNormOptions& options = {});
  Sequential& layer_norm(std::int64_t extent, const LayerNormOptions& options = {});
  Sequential& activation(Activation activation);
  // The caller's own layer and its parameters.
  Sequential& layer(std::function<Tensor(const Tensor&)> forward, const Parameters& parameters = {});
  // Any module or layer (module.h).
  Sequential& add(Module module);
  // A layer whose constructor takes its name first: add<Conv2d>(3, 16, 3, ConvOptions{.padding = 1}).
  template <class Layer, class... Arguments>
  Sequential& add(Arguments&&... arguments) {
    static_assert(
        IsLayer<Layer>,
        "a layer needs Tensor operator()(const Tensor&) const, or operator()(const Tensor&, Pass&) const");
    return add(Module(Layer(next_name(), std::forward<Arguments>(arguments)...)));
  }

  // The backward pass keeps only the inputs of every `layers` layers in a row and computes what is between
  // them again (checkpoint.h): less memory, more time, equal gradients. 0: keeps everything.
  Sequential& recompute_every(std::int64_t layers);

  Tensor operator()(const Tensor& x) const;
  Tensor operator()(const Tensor& x, Pass& pass) const;
  // A table: per layer its name, kind, output shape and number of trained values; the error where a layer
  // refuses its input.
  std::string summary(const Shape& input) const;
  // The same with the types of the layers' parameters (dtype_policy.h).
  std::string summary(const Shape& input, const DtypePolicy& policy) const;
  const std::string& name() const { return name_; }
  std::size_t size() const { return layers_.size(); }
  const Parameters& parameters() const { return parameters_; }
  const Parameters& buffers() const { return buffers_; }
  static constexpr std::string_view kKind = "Sequential";

 private:
  std::string next_name() const;
  std::string table(const Shape& input, const DtypePolicy* policy) const;

  std::string name_;
  std::vector<Module> layers_;
  std::size_t recomputed_ = 0;  // layers of a piece
  Parameters parameters_, buffers_;
};

struct MlpOptions {
  Activation activation = Activation::relu;  // between linear layers, not after the last
  bool layer_norm = false;                   // between a hidden linear layer and its activation
  Initialisation hidden_values = {};         // weights of all layers but the last
  Initialisation output_values = {};         // weights of the last; policies: orthogonal with gain 0.01
  Initialisation bias_values = {};
  std::int64_t groups = 0;
  std::uint64_t seed = 0;
};

// A multilayer perceptron. Extents {28, 64, 64, 10} make three linear layers with activations between them.
Sequential mlp(const std::string& name, std::span<const std::int64_t> extents,
               const MlpOptions& options = {});
Sequential mlp(const std::string& name, std::initializer_list<std::int64_t> extents,
               const MlpOptions& options = {});

}  // namespace imprint::nn
