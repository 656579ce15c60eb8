#include "compute/training/dashboard.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>

#include "compute/base/text.h"
#include "compute/training/checkpoint.h"

namespace imprint::training {
namespace {

// "==========          " for a share of 0.5.
std::string bar(double share, std::size_t columns) {
  const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(columns));
  return std::string(full, '=') + std::string(columns - full, ' ');
}

std::string padded(std::string cell, std::size_t width) {
  cell.resize(std::max(width, cell.size() + 1), ' ');
  return cell;
}

}  // namespace

std::string sparkline(std::span<const double> values, std::size_t columns) {
  static constexpr std::array<const char*, 8> kHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::span<const double> last = values.last(std::min(values.size(), columns));
  double low = INFINITY, high = -INFINITY;
  for (const double value : last)
    if (std::isfinite(value)) low = std::fmin(low, value), high = std::fmax(high, value);
  std::string line;
  for (const double value : last) {
    const double share = high > low && std::isfinite(value) ? (value - low) / (high - low) : 0;
    line += kHeights[static_cast<std::size_t>(std::lround(7 * share))];
  }
  return line;
}

Dashboard::Dashboard(std::ostream& out, bool is_terminal, std::size_t columns)
    : out_(out), is_terminal_(is_terminal), columns_(columns) {}

std::vector<std::string> Dashboard::lines(const Report& report) {
  training_.push_back(report.training.loss);
  if (report.validation != nullptr) {
    last_validation_ = *report.validation;
    validation_.push_back(report.validation->loss);
  }
  const double epochs = static_cast<double>(std::max<std::int64_t>(report.epochs, 1));
  const double within =
      static_cast<double>(report.batch) / static_cast<double>(std::max<std::int64_t>(report.batches, 1));
  const double share = (static_cast<double>(report.epoch - 1) + within) / epochs;
  const std::size_t width = std::clamp<std::size_t>(columns_, 40, 120) - 24;
  const Scores& now = report.training;
  const double speed = now.seconds > 0 ? static_cast<double>(now.samples) / now.seconds : 0;
  std::vector<std::string> lines;
  lines.push_back(text(
      "epoch ", report.epoch, "/", report.epochs, "  batch ", report.batch, "/", report.batches, "  step ",
      report.step, "  rate ", figures(report.rate, 3), "  ", std::llround(speed), " samples/s",
      report.memory > 0 ? "  " + decimals(static_cast<double>(report.memory) / 1048576, 1) + " MiB"
                        : std::string()));
  lines.push_back(text("[", bar(share, width), "] ", std::llround(100 * share), " %"));
  lines.push_back(padded("", 16) + padded("training", 14) + "validation");
  const auto row = [&](const std::string& name, double of_training, double of_validation) {
    lines.push_back(padded(name, 16) + padded(decimals(of_training, 4), 14) + decimals(of_validation, 4));
  };
  const bool was_validated = !validation_.empty();
  row("loss", now.loss, was_validated ? last_validation_.loss : NAN);
  for (const auto& [name, value] : now.metrics)
    row(name, value, was_validated ? last_validation_.metric(name) : NAN);
  lines.push_back(padded("training loss", 16) + sparkline(training_, width));
  if (was_validated) lines.push_back(padded("validation", 16) + sparkline(validation_, width));
  lines.emplace_back("Ctrl-C saves and stops, Ctrl-\\ saves and goes on");
  return lines;
}

void Dashboard::operator()(const Report& report) {
  if (!is_terminal_) {
    out_ << line_of(report) << std::endl;
    return;
  }
  if (shown_ > 0) out_ << "\x1b[" << shown_ << "A";
  const std::vector<std::string> all = lines(report);
  for (const std::string& line : all) out_ << "\r\x1b[K" << line << "\n";
  shown_ = all.size();
  out_ << std::flush;
}

}  // namespace imprint::training
