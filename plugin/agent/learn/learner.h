#pragma once
// A brain's learning: one program that takes in new samples, learns from a minibatch a brain and steps each
// brain's weights; what the host feeds it, and its runs under way. The programs themselves: learn_graph.h.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "plugin/agent/learn/learn_graph.h"
#include "plugin/agent/learn/replay.h"
#include "plugin/agent/schema.h"

namespace imprint::agent {

class Learner {
 public:
  Learner(const BrainSpec& spec, LearnGraph graph);

  bool compiled() const { return program_ != nullptr; }
  Result<std::unique_ptr<Program>> compile(Runtime& runtime) const;  // any thread
  void install(std::unique_ptr<Program> program) {
    program_ = std::move(program);
  }  // null: it is compiled again; no run is under way
  Program& program() { return *program_; }
  const ProgramStats* stats() const { return program_ ? &program_->stats() : nullptr; }

  // What is remembered once the step under way is over, and what waits for later ones.
  ReplayState& replay() { return replay_; }
  const ReplayState& replay() const { return replay_; }

  // ---- one step at a time; see brain.h for when ----
  bool stepping() const { return stepping_; }
  std::uint64_t deadline() const { return deadline_; }
  std::uint32_t minibatches_per_step() const { return graph_.minibatches; }
  // Of the weights that a brain acts by until the step under way is over, and by which those samples are to
  // be done that the next one takes in (LearnerTraits::rollouts).
  std::uint64_t acting_version(std::uint32_t brain) const {
    return versions_[brain] - (stepping_ ? updating_[brain] : 0u);
  }
  std::uint64_t wanted_version(std::uint32_t brain) const { return versions_[brain]; }
  // Other weights have taken their place.
  void weights_replaced();
  void weights_restored();  // by a snapshot's; a rollout that others began is not gone on with
  // Whether a step would learn or take in anything.
  bool has_work() const;
  std::optional<std::uint32_t> free_slot() const;
  // Fills the slot's inputs from what waits, and counts the step as under way until `deadline`. False when it
  // takes in samples, but none learns. captured: [seats], see take_samples.
  bool begin(std::uint32_t slot, std::uint64_t deadline, std::span<const std::uint64_t> captured);
  void end() { stepping_ = false; }  // its deadline has come, or its job was cancelled
  // Runs whose jobs were cancelled: nobody will call finish for them. Their slots are free again with
  // release().
  std::vector<std::uint32_t> slots_under_way() const;
  void release(std::uint32_t slot) { runs_[slot].under_way = false; }
  // The slot's run is complete: what it says about the losses.
  struct Outcome {
    float loss = 0;             // mean over the brains that learned; NaN when one was not finite
    std::uint32_t learned = 0;  // brains that took part
    std::uint32_t stopped = 0;  // that stop learning because of it
  };
  Outcome finish(std::uint32_t slot);

  std::uint32_t stopped_brains() const;
  void set_going();  // all brains learn again: their state was replaced

 private:
  struct Run {
    std::vector<std::int32_t> filled;  // as fed: 0 for brains that did not take part
    std::uint64_t epoch = 0;
    bool under_way = false;
  };

  const BrainSpec& spec_;
  LearnGraph graph_;
  std::unique_ptr<Program> program_;
  ReplayState replay_;
  std::vector<Run> runs_;
  std::vector<std::uint8_t> stopped_;    // [P]
  std::vector<std::uint64_t> versions_;  // [P] steps begun and replacements
  std::vector<std::uint8_t> updating_;   // [P] 1: takes part in the newest step
  std::uint64_t epoch_ = 0;              // of the state; runs of an earlier one say nothing about the present
  bool stepping_ = false;
  std::uint64_t deadline_ = 0;
};

// Slots of a learn program, so that a host that tells some frames late that the GPU is done never holds a
// step up.
std::uint32_t learn_slots(std::uint32_t learn_period_frames);

}  // namespace imprint::agent
