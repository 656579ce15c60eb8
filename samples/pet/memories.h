#pragma once
// Snapshots of the pet, on the timeline of the overlay: to go back to, and to be seen beside the pet of now.
// A snapshot is the brain's own, so the ghost, which shows what the pet was, reads a file.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "samples/pet/brain/keeper.h"
#include "samples/pet/brain/pet_brain.h"
#include "samples/pet/view/overlay/overlay_state.h"

namespace pet {

class Memories {
 public:
  // ghost: may be null; folder: for files, empty = nothing can be seen beside.
  Memories(PetBrain& brain, PetBrain* ghost, Keeper& keeper, const std::string& folder);
  // Once everything is compiled.
  void begin();

  // success: of the newest examination, if there was one.
  void keep(double now_s, std::optional<float> success, OverlayState& overlay);
  // number counts from 1 through the snapshots that are kept, oldest first, 0 is the newest: a brain's names
  // for them differ from run to run. Gives a word for the player.
  std::string restore(std::uint64_t number, const OverlayState& overlay);

  // The ghost is to become the pet of a memory, or nothing: itself.
  void show(std::optional<std::size_t> memory) { wanted_ = memory; }
  // Once a frame, not within it. Gives a word for the player when a memory cannot be shown.
  std::string step(std::uint64_t frame, OverlayState& overlay);

 private:
  struct Memory {
    std::uint64_t snapshot;
    std::optional<std::size_t> wish;  // of the keeper, where there is a file
    std::string file;
  };
  void forget_oldest(OverlayState& overlay);

  PetBrain* brain_;
  PetBrain* ghost_;  // null: nothing can be shown
  Keeper* keeper_;
  std::string folder_;
  std::vector<Memory> memories_;  // beside OverlayState::snapshots
  std::uint64_t made_ = 0;
  std::uint64_t untaught_ = 0;  // the ghost's snapshot of itself
  std::optional<std::optional<std::size_t>> wanted_;
  std::uint64_t rests_until_ = 0;  // frame: what was asked of the ghost's brain is on its way
};

}  // namespace pet
