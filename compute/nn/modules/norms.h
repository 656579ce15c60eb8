#pragma once
// Normalisation over batches, channels and rows, as layers (module.h). LayerNorm is in normalisation.h. All
// compute (x - mean) / sqrt(variance + epsilon) * weight + bias, with the variance divided by n.

#include <cstdint>
#include <string>
#include <string_view>

#include "compute/nn/parameter.h"
#include "compute/nn/pass.h"

namespace imprint::nn {

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;    // running = (1 - momentum) running + momentum batch
  bool affine = true;       // has weight and bias
  std::int64_t groups = 0;  // networks of a kennel (parameter.h), each with statistics of its own
};

// Over the batch and all places of a channel: x [batch, channels, ...]. A training pass uses the batch's
// statistics and updates the running ones, whose variance divides by n - 1; an evaluation uses the running
// ones. For any number of places: PyTorch's BatchNorm1d to 3d. One use per training pass.
// Parameters: "weight", "bias" [channels]. Buffers: "running_mean", "running_var" [channels],
// "num_batches_tracked" int32 []. With groups: x [groups, batch, channels, ...]; all but the last have the
// groups first. Ioffe, Szegedy, Batch Normalization, 2015.
class BatchNorm {
 public:
  static constexpr std::string_view kKind = "BatchNorm";
  BatchNorm(const std::string& name, std::int64_t channels, const BatchNormOptions& options = {});
  Tensor operator()(const Tensor& x, Pass& pass) const;
  Tensor operator()(const Tensor& x) const;
  const Parameters& parameters() const { return parameters_; }
  const Parameters& buffers() const { return buffers_; }

 private:
  Tensor normalised(const Tensor& x, Pass& pass) const;

  std::string name_;
  std::int64_t channels_;
  BatchNormOptions options_;
  Parameters parameters_, buffers_;
  Variable weight_, bias_, mean_, variance_, batches_;
};

struct GroupNormOptions {
  double epsilon = 1e-5;
  bool affine = true;
  std::int64_t networks = 0;  // of a kennel (parameter.h)
};

// Over each of `groups` groups of channels of each sample: x [batch, channels, ...].
// Parameters: "weight", "bias" [channels]; of a kennel [networks, channels], for x [networks, batch,
// channels,
// ...]. Wu, He, Group Normalization, 2018.
class GroupNorm {
 public:
  static constexpr std::string_view kKind = "GroupNorm";
  GroupNorm(const std::string& name, std::int64_t groups, std::int64_t channels,
            const GroupNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  Tensor normalised(const Tensor& x, std::int64_t groups) const;

  std::string name_;
  std::int64_t groups_, channels_;
  GroupNormOptions options_;
  Parameters parameters_;
  Variable weight_, bias_;
};

// Over each channel of each sample: a GroupNorm with one channel per group. PyTorch's InstanceNorm has no
// weight and bias by default. Ulyanov, Vedaldi, Lempitsky, Instance Normalization, 2016.
GroupNorm instance_norm(const std::string& name, std::int64_t channels,
                        const GroupNormOptions& options = {.affine = false});

struct RmsNormOptions {
  double epsilon = 1.1920929e-7;  // PyTorch's default; language models use 1e-5 or 1e-6
  std::int64_t groups = 0;        // networks of a kennel (parameter.h)
};

// x / sqrt(mean of x^2 + epsilon) * weight over the last axis: x [..., extent].
// Parameters: "weight" [extent]; with groups [groups, 1, extent], for x [groups, batch..., extent].
// Zhang, Sennrich, Root Mean Square Layer Normalization, 2019.
class RmsNorm {
 public:
  static constexpr std::string_view kKind = "RmsNorm";
  RmsNorm(const std::string& name, std::int64_t extent, const RmsNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  const Parameters& parameters() const { return parameters_; }

 private:
  std::string name_;
  std::int64_t extent_;
  RmsNormOptions options_;
  Parameters parameters_;
  Variable weight_;
};

struct LocalResponseNormOptions {
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;
};

// x / (k + alpha m)^beta, where m is the mean of x^2 over `size` channels around each one; missing ones count
// as 0. x: [batch, channels, ...]. Krizhevsky, Sutskever, Hinton, ImageNet Classification with Deep
// Convolutional Neural Networks, 2012; PyTorch divides the sum by size.
class LocalResponseNorm {
 public:
  static constexpr std::string_view kKind = "LocalResponseNorm";
  explicit LocalResponseNorm(std::int64_t size, const LocalResponseNormOptions& options = {})
      : size_(size), options_(options) {}
  Tensor operator()(const Tensor& x) const;

 private:
  std::int64_t size_;
  LocalResponseNormOptions options_;
};

}  // namespace imprint::nn
