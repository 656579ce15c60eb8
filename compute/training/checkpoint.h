#pragma once
// The part of a training run that is no variable, as text in a checkpoint's metadata. Internal.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compute/base/result.h"

namespace imprint::training {

// Sums over samples.
struct Sums {
  double loss = 0, samples = 0;
  std::vector<double> metrics = {};
  bool operator==(const Sums&) const = default;
};

struct KeptCheckpoint {
  double loss = 0;
  std::string file;  // its name in the folder
  bool operator==(const KeptCheckpoint&) const = default;
};

struct Position {
  std::int64_t epoch = 0;  // the one under way, from 0
  std::int64_t batch = 0;  // batches of it that are done
  std::int64_t step = 0;   // optimiser steps
  Sums sums = {};          // of the epoch under way
  double best_loss = 0;    // set by the trainer
  std::int64_t best_step = 0;
  std::int64_t bad_validations = 0;
  std::vector<KeptCheckpoint> kept = {};  // best first
  bool operator==(const Position&) const = default;
};

std::map<std::string, std::string> metadata_of(const Position& position);
// Time and memory in proportion to the text. Error: corrupt_file, with the missing or malformed name.
Result<Position> position_of(const std::map<std::string, std::string>& metadata);

// Numbers that read back as the same bits.
std::string exact(double value);
// For readers: a fixed number of decimals, or of figures. "-" if it is no number.
std::string decimals(double value, int count);
std::string figures(double value, int count);

}  // namespace imprint::training
