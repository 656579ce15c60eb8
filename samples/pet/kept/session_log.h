#pragma once
// A text file of every event that reached the pets, by frame. A replay with the same options makes the same
// pets, bit for bit.
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
#include <memory>
#include <string>
#include <vector>

#include "samples/pet/base/result.h"
#include "samples/pet/yard/learner.h"
#include "samples/pet/yard/signal.h"
#include "samples/pet/yard/teacher.h"

namespace pet {

// The version that is written. Idle pets have no sofa in version 1 and no unease in version 2. Without idle
// pets all versions play the same.
inline constexpr std::uint32_t kLogVersion = 3;

struct LogHeader {
  std::uint64_t seed = 0;
  std::uint32_t pets = 1;
  bool idle = false;
  TeacherKind teacher = TeacherKind::none;  // the sender of the events; older logs do not say
  Learner learner = Learner::feedback;      // at the start; older logs do not say
  std::uint32_t version = kLogVersion;      // the rules that it plays by; a log of a replay keeps them
};

class SessionLogWriter {
 public:
  static Result<std::unique_ptr<SessionLogWriter>> create(const std::string& path, const LogHeader& header);
  ~SessionLogWriter();
  SessionLogWriter(const SessionLogWriter&) = delete;
  SessionLogWriter& operator=(const SessionLogWriter&) = delete;

  void write(std::uint64_t frame, std::size_t pet, const Signal& signal);
  void write_steps(std::uint64_t frame, std::uint32_t steps);
  void write_end(std::uint64_t frame);
  // Why the file lacks a part of what was written; empty when it is complete.
  std::string problem();

 private:
  SessionLogWriter(const std::string& path, std::FILE* file) : path_(path), file_(file) {}

  std::string path_;
  std::FILE* file_;
};

class SessionLogReader {
 public:
  // Fails with the wrong line.
  static Result<SessionLogReader> open(const std::string& path);

  const LogHeader& header() const { return header_; }
  // Adds the events of a frame. Frames must be asked for in rising order.
  void read(std::uint64_t frame, std::size_t pet, std::vector<Signal>& signals);
  std::uint32_t steps(std::uint64_t frame);
  // Learning ended before this frame. A log that was cut off ends after its last event.
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

  SessionLogReader() = default;
  // Each returns what was expected instead, or null.
  const char* read_header(const std::string& line);
  const char* read_event(const std::string& line);

  LogHeader header_;
  std::vector<std::deque<Event>> events_;  // per pet
  std::deque<Steps> steps_;
  std::uint64_t end_frame_ = 0, last_frame_ = 0;
  bool ended_ = false;
  bool changes_learner_ = false;
};

}  // namespace pet
