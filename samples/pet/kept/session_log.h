#pragma once
// Every event that reached the pets, by frame, as lines of text. Played again with the same options it makes
// the same pets, bit for bit.
//
//   imprint-pet-log 3
//   seed 1 pets 1 idle 0 teacher demo learner feedback
//   1 0 redraw 8136172635124
//   1 0 cue sit
//   95 0 praise
//   120 0 move_player 1.25 -3.5
//   130 0 lure 2 1.5
//   131 0 let_go
//   140 0 name bed go to your place
//   300 steps 2              (this frame advanced by two simulation steps)
//   10801 end                (learning ended before this frame)

#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "samples/pet/yard/learner.h"
#include "samples/pet/yard/signal.h"
#include "samples/pet/yard/teacher.h"

namespace pet {

// What is written today. Pets that were left to themselves knew no sofa in version 1, and in version 2 no
// unease: without idleness all play the same.
inline constexpr std::uint32_t kLogVersion = 3;

struct LogHeader {
  std::uint64_t seed = 0;
  std::uint32_t pets = 1;
  bool idle = false;
  TeacherKind teacher = TeacherKind::none;  // who sent the events; older logs do not say
  Learner learner = Learner::feedback;      // at the start; older logs do not say
  std::uint32_t version = kLogVersion;      // by whose rules it plays: of what was read, and of a log of that
};

class SessionLogWriter {
 public:
  SessionLogWriter(const std::string& path, const LogHeader& header);  // throws std::runtime_error
  ~SessionLogWriter();
  SessionLogWriter(const SessionLogWriter&) = delete;
  SessionLogWriter& operator=(const SessionLogWriter&) = delete;

  void write(std::uint64_t frame, std::size_t pet, const Signal& signal);
  void write_steps(std::uint64_t frame, std::uint32_t steps);
  void write_end(std::uint64_t frame);
  // Why what was written so far is not all in the file; empty when it is.
  std::string problem();

 private:
  std::string path_;
  std::FILE* file_;
};

class SessionLogReader {
 public:
  explicit SessionLogReader(
      const std::string& path);  // throws std::runtime_error with the line that is wrong

  const LogHeader& header() const { return header_; }
  // The events of a frame; frames must be asked for in rising order.
  void read(std::uint64_t frame, std::size_t pet, std::vector<Signal>& signals);
  std::uint32_t steps(std::uint64_t frame);
  // Learning ended before this frame; of a log that was cut off, after its last event.
  std::uint64_t end_frame() const { return end_frame_; }
  bool changes_learner() const { return changes_learner_; }

 private:
  struct Event {
    std::uint64_t frame;
    Signal signal;
  };
  struct Steps {
    std::uint64_t frame;
    std::uint32_t steps;
  };

  LogHeader header_;
  std::vector<std::deque<Event>> events_;  // of each pet
  std::deque<Steps> steps_;
  std::uint64_t end_frame_ = 0;
  bool changes_learner_ = false;
};

}  // namespace pet
