#pragma once
// The session that all tests of a program share. gpu_device.cpp has the device's, under the validation layer;
// tests/unit/cpu_session.cpp has the CPU's. A test program links one of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "compute/program/program.h"
#include "compute/program/program_sequence.h"
#include "compute/program/run.h"

namespace imprint::test {

// Null if the device does not open, which fails the calling test.
Session* shared_session();
// Runs slot 0's pieces from the first on, `slice` at a time. Each slice is a separate submission. Waits at
// the end.
void run_slices(Program& program, std::span<const std::uint32_t> counts);
// Fails the calling test if a validation layer reported anything since the last call.
void expect_validation_silent();

// Numbers between -scale and scale.
inline std::vector<float> wave(std::int64_t count, float scale, int seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = scale * std::sin(static_cast<float>(i + 1) * (0.7f + 0.13f * static_cast<float>(seed)));
  return values;
}

class SessionTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(shared_session(), nullptr); }
  void TearDown() override { expect_validation_silent(); }

  Session& session() { return *shared_session(); }
  Runtime& runtime() { return session().runtime(); }

  // An error ends the test with its message.
  Program compile(const ProgramDescription& description) {
    return taken(Program::compile(runtime(), description));
  }
  Program compile(const ProgramSequence& sequence) { return taken(Program::compile(runtime(), sequence)); }
  std::vector<float> floats(const Variable& variable) {
    return session().read(std::span(&variable, 1)).value()[0].floats;
  }
  std::vector<std::int32_t> ints(const Variable& variable) {
    return session().read(std::span(&variable, 1)).value()[0].ints;
  }

  // Runs all of the program in slices of the given lengths (repeating the last).
  void run_sliced(Program& program, const std::vector<std::uint32_t>& lengths) {
    std::vector<std::uint32_t> counts;
    for (std::uint32_t left = program.piece_count(); left > 0; left -= counts.back())
      counts.push_back(std::min(lengths[std::min(counts.size(), lengths.size() - 1)], left));
    run_slices(program, counts);
  }

 private:
  static Program taken(Result<Program> program) {
    if (!program) throw std::runtime_error(program.error().message);
    return std::move(*program);
  }
};

}  // namespace imprint::test
