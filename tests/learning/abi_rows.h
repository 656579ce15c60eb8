#pragma once
// The rows of the learners' table, and what is measured of them.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/learning/abi_trial.h"

namespace imprint::trials {

struct AbiBar {
  std::string what;
  std::function<bool(const AbiCurve&)> meets;
  double share = 0.9;  // of the seeds
};

struct AbiRow {
  std::string key;
  std::string what;  // task and settings, for the page
  AbiTrial trial;
  std::vector<AbiBar> bars;
  double mean_at_end = -1e9;  // bar of the greedy mean of all seeds at the end
};

std::vector<AbiRow> abi_rows();

}  // namespace imprint::trials
