#pragma once
// Snapshots of the pet, on the timeline of the overlay. The player can go back to one, or see it beside the
// pet of now. A snapshot belongs to its brain, so the ghost, which shows the pet as it was, loads a file
// instead.

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
  // ghost may be null. folder is for files; empty: no memory can be shown.
  Memories(PetBrain& brain, PetBrain* ghost, Keeper& keeper, const std::string& folder);
  // Call once everything is compiled.
  void begin();

  // success: the newest examination's, if there was one.
  void keep(double now_s, std::optional<float> success, OverlayState& overlay);
  // number counts the kept snapshots from 1, oldest first; 0 is the newest. (A brain's own numbers differ
  // from run to run.) Returns a line for the player.
  std::string restore(std::uint64_t number, const OverlayState& overlay);

  // Asks for a memory in the ghost's place; nothing: the ghost itself again.
  void show(std::optional<std::size_t> memory) { wanted_ = memory; }
  // Once per frame, outside frame_begin and frame_end. Returns a line for the player if a memory cannot be
  // shown.
  std::string step(std::uint64_t frame, OverlayState& overlay);

 private:
  struct Memory {
    std::uint64_t snapshot;
    std::optional<std::size_t> wish;  // the keeper's save, where there is a file
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
  std::uint64_t rests_until_ = 0;  // frame; until then the ghost's brain still changes
};

}  // namespace pet
