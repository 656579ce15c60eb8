#include <algorithm>
#include <cmath>
#include <string>

#include "tests/reference/layer_pages.h"

namespace imprint::reference {
namespace {

using Numbers = std::vector<double>;

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// Where values lie: row-major by network, line, step.
struct CellLayout {
  std::size_t gates, hidden, state, lines, steps;
  bool reverse, restarts;
  std::size_t brains;

  CellLayout(const Page& page, std::size_t networks)
      : gates(constant(page, "GATES")),
        hidden(constant(page, "HIDDEN")),
        state(constant(page, "STATE")),
        lines(constant(page, "LINES")),
        steps(constant(page, "STEPS")),
        reverse(constant(page, "REVERSE") != 0),
        restarts(constant(page, "RESTARTS") != 0),
        brains(networks) {}

  static std::size_t constant(const Page& page, const std::string& name) {
    const auto found = std::ranges::find(page.constants, name, &std::pair<std::string, std::int64_t>::first);
    return static_cast<std::size_t>(found->second);
  }
  std::size_t sequences() const { return brains * lines; }
  std::size_t row(std::size_t sequence, std::size_t turn) const {
    return sequence * steps + (reverse ? steps - 1 - turn : turn);
  }
  bool begins(const Numbers* flags, std::size_t sequence, std::size_t turn) const {
    return turn == 0 || (restarts && (*flags)[row(sequence, turn)] > 0.5);
  }
  // The state before a step: the first one given, or that after the last step.
  double before(const Numbers& first, const Numbers& states, const Numbers* flags, std::size_t sequence,
                std::size_t turn, std::size_t at) const {
    if (begins(flags, sequence, turn)) return first[(restarts ? row(sequence, turn) : sequence) * state + at];
    return states[row(sequence, turn - 1) * state + at];
  }
};

}  // namespace

std::vector<Numbers> recurrent(const Page& page, std::span<const Operand> operands) {
  const CellLayout at(page, static_cast<std::size_t>(operands[0].node.shape[0]));
  const Numbers &given = operands[0].values, &weight = operands[1].values, &bias = operands[2].values,
                &first = operands[3].values, *flags = at.restarts ? &operands[4].values : nullptr;
  const std::size_t width = at.gates * at.hidden;
  Numbers states(at.sequences() * at.steps * at.state), saved(at.sequences() * at.steps * 4 * at.hidden);
  for (std::size_t sequence = 0; sequence < at.sequences(); ++sequence)
    for (std::size_t turn = 0; turn < at.steps; ++turn) {
      const std::size_t row = at.row(sequence, turn), brain = sequence / at.lines;
      const auto before = [&](std::size_t k) { return at.before(first, states, flags, sequence, turn, k); };
      for (std::size_t unit = 0; unit < at.hidden; ++unit) {
        double own[4] = {}, part[4] = {};
        for (std::size_t g = 0; g < at.gates; ++g) {
          own[g] = given[row * width + g * at.hidden + unit];
          part[g] = bias[brain * width + g * at.hidden + unit];
          for (std::size_t k = 0; k < at.hidden; ++k)
            part[g] += before(k) * weight[(brain * at.hidden + k) * width + g * at.hidden + unit];
        }
        double* gate = &saved[row * 4 * at.hidden + unit];
        double* state = &states[row * at.state];
        gate[0] = sigmoid_of(own[0] + part[0]);
        gate[at.hidden] = sigmoid_of(own[1] + part[1]);
        if (at.gates == 3) {
          gate[2 * at.hidden] = std::tanh(own[2] + gate[0] * part[2]);
          gate[3 * at.hidden] = part[2];
          state[unit] = (1 - gate[at.hidden]) * gate[2 * at.hidden] + gate[at.hidden] * before(unit);
        } else {
          gate[2 * at.hidden] = std::tanh(own[2] + part[2]);
          gate[3 * at.hidden] = sigmoid_of(own[3] + part[3]);
          state[at.hidden + unit] =
              gate[at.hidden] * before(at.hidden + unit) + gate[0] * gate[2 * at.hidden];
          state[unit] = gate[3 * at.hidden] * std::tanh(state[at.hidden + unit]);
        }
      }
    }
  return {states, saved};
}

std::vector<Numbers> recurrent_gradient(const Page& page, std::span<const Operand> operands) {
  const CellLayout at(page, static_cast<std::size_t>(operands[0].node.shape[0]));
  const Numbers &arrived = operands[0].values, &weight = operands[1].values, &saved = operands[2].values,
                &states = operands[3].values, &first = operands[4].values,
                *flags = at.restarts ? &operands[5].values : nullptr;
  const std::size_t width = at.gates * at.hidden, rows = at.sequences() * at.steps;
  Numbers recurrent(rows * width), projected(rows * width), hidden(rows * at.hidden),
      of_first((at.restarts ? rows : at.sequences()) * at.state);
  for (std::size_t sequence = 0; sequence < at.sequences(); ++sequence) {
    Numbers carried(at.state);
    for (std::size_t turn = at.steps; turn-- > 0;) {
      const std::size_t row = at.row(sequence, turn), brain = sequence / at.lines;
      Numbers next(at.state);
      for (std::size_t unit = 0; unit < at.hidden; ++unit) {
        const auto gate = [&](std::size_t g) { return saved[(row * 4 + g) * at.hidden + unit]; };
        const auto before = [&](std::size_t k) { return at.before(first, states, flags, sequence, turn, k); };
        const double gradient = arrived[row * at.state + unit] + carried[unit];
        double part[4] = {}, own[4] = {};
        if (at.gates == 3) {
          const double fresh = gradient * (1 - gate(1)) * (1 - gate(2) * gate(2));
          own[0] = part[0] = fresh * gate(3) * gate(0) * (1 - gate(0));
          own[1] = part[1] = gradient * (before(unit) - gate(2)) * gate(1) * (1 - gate(1));
          own[2] = fresh;
          part[2] = fresh * gate(0);
          next[unit] += gradient * gate(1);
        } else {
          const double cell = std::tanh(states[row * at.state + at.hidden + unit]);
          const double of_cell = arrived[row * at.state + at.hidden + unit] + carried[at.hidden + unit] +
                                 gradient * gate(3) * (1 - cell * cell);
          part[0] = of_cell * gate(2) * gate(0) * (1 - gate(0));
          part[1] = of_cell * before(at.hidden + unit) * gate(1) * (1 - gate(1));
          part[2] = of_cell * gate(0) * (1 - gate(2) * gate(2));
          part[3] = gradient * cell * gate(3) * (1 - gate(3));
          next[at.hidden + unit] += of_cell * gate(1);
        }
        hidden[row * at.hidden + unit] = before(unit);
        for (std::size_t g = 0; g < at.gates; ++g) {
          recurrent[row * width + g * at.hidden + unit] = part[g];
          projected[row * width + g * at.hidden + unit] = own[g];
          for (std::size_t k = 0; k < at.hidden; ++k)
            next[k] += part[g] * weight[(brain * at.hidden + k) * width + g * at.hidden + unit];
        }
      }
      carried = next;
      if (!at.begins(flags, sequence, turn)) continue;
      const std::size_t target = at.restarts ? row : sequence;
      std::ranges::copy(carried, of_first.begin() + static_cast<std::ptrdiff_t>(target * at.state));
      std::ranges::fill(carried, 0.0);
    }
  }
  if (at.gates == 3) return {recurrent, projected, of_first, hidden};
  return {recurrent, of_first, hidden};
}

}  // namespace imprint::reference
