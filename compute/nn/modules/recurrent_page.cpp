#include "compute/nn/modules/recurrent_page.h"

#include <algorithm>
#include <utility>

#include "compute/nn/modules/composed_page.h"
#include "compute/tensor/build.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::nn {

using namespace tensor;

namespace {

using Values = std::span<const Tensor>;

struct SequenceExtents {
  Cell cell = Cell::gru;
  std::int64_t brains = 1, lines = 1, steps = 1, hidden = 1;
  bool restarts = false, reverse = false;

  std::int64_t gates() const { return cell == Cell::lstm ? 4 : 3; }
  std::int64_t state() const { return cell == Cell::lstm ? 2 * hidden : hidden; }
  std::int64_t step_of(std::int64_t turn) const { return reverse ? steps - 1 - turn : turn; }
  Shape by_step(std::int64_t extent) const { return {brains, lines, steps, extent}; }
  Shape first_states() const { return restarts ? by_step(state()) : Shape{brains, lines, state()}; }
};

// Positions of the operands of the two pages.
enum ForwardInput : std::size_t { kProjected, kWeight, kBias, kFirst, kRestarts };
enum BackwardInput : std::size_t { kGradient, kBackWeight, kGates, kStates, kBackFirst, kBackRestarts };

std::size_t position(std::int64_t step) { return static_cast<std::size_t>(step); }

// ---- the same as ordinary operations ----

Tensor at_step(const Tensor& by_step, std::int64_t step) { return squeeze(narrow(by_step, 2, step, 1), 2); }

// Element i of the last axis in parts of equal extent.
Tensor part(const Tensor& values, std::int64_t i, std::int64_t extent) {
  return narrow(values, -1, i * extent, extent);
}

// bool [brains, lines, extent]: whether sequences begin at the step.
Tensor begins_at(const Tensor& restarts, std::int64_t step, std::int64_t extent) {
  const Tensor begins = greater(narrow(restarts, 2, step, 1), 0.5f);
  return expand(begins, {restarts.extent(0), restarts.extent(1), extent});
}

// The state before a step, where `previous` is that after the last one.
Tensor state_before(const SequenceExtents& extents, const Tensor& first, const Tensor& restarts,
                    std::int64_t turn, const Tensor& previous) {
  if (!extents.restarts) return turn == 0 ? first : previous;
  const std::int64_t step = extents.step_of(turn);
  const Tensor own = at_step(first, step);
  return turn == 0 ? own : where(begins_at(restarts, step, extents.state()), own, previous);
}

Tensor restarts_of(const SequenceExtents& extents, Values in, std::size_t slot) {
  return extents.restarts ? in[slot] : Tensor();
}

std::vector<Tensor> forward_steps(const SequenceExtents& extents, Values in) {
  const std::int64_t hidden = extents.hidden;
  const Tensor bias = unsqueeze(in[kBias], 1), restarts = restarts_of(extents, in, kRestarts);
  std::vector<Tensor> states(position(extents.steps)), gates(position(extents.steps));
  Tensor state;
  for (std::int64_t turn = 0; turn < extents.steps; ++turn) {
    const std::int64_t step = extents.step_of(turn);
    const Tensor given = at_step(in[kProjected], step);
    const Tensor before = state_before(extents, in[kFirst], restarts, turn, state);
    const Tensor old = part(before, 0, hidden), recurrent = matmul(old, in[kWeight]) + bias;
    if (extents.cell == Cell::gru) {
      const Tensor reset = sigmoid(part(given, 0, hidden) + part(recurrent, 0, hidden)),
                   update = sigmoid(part(given, 1, hidden) + part(recurrent, 1, hidden)),
                   fresh = tanh(part(given, 2, hidden) + reset * part(recurrent, 2, hidden));
      state = fresh + update * (old - fresh);
      gates[position(step)] = concat({reset, update, fresh, part(recurrent, 2, hidden)}, -1);
    } else {
      const Tensor all = given + recurrent;
      const Tensor in_gate = sigmoid(part(all, 0, hidden)), forget = sigmoid(part(all, 1, hidden)),
                   fresh = tanh(part(all, 2, hidden)), out = sigmoid(part(all, 3, hidden));
      const Tensor cells = forget * part(before, 1, hidden) + in_gate * fresh;
      state = concat({out * tanh(cells), cells}, -1);
      gates[position(step)] = concat({in_gate, forget, fresh, out}, -1);
    }
    states[position(step)] = state;
  }
  return {stack(states, 2), stack(gates, 2)};
}

// Values that the gradient of one step needs.
struct BackStep {
  Tensor gradient, before, gates, state;  // of the state after the step; the states before and after
};

struct BackGates {
  Tensor recurrent, projected, carried;  // carried: to the state before, without the product
};

BackGates gru_gates(const BackStep& step, std::int64_t hidden) {
  const Tensor reset = part(step.gates, 0, hidden), update = part(step.gates, 1, hidden),
               fresh = part(step.gates, 2, hidden), recurrent = part(step.gates, 3, hidden);
  const Tensor of_fresh = step.gradient * (1.0f - update) * (1.0f - square(fresh)),
               of_reset = of_fresh * recurrent * reset * (1.0f - reset),
               of_update = step.gradient * (step.before - fresh) * update * (1.0f - update);
  return {concat({of_reset, of_update, of_fresh * reset}, -1), concat({of_reset, of_update, of_fresh}, -1),
          step.gradient * update};
}

BackGates lstm_gates(const BackStep& step, std::int64_t hidden) {
  const Tensor in_gate = part(step.gates, 0, hidden), forget = part(step.gates, 1, hidden),
               fresh = part(step.gates, 2, hidden), out = part(step.gates, 3, hidden);
  const Tensor out_cells = tanh(part(step.state, 1, hidden)), of_hidden = part(step.gradient, 0, hidden);
  const Tensor of_cells = part(step.gradient, 1, hidden) + of_hidden * out * (1.0f - square(out_cells));
  const Tensor all =
      concat({of_cells * fresh * in_gate * (1.0f - in_gate),
              of_cells * part(step.before, 1, hidden) * forget * (1.0f - forget),
              of_cells * in_gate * (1.0f - square(fresh)), of_hidden * out_cells * out * (1.0f - out)},
             -1);
  return {all, all, concat({zeros_like(of_cells), of_cells * forget}, -1)};
}

std::vector<Tensor> backward_steps(const SequenceExtents& extents, Values in) {
  const std::int64_t hidden = extents.hidden;
  const Tensor weight = transpose(in[kBackWeight]), restarts = restarts_of(extents, in, kBackRestarts);
  std::vector<Tensor> recurrent(position(extents.steps)), projected = recurrent, first = recurrent,
                                                          before = recurrent;
  Tensor carried;
  for (std::int64_t turn = extents.steps - 1; turn >= 0; --turn) {
    const std::int64_t step = extents.step_of(turn);
    const Tensor previous = turn > 0 ? at_step(in[kStates], extents.step_of(turn - 1)) : Tensor();
    const Tensor arrived = at_step(in[kGradient], step);
    const BackStep one{.gradient = is_empty(carried) ? arrived : arrived + carried,
                       .before = state_before(extents, in[kBackFirst], restarts, turn, previous),
                       .gates = at_step(in[kGates], step),
                       .state = at_step(in[kStates], step)};
    const BackGates found = extents.cell == Cell::gru ? gru_gates(one, hidden) : lstm_gates(one, hidden);
    const Tensor product = matmul(found.recurrent, weight);
    carried =
        found.carried + (extents.cell == Cell::gru ? product : concat({product, zeros_like(product)}, -1));
    recurrent[position(step)] = found.recurrent;
    projected[position(step)] = found.projected;
    before[position(step)] = part(one.before, 0, hidden);
    first[position(step)] = carried;
    if (!extents.restarts || turn == 0) continue;
    const Tensor begins = begins_at(restarts, step, extents.state());
    first[position(step)] = where(begins, carried, zeros_like(carried));
    carried = where(begins, zeros_like(carried), carried);
  }
  std::vector<Tensor> outputs{stack(recurrent, 2)};
  if (extents.cell == Cell::gru) outputs.push_back(stack(projected, 2));
  outputs.push_back(extents.restarts ? stack(first, 2) : first[position(extents.step_of(0))]);
  outputs.push_back(stack(before, 2));
  return outputs;
}

// ---- kernels ----

// How a kernel's workgroup is spread (shaders/pages/recurrent_forward.glsl).
struct Spread {
  std::int64_t lanes = 1, slices = 1, run = 1, rows = 1, kept = 0, padded = 4;
  std::int64_t weights = 0;  // that an invocation keeps in registers

