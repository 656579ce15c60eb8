#include "plugin/agent/spec/recurrent_cell.h"

#include <vector>

#include "compute/nn/initialise.h"
#include "compute/nn/modules/recurrent_page.h"
#include "plugin/agent/spec/learner_traits.h"

namespace imprint::agent {

Variable grouped_parameter(const BrainSpec& spec, const nn::Initialisation& initialisation,
                           const std::string& network, const std::string& name, std::int64_t rows,
                           std::int64_t in, std::int64_t out) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(spec.brain_count * rows * out));
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
    const std::vector<float> own = nn::initial_values(
        initialisation, "network." + name,
        {.rows = rows, .columns = out, .fan_in = in, .fan_out = out, .seed = spec.seed + p});
    values.insert(values.end(), own.begin(), own.end());
  }
  return Variable(network + "." + name, {spec.brain_count, rows, out}, values);
}

Result<RecurrentCell> RecurrentCell::create(const BrainSpec& spec, const std::string& name, std::int64_t in) {
  RecurrentCell made(spec.cell, spec.cell_size);
  const std::int64_t size = spec.cell_size, out = spec.gate_count() * size;
  nn::Initialisation weights, biases;
  if (network_traits(spec).orthogonal) {
    weights = {nn::Scheme::orthogonal, 1.0};
    biases = {nn::Scheme::zeros};
  }
  const auto add = [&](const char* part, const nn::Initialisation& values, std::int64_t rows) -> Result<> {
    const Variable variable =
        grouped_parameter(spec, values, name, std::string("cell.") + part, rows, size, out);
    if (!variable.ok()) return variable.value().error();
    made.parameters_.add(part, variable);
    return {};
  };
  IMPRINT_CHECK(add("weight_ih", weights, in));
  IMPRINT_CHECK(add("bias_ih", biases, 1));
  IMPRINT_CHECK(add("weight_hh", weights, size));
  IMPRINT_CHECK(add("bias_hh", biases, 1));
  return made;
}

Tensor RecurrentCell::projected(const Tensor& x) const {
  return matmul(x, parameters_[0].value()) + parameters_[1].value();
}

Tensor RecurrentCell::advance(const Tensor& projected, const Tensor& states) const {
  const Tensor hidden = narrow(states, -1, 0, size_);
  const Tensor recurrent = matmul(hidden, parameters_[2].value()) + parameters_[3].value();
  const auto part = [this](const Tensor& gates, std::int64_t i) {
    return narrow(gates, -1, i * size_, size_);
  };
  if (kind_ == Cell::gru) {
    const Tensor reset = sigmoid(part(projected, 0) + part(recurrent, 0)),
                 update = sigmoid(part(projected, 1) + part(recurrent, 1)),
                 fresh = tanh(part(projected, 2) + reset * part(recurrent, 2));
    return fresh + update * (hidden - fresh);
  }
  const Tensor gates = projected + recurrent;
  const Tensor cells = sigmoid(part(gates, 1)) * narrow(states, -1, size_, size_) +
                       sigmoid(part(gates, 0)) * tanh(part(gates, 2));
  return concat({sigmoid(part(gates, 3)) * tanh(cells), cells}, -1);
}

RecurrentCell::Output RecurrentCell::step(const Tensor& x, const Tensor& states) const {
  const Tensor after = advance(projected(x), states);
  return {narrow(after, -1, 0, size_), after};
}

RecurrentCell::Output RecurrentCell::run(const Tensor& x, const SequenceRows& rows) const {
  const std::int64_t brains = x.extent(0), count = x.extent(1), steps = rows.steps, lines = count / steps;
  const auto by_step = [&](const Tensor& values) {  // [P, N, n] -> [P, N / steps, steps, n]
    return reshape(values, {brains, lines, steps, values.extent(2)});
  };
  const Tensor after = nn::run_cells({.cell = kind_ == Cell::gru ? nn::Cell::gru : nn::Cell::lstm,
                                      .projected = by_step(projected(x)),
                                      .weight = parameters_[2].value(),
                                      .bias = squeeze(parameters_[3].value(), 1),
                                      .states = by_step(rows.states),
                                      .restarts = reshape(rows.restarts, {brains, lines, steps})});
  if (!after.ok()) return {after, after};
  const Tensor states = reshape(after, {brains, count, after.extent(3)});
  return {narrow(states, -1, 0, size_), states};
}

}  // namespace imprint::agent
