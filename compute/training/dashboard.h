#pragma once
// A run on the terminal: progress, curves and a table of metrics that stay in place. Without a terminal, the
// lines of line_of().
//
//   training::StopSignal stop;  // Ctrl-C saves and stops, Ctrl-\ saves
//   training::Dashboard dashboard(std::cout, isatty(1) != 0);
//   training::Trainer trainer(session, model, state, optimiser,
//                             {.report_every = 10, .report = std::ref(dashboard), .stop = stop.flag(),
//                              .save = stop.save_flag()});

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "compute/training/trainer.h"

namespace imprint::training {

// The last values as columns of eight heights, such as "▁▃▆█"; at most `columns` of them.
std::string sparkline(std::span<const double> values, std::size_t columns);

class Dashboard {
 public:
  // out: outlives the dashboard. is_terminal: it understands ANSI's control codes, and shows `columns`.
  explicit Dashboard(std::ostream& out, bool is_terminal = false, std::size_t columns = 80);

  // For TrainerOptions::report, by std::ref.
  void operator()(const Report& report);
  // The lines that a terminal shows, without control codes, after this report.
  std::vector<std::string> lines(const Report& report);

 private:
  std::ostream& out_;
  bool is_terminal_;
  std::size_t columns_;
  std::size_t shown_ = 0;  // lines on the terminal
  std::vector<double> training_, validation_;
  Scores last_validation_;
};

}  // namespace imprint::training