  // Whether registers are left for what two steps read. Layers of 128 would spill: 225 instead of 213 us.
  bool reads_ahead() const {
    constexpr std::int64_t kRegisters = 65536, kOthers = 64;  // of a multiprocessor; per invocation
    return kept > 0 && lanes * slices * (weights + kOthers) <= kRegisters;
  }
  std::int64_t shared_bytes(std::int64_t sums) const {
    return 4 * rows * (padded + slices * sums * lanes * run);
  }
};

std::int64_t pieces_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

// terms: of each sum; sums: per unit.
Spread spread_of(const SequenceExtents& extents, std::int64_t terms, std::int64_t sums,
                 const PageLimits& limits) {
  constexpr std::int64_t kLeastTerms = 16, kRegisters = 96;  // for weights, per invocation
  const std::int64_t most = std::min(limits.invocations, 512);
  Spread spread;
  if (limits.processor) {
    spread.lanes = std::min<std::int64_t>(16, extents.hidden);
    spread.run = pieces_of(extents.hidden, spread.lanes);
  } else {
    // Products of the gradients have one sum per unit: more units per invocation share a load.
    spread.run =
        std::max(pieces_of(extents.hidden, most), sums == 1 ? std::min<std::int64_t>(4, extents.hidden) : 1);
    spread.lanes = pieces_of(extents.hidden, spread.run);
    spread.slices = std::clamp<std::int64_t>(pieces_of(terms, kLeastTerms), 1,
                                             std::max<std::int64_t>(1, most / spread.lanes));
    while (spread.rows < 8 && extents.brains * extents.lines > limits.groups * spread.rows) spread.rows *= 2;
  }
  const auto pad = [&] { spread.padded = spread.slices * pieces_of(pieces_of(terms, spread.slices), 4) * 4; };
  pad();
  while (spread.rows > 1 && spread.shared_bytes(sums) > limits.shared_bytes) spread.rows /= 2;
  while (spread.slices > 1 && spread.shared_bytes(sums) > limits.shared_bytes) {
    spread.slices /= 2;
    pad();
  }
  if (!limits.processor)
    spread.kept = std::min(spread.padded / spread.slices, kRegisters / (sums * spread.run) / 4 * 4);
  spread.weights = spread.kept * sums * spread.run;
  return spread;
}

// A layer whose weights outgrow a multiprocessor's caches is faster with a kernel per step.
bool suits_one_group(const SequenceExtents& extents) {
  constexpr std::int64_t kMostWeights = 1 << 18;
  return extents.steps > 1 && extents.gates() * extents.hidden * extents.hidden <= kMostWeights;
}

LibraryPage page_of(const SequenceExtents& extents, const char* name) {
  LibraryPage page;
  page.name = name;
  page.constants = {{"GATES", extents.gates()},    {"HIDDEN", extents.hidden}, {"STATE", extents.state()},
                    {"LINES", extents.lines},      {"STEPS", extents.steps},   {"REVERSE", extents.reverse},
                    {"RESTARTS", extents.restarts}};
  return page;
}

LibraryPage kernel_of(const SequenceExtents& extents, const char* name, const Spread& spread) {
  LibraryPage page = page_of(extents, name);
  page.shader = std::string("pages/") + name;
  page.includes = {"tanh"};
  page.constants.insert(page.constants.end(), {{"LANES", spread.lanes},
                                               {"SLICES", spread.slices},
                                               {"RUN", spread.run},
                                               {"ROWS", spread.rows},
                                               {"KEPT", spread.kept},
                                               {"PADDED", spread.padded}});
  page.constants.emplace_back("AHEAD", spread.reads_ahead());
  page.groups = extents.brains * pieces_of(extents.lines, spread.rows);
  page.group_size = static_cast<int>(spread.lanes * spread.slices);
  page.stored_inputs = true;
  return page;
}

std::vector<PageOutput> outputs_of(std::initializer_list<Shape> shapes) {
  std::vector<PageOutput> outputs;
  for (const Shape& shape : shapes) outputs.push_back({shape});
  return outputs;
}

std::vector<PageOutput> forward_outputs(const SequenceExtents& extents) {
  return outputs_of({extents.by_step(extents.state()), extents.by_step(4 * extents.hidden)});
}

std::vector<PageOutput> backward_outputs(const SequenceExtents& extents) {
  const Shape gates = extents.by_step(extents.gates() * extents.hidden),
              before = extents.by_step(extents.hidden);
  if (extents.cell == Cell::gru) return outputs_of({gates, gates, extents.first_states(), before});
  return outputs_of({gates, extents.first_states(), before});
}

std::vector<Tensor> backward_kernel(const SequenceExtents& extents, Values in, const PageLimits& limits) {
  const Spread spread = spread_of(extents, extents.gates() * extents.hidden, 1, limits);
  if (!suits_one_group(extents) || spread.shared_bytes(1) > limits.shared_bytes)
    return backward_steps(extents, in);
  LibraryPage page = kernel_of(extents, "recurrent_backward", spread);
  page.outputs = backward_outputs(extents);
  std::vector<Tensor> operands(in.begin(), in.end());
  // A copy, whose rows neighbours read together.
  operands[kBackWeight] = make(Op::cast, {transpose(in[kBackWeight])}, {.dtype = DType::float32});
  return run_page(std::move(page), operands);
}

std::vector<Tensor> forward_kernel(const SequenceExtents& extents, Values in, const PageLimits& limits) {
  const Spread spread = spread_of(extents, extents.hidden, extents.gates(), limits);
  if (!suits_one_group(extents) || spread.shared_bytes(extents.gates()) > limits.shared_bytes)
    return forward_steps(extents, in);
  LibraryPage page = kernel_of(extents, "recurrent_forward", spread);
  page.outputs = forward_outputs(extents);
  return run_page(std::move(page), in);
}

// ---- derivatives ----

std::vector<Tensor> run_backward(const SequenceExtents& extents, Values in) {
  LibraryPage page = page_of(extents, "recurrent_gradient");
  page.outputs = backward_outputs(extents);
  page.compose = [extents](Values inputs) { return backward_steps(extents, inputs); };
  page.expand = [extents](Values inputs, const PageLimits& limits) {
    return backward_kernel(extents, inputs, limits);
  };
  page.backward = [extents](Values inputs, Values, Values gradients) {
    return composed_gradients([extents](Values given) { return backward_steps(extents, given); }, inputs,
                              gradients);
  };
  return run_page(std::move(page), in);
}

// The gradients of the forward page's inputs.
std::vector<Tensor> differentiate(const SequenceExtents& extents, Values in, Values outputs,
                                  Values gradients) {
  if (full_value(gradients[1]) != 0.0)  // a further derivative: one by the gates
    return composed_gradients([extents](Values given) { return forward_steps(extents, given); }, in,
                              gradients);
  std::vector<Tensor> operands{gradients[0], in[kWeight], outputs[1], outputs[0], in[kFirst]};
  if (extents.restarts) operands.push_back(in[kRestarts]);
  const std::vector<Tensor> found = run_backward(extents, operands);
  const std::size_t own = extents.cell == Cell::gru ? 1 : 0;  // a GRU's new gate resets its recurrent part
  const std::int64_t rows = extents.lines * extents.steps;
  const Tensor recurrent = reshape(found[0], {extents.brains, rows, extents.gates() * extents.hidden}),
               before = reshape(found[own + 2], {extents.brains, rows, extents.hidden});
  std::vector<Tensor> result{found[own], matmul(transpose(before), recurrent), sum(recurrent, {1}),
                             found[own + 1]};
  if (extents.restarts) result.emplace_back();
  return result;
}

}  // namespace

Tensor run_cells(const CellSteps& steps) {
  std::vector<Tensor> operands{steps.projected, steps.weight, steps.bias, steps.states};
  if (!is_empty(steps.restarts)) operands.push_back(steps.restarts);
  if (const Tensor* failed = first_error(operands)) return *failed;
  const Shape& shape = steps.projected.shape();
  const SequenceExtents extents{.cell = steps.cell,
                                .brains = shape[0],
                                .lines = shape[1],
                                .steps = shape[2],
                                .hidden = steps.weight.extent(1),
                                .restarts = !is_empty(steps.restarts),
                                .reverse = steps.reverse};
  LibraryPage page = page_of(extents, "recurrent");
  page.outputs = forward_outputs(extents);
  page.compose = [extents](Values inputs) { return forward_steps(extents, inputs); };
  page.expand = [extents](Values inputs, const PageLimits& limits) {
    return forward_kernel(extents, inputs, limits);
  };
  page.backward = [extents](Values inputs, Values outputs, Values gradients) {
    return differentiate(extents, inputs, outputs, gradients);
  };
  return run_page(std::move(page), operands)[0];
}

}  // namespace imprint::nn
