#pragma once
// The replay memory of a learner: numbers, and pictures as bytes where BrainSpec::pictures_as_bytes says so.
// A picture's number is then the nearest k / 255, which for numbers of that form has the same bits.
//
// P = brain_count, B = batch_size, C = replay_capacity, W = width of a sample.

#include <cstdint>
#include <vector>

#include "compute/program/program.h"
#include "compute/tensor/tensor.h"
#include "plugin/agent/learn/minibatch.h"
#include "plugin/agent/spec/brain_spec.h"
#include "plugin/agent/spec/state_variable.h"

namespace imprint::agent {

// How one sample is kept.
struct ReplayColumns {
  struct Range {
    std::uint32_t first = 0, count = 0;  // columns of the sample
    bool bytes = false;
    std::uint32_t at = 0;  // where they are: a number of the row, or a byte of its pictures
  };
  std::vector<Range> ranges;  // the whole sample, in order
  std::uint32_t numbers = 0, bytes = 0;

  std::uint32_t words() const { return (bytes + 3) / 4; }
  std::uint64_t row_bytes() const { return 4 * (std::uint64_t{numbers} + words()); }
  std::uint32_t longest() const { return numbers > words() ? numbers : words(); }  // of one tensor's rows
};
// The learner must replay.
ReplayColumns replay_columns(const BrainSpec& spec);

class ReplayMemory {
 public:
  explicit ReplayMemory(const BrainSpec& spec);

  // Rows of a minibatch, int32 [P, B], each drawn from all that is remembered. Of a memory of more than
  // kNewest * kNewestPart samples, one part in kNewestPart is drawn from the newest kNewest. Otherwise a
  // brain that remembers thousands of words hardly sees a new person's few, and learns a new trick late or
  // never. filled, next_row: int32 [P]. Uses the generator's stream 0.
  static constexpr std::int32_t kNewest = 64, kNewestPart = 8;
  Tensor draw_rows(const Tensor& generator, const Tensor& filled, const Tensor& next_row) const;
  // rows: int32 [P, n] of each brain's memory.
  Minibatch draw(const Tensor& rows) const;
  // samples: float32 [P * K, W]; rows: int32 [P * K] of all brains' memories, -1 = none.
  void keep(const Tensor& rows, const Tensor& samples, std::vector<Update>& updates) const;
  std::vector<StateVariable> state() const;  // kReplayName, kReplayPicturesName

 private:
  std::int64_t brains_, batch_, capacity_;
  SampleLayout layout_;
  ReplayColumns columns_;
  Variable numbers_;   // float32 [P * C, numbers]
  Variable pictures_;  // int32 [P * C, words], four bytes each, the lowest first; or not ok()
};

}  // namespace imprint::agent
