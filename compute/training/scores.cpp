#include "compute/training/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compute/base/text.h"

namespace imprint::training {

void add_batch(Sums& sums, const std::vector<HostTensor>& outputs, std::size_t metrics, std::int64_t count) {
  const double samples = static_cast<double>(count);
  sums.metrics.resize(metrics);
  sums.loss += samples * static_cast<double>(outputs[0].floats[0]);
  for (std::size_t i = 0; i < metrics; ++i)
    sums.metrics[i] += samples * static_cast<double>(outputs[i + 1].floats[0]);
  sums.samples += samples;
}

Scores scores_of(const Sums& sums, const std::vector<std::string>& names, double seconds) {
  const double samples = std::max(sums.samples, 1.0);
  Scores scores{.loss = sums.loss / samples, .samples = std::llround(sums.samples), .seconds = seconds};
  for (std::size_t i = 0; i < std::min(names.size(), sums.metrics.size()); ++i)
    scores.metrics.emplace_back(names[i], sums.metrics[i] / samples);
  return scores;
}

double speed(const Scores& scores) {
  return scores.seconds > 0 ? static_cast<double>(scores.samples) / scores.seconds : 0;
}

double Scores::metric(std::string_view name) const {
  for (const auto& [each, value] : metrics)
    if (each == name) return value;
  return std::numeric_limits<double>::quiet_NaN();
}

namespace {

std::string words(const char* split, const Scores& scores) {
  std::string line = text("  ", split, " loss ", decimals(scores.loss, 4));
  for (const auto& [name, value] : scores.metrics) line += " " + name + " " + decimals(value, 4);
  return line;
}

}  // namespace

std::string line_of(const Report& report) {
  std::string line = text("epoch ", report.epoch, "/", report.epochs);
  if (!report.ends_epoch) line += text(" batch ", report.batch, "/", report.batches);
  line += words("training", report.training);
  if (report.validation != nullptr) line += words("validation", *report.validation);
  return line + "  " + decimals(speed(report.training), 0) + " samples/s";
}

}  // namespace imprint::training
