#pragma once
// The learning program of a brain, the samples that the host feeds it, and its runs in flight.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "plugin/agent/learn/learn_graph.h"
#include "plugin/agent/learn/learner.h"
#include "plugin/agent/learn/samples/samples.h"

namespace imprint::agent {

class Training {
 public:
  Training(const BrainSpec& spec, LearnGraph graph);

  bool compiled() const { return program_ != nullptr; }
  Result<std::unique_ptr<Program>> compile(Runtime& runtime) const;  // any thread
  // Null: to be compiled again. No run is in flight.
  void install(std::unique_ptr<Program> program) {
    program_ = std::move(program);
    used_ = false;
    for (Run& run : runs_) run.demonstration_version = 0;
  }
  bool used() const { return used_; }  // a run began since install()
  Program& program() { return *program_; }
  const ProgramStats* stats() const { return program_ ? &program_->stats() : nullptr; }

  // As it will be after the step in flight, and the samples that wait for later steps.
  ReplayState& replay() { return replay_; }
  const ReplayState& replay() const { return replay_; }

  // ---- one step at a time; brain.h says when ----
  bool stepping() const { return stepping_; }
  std::uint64_t deadline() const { return deadline_; }
  std::uint32_t minibatches_per_step() const { return graph_.minibatches; }
  // Version of the weights that agents act with now.
  std::uint64_t acting_version(std::uint32_t brain) const {
    return versions_[brain] - (stepping_ ? updating_[brain] : 0u);
  }
  // A rollout takes no steps of weights before these: the newest two versions, and none from before a load or
  // a restore. Steps of the version before the newest are those that agents took during the update.
  std::uint64_t oldest_version(std::uint32_t brain) const;
  std::uint64_t used_samples() const { return used_samples_; }  // taken in since creation, all brains
  void weights_replaced();                                      // by a file's
  // By a snapshot's. A rollout that other weights began is dropped.
  void weights_restored();
  bool has_no_waiting() const { return replay_.waiting.empty(); }
  // Whether a step would learn or take in anything.
  bool has_work(const CopyLedger& captured);
  // Whether a brain is to learn from demonstrations before its own steps (BrainSpec::pretraining).
  bool pretrains() const;
  std::optional<std::uint32_t> free_slot() const;
  // Fills the slot's inputs with waiting samples; the step is in flight until `deadline`. False when it takes
  // samples in but no brain learns. captured: StepInputs.
  // decisions: of each brain so far.
  bool begin(std::uint32_t slot, std::uint64_t deadline, const CopyLedger& captured,
             std::uint64_t decisions = 0);
  // As begin, in slot 0, with no samples and no brain; release() ends it. Only if not used().
  void begin_empty();
  void end() { stepping_ = false; }  // at the deadline
  // Ends the step in flight, whose job was cancelled: the samples that it took wait again. Those of a rollout
  // are gone. Returns whether a brain would have learned.
  bool take_back();
  // Runs whose jobs were cancelled get no finish(). release() frees their slots.
  std::vector<std::uint32_t> slots_in_flight() const;
  void release(std::uint32_t slot) { runs_[slot].in_flight = false; }
  // Call when the slot's run is complete.
  struct Outcome {
    float loss = 0;             // mean over the brains that learned; NaN when one is not finite
    std::uint32_t learned = 0;  // brains
    std::uint32_t stopped = 0;  // brains that stop learning because of it
    std::array<float, kMetricCount> metrics{};  // means over the brains that learned; NaN: none
  };
  Outcome finish(std::uint32_t slot);

  std::uint32_t stopped_brains() const;
  void resume_all();  // stopped brains learn again: their state was replaced

 private:
  struct Run {
    std::vector<std::int32_t> filled;          // [P] as fed: 0 = the brain learns from no samples
    std::vector<std::int32_t> demonstrations;  // [P] the same for demonstrations
    std::uint64_t demonstration_version = 0;   // DemonstrationMemory::version of the input
    std::uint64_t epoch = 0;
    bool in_flight = false;
  };

  // The newest step, from before it began.
  struct Begun {
    std::vector<std::int32_t> next, filled;
    std::vector<std::int32_t> pretrained;
    Opponents opponents;
    SampleQueue taken;
    std::uint64_t used = 0;
  };
  void read_metrics(std::uint32_t slot, Outcome& outcome) const;
  bool pretrains(std::uint32_t brain) const;
  void feed_shown(std::uint32_t slot);
  void feed_kept(std::uint32_t slot, std::uint64_t decisions);
  static bool learns(const Run& run, std::uint32_t brain) {
    return run.filled[brain] > 0 || run.demonstrations[brain] > 0;
  }

  const BrainSpec& spec_;
  const Learner& learner_;
  LearnGraph graph_;
  std::unique_ptr<Program> program_;
  ReplayState replay_;
  Begun begun_;
  std::vector<Run> runs_;
  std::vector<std::uint8_t> stopped_;    // [P]
  std::vector<std::uint64_t> versions_;  // [P] counts steps begun and replacements
  std::vector<std::uint64_t> replaced_;  // [P] the version after the newest replacement
  std::uint64_t used_samples_ = 0;
  std::vector<std::uint8_t> updating_;  // [P] 1 = takes part in the newest step
  std::uint64_t epoch_ = 0;             // of the state; losses of an earlier epoch stop no brain
  bool stepping_ = false;
  bool used_ = false;
  std::uint64_t deadline_ = 0;
};

}  // namespace imprint::agent
