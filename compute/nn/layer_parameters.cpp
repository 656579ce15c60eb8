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

Tensor beside_rows(const Tensor& parameter, const Tensor& x) {
  if (!parameter.ok() || !x.ok() || parameter.rank() != 3 || x.rank() == 3) return parameter;
  Shape shape{parameter.extent(0)};
  while (shape.rank() + 1 < x.rank()) shape.append(1);
  shape.append(parameter.extent(2));
  return reshape(parameter, shape);
}

Tensor networks_as_channels(const Tensor& x) {
  Shape merged{x.extent(1), x.extent(0) * x.extent(2)};
  for (int axis = 3; axis < x.rank(); ++axis) merged.append(x.extent(axis));
  return reshape(transpose(x, 0, 1), merged);
}

Tensor channels_as_networks(const Tensor& x, std::int64_t networks) {
  if (!x.ok()) return x;
  Shape split{x.extent(0), networks, x.extent(1) / networks};
  for (int axis = 2; axis < x.rank(); ++axis) split.append(x.extent(axis));
  return transpose(reshape(x, split), 0, 1);
}

}  // namespace imprint::nn
