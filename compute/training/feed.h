#pragma once
// How the samples of a loader reach a program: as batches that are uploaded, or as numbers of rows in arrays
// that lie on the device. Internal.

#include <cstdint>
#include <vector>

#include "compute/training/loader.h"

namespace imprint::training {

class Feed {
 public:
  // Puts the data set on the device if it has arrays of at most `most` bytes. Error: shape_mismatch (the
  // arrays give other fields than the data set has).
  static Result<Feed> create(const Loader& loader, std::uint64_t most);

  const std::vector<Tensor>& inputs() const { return inputs_; }  // of programs, in this order
  const std::vector<Tensor>& fields() const { return fields_; }  // of a batch, for a model
  const Tensor& weights() const { return weights_; }             // of samples
  const std::vector<Variable>& arrays() const { return arrays_; }
  bool is_resident() const { return !arrays_.empty(); }
  std::uint64_t bytes() const;  // on the device

  // Programs that were recorded with this feed can take batches of the loader.
  bool serves(const Loader& loader) const;
  // The values of inputs() and the number of samples that count; false after the epoch's last batch.
  Result<bool> next(Loader& loader, std::vector<HostTensor>& values, std::int64_t& count) const;

 private:
  DatasetRef dataset_;
  std::int64_t batch_ = 0;
  std::vector<Tensor> inputs_, fields_;
  Tensor weights_;
  std::vector<Variable> arrays_;
  std::vector<std::int32_t> rows_;  // by sample; empty: the sample's number
};

}  // namespace imprint::training
