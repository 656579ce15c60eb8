#pragma once
// Embeddings of indices and of positions.

#include <cstdint>
#include <string>
#include <string_view>

#include "compute/nn/initialise.h"
#include "compute/nn/parameter.h"

namespace imprint::nn {

struct EmbeddingOptions {
  std::int64_t padding_index = -1;  // this row starts at 0 and gets no gradient; -1: none
  Initialisation values = {.scheme = Scheme::normal};
  std::int64_t groups = 0;  // networks of a kennel (parameter.h)
  std::uint64_t seed = 0;
};

// int32 [...] -> float32 [..., extent], row by row from "weight" [count, extent]. An index outside
// [0, count) gives zeros. With groups: "weight" [groups, count, extent], int32 [groups, ...] -> float32
// [groups, ..., extent].
class Embedding {
 public:
  static constexpr std::string_view kKind = "Embedding";
  Embedding(const std::string& name, std::int64_t count, std::int64_t extent,
            const EmbeddingOptions& options = {});
  Tensor operator()(const Tensor& indices) const;
  // x weight^T: [..., extent] -> [..., count]; with groups [groups, batch, extent] -> [groups, batch, count].
  // Weight tying: the output layer of a language model. Press, Wolf, Using the Output Embedding to Improve
  // Language Models, 2017.
  Tensor logits(const Tensor& x) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  Tensor of_groups(const Tensor& indices) const;

  std::string name_;
  EmbeddingOptions options_;
  Parameters parameters_;
  Variable weight_;
};

struct LearnedPositionsOptions {
  Initialisation values = {.scheme = Scheme::normal, .gain = 0.02};
  std::int64_t groups = 0;  // networks of a kennel (parameter.h)
  std::uint64_t seed = 0;
};

// Learned positions: x [..., steps, extent] plus `steps` rows of "weight" [most_steps, extent]. With groups:
// "weight" [groups, most_steps, extent], x [groups, batch, steps, extent].
class LearnedPositions {
 public:
  static constexpr std::string_view kKind = "LearnedPositions";
  LearnedPositions(const std::string& name, std::int64_t most_steps, std::int64_t extent,
                   const LearnedPositionsOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  // The first step has this position: int32 [1], such as AttentionCache::length() before the step. Steps
  // from most_steps on are unchanged.
  Tensor operator()(const Tensor& x, const Tensor& first) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  Tensor refusal(const Tensor& x) const;  // empty: all fits

  std::string name_;
  LearnedPositionsOptions options_;
  Parameters parameters_;
  Variable weight_;
};

// float32 [steps, extent]: sin(t / base^(2 i / extent)) at column 2 i, the cosine at 2 i + 1. extent: even.
// Vaswani et al., Attention Is All You Need, 2017.
Tensor sinusoidal_positions(std::int64_t steps, std::int64_t extent, double base = 10000);

// Rotates pairs of columns (i, i + extent / 2) of x [..., steps, extent] by the angle
// (first + t) base^(-2 i / extent). extent: even. Su et al., RoFormer: Enhanced Transformer with Rotary
// Position Embedding, 2021; halves as in LLaMA.
Tensor rotary(const Tensor& x, double base = 10000, std::int64_t first = 0);
// first: int32 [1], such as the length of a cache (attention.h).
Tensor rotary(const Tensor& x, double base, const Tensor& first);

// float32 [heads, queries, keys]: -slope |query - key|, to add to attention scores; the last query is beside
// the last key. Press, Smith, Lewis, Train Short, Test Long: Attention with Linear Biases, 2022.
Tensor alibi_bias(std::int64_t heads, std::int64_t queries, std::int64_t keys);
// positions: int32 [queries], where the queries are among the keys.
Tensor alibi_bias(std::int64_t heads, const Tensor& positions, std::int64_t keys);

}  // namespace imprint::nn
