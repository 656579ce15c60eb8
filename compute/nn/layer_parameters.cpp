#include "compute/nn/layer_parameters.h"

#include "compute/base/text.h"

namespace imprint::nn {

Variable add_parameter(Parameters& parameters, const std::string& layer, const std::string& name,
                       const Shape& shape, const Initialisation& initialisation, const InitialValues& wanted,
                       bool transposed) {
  const std::string full = layer + "." + name;
  const Variable variable(full, shape, std::span<const float>(initial_values(initialisation, full, wanted)));
  parameters.add(name, variable, transposed);
  return variable;
}

Variable add_constant(Parameters& parameters, const std::string& layer, const std::string& name,
                      const Shape& shape, double value) {
  return add_parameter(parameters, layer, name, shape, {.scheme = Scheme::constant, .gain = value},
                       {.columns = shape.element_count()});
}

Tensor unfit_input(const std::string& kind, const std::string& layer, const Tensor& x,
                   const std::string& expected) {
  return Tensor(make_error(ErrorCode::shape_mismatch, text(kind, " '", layer, "': found input ",
                                                           x.shape().text(), ", expected ", expected)));
}

}  // namespace imprint::nn
