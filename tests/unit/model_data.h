#pragma once
// The networks under tests/data/models, and the allowed distance between an answer and its reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "compute/model/files/file.h"
#include "compute/model/files/safetensors.h"
#include "compute/model/onnx/format/proto.h"

namespace imprint::test {

inline std::string model_path(const std::string& name) {
  return std::string(IMPRINT_TEST_MODELS) + "/" + name;
}

// Paths below tests/data/models, without ".onnx".
inline const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{"godot/3DCarParking",
                                              "godot/3DLander",
                                              "godot/BallChase",
                                              "godot/CrossTheRoad",
                                              "godot/DownFall",
                                              "godot/ItemSortingCart",
                                              "godot/MultiAgentSimple_player",
                                              "godot/MultiLevelRobot",
                                              "godot/ScoreTheGoal",
                                              "godot/Ships",
                                              "godot/SimpleReachGoal_CSharp"};
  return names;
}

inline std::vector<std::string> all_model_names() {
  std::vector<std::string> names = policy_names();
  names.push_back("small/sine");
  return names;
}

inline std::vector<std::byte> must_read(const std::string& path) {
  auto bytes = read_file(path);
  EXPECT_TRUE(bytes.ok()) << (bytes ? "" : bytes.error().message);
  return bytes ? std::move(*bytes) : std::vector<std::byte>();
}

// Inputs and outputs of a reference file, in the order of its metadata's lists.
struct Reference {
  std::map<std::string, safetensors::Array> inputs, outputs;
};

inline Reference must_load_reference(const std::string& name) {
  Reference reference;
  auto file = safetensors::load(model_path(name + ".safetensors"));
  EXPECT_TRUE(file.ok()) << (file ? "" : file.error().message);
  if (!file) return reference;
  for (auto& [key, array] : file->arrays) {
    if (key.starts_with("in.")) reference.inputs[key.substr(3)] = std::move(array);
    if (key.starts_with("out.")) reference.outputs[key.substr(4)] = std::move(array);
  }
  return reference;
}

// The tolerance of this suite: |a - b| <= tolerance * max(|b|, s) for every element b of the reference, where
// s is the smaller of its largest element and 1. Where terms cancel, float32 in another order is only as
// exact as the terms.
template <class Number>
void expect_near(std::span<const Number> actual, std::span<const float> expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(static_cast<double>(value)));
  const double scale = std::min(1.0, largest);
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double reference = expected[i];
    const double difference = std::abs(static_cast<double>(actual[i]) - reference);
    const double error = difference == 0 ? 0 : difference / std::max(scale, std::abs(reference));
    if (!(error <= worst)) {
      worst = error;
      at = i;
    }
  }
  EXPECT_LE(worst, tolerance) << what << ": element " << at << " is "
                              << (actual.empty() ? Number() : actual[at]) << ", expected "
                              << (expected.empty() ? 0.0f : expected[at]);
}

}  // namespace imprint::test
