#pragma once
// Transformer layers. Sequences are [batch, steps, extent].

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compute/nn/modules/activation.h"
#include "compute/nn/modules/attention.h"
#include "compute/nn/modules/dropout.h"
#include "compute/nn/modules/linear.h"
#include "compute/nn/modules/normalisation.h"

namespace imprint::nn {

// Gated linear units. Of x, halved along the last axis: activate(a) * b. With sigmoid it is GLU, with silu
// SwiGLU, with gelu GEGLU, with relu ReGLU. Shazeer, GLU Variants Improve Transformer, 2020. PyTorch's glu
// gates with the second half.
Tensor gated(const Tensor& x, Activation activation);

struct FeedForwardOptions {
  Activation activation = Activation::relu;
  double dropout = 0;  // between the layers
  bool bias = true;
  std::int64_t groups = 0;  // networks of a kennel (parameter.h)
  std::uint64_t seed = 0;
};

// linear2(dropout(activate(linear1(x)))). Parameters: "linear1.*" [extent, hidden], "linear2.*"
// [hidden, extent], named as in PyTorch's TransformerEncoderLayer.
class FeedForward {
 public:
  static constexpr std::string_view kKind = "FeedForward";
  FeedForward(const std::string& name, std::int64_t extent, std::int64_t hidden,
              const FeedForwardOptions& options = {});
  Tensor operator()(const Tensor& x, Pass& pass) const;
  Tensor operator()(const Tensor& x) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  FeedForwardOptions options_;
  Linear first_, second_;
  Parameters parameters_;
};

// down(activate(gate(x)) * up(x)), with silu by default: the feed-forward of LLaMA. Parameters:
// "gate_proj.weight", "up_proj.weight" [extent, hidden], "down_proj.weight" [hidden, extent], named as there.
class GatedFeedForward {
 public:
  static constexpr std::string_view kKind = "GatedFeedForward";
  GatedFeedForward(const std::string& name, std::int64_t extent, std::int64_t hidden,
                   const FeedForwardOptions& options = {.activation = Activation::silu, .bias = false});
  Tensor operator()(const Tensor& x, Pass& pass) const;
  Tensor operator()(const Tensor& x) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  FeedForwardOptions options_;
  Linear gate_, up_, down_;
  Parameters parameters_;
};

struct TransformerLayerOptions {
  std::int64_t hidden = 2048;
  double dropout = 0.1;  // of attention weights, between the feed-forward's layers, and of both branches
  Activation activation = Activation::relu;
  bool norm_first = false;     // x + f(norm(x)) instead of norm(x + f(x))
  bool rotary = false;         // positions by rotation; else add them to the input
  bool alibi = false;          // positions by distance
  std::int64_t key_heads = 0;  // of the self-attention; 0: as many as heads
  double epsilon = 1e-5;
  std::int64_t groups =
      0;  // networks of a kennel (parameter.h): sequences are [groups, batch, steps, extent]
  std::uint64_t seed = 0;
};

// PyTorch's TransformerEncoderLayer with batch_first; with a causal mask, the layer of a GPT.
// Parameters: "self_attn.*" (attention.h), "linear1.*", "linear2.*", "norm1.*", "norm2.*".
// Vaswani et al., Attention Is All You Need, 2017.
class TransformerEncoderLayer {
 public:
  static constexpr std::string_view kKind = "TransformerEncoderLayer";
  TransformerEncoderLayer(const std::string& name, std::int64_t extent, std::int64_t heads,
                          const TransformerLayerOptions& options = {});
  Tensor operator()(const Tensor& x, const AttentionMask& mask, Pass& pass) const;
  Tensor operator()(const Tensor& x, Pass& pass) const { return (*this)(x, {}, pass); }
  Tensor operator()(const Tensor& x, const AttentionMask& mask = {}) const;
  AttentionCache cache(const std::string& name, std::int64_t batch, std::int64_t steps) const;
  // The next steps of a causal sequence (attention.h).
  Tensor cached(const Tensor& x, const AttentionCache& cache, std::vector<Update>& updates) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  template <class Attend>
  Tensor forward(const Tensor& x, Attend attend, Pass& pass) const;

