#pragma once
// Services that the agent system lends to its brains. Everything here outlives them.

#include <cstdint>

#include "compute/base/log.h"
#include "engine-bridge/context.h"

namespace imprint::agent {

class FileWriter;

struct FrameClock {
  std::uint64_t frame = 0;  // the host's number, which may jump
  double time_s = 0;
  std::uint64_t count = 0;      // of frames that began
  std::uint64_t in_flight = 0;  // from the host's newest safe frame to this one; 0: the host does not tell
};

struct BrainServices {
  bridge::Context& context;
  FileWriter& files;
  const FrameClock& clock;
  const std::uint32_t& host_copy_period_frames;  // 0 = no host copies
  LogSink log;
  std::uint64_t memory_cap_bytes;  // when the brain was created; 0 = no cap

  std::uint64_t stream = 0;  // of this brain's learn jobs, which run in order
};

}  // namespace imprint::agent
