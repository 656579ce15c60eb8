#include "compute/nn/modules/recurrent.h"

#include <algorithm>

#include "compute/base/text.h"
#include "compute/nn/layer_parameters.h"
#include "compute/nn/modules/dropout.h"
#include "compute/nn/modules/recurrent_page.h"
#include "compute/tensor/build.h"

namespace imprint::nn {
namespace {

std::int64_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }

}  // namespace

Recurrent::Recurrent(const std::string& name, Cell cell, std::int64_t in, std::int64_t hidden,
                     const RecurrentOptions& options)
    : name_(name), cell_(cell), in_(in), hidden_(hidden), options_(options) {
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    const std::int64_t width = layer == 0 ? in : output() * (options.bidirectional ? 2 : 1);
    lines_.push_back(line(text("_l", layer), width));
    if (options.bidirectional) lines_.push_back(line(text("_l", layer, "_reverse"), width));
  }
}

Recurrent::Line Recurrent::line(const std::string& suffix, std::int64_t in) {
  const std::int64_t width = gates_of(cell_) * hidden_;
  const auto add = [&](const std::string& kind, const Shape& shape) {
    const std::int64_t rows = shape.rank() == 2 ? shape[0] : 1, columns = shape[shape.rank() - 1];
    const InitialValues wanted{.rows = rows,
                               .columns = columns,
                               .fan_in = hidden_,
                               .fan_out = columns,
                               .groups = options_.groups,
                               .seed = options_.seed};
    const Shape whole = options_.groups > 0 ? Shape{options_.groups, rows, columns} : shape;
    return add_parameter(parameters_, name_, kind + suffix, whole, Initialisation(), wanted,
                         shape.rank() == 2);
  };
  Line made;
  made.input_weight = add("weight_ih", {in, width});
  made.hidden_weight = add("weight_hh", {output(), width});
  if (options_.bias) made.input_bias = add("bias_ih", {width});
  if (options_.bias) made.hidden_bias = add("bias_hh", {width});
  if (options_.projection > 0) made.projection = add("weight_hr", {hidden_, options_.projection});
  return made;
}

// projected: [batch, gates hidden], the input's part with its bias. Of a kennel every tensor has its networks
// first.
Recurrent::Memory Recurrent::advance(const Line& line, const Tensor& projected, const Memory& before) const {
  Tensor recurrent = matmul(before.hidden, line.hidden_weight.value());
  if (options_.bias) recurrent = recurrent + line.hidden_bias.value();
  const auto part = [&](const Tensor& gates, std::int64_t i) {
    return narrow(gates, -1, i * hidden_, hidden_);
  };
  switch (cell_) {
    case Cell::rnn:
      return {tanh(projected + recurrent), {}};
    case Cell::rnn_relu:
      return {relu(projected + recurrent), {}};
    case Cell::gru: {
      const Tensor reset = sigmoid(part(projected, 0) + part(recurrent, 0)),
                   update = sigmoid(part(projected, 1) + part(recurrent, 1)),
                   fresh = tanh(part(projected, 2) + reset * part(recurrent, 2));
      return {fresh + update * (before.hidden - fresh), {}};
    }
    case Cell::lstm:
      break;
  }
  const Tensor gates = projected + recurrent;
  const Tensor cell = sigmoid(part(gates, 1)) * before.cell + sigmoid(part(gates, 0)) * tanh(part(gates, 2));
  const Tensor hidden = sigmoid(part(gates, 3)) * tanh(cell);
  return {line.projection.ok() ? matmul(hidden, line.projection.value()) : hidden, cell};
}

// [..., steps, gates hidden]: the input's part of all steps at once.
Tensor Recurrent::project(const Line& line, const Tensor& x) const {
  const bool is_kennel = options_.groups > 0;
  const Tensor rows = is_kennel ? reshape(x, {options_.groups, -1, x.extent(-1)}) : x;
  Tensor projected = matmul(rows, line.input_weight.value());
  if (options_.bias) projected = projected + line.input_bias.value();
  if (!is_kennel) return projected;
  return reshape(projected, {options_.groups, x.extent(1), x.extent(2), gates_of(cell_) * hidden_});
}

// All steps as one operation.
Tensor Recurrent::run_whole_line(const Line& line, const Tensor& projected, bool backward,
                                 Memory& memory) const {
  const bool is_kennel = options_.groups > 0;
  const std::int64_t networks = std::max<std::int64_t>(options_.groups, 1), width = gates_of(cell_) * hidden_;
  const auto beside = [&](const Tensor& one) { return is_kennel ? one : unsqueeze(one, 0); };
  Tensor first = memory.hidden;
  if (cell_ == Cell::lstm) {
    const bool are_zeros = tensor::full_value(memory.hidden) == 0.0 && tensor::full_value(memory.cell) == 0.0;
    Shape both = memory.hidden.shape();
    both[both.rank() - 1] = 2 * hidden_;
    first = are_zeros ? zeros(both) : concat({memory.hidden, memory.cell}, -1);
  }
  Tensor bias = zeros({networks, width});
  if (options_.bias) bias = reshape(line.hidden_bias.value(), {networks, width});
  const Tensor states = run_cells({.cell = cell_,
                                   .projected = beside(projected),
                                   .weight = beside(line.hidden_weight.value()),
                                   .bias = bias,
                                   .states = beside(first),
                                   .reverse = backward});
  const Tensor own = is_kennel ? states : squeeze(states, 0);
  const Tensor last = squeeze(narrow(own, -2, backward ? 0 : projected.extent(-2) - 1, 1), -2);
  memory.hidden = narrow(last, -1, 0, hidden_);
  if (cell_ == Cell::lstm) memory.cell = narrow(last, -1, hidden_, hidden_);
  return narrow(own, -1, 0, hidden_);
}

