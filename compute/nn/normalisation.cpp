#include "compute/nn/normalisation.h"

#include "compute/base/text.h"
#include "compute/nn/initialise.h"

namespace imprint::nn {

LayerNorm::LayerNorm(const std::string& name, std::int64_t extent, const LayerNormOptions& options)
    : name_(name), extent_(extent), options_(options) {
  const Shape shape = options.groups > 0 ? Shape{options.groups, 1, extent} : Shape{extent};
  const InitialValues wanted{.columns = extent, .groups = options.groups};
  gain_ =
      Variable(name + ".gain", shape, std::span<const float>(initial_values({Scheme::ones}, name, wanted)));
  bias_ =
      Variable(name + ".bias", shape, std::span<const float>(initial_values({Scheme::zeros}, name, wanted)));
  parameters_.add("gain", gain_);
  parameters_.add("bias", bias_);
}

Tensor LayerNorm::operator()(const Tensor& x) const {
  if (x.ok() &&
      (x.extent(-1) != extent_ || (options_.groups > 0 && (x.rank() != 3 || x.extent(0) != options_.groups))))
    return Tensor(make_error(ErrorCode::shape_mismatch,
                             text("layer norm '", name_, "': found input ", x.shape().text(), ", expected ",
                                  options_.groups > 0 ? text("[", options_.groups, ", batch, ", extent_, "]")
                                                      : text("[..., ", extent_, "]"))));
  return layer_norm(x, ones({extent_}), zeros({extent_}), options_.epsilon) * gain_.value() + bias_.value();
}

}  // namespace imprint::nn
