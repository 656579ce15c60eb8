#pragma once
// Choosing variants of kernels by measurement: each program that is compiled meanwhile is built in every way
// that the cost model thinks worth a try, run on zeros and on copies of what it writes, and timed; the
// fastest stands in a table from then on. Never on a frame thread: at a loading screen, idle, or in a tool.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "compute/base/result.h"
#include "compute/graph/variants.h"
#include "compute/program/runtime.h"
#include "compute/program/variant_tuner.h"

namespace imprint {

namespace tuning {
class TuningTimer;
}
namespace vk {
class Queue;
}

// One variant of one kernel, told before it is built and when it has been timed.
struct TuningStep {
  std::string program, kernel, variant;
  double us =
      0;  // a run of the whole program; 0: not timed yet, below 0: it cannot be made, or its run failed
  double cost_model_us = 0;    // the same with what the cost model takes for this kernel
  bool by_cost_model = false;  // this variant is that one
  std::size_t position = 0,
              count =
                  0;  // among the variants of the program, as far as they are known: choices lead to others
};

struct TuningOptions {
  double seconds = 10;       // for everything, compiling included; what is begun is finished
  std::uint32_t runs = 5;    // of which the fastest counts
  double least_gain = 0.02;  // of a run's time, below which the cost model's variant stays
  std::function<bool(const TuningStep&)> progress;  // on the compiling thread; false: stop. May be empty
};

struct TuningStats {
  std::uint32_t programs = 0, kernels = 0, variants = 0;  // measured
  std::uint64_t runs = 0;              // submitted to the GPU; what lets its clock rise is not counted
  std::uint32_t refused_in_frame = 0;  // programs that were compiled on a frame thread, and not measured
  std::uint32_t failed = 0;            // programs that were not measured to the end, as the log says too
  std::string failure;                 // of the last one
};

// Give it to Runtime::set_tuner and compile. Kernels that its table knows are not measured again. One thread
// at a time but for stop and stats.
class Tuner final : public program::VariantTuner {
 public:
  // queue: of the runtime's device; both outlive the tuner. known: as the table starts. Errors: unsupported
  // (the processor's runtime; a queue without timestamps; a library without a compiler), out_of_*_memory.
  static Result<std::shared_ptr<Tuner>> create(Runtime& runtime, vk::Queue& queue, VariantTable known,
                                               TuningOptions options);
  ~Tuner() override;

  void stop() { stopped_ = true; }  // any thread: programs from now on are compiled by what is known
  const VariantTable& table() const { return table_; }  // what was known and what was measured
  TuningStats stats() const;                            // any thread

  void tune(Runtime& runtime, const program::ProgramGraph& source) override;

 private:
  class Subject;
  bool is_over() const;
  Tuner(Runtime& runtime, vk::Queue& queue, VariantTable known, TuningOptions options);

  Runtime& runtime_;
  vk::Queue& queue_;
  VariantTable table_;
  TuningOptions options_;
  std::unique_ptr<tuning::TuningTimer> timer_;
  std::uint64_t deadline_ns_ = 0;  // of the steady clock
  std::atomic<bool> stopped_{false};
  mutable std::mutex stats_mutex_;
  TuningStats stats_;
};

}  // namespace imprint
