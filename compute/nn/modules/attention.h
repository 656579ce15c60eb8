#pragma once
// Attention between the steps of sequences, with caches for generation.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compute/nn/initialise.h"
#include "compute/nn/parameter.h"
#include "compute/nn/pass.h"

namespace imprint::nn {

// Which keys a query does not see, with PyTorch's meaning of true. All are optional and add up. A query that
// sees no key gets the mean of all values, with `causal` of those up to its last.
struct AttentionMask {
  bool causal = false;    // query i sees keys up to i + keys - queries
  Tensor forbidden = {};  // bool [queries, keys], or any shape that broadcasts to the scores: true is unseen
  Tensor bias = {};       // float32, likewise: added to the scores, as alibi_bias gives
  Tensor padding = {};    // bool [batch, keys]: true is unseen
};

// softmax(query key^T / sqrt(extent) + mask) value. query: [batch, heads, queries, extent]; key, value:
// [batch, key heads, keys, extent], where key heads divide heads: each serves heads / key heads neighbouring
// ones. Memory grows with queries times keys, except where a GPU's kernels store no scores
// (attention_page.h): mostly for heads of up to 32 numbers or from 32 M scores on, and in programs of
// Precision::mixed16. Masks that are cheap functions of positions, lengths and random numbers take no memory
// there; the gradient of a bias does. Vaswani et al., Attention Is All You Need, 2017. Grouped heads: Ainslie
// et al., GQA, 2023; PyTorch's enable_gqa.
Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMask& mask = {},
                 double dropout = 0, Pass* pass = nullptr);

struct AttentionOptions {
  bool bias = true;
  double dropout = 0;          // of the weights
  bool rotary = false;         // turns queries and keys by their positions (embedding.h)
  bool alibi = false;          // lowers scores by distance (embedding.h)
  std::int64_t key_heads = 0;  // heads of keys and values; 0: as many as queries
  std::int64_t groups =
      0;  // networks of a kennel (parameter.h): sequences are [groups, batch, steps, extent]
  std::uint64_t seed = 0;
};

// Keys and values of earlier steps, for generation step by step.
class AttentionCache {
 public:
  // steps: the most that it holds. Its variables are "<name>.keys" and so on.
  AttentionCache(const std::string& name, std::int64_t batch, std::int64_t key_heads, std::int64_t steps,
                 std::int64_t head_extent);

  std::int64_t steps() const { return keys_.shape().rank() == 4 ? keys_.shape()[2] : 0; }
  Tensor length() const { return length_.value(); }  // int32 [1]: steps held so far
  // Adds the update that forgets all steps.
  void clear(std::vector<Update>& updates) const;
  // Adds the updates after which line b of the batch continues line rows[b], as beam search does. rows: int32
  // [batch]. In a program of its own: a program updates a variable once.
  void reorder(const Tensor& rows, std::vector<Update>& updates) const;
  const Parameters& state() const { return state_; }  // "keys", "values", "length"

 private:
  friend class MultiHeadAttention;
  Variable keys_, values_, length_;
  Parameters state_;
};

// PyTorch's MultiheadAttention with batch_first. Sequences are [batch, steps, extent]; heads divide extent.
// Parameters: "in_proj_weight" [extent, extent + 2 key extent] and "in_proj_bias", for query, key and value
// in that order, where the key extent is that of all key heads; "out_proj.weight" [extent, extent],
// "out_proj.bias" [extent]. Weights are the transpose of PyTorch's. Of a kennel, weights have its networks
// first, biases are [groups, 1, ...], and masks have groups * batch for the batch.
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

  AttentionCache cache(const std::string& name, std::int64_t batch, std::int64_t steps) const;
  // Causal self-attention of the next steps x [batch, new steps, extent] to themselves and to those of the
  // cache. Adds the updates that append them. Steps beyond the cache's most are not kept.
  Tensor cached(const Tensor& x, const AttentionCache& cache, std::vector<Update>& updates) const;

  const Parameters& parameters() const { return parameters_; }

 private:
  struct Heads {
    Tensor query, key, value;  // [batch, heads, steps, head extent]
  };
  std::int64_t head_extent() const { return extent_ / heads_; }
  std::int64_t key_heads() const { return options_.key_heads > 0 ? options_.key_heads : heads_; }
  Tensor times(const Tensor& x, const Tensor& weight, const Tensor& bias) const;
  Tensor split(const Tensor& x, std::int64_t heads) const;
  Heads project(const Tensor& x) const;
  Tensor attend(const Heads& heads, AttentionMask mask, Pass& pass) const;
  Tensor join(const Tensor& found) const;  // heads side by side, through the output's weights
  Tensor refusal(std::initializer_list<Tensor> operands) const;  // empty: all fit

  std::string name_;
  std::int64_t extent_, heads_;
  AttentionOptions options_;
  Parameters parameters_;
  Variable in_weight_, in_bias_, out_weight_, out_bias_;
};

}  // namespace imprint::nn
