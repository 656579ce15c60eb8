#include "compute/nn/weight_form.h"

#include <algorithm>
#include <cmath>

#include "compute/nn/layer_parameters.h"

namespace imprint::nn {
namespace {

constexpr double kLeastNorm = 1e-12;  // PyTorch's

using Doubles = std::vector<double>;

// The values as [outputs, rest].
struct UnitRows {
  std::size_t outputs = 1, rest = 1;
  Doubles values;
};

UnitRows rows_of(const std::vector<float>& values, const Shape& shape, bool transposed) {
  UnitRows out;
  out.outputs = static_cast<std::size_t>(std::max<std::int64_t>(shape[transposed ? shape.rank() - 1 : 0], 1));
  out.rest = values.size() / out.outputs;
  out.values.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    out.values[transposed ? i % out.outputs * out.rest + i / out.outputs : i] =
        static_cast<double>(values[i]);
  return out;
}

void normalise(Doubles& vector) {
  double squares = 0;
  for (const double element : vector) squares += element * element;
  for (double& element : vector) element /= std::max(std::sqrt(squares), kLeastNorm);
}

// The first singular vectors, by as many power iterations as PyTorch starts with.
void first_vectors(const UnitRows& rows, Doubles& u, Doubles& v) {
  v.assign(rows.rest, 1);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] += 0.5 * std::sin(static_cast<double>(i) + 1);
  for (int iteration = 0; iteration < 15; ++iteration) {
    u.assign(rows.outputs, 0);
    for (std::size_t i = 0; i < rows.values.size(); ++i)
      u[i / rows.rest] += rows.values[i] * v[i % rows.rest];
    normalise(u);
    v.assign(rows.rest, 0);
    for (std::size_t i = 0; i < rows.values.size(); ++i)
      v[i % rows.rest] += rows.values[i] * u[i / rows.rest];
    normalise(v);
  }
}

Variable vector_variable(Parameters& buffers, const std::string& layer, const std::string& name,
                         const Doubles& values) {
  const std::vector<float> narrow(values.begin(), values.end());
  const Variable made(layer + "." + name, {static_cast<std::int64_t>(values.size())},
                      std::span<const float>(narrow));
  buffers.add(name, made);
  return made;
}

Tensor normalised(const Tensor& vector) {
  return vector / clamp_min(sqrt(sum(square(vector), {}, true)), kLeastNorm);
}

}  // namespace

FormedWeight::FormedWeight(Parameters& parameters, Parameters& buffers, const std::string& layer,
                           const Shape& shape, WeightForm form, const Initialisation& initialisation,
                           const InitialValues& wanted, bool transposed)
    : form_(form), transposed_(transposed) {
  if (form == WeightForm::plain) {
    original_ = add_parameter(parameters, layer, "weight", shape, initialisation, wanted, transposed);
    return;
  }
  // The weights that the plain form draws.
  const std::string name = layer + ".weight";
  const std::vector<float> values = initial_values(initialisation, name, wanted);
  const UnitRows rows = rows_of(values, shape, transposed);
  original_ = Variable(name, shape, std::span<const float>(values));
  if (form == WeightForm::spectral_norm) {
    parameters.add("parametrizations.weight.original", original_, transposed);
    Doubles u, v;
    first_vectors(rows, u, v);
    u_ = vector_variable(buffers, layer, "parametrizations.weight.0._u", u);
    v_ = vector_variable(buffers, layer, "parametrizations.weight.0._v", v);
    return;
  }
  std::vector<float> norms(rows.outputs);
  for (std::size_t i = 0; i < rows.outputs; ++i) {
    double squares = 0;
    for (std::size_t k = 0; k < rows.rest; ++k) squares += std::pow(rows.values[i * rows.rest + k], 2);
    norms[i] = static_cast<float>(std::sqrt(squares));
  }
  Shape per_unit;
  for (int axis = 0; axis < shape.rank(); ++axis)
    per_unit.append(axis == (transposed ? shape.rank() - 1 : 0) ? shape[axis] : 1);
  magnitude_ = Variable(name + ".norm", per_unit, std::span<const float>(norms));
  parameters.add("parametrizations.weight.original0", magnitude_, transposed);
  parameters.add("parametrizations.weight.original1", original_, transposed);
}

Tensor FormedWeight::magnitude_direction() const {
  const Tensor v = original_.value();
  Axes rest;
  for (int axis = 0; axis < v.rank(); ++axis)
    if (axis != (transposed_ ? v.rank() - 1 : 0)) rest.push_back(axis);
  return v * (magnitude_.value() / sqrt(sum(square(v), rest, true)));
}

Tensor FormedWeight::matrix() const {
  const Tensor weight = original_.value();
  return transposed_ ? transpose(weight) : flatten(weight, 1);
}

Tensor FormedWeight::value() const {
  Pass evaluation;
  return value(evaluation);
}

Tensor FormedWeight::value(Pass& pass) const {
  if (form_ == WeightForm::plain) return original_.value();
  if (form_ == WeightForm::weight_norm) return magnitude_direction();
  Tensor u = u_.value(), v = v_.value();
  const Tensor rows = matrix();
  if (pass.trains()) {
    u = stop_gradient(normalised(matmul(rows, v)));
    v = stop_gradient(normalised(matmul(u, rows)));
    pass.update(Update::assign(u_, u));
    pass.update(Update::assign(v_, v));
  }
  return original_.value() / sum(u * matmul(rows, v));
}

}  // namespace imprint::nn