  TransformerLayerOptions options_;
  MultiHeadAttention attention_;
  FeedForward feed_forward_;
  LayerNorm norm1_, norm2_;
  Parameters parameters_;
};

// PyTorch's TransformerDecoderLayer with batch_first: self-attention, attention to the memory, feed-forward.
// Parameters: "self_attn.*", "multihead_attn.*", "linear1.*", "linear2.*", "norm1.*" to "norm3.*".
class TransformerDecoderLayer {
 public:
  TransformerDecoderLayer(const std::string& name, std::int64_t extent, std::int64_t heads,
                          const TransformerLayerOptions& options = {});
  // mask: of the self-attention. memory: [batch, keys, extent]; memory_mask: of the attention to it.
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionMask& mask,
                    const AttentionMask& memory_mask, Pass& pass) const;
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionMask& mask = {.causal = true},
                    const AttentionMask& memory_mask = {}) const;
  AttentionCache cache(const std::string& name, std::int64_t batch, std::int64_t steps) const;
  Tensor cached(const Tensor& x, const Tensor& memory, const AttentionMask& memory_mask,
                const AttentionCache& cache, std::vector<Update>& updates) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  template <class Attend>
  Tensor forward(const Tensor& x, Attend attend, const Tensor& memory, const AttentionMask& memory_mask,
                 Pass& pass) const;

  TransformerLayerOptions options_;
  MultiHeadAttention self_attention_, memory_attention_;
  FeedForward feed_forward_;
  LayerNorm norm1_, norm2_, norm3_;
  Parameters parameters_;
};

// Encoder layers in sequence, and a last norm if options.norm_first. Parameters: "layers.0.*", ..., "norm.*":
// PyTorch's TransformerEncoder.
class TransformerEncoder {
 public:
  static constexpr std::string_view kKind = "TransformerEncoder";
  TransformerEncoder(const std::string& name, std::int64_t layers, std::int64_t extent, std::int64_t heads,
                     TransformerLayerOptions options = {});
  Tensor operator()(const Tensor& x, const AttentionMask& mask, Pass& pass) const;
  Tensor operator()(const Tensor& x, const AttentionMask& mask = {}) const;
  // One cache per layer.
  std::vector<AttentionCache> caches(const std::string& name, std::int64_t batch, std::int64_t steps) const;
  Tensor cached(const Tensor& x, const std::vector<AttentionCache>& caches,
                std::vector<Update>& updates) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  Tensor finish(const Tensor& x) const { return norm_.empty() ? x : norm_[0](x); }

  std::vector<TransformerEncoderLayer> layers_;
  std::vector<LayerNorm> norm_;
  Parameters parameters_;
};

// Decoder layers in sequence, and a last norm if options.norm_first. Parameters: "layers.0.*", ..., "norm.*":
// PyTorch's TransformerDecoder.
class TransformerDecoder {
 public:
  TransformerDecoder(const std::string& name, std::int64_t layers, std::int64_t extent, std::int64_t heads,
                     TransformerLayerOptions options = {});
  // As TransformerDecoderLayer's.
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionMask& mask,
                    const AttentionMask& memory_mask, Pass& pass) const;
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionMask& mask = {.causal = true},
                    const AttentionMask& memory_mask = {}) const;
  std::vector<AttentionCache> caches(const std::string& name, std::int64_t batch, std::int64_t steps) const;
  Tensor cached(const Tensor& x, const Tensor& memory, const AttentionMask& memory_mask,
                const std::vector<AttentionCache>& caches, std::vector<Update>& updates) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  Tensor finish(const Tensor& x) const { return norm_.empty() ? x : norm_[0](x); }

  std::vector<TransformerDecoderLayer> layers_;
  std::vector<LayerNorm> norm_;
  Parameters parameters_;
};

}  // namespace imprint::nn
