// The CPU as the device for the program tests of tests/gpu.

#include "tests/gpu/session_test.h"

namespace imprint::test {

Session* shared_session() {
  static const std::unique_ptr<Runtime> runtime = Runtime::create_on_cpu();
  static Session session(*runtime);
  return &session;
}

void run_slices(Program& program, std::span<const std::uint32_t> counts) {
  std::uint32_t piece = 0;
  for (const std::uint32_t count : counts) {
    ASSERT_TRUE(program.run_pieces(0, piece, count).ok());
    piece += count;
  }
}

void expect_validation_silent() {}

}  // namespace imprint::test
