#pragma once
// The queue of a brain's saves: a brain writes one file at a time, over several frames.

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "samples/pet/brain/pet_brain.h"

namespace pet {

class Keeper {
 public:
  explicit Keeper(PetBrain& brain) : brain_(&brain) {}

  // Returns the number of the save. It begins at once unless an earlier one is still being written.
  std::size_t save(const std::string& path, PetBrain::Which which);
  // Once per frame, outside frame_begin and frame_end.
  void step();

  bool idle() const { return waiting_.empty(); }
  bool done(std::size_t wish) const { return outcomes_[wish].done; }
  // Why the file is not on disk. Empty while the save continues, and after success.
  const std::string& problem(std::size_t wish) const { return outcomes_[wish].problem; }

 private:
  struct Outcome {
    bool done = false;
    std::string problem;
  };
  struct Wish {
    std::size_t number;
    std::string path;
    PetBrain::Which which;
  };
  void end(const std::string& problem);

  PetBrain* brain_;
  std::vector<Outcome> outcomes_;
  std::deque<Wish> waiting_;  // oldest first; writing_: the first is being written
  bool writing_ = false;
};

}  // namespace pet
