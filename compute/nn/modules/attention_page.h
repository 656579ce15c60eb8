#pragma once
// Attention whose memory grows with the steps, not with their square. On a device kernels go through blocks
// of keys and store no scores: on matrix units in programs of Precision::mixed16, else from 32 M scores on.
// Device cpu and further derivatives run ordinary operations.

#include "compute/tensor/tensor.h"

namespace imprint::nn {

// Whether the page takes these operands: float32 [batch, heads, queries, extent] and [batch, key heads, keys,
// extent] with an extent of at most 128, and no more queries than keys if causal.
bool fits_attention_page(const Tensor& query, const Tensor& key, const Tensor& value, bool causal);

// Whether it is worth it for a program that may train: with 131,072 scores or more.
bool has_attention_page(const Tensor& query, const Tensor& key, const Tensor& value, bool causal);

// Whether scores are so few that storing them beats computing them again, without matrix units.
bool stores_attention_scores(const Tensor& query, const Tensor& key);

// softmax(query key^T / sqrt(extent)) value. causal: query i sees keys up to i + keys - queries. Key heads
// divide heads. stores_scores: ordinary operations where no kernel on matrix units runs.
Tensor attention_page(const Tensor& query, const Tensor& key, const Tensor& value, bool causal,
                      bool stores_scores = false);

}  // namespace imprint::nn
