#pragma once
// What tests of programs on the shared device begin from.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "compute/program/program.h"
#include "compute/program/program_sequence.h"
#include "compute/program/run.h"
#include "tests/gpu/gpu_device.h"

namespace imprint::test {

// Fails a test in which the validation layer says anything.
class SessionTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(gpu(), nullptr); }
  void TearDown() override { expect_validation_silent(); }

  Session& session() { return gpu()->session(); }
  Runtime& runtime() { return session().runtime(); }

  // A refusal ends the test with its message.
  Program compile(const ProgramDescription& description) { return taken(Program::compile(runtime(), description)); }
  Program compile(const ProgramSequence& sequence) { return taken(Program::compile(runtime(), sequence)); }
  std::vector<float> floats(const Variable& variable) { return session().read(std::span(&variable, 1)).value()[0].floats; }
  std::vector<std::int32_t> ints(const Variable& variable) { return session().read(std::span(&variable, 1)).value()[0].ints; }

  // Runs the program's pieces in slices of the given lengths (repeating the last), each slice a submission of its own.
  void run_sliced(Program& program, const std::vector<std::uint32_t>& lengths) {
    vk::Queue& queue = *gpu()->context().queue();
    const Commands uploads = runtime().take_uploads().value();
    if (uploads.primary) ASSERT_TRUE(queue.submit(std::span(&uploads.primary, 1)).ok());
    vk::Ticket last;
    for (std::uint32_t piece = 0, slice = 0; piece < program.piece_count(); ++slice) {
      const std::uint32_t count = std::min(lengths[std::min<std::size_t>(slice, lengths.size() - 1)], program.piece_count() - piece);
      std::vector<VkCommandBuffer> commands{runtime().barrier().primary};
      const auto pieces = program.pieces(0, VK_COMMAND_BUFFER_LEVEL_PRIMARY).subspan(piece, count);
      commands.insert(commands.end(), pieces.begin(), pieces.end());
      last = queue.submit(commands).value();
      piece += count;
    }
    ASSERT_TRUE(queue.wait(last, 60'000'000'000).ok());
  }

 private:
  static Program taken(Result<Program> program) {
    if (!program) throw std::runtime_error(program.error().message);
    return std::move(*program);
  }
};

}  // namespace imprint::test
