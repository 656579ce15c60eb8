#pragma once
// Batches of a data set in order or shuffled, read ahead by threads.

#include <cstdint>
#include <memory>
#include <vector>

#include "compute/training/dataset.h"

namespace imprint::training {

// A program has fixed shapes: a last batch with fewer samples is left out or filled up.
enum class LastBatch : std::uint8_t {
  drop,
  fill  // repeats the samples of the batch's start; their weight is 0
};

struct LoaderOptions {
  std::int64_t batch = 32;
  bool shuffle = false;  // another order each epoch
  std::uint64_t seed = 0;
  LastBatch last = LastBatch::fill;
  int read_ahead = 2;  // batches that are prepared while others are used; 0: none, without threads
  int threads = 1;     // that prepare them
  // Of several processes that train one network together: this one reads the part-th `batch` samples of every
  // batch of parts * batch. TrainerOptions::process_count.
  std::int64_t parts = 1, part = 0;
};

struct Batch {
  std::vector<HostTensor> fields;     // [batch, sample's shape], as the data set's fields
  HostTensor weights;                 // float32 [batch]: 1, or 0 for samples that only fill
  std::int64_t count = 0;             // samples that count
  std::vector<std::int64_t> samples;  // their numbers in the data set, [batch]
};

// One thread at a time. Batches do not depend on read_ahead and threads.
class Loader {
 public:
  // Error: invalid_argument (an empty data set, a batch below 1, no whole batch with LastBatch::drop, or a
  // part that is not one of the parts).
  static Result<Loader> create(DatasetRef dataset, const LoaderOptions& options = {});
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();

  const Dataset& dataset() const;
  DatasetRef shared_dataset() const;
  const LoaderOptions& options() const;
  std::int64_t batches() const;  // per epoch

  // Goes to a batch of an epoch; the order depends on seed and epoch only.
  void start(std::int64_t epoch, std::int64_t first_batch = 0);
  // False after the epoch's last batch. Errors: those of the data set.
  Result<bool> next(Batch& batch);
  // The same without fields: reads no sample and starts no thread. Until the next start(), call one of both.
  bool next_numbers(Batch& batch);

 private:
  struct Impl;
  explicit Loader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// An input per field of a batch, [batch, sample's shape].
std::vector<Tensor> batch_inputs(const Loader& loader);

}  // namespace imprint::training
