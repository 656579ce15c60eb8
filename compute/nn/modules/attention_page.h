#pragma once
// Attention whose memory grows with the steps, not with their square. On a device kernels go through blocks
// of keys and store no scores. Device cpu and further derivatives run ordinary operations.

#include "compute/tensor/tensor.h"

namespace imprint::nn {

// Whether the kernels are worth it for these operands: float32 [batch, heads, queries, extent] and [batch,
// key heads, keys, extent] with 32 M scores or more, an extent of at most 128, and no more queries than keys
// if causal.
bool has_attention_page(const Tensor& query, const Tensor& key, const Tensor& value, bool causal);

// softmax(query key^T / sqrt(extent)) value. causal: query i sees keys up to i + keys - queries. Key heads
// divide heads.
Tensor attention_page(const Tensor& query, const Tensor& key, const Tensor& value, bool causal);

}  // namespace imprint::nn
