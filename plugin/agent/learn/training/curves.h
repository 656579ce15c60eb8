#pragma once
// A brain's curves: one row per stretch of learning, in a ring. Any thread reads; the frame thread writes,
// and allocates nothing.

#include <array>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "plugin/agent/learn/metrics.h"
#include "plugin/agent/spec/brain_counts.h"

namespace imprint::agent {

// Means over the learn steps and episodes since the row before, of all brains of a kennel. NaN: there were
// none, or the learner has no such figure.
struct CurveRow {
  static constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

  double wall_s = 0;  // since 1970
  BrainCounters counters;
  std::uint64_t used = 0;
  LostExperience lost;
  float mean_return = kNone, mean_length = kNone, loss = kNone;
  std::array<float, kMetricCount> metrics{};  // by Metric
};

class Curves {
 public:
  static constexpr std::size_t kRows = 1024;  // kept, the newest

  Curves() : ring_(kRows) {}

  // ---- frame thread ----
  void earned(double sum, std::uint64_t steps);  // one episode, or one span of Returns
  // One learn step. metrics: by Metric, NaN = none.
  void learned(float loss, const std::array<float, kMetricCount>& metrics);
  // Ends a row after enough minibatches. per_step: of a learn step.
  void close_row(std::uint32_t per_step, const BrainCounts& counts);

  // ---- any thread ----
  std::uint64_t rows() const;                               // so far
  std::optional<CurveRow> row(std::uint64_t number) const;  // none: not there yet, or not kept
  std::vector<CurveRow> all() const;                        // those kept

 private:
  struct Mean {
    double sum = 0;
    std::uint32_t count = 0;
    void add(double value);  // not where it is not finite
    float take();
  };

  Mean return_, length_, loss_;
  std::array<Mean, kMetricCount> metrics_;
  std::uint32_t steps_ = 0;  // since the row before
  mutable std::mutex mutex_;
  std::vector<CurveRow> ring_;
  std::uint64_t rows_ = 0;
};

// The columns of a row, in the order of its names. NaN: none.
std::vector<std::string> curve_names();
std::vector<double> curve_values(const CurveRow& row);

// A file of comma-separated values, one line per row; or where `path` has a file name that contains
// "tfevents", an event file of TensorBoard, whose steps are decisions.
std::string curves_as_csv(const std::vector<CurveRow>& rows);
std::string curves_as_events(const std::vector<CurveRow>& rows);
Result<> write_curves(const std::string& path, const std::vector<CurveRow>& rows);

}  // namespace imprint::agent
