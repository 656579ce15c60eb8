#pragma once
// Parts that the rows of suite nets share: whole networks, each as a program whose data stays on the device.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compute/nn/parameter.h"
#include "compute/program/program.h"

namespace imprint::tools {

// A row: nets/<name>. small: sizes for a software device, where the others would take minutes.
struct Net {
  std::string name;
  std::function<Result<ProgramDescription>(bool small)> describe;
};

std::vector<Net> layer_nets();     // bench_nets_layers.cpp: perceptrons and convolutions
std::vector<Net> sequence_nets();  // bench_nets_sequences.cpp: transformers, attention, recurrent cells
std::vector<Net> part_nets();      // bench_nets_parts.cpp: look-ups, scans, sorts, single products

// Values in [-scale, scale).
Variable noise_values(const std::string& name, const Shape& shape, float scale = 1);
// Indices in [0, count).
Variable noise_indices(const std::string& name, const Shape& shape, std::int64_t count);

// Stores each result in a variable of its own.
Result<ProgramDescription> stored(const std::vector<Tensor>& results,
                                  Precision precision = Precision::float32);
// Backward from the loss, and Adam.
Result<ProgramDescription> trained(const Tensor& loss, const nn::Parameters& parameters,
                                   Precision precision = Precision::float32);

}  // namespace imprint::tools
