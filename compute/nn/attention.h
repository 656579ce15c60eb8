#pragma once
// Attention between the steps of sequences.

#include <cstdint>
#include <string>
#include <string_view>

#include "compute/nn/initialise.h"
#include "compute/nn/parameter.h"
#include "compute/nn/pass.h"

namespace imprint::nn {

// Which keys a query does not see, with PyTorch's meaning of true. All are optional and add up. A query that
// sees no key gets the mean of all values.
struct AttentionMask {
  bool causal = false;    // query i sees keys up to i + keys - queries
  Tensor forbidden = {};  // bool [queries, keys], or any shape that broadcasts to the scores: true is unseen
  Tensor bias = {};       // float32, likewise: added to the scores, as alibi_bias gives
  Tensor padding = {};    // bool [batch, keys]: true is unseen
};

// softmax(query key^T / sqrt(extent) + mask) value. query: [batch, heads, queries, extent]; key, value:
// [batch, heads, keys, extent]. Stores the scores: memory grows with queries times keys.
// Vaswani et al., Attention Is All You Need, 2017.
Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMask& mask = {},
                 double dropout = 0, Pass* pass = nullptr);

struct AttentionOptions {
  bool bias = true;
  double dropout = 0;   // of the weights
  bool rotary = false;  // turns queries and keys by their positions (embedding.h)
  std::uint64_t seed = 0;
};

// PyTorch's MultiheadAttention with batch_first. Sequences are [batch, steps, extent]; heads divide extent.
// Parameters: "in_proj_weight" [extent, 3 extent] and "in_proj_bias" [3 extent], for query, key and value in
// that order; "out_proj.weight" [extent, extent], "out_proj.bias" [extent]. Weights are the transpose of
// PyTorch's.
class MultiHeadAttention {
 public:
  static constexpr std::string_view kKind = "MultiHeadAttention";
  MultiHeadAttention(const std::string& name, std::int64_t extent, std::int64_t heads,
                     const AttentionOptions& options = {});

  // Self-attention.
  Tensor operator()(const Tensor& x, const AttentionMask& mask, Pass& pass) const;
  Tensor operator()(const Tensor& x, Pass& pass) const { return (*this)(x, {}, pass); }
  Tensor operator()(const Tensor& x, const AttentionMask& mask = {}) const;
  // Attention to another sequence, the memory: [batch, keys, extent].
  Tensor cross(const Tensor& x, const Tensor& memory, const AttentionMask& mask, Pass& pass) const;

  const Parameters& parameters() const { return parameters_; }

 private:
  Tensor heads_of(const Tensor& x) const;  // [batch, steps, extent] -> [batch, heads, steps, extent / heads]
  Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMask& mask,
                Pass& pass) const;
  bool fits(const Tensor& x) const { return x.rank() == 3 && x.extent(2) == extent_; }

  std::string name_;
  std::int64_t extent_, heads_;
  AttentionOptions options_;
  Parameters parameters_;
  Variable in_weight_, in_bias_, out_weight_, out_bias_;
};

}  // namespace imprint::nn
