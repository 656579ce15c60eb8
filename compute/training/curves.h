#pragma once
// The curves of a run: rows in its folder's curves.csv, as lines of JSON in curves.jsonl, and for TensorBoard
// in events.out.tfevents.imprint.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/result.h"

namespace imprint::training {

struct CurveRow {
  std::int64_t epoch = 0, step = 0;
  std::string split;  // "training" or "validation"
  double rate = 0, loss = 0, samples_per_second = 0;
  std::vector<double> metrics = {};
};

struct Curves {
  std::vector<std::string> metric_names = {};
  std::vector<CurveRow> rows = {};
};

// Bounds for a file of n bytes: time O(n), memory 48 n + 4 KiB. Errors: those of read_file; corrupt_file,
// with the line.
Result<Curves> read_curves(const std::string& csv_path);

// ---- used by the trainer ----
// Adds a row to the three files of the folder. Error: io.
Result<> add_curve(const std::string& folder, const std::vector<std::string>& metric_names,
                   const CurveRow& row);
// Removes the rows after the step, of a run that went on after the checkpoint. Step -1: all
// files. Missing ones are no error.
Result<> cut_curves(const std::string& folder, std::int64_t step);
bool is_curve_file(std::string_view name);  // in a folder

}  // namespace imprint::training
