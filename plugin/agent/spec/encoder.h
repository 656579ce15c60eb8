#pragma once
// Encoders: from an observation's streams to the numbers that the hidden layers see.
//
//   vector    as it is
//   picture   [channels, height, width], a stack as further channels. From 36 x 36 on the convolutions of
//   Mnih et
//             al., Human-level Control through Deep Reinforcement Learning, 2015; for smaller ones two of 3 x
//             3 with stride 2. Then a layer of `size`. All with relu.
//   entities  a count, then rows of which the first `count` are there. A layer each, attention among them,
//   and
//             attention pooling: Vaswani et al., Attention Is All You Need, 2017; Lee et al., Set
//             Transformer, 2019. The order of the rows does not matter.
//   ids       a row of a table each
//
// P = brain_count, N = rows.

#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/nn/parameter.h"
#include "compute/tensor/tensor.h"
#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

// A parameter [P, rows, columns] of an encoder.
struct EncoderPart {
  std::string name;  // "stream0.conv1.weight"
  std::int64_t rows = 1, columns = 1;
  std::int64_t inputs = 1;  // of the layer
};
std::vector<EncoderPart> encoder_parts(const ObservationSpec& observation);

bool is_large_picture(const StreamSpec& stream);

// A convolution of a picture's encoder, with as much padding at each side.
struct PictureLayer {
  std::int64_t channels, kernel, stride, padding;
};
std::span<const PictureLayer> picture_layers(const StreamSpec& stream);
std::int64_t attention_heads(std::int64_t size);  // of a set's encoder with `size` outputs
inline constexpr double kUnseenEntity = -1e9;     // score of an entity that is not there

class Encoder {
 public:
  // Orthogonal weights with gain sqrt(2) and biases 0 for the PPO learner, else uniform.
  static Result<Encoder> create(const BrainSpec& spec, const std::string& network);

  // Scaled observations [P, N, ObservationSpec::width] -> [P, N, ObservationSpec::encoded_count].
  Tensor operator()(const Tensor& observations) const;
  const nn::Parameters& parameters() const { return parameters_; }

 private:
  explicit Encoder(const ObservationSpec& observation) : observation_(observation) {}
  Tensor value(std::size_t stream, const char* part) const;
  // Each of [P, N, stack, numbers of the stream].
  Tensor picture(std::size_t stream, const Tensor& seen) const;
  Tensor entities(std::size_t stream, const Tensor& seen) const;
  Tensor ids(std::size_t stream, const Tensor& seen) const;

  ObservationSpec observation_;
  nn::Parameters parameters_;
};

}  // namespace imprint::agent
