#pragma once
// Chooses kernel variants by measurement. While a tuner is set, it builds each compiled program in every way
// that the cost model considers worth trying. It runs and times each build. Zeros replace what the program
// writes and what the host holds. The fastest variant goes into a table.
// Never tune on a frame thread: tune at a loading screen, while idle, or in a tool.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "compute/base/result.h"
#include "compute/graph/schedule/variants.h"
#include "compute/program/runtime.h"
#include "compute/program/variant_tuner.h"

namespace imprint {

namespace tuning {
class TuningTimer;
}
namespace vk {
class Queue;
}

// One variant of one kernel. Reported before it is built and again when it has been timed.
struct TuningStep {
  std::string program, kernel, variant;
  double us =
      0;  // of one run of the whole program; 0: not timed yet; below 0: it cannot be built, or its run failed
  double cost_model_us = 0;    // the same with the cost model's variant of this kernel
  bool by_cost_model = false;  // this variant is the cost model's
  std::size_t position = 0,
              count =
                  0;  // among the variants of the program that are known so far: choices can lead to others
};

struct TuningOptions {
  double seconds = 10;       // for everything, including compilation; work that has begun is finished
  std::uint32_t runs = 5;    // per measurement; the fastest counts
  double least_gain = 0.02;  // share of a run's time; for a smaller gain the cost model's variant stays
  std::function<bool(const TuningStep&)> progress;  // on the compiling thread; false: stop. May be empty
};

struct TuningStats {
  std::uint32_t programs = 0, kernels = 0, variants = 0;  // measured
  std::uint64_t runs = 0;              // submissions to the GPU, except those that raise its clock
  std::uint32_t refused_in_frame = 0;  // programs compiled on a frame thread, so not measured
  std::uint32_t failed = 0;            // programs not measured to the end; the log names them
  std::string failure;                 // error of the last one
};

// Pass it to Runtime::set_tuner, then compile. Kernels in its table are not measured again. One thread at a
// time, except stop() and stats().
class Tuner final : public program::VariantTuner {
 public:
  // queue: of the runtime's device. Runtime and queue must outlive the tuner. known: the table's initial
  // content. Errors: unsupported (the CPU runtime; a queue without timestamps; a library without a compiler),
  // out_of_*_memory.
  static Result<std::shared_ptr<Tuner>> create(Runtime& runtime, vk::Queue& queue, VariantTable known,
                                               TuningOptions options);
  ~Tuner() override;

  void stop() { stopped_ = true; }  // any thread; later programs use the variants known so far
  const VariantTable& table() const { return table_; }  // known and measured variants
  TuningStats stats() const;                            // any thread

  void tune(Runtime& runtime, const program::ProgramGraph& source) override;

 private:
  class Subject;
  bool is_over() const;
  Tuner(Runtime& runtime, VariantTable known, TuningOptions options);

  Runtime& runtime_;
  VariantTable table_;
  TuningOptions options_;
  std::unique_ptr<tuning::TuningTimer> timer_;
  std::uint64_t deadline_ns_ = 0;  // on the steady clock
  std::atomic<bool> stopped_{false};
  mutable std::mutex stats_mutex_;
  TuningStats stats_;
};

}  // namespace imprint