Tensor Recurrent::run_line(const Line& line, const Tensor& x, bool backward, Memory& memory) const {
  const Tensor projected = project(line, x);
  const std::int64_t steps = x.extent(-2);
  if ((cell_ == Cell::gru || cell_ == Cell::lstm) && !line.projection.ok())
    return run_whole_line(line, projected, backward, memory);
  std::vector<Tensor> outputs(static_cast<std::size_t>(steps));
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t at = backward ? steps - 1 - i : i;
    memory = advance(line, squeeze(narrow(projected, -2, at, 1), -2), memory);
    outputs[static_cast<std::size_t>(at)] = memory.hidden;
  }
  return stack(outputs, -2);
}

Tensor Recurrent::refusal(const Tensor& x, const RecurrentState& start) const {
  if (!x.ok()) return x;
  const bool is_kennel = options_.groups > 0;
  if (x.rank() != (is_kennel ? 4 : 3) || x.extent(-1) != in_ || x.extent(-2) < 1 ||
      (is_kennel && x.extent(0) != options_.groups))
    return unfit_input("recurrent", name_, x,
                       text("[", is_kennel ? text(options_.groups, ", ") : "", "batch, steps, ", in_,
                            "] with 1 step or more"));
  if (options_.projection > 0 && cell_ != Cell::lstm)
    return Tensor(make_error(ErrorCode::invalid_argument,
                             text("recurrent '", name_, "': found projection ", options_.projection,
                                  ", expected 0 for a layer that is no Lstm")));
  const auto refused = [&](const Tensor& given, std::int64_t extent) {
    Shape whole{static_cast<std::int64_t>(lines_.size())};
    for (int axis = 0; axis + 2 < x.rank(); ++axis) whole.append(x.extent(axis));
    whole.append(extent);
    if (tensor::is_empty(given) || (given.ok() && given.shape() == whole)) return Tensor();
    return given.ok() ? unfit_input("recurrent state of", name_, given, whole.text()) : given;
  };
  if (const Tensor bad = refused(start.hidden, output()); !tensor::is_empty(bad)) return bad;
  return refused(start.cell, hidden_);
}

Recurrent::Output Recurrent::run(const Tensor& x, const RecurrentState& start, Pass& pass) const {
  if (const Tensor bad = refusal(x, start); !tensor::is_empty(bad)) return {bad, {}};
  const auto begin = [&](const Tensor& given, std::int64_t i, std::int64_t extent) {
    Shape one = options_.groups > 0 ? Shape{options_.groups, x.extent(1)} : Shape{x.extent(0)};
    one.append(extent);
    return tensor::is_empty(given) ? zeros(one) : squeeze(narrow(given, 0, i, 1), 0);
  };
  std::vector<Tensor> hidden, cells;
  Tensor out = x;
  const std::int64_t directions = options_.bidirectional ? 2 : 1;
  for (std::int64_t layer = 0; layer < options_.layers; ++layer) {
    if (layer > 0) out = Dropout(options_.dropout)(out, pass);
    std::vector<Tensor> sides;
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      const std::int64_t i = layer * directions + direction;
      Memory memory{begin(start.hidden, i, output()),
                    cell_ == Cell::lstm ? begin(start.cell, i, hidden_) : Tensor()};
      sides.push_back(run_line(lines_[static_cast<std::size_t>(i)], out, direction == 1, memory));
      hidden.push_back(memory.hidden);
      cells.push_back(memory.cell);
    }
    out = sides.size() == 1 ? sides[0] : concat(sides, -1);
  }
  return {out, {stack(hidden, 0), cell_ == Cell::lstm ? stack(cells, 0) : Tensor()}};
}

Tensor Recurrent::operator()(const Tensor& x) const {
  Pass evaluation;
  return (*this)(x, evaluation);
}

Recurrent rnn(const std::string& name, std::int64_t in, std::int64_t hidden,
              const RecurrentOptions& options) {
  return Recurrent(name, Cell::rnn, in, hidden, options);
}

Recurrent gru(const std::string& name, std::int64_t in, std::int64_t hidden,
              const RecurrentOptions& options) {
  return Recurrent(name, Cell::gru, in, hidden, options);
}

Recurrent lstm(const std::string& name, std::int64_t in, std::int64_t hidden,
               const RecurrentOptions& options) {
  return Recurrent(name, Cell::lstm, in, hidden, options);
}

}  // namespace imprint::nn
