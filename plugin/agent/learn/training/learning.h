#pragma once
// A brain's learning part: gathers experience, runs one learn step after the other. Frame thread, or between
// frames.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "compute/base/result.h"
#include "plugin/agent/learn/training/curves.h"
#include "plugin/agent/learn/training/experience.h"
#include "plugin/agent/learn/training/training.h"
#include "plugin/agent/spec/brain_counts.h"
#include "plugin/agent/spec/brain_services.h"
#include "plugin/agent/spec/run_once.h"

namespace imprint::agent {

class Learning : public std::enable_shared_from_this<Learning> {
 public:
  // services, spec and counts outlive it.
  Learning(const BrainServices& services, const BrainSpec& spec, LearnGraph graph, BrainCounts& counts);

  const Learner& learner() const { return learner_; }
  Training& training() { return training_; }
  Experience& experience() { return experience_; }
  const Experience& experience() const { return experience_; }
  const Curves& curves() const { return curves_; }

  // Experience of actors in other processes (learn/training/sent_experience.h).
  std::uint64_t sent_bytes() const;
  void take_sent(std::span<std::byte> into);  // of sent_bytes()
  // False: enough waits already. source: of the experience, the same for a process's agents. Errors:
  // invalid_argument, naming the sample; then nothing is taken in.
  Result<bool> receive(std::uint32_t source, std::span<const std::byte> from);

  Result<> compile();  // and installs
  void cancel();       // the step in flight, before this is destroyed
  // A step without samples, if none began since the program was installed. It still changes state: the caller
  // puts that back.
  bool may_run_once() const { return training_.compiled() && !training_.used(); }
  Result<> run_once(RunOnce& runs);
  // Ends the step in flight without effect, and its samples wait again: the state that it would have changed
  // is being replaced.
  void drop_step();
  // Begins a step when there is work, learning is on, and no step is in flight. Returns whether one began.
  // captured: Decisions.
  Result<bool> start_step(const CopyLedger& captured);
  // Updates what stats() reports.
  void publish();
  // Once per frame: counts what was lost, and logs each cause once with the remedy.
  void watch();
  // BrainSpec::fall_back: whether now is the time to keep a copy of the brain, or to go back to the newest.
  bool takes_best() { return spec_.fall_back && experience_.returns().take_best(0); }
  bool wants_back() const;
  // The kept copy is restored.
  void went_back();

 private:
  bool has_news() const;  // whether a learner of remembered steps may go on
  void finish_step(std::uint32_t slot);
  void warn(const std::string& what);
  void warn_of_losses(const LostExperience& lost, std::uint64_t used);
  void warn_of_no_reward();
  void warn_of_reward_size();
  void warn_of_diagnostics();
  void warn_of_one_value();
  void warn_of_flat_rewards();
  void warn_of_fall();
  bool words_spread() const;
  std::string intake_remedy(std::uint64_t samples) const;

  const BrainServices& services_;
  const BrainSpec& spec_;
  BrainCounts& counts_;
  const Learner& learner_;
  Training training_;
  Experience experience_;
  Curves curves_;
  std::uint64_t first_frame_ = 0;  // with a sample
  std::uint64_t intake_ = 0, queue_dropped_ = 0;
  bool flat_asked_ = false;
};

}  // namespace imprint::agent
