#pragma once
// What a brain's learning gives up when memory runs short, and takes again when there is room.
//
//   on the device   stays                     leaves
//                   weights, moments,         the replay memory, to the host
//                   generator, snapshots      the learning program: activations, gradients, inputs and
//                   outputs inference                 the way back of the replay memory (saves, shadows)
//
// Nothing of it is lost: when it is back, the next minibatch has the bits that it would have had without the
// retreat. The frame thread begins and ends both ways at a boundary (brain.h); what takes time is done by the
// context's writer in between. Meanwhile the brain acts, is saved and shadowed; samples that are given wait,
// and snapshots and restores wait with them.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "plugin/agent/keep/snapshots.h"

namespace imprint::agent {

struct Retreat {
  enum class Phase : std::uint8_t {
    present,
    reading,  // the replay is on its way to the host
    leaving,  // the writer copies it out of the way back
    away,
    returning  // the writer makes everything anew
  };
  // What the writer makes.
  struct Returned {
    std::unique_ptr<Program> learning;
    std::vector<Snapshots::Programs> snapshots;
    std::unique_ptr<StateReadback> saving, shadow;
  };

  Phase phase = Phase::present;
  bool wanted = false;  // by the context
  std::shared_ptr<std::vector<std::byte>>
      replay;                     // its content while it is away; null: it stayed, for want of a way back
  std::atomic<bool> done{false};  // what the writer was given
  Status outcome;                 // of coming back, once done
  Returned returned;
  std::uint64_t retry_frame = 0;             // not before, after coming back failed
  std::atomic<std::uint64_t> bytes_away{0};  // of device memory, about; any thread

  bool moving() const { return phase != Phase::present && phase != Phase::away; }
  bool is_away() const { return phase == Phase::away; }
};

}  // namespace imprint::agent
