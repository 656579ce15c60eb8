#pragma once
// Attention whose memory grows with the steps, not with their square. On a device kernels go through blocks
// of keys and store no scores: on matrix units in programs of Precision::mixed16, else for narrow heads, and
// for any heads from 32 M scores on, or 8 M if causal. Device cpu and further derivatives run ordinary
// operations.

#include <limits>

#include "compute/tensor/tensor.h"

namespace imprint::nn {

// Scores of keys that a mask hides: a query that sees no key stays finite.
inline constexpr double kUnseenScore = -1e30;
// Scores of keys that `causal` hides: a query never sees them.
inline constexpr double kNeverSeenScore = std::numeric_limits<float>::lowest();

// Masks broadcast to the scores [batch, heads, queries, keys]. Kernels compute cheap ones as they read them,
// without memory: comparisons of positions and lengths, distances, dropout. Empty: none.
struct AttentionTerms {
  bool causal = false;  // query i sees keys up to i + keys - queries
  Tensor bias = {};     // float32, added to the scores
  Tensor hidden = {};   // bool: the key is not seen
  Tensor factors = {};  // float32, of the weights; without a gradient

  bool has_masks() const;
};

// Whether the page takes these operands: float32 [batch, heads, queries, extent] and [batch, key heads, keys,
// extent] with an extent of at most 128, and no more queries than keys if causal.
bool fits_attention_page(const Tensor& query, const Tensor& key, const Tensor& value,
                         const AttentionTerms& terms = {});

// Whether it is worth it for a program that may train: with 131,072 scores or more; with hidden keys or
// factors if 64 queries or more see 64 keys or more; with a bias from 32 M scores on.
bool has_attention_page(const Tensor& query, const Tensor& key, const Tensor& value,
                        const AttentionTerms& terms = {});

// Whether scores are stored where no kernel for such operands runs: without masks, if they are so few that
// storing them beats computing them again.
bool stores_attention_scores(const Tensor& query, const Tensor& key, const AttentionTerms& terms = {});

// softmax(query key^T / sqrt(extent) + bias) factors value. Key heads divide heads. stores_scores: ordinary
// operations where no kernel runs that goes without. A bias that is learned takes scores' memory.
Tensor attention_page(const Tensor& query, const Tensor& key, const Tensor& value,
                      const AttentionTerms& terms = {}, bool stores_scores = false);

}  // namespace imprint::nn
