#include "compute/nn/modules/normalisation.h"

#include "compute/base/text.h"
#include "compute/nn/layer_parameters.h"

namespace imprint::nn {

LayerNorm::LayerNorm(const std::string& name, std::int64_t extent, const LayerNormOptions& options)
    : name_(name), extent_(extent), options_(options) {
  const Shape shape = options.groups > 0 ? Shape{options.groups, 1, extent} : Shape{extent};
  weight_ = add_constant(parameters_, name, "weight", shape, 1);
  bias_ = add_constant(parameters_, name, "bias", shape, 0);
}

Tensor LayerNorm::operator()(const Tensor& x) const {
  if (x.ok() &&
      (x.extent(-1) != extent_ || (options_.groups > 0 && (x.rank() < 3 || x.extent(0) != options_.groups))))
    return Tensor(
        make_error(ErrorCode::shape_mismatch,
                   text("layer norm '", name_, "': found input ", x.shape().text(), ", expected ",
                        options_.groups > 0 ? text("[", options_.groups, ", batch..., ", extent_, "]")
                                            : text("[..., ", extent_, "]"))));
  return layer_norm(x, ones({extent_}), zeros({extent_}), options_.epsilon) *
             beside_rows(weight_.value(), x) +
         beside_rows(bias_.value(), x);
}

}  // namespace imprint::nn
