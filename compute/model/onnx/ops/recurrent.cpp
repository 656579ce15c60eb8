// RNN, GRU and LSTM: x W for all steps at once, then a loop over the steps.

#include <algorithm>
#include <array>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/op.h"
#include "compute/tensor/loop.h"

namespace imprint::onnx {
namespace {

// A gate's function by its name, with alpha and beta.
struct GateFunction {
  std::string name;
  double alpha = 0, beta = 0;

  Tensor operator()(const Tensor& x) const {
    if (name == "Relu") return imprint::relu(x);
    if (name == "Tanh") return imprint::tanh(x);
    if (name == "Sigmoid") return imprint::sigmoid(x);
    if (name == "Affine") return x * alpha + beta;
    if (name == "LeakyRelu") return imprint::leaky_relu(x, alpha);
    if (name == "ThresholdedRelu") return imprint::thresholded_relu(x, alpha);
    if (name == "ScaledTanh") return imprint::tanh(x * beta) * alpha;
    if (name == "HardSigmoid") return imprint::hard_sigmoid(x, alpha, beta);
    if (name == "Elu") return imprint::elu(x, alpha);
    if (name == "Softsign") return imprint::softsign(x);
    return imprint::softplus(x);
  }
};

struct GateDefaults {
  std::string_view name;
  double alpha = 0, beta = 0;
  int numbers = 0;  // of alpha and beta, that the function takes
};
constexpr std::array kGateFunctions{
    GateDefaults{"Relu"},
    GateDefaults{"Tanh"},
    GateDefaults{"Sigmoid"},
    GateDefaults{"Affine", 1, 0, 2},
    GateDefaults{"LeakyRelu", 0.01, 0, 1},
    GateDefaults{"ThresholdedRelu", 1, 0, 1},
    GateDefaults{"ScaledTanh", 1, 1, 2},
    GateDefaults{"HardSigmoid", 0.2, 0.5, 2},
    GateDefaults{"Elu", 1, 0, 1},
    GateDefaults{"Softsign"},
    GateDefaults{"Softplus"},
};

enum class Kind { rnn, gru, lstm };

// The node's attributes and extents, for all directions.
struct Recurrence {
  Kind kind = Kind::rnn;
  std::int64_t gates = 1, hidden = 0, directions = 1, steps = 0, batch = 0;
  bool backward_only = false, batch_first = false, linear_before_reset = false, input_forget = false;
  double clip = 0;                      // 0: none
  std::vector<GateFunction> functions;  // per direction, in the node's order
  std::size_t functions_each() const { return functions.size() / static_cast<std::size_t>(directions); }
};

std::vector<GateFunction> gate_functions(OpContext& context, std::int64_t directions,
                                         const std::vector<std::string>& defaults) {
  std::vector<std::string> names = context.strings_attribute("activations");
  const std::vector<float> alphas = context.floats_attribute("activation_alpha"),
                           betas = context.floats_attribute("activation_beta");
  const std::size_t count = defaults.size() * static_cast<std::size_t>(directions);
  for (std::int64_t d = 0;
       names.size() < count && d < directions && context.strings_attribute("activations").empty(); ++d)
    names.insert(names.end(), defaults.begin(), defaults.end());
  if (!context.require(names.size() == count,
                       text("activations: found ", names.size(), ", expected ", count)))
    return {};
  std::vector<GateFunction> out;
  std::size_t next_alpha = 0, next_beta = 0;
  for (const std::string& name : names) {
    const auto* known = std::ranges::find_if(kGateFunctions, [&](const GateDefaults& row) {
      return std::ranges::equal(row.name, name, [](char a, char b) {
        return (a | 0x20) == (b | 0x20);  // exporters write them in any case
      });
    });
    if (known == kGateFunctions.end()) {
      context.unsupported("activation " + quote(name));
      return {};
    }
    GateFunction function{std::string(known->name), known->alpha, known->beta};
    if (known->numbers > 0 && next_alpha < alphas.size())
      function.alpha = static_cast<double>(alphas[next_alpha++]);
    if (known->numbers > 1 && next_beta < betas.size())
      function.beta = static_cast<double>(betas[next_beta++]);
    out.push_back(std::move(function));
  }
  return out;
}

// The tensors of one direction, made before the loop.
struct Line {
  Tensor hidden_weights;  // [hidden, gates hidden]
  Tensor hidden_bias;     // [gates hidden]; GRU's must stay apart
  Tensor peepholes;       // [3 hidden] or empty
  std::span<const GateFunction> functions;
};

Tensor gate(const Tensor& all, std::int64_t hidden, std::int64_t index) {
  return imprint::narrow(all, -1, index * hidden, hidden);
}

// The state after one step: the hidden state, and an LSTM's cell.
std::vector<Tensor> advanced(const Recurrence& form, const Line& line, const Tensor& x,
                             std::span<const Tensor> state) {
  const Tensor& h = state[0];
  const std::int64_t n = form.hidden;
  const auto limited = [&](const Tensor& value) {
    return form.clip > 0 ? imprint::clamp(value, -form.clip, form.clip) : value;
  };
  const auto peeped = [&](const Tensor& value, std::int64_t index, const Tensor& cell) {
    return line.peepholes.ok() ? value + gate(line.peepholes, n, index) * cell : value;
  };
  if (form.kind == Kind::rnn)
    return {line.functions[0](limited(x + imprint::matmul(h, line.hidden_weights) + line.hidden_bias))};
  if (form.kind == Kind::gru) {  // update, reset, new
    const Tensor through = imprint::matmul(h, imprint::narrow(line.hidden_weights, 1, 0, 2 * n)) +
                           imprint::narrow(line.hidden_bias, 0, 0, 2 * n) + imprint::narrow(x, -1, 0, 2 * n);
    const Tensor update = line.functions[0](limited(gate(through, n, 0))),
                 reset = line.functions[0](limited(gate(through, n, 1)));
    const Tensor weights = imprint::narrow(line.hidden_weights, 1, 2 * n, n),
                 bias = imprint::narrow(line.hidden_bias, 0, 2 * n, n);
    const Tensor seen = form.linear_before_reset ? reset * (imprint::matmul(h, weights) + bias)
                                                 : imprint::matmul(reset * h, weights) + bias;
    const Tensor fresh = line.functions[1](limited(gate(x, n, 2) + seen));
    return {(1.0 - update) * fresh + update * h};
  }
  // Input, output, forget, cell.
  const Tensor all = x + imprint::matmul(h, line.hidden_weights) + line.hidden_bias;
  const Tensor& c = state[1];
  const Tensor in = line.functions[0](limited(peeped(gate(all, n, 0), 0, c)));
  const Tensor keep =
      form.input_forget ? 1.0 - in : line.functions[0](limited(peeped(gate(all, n, 2), 2, c)));
  const Tensor cell = keep * c + in * line.functions[1](limited(gate(all, n, 3)));
  const Tensor out = line.functions[0](limited(peeped(gate(all, n, 1), 1, cell)));
  return {out * line.functions[2](cell), cell};
}

struct LineOutput {
  Tensor steps;               // [steps, batch, hidden]
  std::vector<Tensor> state;  // [batch, hidden] each
};

// Steps beyond a sequence's length leave its state and give zeros. So a backward direction starts at its end.
std::optional<LineOutput> run_line(OpContext& context, const Recurrence& form, const Line& line,
                                   const Tensor& projected, const Tensor& lengths, bool backward,
                                   const std::vector<Tensor>& start) {
  const auto step = [&](std::span<const Tensor> state, std::span<const Tensor> rows) {
    ScanStep next{advanced(form, line, rows[0], state), {}};
    Tensor out = next.carry[0];
    if (lengths.ok()) {
      const Tensor inside = imprint::reshape(rows[1] < lengths, {form.batch, 1});
      for (std::size_t i = 0; i < state.size(); ++i)
        next.carry[i] = imprint::where(inside, next.carry[i], state[i]);
      out = imprint::where(inside, out, 0.0f);
    }
    next.results = {out};
    return next;
  };
  std::vector<Tensor> stacks{projected};
  if (lengths.ok()) stacks.push_back(imprint::arange(form.steps));
  if (form.steps == 1) {  // no loop
    std::vector<Tensor> rows;
    for (const Tensor& stack : stacks) rows.push_back(imprint::squeeze(stack, 0));
    ScanStep only = step(start, rows);
    return LineOutput{imprint::unsqueeze(only.results[0], 0), only.carry};
  }
  auto scanned = scan(step, start, stacks, {.reverse = backward, .label = context.node().text()});
  if (scanned) return LineOutput{scanned->results[0], scanned->carry};
  context.fail(scanned.error().code, scanned.error().message);
  return std::nullopt;
}

std::optional<Recurrence> recurrence_of(OpContext& context, Kind kind) {
  Recurrence form;
  form.kind = kind;
  form.gates = kind == Kind::rnn ? 1 : kind == Kind::gru ? 3 : 4;
  const std::string direction = context.string_attribute("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    context.unsupported("direction " + quote(direction));
    return std::nullopt;
  }
  form.directions = direction == "bidirectional" ? 2 : 1;
  form.backward_only = direction == "reverse";
  form.batch_first = context.int_attribute("layout", 0) != 0;
  form.linear_before_reset = context.int_attribute("linear_before_reset", 0) != 0;
  form.input_forget = context.int_attribute("input_forget", 0) != 0;
  form.clip = context.float_attribute("clip", 0);
  const Shape &x = context.shape(0), &w = context.shape(1), &r = context.shape(2);
  const bool ranks = x.rank() == 3 && w.rank() == 3 && r.rank() == 3;
  if (ranks) {
    form.hidden = r[2];
    form.steps = x[form.batch_first ? 1 : 0];
    form.batch = x[form.batch_first ? 0 : 1];
  }
  const std::int64_t wide = form.hidden <= kMaxElements / 8 ? form.gates * form.hidden : -1;
  if (!context.require(ranks && form.steps > 0 && w == Shape{form.directions, wide, x[2]} &&
                           r == Shape{form.directions, wide, form.hidden} &&
                           context.int_attribute("hidden_size", form.hidden) == form.hidden,
                       text("x ", x.text(), ", W ", w.text(), " and R ", r.text(), " do not fit ",
                            form.directions, " directions")))
    return std::nullopt;
  const auto expect = [&](int input, const Shape& shape) {
    return !context.has(input) ||
           context.require(
               context.shape(input) == shape,
               text("input ", input, ": found ", context.shape(input).text(), ", expected ", shape.text()));
  };
  const Shape state = form.batch_first ? Shape{form.batch, form.directions, form.hidden}
                                       : Shape{form.directions, form.batch, form.hidden};
  if (!expect(3, {form.directions, 2 * wide}) || !expect(4, {form.batch}) || !expect(5, state) ||
      (kind == Kind::lstm && (!expect(6, state) || !expect(7, {form.directions, 3 * form.hidden}))))
    return std::nullopt;
  form.functions = gate_functions(context, form.directions,
                                  kind == Kind::rnn   ? std::vector<std::string>{"Tanh"}
                                  : kind == Kind::gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                      : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"});
  if (context.failure() || !context.may_make(kOperationsOfLoop * form.directions)) return std::nullopt;
  return form;
}

// Row `direction` of the first axis.
Tensor of_direction(const Tensor& x, std::int64_t direction) {
  return imprint::squeeze(imprint::narrow(x, 0, direction, 1), 0);
}

template <Kind kind>
void recurrent(OpContext& context) {
  const auto form = recurrence_of(context, kind);
  if (!form) return;
  const std::int64_t wide = form->gates * form->hidden;
  Tensor x = context.tensor(0);
  if (form->batch_first) x = imprint::transpose(x, 0, 1);
  const Tensor lengths = context.has(4) ? context.tensor(4) : Tensor();
  std::vector<Tensor> steps, hidden, cells;
  for (std::int64_t d = 0; d < form->directions; ++d) {
    // The transpose of weights that are known is made now.
    const auto weights = [&](int input) {
      const Value row = context.mover().slice(context.value(input), 0, d, 1, 1);
      const Value flat = context.mover().reshape(row, {row.shape()[1], row.shape()[2]});
      return context.mover().permute(flat, {1, 0}).tensor();
    };
    Tensor projected = imprint::matmul(x, weights(1));
    Line line{weights(2), imprint::zeros({wide}), Tensor(),
              std::span(form->functions).subspan(static_cast<std::size_t>(d) * form->functions_each())};
    if (context.has(3)) {
      const Tensor bias = of_direction(context.tensor(3), d);
      projected = projected + imprint::narrow(bias, 0, 0, wide);
      line.hidden_bias = imprint::narrow(bias, 0, wide, wide);
    }
    if (kind == Kind::lstm && context.has(7)) line.peepholes = of_direction(context.tensor(7), d);
    std::vector<Tensor> start;
    for (const int input : {5, 6}) {
      if (input == 6 && kind != Kind::lstm) break;
      Shape rows;
      rows.append(context.shape(0), form->batch_first ? 0 : 1);
      rows.append(form->hidden);
      Tensor state = imprint::zeros(rows);
      if (context.has(input)) {
        const Tensor given = context.tensor(input);
        state = of_direction(form->batch_first ? imprint::transpose(given, 0, 1) : given, d);
      }
      start.push_back(state);
    }
    const auto found =
        run_line(context, *form, line, projected, lengths, form->backward_only || d == 1, start);
    if (!found) return;
    steps.push_back(found->steps);
    hidden.push_back(found->state[0]);
    if (kind == Kind::lstm) cells.push_back(found->state[1]);
  }
  // [steps, directions, batch, hidden] or [batch, steps, directions, hidden], and the states likewise.
  const int where_state = form->batch_first ? 1 : 0;
  for (Tensor& line : steps)
    if (form->batch_first) line = imprint::transpose(line, 0, 1);
  context.set(0, imprint::stack(steps, form->batch_first ? 2 : 1));
  context.set(1, imprint::stack(hidden, where_state));
  if (kind == Kind::lstm) context.set(2, imprint::stack(cells, where_state));
}

constexpr std::array kRecurrentOps{
    OpHandler{"RNN", recurrent<Kind::rnn>},
    OpHandler{"GRU", recurrent<Kind::gru>},
    OpHandler{"LSTM", recurrent<Kind::lstm>},
};

}  // namespace

std::span<const OpHandler> recurrent_ops() { return kRecurrentOps; }

}  // namespace imprint::onnx
