#pragma once
// Trains a model on a data set: epochs, validation, checkpoints, curves.
//
//   const training::Model model = [&](std::span<const Tensor> in, nn::Pass& pass) {
//     const Tensor y = network(in[0], pass);
//     return training::Computed{nn::cross_entropy(y, in[1], nn::Reduction::none),
//                            {{"accuracy", training::accuracy(y, in[1])}}};
//   };
//   training::Trainer trainer(session, model, network, nn::Adam(network.parameters()), {.epochs = 3});
//   const auto end = trainer.fit(training, &validation);

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compute/nn/dtype_policy.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/nn/optimisers/schedule.h"
#include "compute/nn/pass.h"
#include "compute/program/program_sequence.h"
#include "compute/program/run.h"
#include "compute/training/loader.h"

namespace imprint::training {

// Each float32 [batch, ...]: one number or several per sample, which are averaged. Samples that only fill a
// batch do not count. A scalar loss counts as the mean of the whole batch.
struct Computed {
  Tensor loss = {};
  std::vector<std::pair<std::string, Tensor>> metrics = {};
};
// Called once with a pass that trains and once with one that evaluates. fields: [batch, ...], as those of the
// data set.
using Model = std::function<Computed(std::span<const Tensor> fields, nn::Pass& pass)>;

// The parameters and buffers of a network, under the names of its files.
template <class Network>
nn::Parameters state_of(const Network& network) {
  nn::Parameters all = network.parameters();
  if constexpr (requires { network.buffers(); }) all.add("", network.buffers());
  return all;
}

inline nn::Parameters state_of(const nn::Parameters& parameters) { return parameters; }

struct Scores {
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics = {};
  std::int64_t samples = 0;
  double seconds = 0;

  double metric(std::string_view name) const;  // NaN when there is none
};

struct Report {
  std::int64_t epoch = 0, epochs = 0;   // epoch counts from 1
  std::int64_t batch = 0, batches = 0;  // of this epoch
  std::int64_t step = 0;                // of the optimiser, since the start
  double rate = 0;                      // of the last step
  bool ends_epoch = false;
  // Bytes: the model's, the optimiser's and the other state of checkpoints, resident data, and what a step
  // needs besides.
  std::uint64_t memory = 0;
  Scores training = {};                // of this epoch so far
  const Scores* validation = nullptr;  // at the end of an epoch that validates
};

struct TrainerOptions {
  std::int64_t epochs = 1;   // 0: fit() only writes a checkpoint, and evaluates
  std::int64_t steps = 0;    // of the optimiser, after which the last epoch ends; 0: as epochs say
  nn::Schedule rate = 1e-3;  // by optimiser step
  // The rate is multiplied by a factor that falls when the validation loss stops falling.
  std::optional<nn::PlateauOptions> plateau = {};
  double clip_norm = 0;         // of all gradients together; 0: not clipped
  std::int64_t accumulate = 1;  // batches per optimiser step
  Precision precision = Precision::float32;
  // Products of chosen parameters in 16 bits (dtype_policy.h), by the names of the trainer's state.
  // Parameters stay float32. float16 scales the loss.
  std::vector<nn::DtypeRule> dtypes = {};
  // Variables that the loss reads beside the state and the optimiser's parameters: a teacher's, or those of
  // the network under an adapter (lora.h). Checkpoints do not hold them.
  nn::Parameters frozen = {};
  std::uint64_t seed = 0;         // of dropout and noise
  std::int64_t patience = 0;      // validations without a lower loss before training stops; 0: never
  std::int64_t report_every = 0;  // batches between reports within an epoch; 0: at its end only
  // A device may compute later steps meanwhile, of a few milliseconds or two: `stop` and `save`, set here,
  // take effect after those.
  std::function<void(const Report&)> report = {};
  // On a device, data sets that have arrays (DatasetArrays) lie there whole, up to this many bytes in all,
  // and a step takes its batch from them. 0, or more data: each batch is uploaded. The bits are the same.
  std::uint64_t resident_bytes = 256ull << 20;
  // Where checkpoints and curves (curves.h) go; made if it is missing. Empty: nowhere. Those of an earlier
  // run that this one does not continue are moved into "earlier-1" there, or the next number.
  std::string folder = {};
  std::int64_t checkpoint_every = 0;  // optimiser steps between checkpoints; 0: after every epoch
  std::int64_t keep_best = 1;         // checkpoints of the lowest validation losses that are kept
  // After the last step the model is that of the lowest validation loss. Needs a folder and keep_best. As in
  // PyTorch and Keras, it is otherwise that of the last step.
  bool restore_best = false;
  const std::atomic<bool>* stop = nullptr;  // when true, fit() saves a checkpoint and returns
  std::atomic<bool>* save = nullptr;        // when true, fit() saves one, sets it to false and goes on
  // Processes that train one network together, each with its part of every batch (LoaderOptions::parts). Each
  // starts with equal weights and takes equal steps: those of one process with the whole batch, to rounding.
  // With accumulate, batches that are not full count by their samples.
  // Outcomes and reports are of the process's own part. all_reduce: ProgramSequence::all_reduce.
  std::int64_t process_count = 1, process_index = 0;
  std::function<void(std::span<float>)> all_reduce = {};
  std::shared_ptr<SharedSums> shared_sums = {};  // ProgramSequence::shared_sums
};

struct Outcome {
  std::int64_t epochs = 0, steps = 0;  // done in all, those before a resume too
  Scores training = {};                // of the last epoch; without samples if none was left
  Scores validation = {};              // after the last epoch
  double best_loss = 0;                // lowest validation loss; infinite without validation
  std::int64_t best_step = 0;          // after which it was measured
  std::string best_checkpoint = {};    // its file; empty without a folder or validation
  bool stopped_early = false, interrupted = false;
};

// "epoch 2/3  training loss 0.1234 accuracy 0.9700  validation loss ...  2204 samples/s".
std::string line_of(const Report& report);

// One thread at a time. Equal seeds, data and device give equal bits, whether or not training was interrupted
// and resumed.
class Trainer {
 public:
  // state: what checkpoints hold as the model. optimiser: of the parameters that are trained.
  Trainer(Session& session, Model model, const nn::Parameters& state,
          std::shared_ptr<const nn::Optimiser> optimiser, TrainerOptions options = {});
  // The same for a network, or its parameters, and an optimiser as a value.
  template <class Network, std::derived_from<nn::Optimiser> Rule>
  Trainer(Session& session, Model model, const Network& network, Rule optimiser, TrainerOptions options = {})
      : Trainer(session, std::move(model), state_of(network),
                std::make_shared<const Rule>(std::move(optimiser)), std::move(options)) {}
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Trains the epochs that are left. Errors: those of the data, of Program::compile and of files;
  // invalid_argument for a loss that is no number, one that depends on none of the optimiser's parameters,
  // and one that reads float variables which are in neither the state, nor the optimiser, nor `frozen`. A
  // tensor under stop_gradient may read any. A validation loss that is NaN is an error too, after the
  // checkpoint.
  Result<Outcome> fit(Loader& training, Loader* validation = nullptr);
  Result<Scores> evaluate(Loader& data);

  // The whole state: model, optimiser, random numbers, position in the data. "last.safetensors" in the folder
  // is such a file. load() before fit() continues it. Errors: those of safetensors and load_state, and
  // invalid_argument for another optimiser; they name the file.
  Result<> save(const std::string& path);
  Result<> load(const std::string& path);

  // The recorded step, for explain() and measurements; null before the first fit().
  Program* step();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace imprint::training
