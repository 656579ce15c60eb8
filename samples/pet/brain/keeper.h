#pragma once
// Files that a brain is to be kept in: a brain writes one at a time, over the frames that come, so wishes
// wait in a row.

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "samples/pet/brain/pet_brain.h"

namespace pet {

class Keeper {
 public:
  explicit Keeper(PetBrain& brain) : brain_(&brain) {}

  // Names the wish; it begins at once unless an earlier one is still being written.
  std::size_t save(const std::string& path, PetBrain::Which which);
  // Once a frame, not within it.
  void step();

  bool idle() const { return waiting_.empty(); }
  bool done(std::size_t wish) const { return outcomes_[wish].done; }
  // Why it is not on disk; empty while it goes on and when it went well.
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
  std::deque<Wish> waiting_;  // the first is being written when writing_
  bool writing_ = false;
};

}  // namespace pet
