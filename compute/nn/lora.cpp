#include "compute/nn/lora.h"

#include <algorithm>

#include "compute/nn/layer_parameters.h"
#include "compute/tensor/composites/composites.h"

namespace imprint::nn {

Lora::Lora(const std::string& name, const Parameters& weights, const LoraOptions& options)
    : scale_(options.alpha / static_cast<double>(std::max<std::int64_t>(options.rank, 1))) {
  for (const Parameter& weight : weights) {
    const Shape& shape = weight.variable.shape();
    if (shape.rank() != 2) continue;
    std::string layer = weight.name;
    if (layer.ends_with(".weight")) layer.resize(layer.size() - 7);
    const InitialValues wanted{.rows = shape[0],
                               .columns = options.rank,
                               .fan_in = shape[0],
                               .fan_out = options.rank,
                               .seed = options.seed};
    Parameters made;
    const Variable down = add_parameter(made, name + "." + layer, "lora_A.weight", {shape[0], options.rank},
                                        Initialisation(), wanted, weight.transposed);
    const Variable up = Variable::zeros(name + "." + layer + ".lora_B.weight", {options.rank, shape[1]});
    made.add("lora_B.weight", up, weight.transposed);
    parameters_.add(layer, made);
    adapted_.push_back({weight.variable, down, up});
  }
}

Tensor Lora::changed(const Adapted& adapted) const {
  return adapted.weight.value() + Tensor(scale_) * matmul(adapted.down.value(), adapted.up.value());
}

std::vector<Tensor> Lora::operator()(std::span<const Tensor> outputs) const {
  std::vector<Tensor> from, to;
  for (const Adapted& adapted : adapted_) {
    from.push_back(adapted.weight.value());
    to.push_back(changed(adapted));
  }
  return substitute(outputs, from, to);
}

Tensor Lora::operator()(const Tensor& output) const {
  return (*this)(std::span<const Tensor>(&output, 1))[0];
}

std::vector<Update> Lora::merge() const {
  std::vector<Update> updates;
  for (const Adapted& adapted : adapted_) {
    updates.push_back(Update::assign(adapted.weight, changed(adapted)));
    updates.push_back(Update::assign(adapted.up, zeros_like(adapted.up.value())));
  }
  return updates;
}

}  // namespace imprint::nn
