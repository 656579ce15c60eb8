#pragma once
// Recurrent layers: Rnn, Gru, Lstm. Sequences are [batch, steps, features], as PyTorch's with batch_first.
//
// A GRU or an LSTM runs all steps in one kernel (recurrent_page.h) on a GPU. Other layers record every step:
// the program grows with steps, and compiling with it. Keep their steps at 64 or fewer.
//
// Parameters per layer l, with PyTorch's names: "weight_ih_l0" [in, gates hidden], "weight_hh_l0"
// [output, gates hidden], "bias_ih_l0", "bias_hh_l0" [gates hidden], and with a projection "weight_hr_l0"
// [hidden, projection]; those of the backward direction end in "_reverse". Weights are the transpose of
// PyTorch's. The output is the hidden state, or its projection. A kennel's weights have its networks first,
// its biases are [groups, 1, gates hidden].

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compute/nn/parameter.h"
#include "compute/nn/pass.h"

namespace imprint::nn {

// Lstm's gates are input, forget, cell, output; Gru's reset, update, new.
// Rnn: h = tanh(x W + b + h U + c), or relu. Elman, Finding Structure in Time, 1990.
// Lstm: c = f c + i g; h = o tanh(c). Hochreiter, Schmidhuber, Long Short-Term Memory, 1997.
// Gru: n = tanh(x W + b + r (h U + c)); h = (1 - z) n + z h. Cho et al., Learning Phrase Representations
// using RNN Encoder-Decoder, 2014, in cuDNN's form.
enum class Cell : std::uint8_t { rnn, rnn_relu, gru, lstm };

struct RecurrentOptions {
  std::int64_t layers = 1;
  bool bidirectional = false;
  bool bias = true;
  double dropout = 0;  // between layers
  // Only for an Lstm: outputs are hidden W, with this extent; 0: none. Sak, Senior, Beaufays, Long Short-Term
  // Memory Recurrent Neural Network Architectures for Large Scale Acoustic Modeling, 2014. PyTorch's
  // proj_size.
  std::int64_t projection = 0;
  std::int64_t groups =
      0;  // networks of a kennel (parameter.h): sequences are [groups, batch, steps, features]
  std::uint64_t seed = 0;
};

struct RecurrentState {
  Tensor hidden = {};  // [layers * directions, batch, output]; of a kennel [.., groups, batch, output]
  Tensor cell = {};    // the same with `hidden`, of an Lstm; empty else
};

class Recurrent {
 public:
  static constexpr std::string_view kKind = "Recurrent";
  Recurrent(const std::string& name, Cell cell, std::int64_t in, std::int64_t hidden,
            const RecurrentOptions& options = {});

  struct Output {
    Tensor steps;          // [batch, steps, directions * output]; of a kennel [groups, ...]
    RecurrentState state;  // after the last step
  };
  // start: from an earlier run; empty tensors are zeros.
  Output run(const Tensor& x, const RecurrentState& start, Pass& pass) const;
  // The outputs of all steps, from zeros.
  Tensor operator()(const Tensor& x, Pass& pass) const { return run(x, {}, pass).steps; }
  Tensor operator()(const Tensor& x) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  // One layer in one direction.
  struct Line {
    Variable input_weight, hidden_weight, input_bias, hidden_bias, projection;
  };
  struct Memory {
    Tensor hidden, cell;
  };
  std::int64_t output() const { return options_.projection > 0 ? options_.projection : hidden_; }
  Line line(const std::string& suffix, std::int64_t in);
  Tensor project(const Line& line, const Tensor& x) const;
  Tensor refusal(const Tensor& x, const RecurrentState& start) const;  // empty: all fits
  Memory advance(const Line& line, const Tensor& projected, const Memory& before) const;
  Tensor run_whole_line(const Line& line, const Tensor& projected, bool backward, Memory& memory) const;
  Tensor run_line(const Line& line, const Tensor& x, bool backward, Memory& memory) const;

  std::string name_;
  Cell cell_;
  std::int64_t in_, hidden_;
  RecurrentOptions options_;
  std::vector<Line> lines_;  // by layer, then direction
  Parameters parameters_;
};

Recurrent rnn(const std::string& name, std::int64_t in, std::int64_t hidden,
              const RecurrentOptions& options = {});
Recurrent gru(const std::string& name, std::int64_t in, std::int64_t hidden,
              const RecurrentOptions& options = {});
Recurrent lstm(const std::string& name, std::int64_t in, std::int64_t hidden,
               const RecurrentOptions& options = {});

}  // namespace imprint::nn
