#pragma once
// Every call of the game to Imprint is in this pair of files. Error texts are Imprint's own.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "samples/pet/base/result.h"
#include "samples/pet/brain/access.h"
#include "samples/pet/yard/learner.h"
#include "samples/pet/yard/mind.h"

namespace pet {

// Imprint on the game's device, or with Access::cpu on the CPU.
class BrainContext {
 public:
  struct Setup {
    Access access = Access::record;
    std::uint32_t budget_us = 500;
    std::uint32_t slice_us = 1000;
    std::string shader_cache;  // directory; empty = off
    std::function<void(const std::string&)> log;
  };
  static Result<std::unique_ptr<BrainContext>> create(const imp_vk_device_info& device, const Setup& setup);
  BrainContext(const BrainContext&) = delete;  // Imprint holds its address, for the log
  BrainContext& operator=(const BrainContext&) = delete;

  // Compiles what the brains made so far need; nothing compiles afterwards.
  Result<> warmup(const std::function<void(float)>& progress);

  Result<> begin_frame(std::uint64_t frame, std::uint64_t safe_frame, double time_s);
  Result<> send_work(VkCommandBuffer commands);
  // Fails also with the first failure of a mind or a brain since the context was made.
  Result<> end_frame();
  // After the last frame, when the GPU has finished it. Only then may the context be destroyed.
  void close(std::uint64_t last_frame, double time_s);

  imp_context_stats stats() const;
  const std::string& driver() const { return driver_; }  // of the device that computes
  imprint::game::Context& context() { return context_; }
  void log(imprint::game::LogLevel level, const char* message);  // called by Imprint, on any thread

  // Minds and brains have no Result<> to return: their first failure stays here. True when `status` is good.
  bool good(const imprint::game::Outcome& status, const char* what);
  const Result<>& failure() const { return failure_; }

 private:
  explicit BrainContext(const Setup& setup) : setup_(setup) {}
  Setup setup_;
  imprint::game::Context context_;
  // Scope of the next recorded frame: the first one after warmup() runs every program once.
  imprint::game::FrameScope scope_ = imprint::game::FrameScope::frame;
  std::string driver_;
  Result<> failure_;
};

// The brains of one or many pets of one shape. Each pet has an agent that learns and probes that take
// examinations with the same brain. A pet may have a brain for each of several learners; one is in use, the
// others keep what they know.
class PetBrain {
 public:
  struct Setup {
    std::string name = "pet";
    std::uint64_t seed = 1;
    std::uint32_t pets = 1;
    std::uint32_t probes = 20;  // per pet
    double reaction_s = 0.8;    // the player's, from the onset of an action: the centre of the credit
    std::vector<Learner> learners = {Learner::feedback};  // one brain each; the first is in use at first
    std::function<void(imp_brain_desc&)> describe = {};   // changes each description; empty = no change
  };
  static Result<std::unique_ptr<PetBrain>> create(BrainContext& context, const Setup& setup);
  ~PetBrain();
  PetBrain(const PetBrain&) = delete;
  PetBrain& operator=(const PetBrain&) = delete;

  // Minds use whichever brain is in use.
  Mind& pet(std::size_t index);
  // Decides greedily and cannot be taught.
  Mind& probe(std::size_t pet, std::size_t index);
  const Setup& setup() const { return setup_; }
  // How many snapshots a brain keeps; a new one replaces the oldest.
  std::size_t snapshots_kept() const;

  Learner learner() const;
  // Within a frame or between two; creates nothing. False when there is no brain of that learner.
  bool use(Learner learner);

  void set_learning(bool on);
  bool learning() const { return learning_; }

  enum class Which : std::uint8_t { first, in_use };
  Result<> save(const std::string& path, Which which);  // continues over the next frames
  Result<bool> saved() const;                           // false while it continues
  // Into the first brain, not within a frame. A failure (Error::unreadable_pet) changes nothing.
  Result<> load(const std::string& path);
  std::uint64_t snapshot();
  void restore(std::uint64_t snapshot);  // the brain of that snapshot is in use afterwards

  // The first brain's weights, moments and counters: 32 hexadecimal digits. Not within a frame, and only
  // where Imprint submits by itself.
  Result<std::string> hash() const;
  void each_brain(
      const std::function<void(const std::string& name, const imprint::game::Brain& brain)>& visit) const;
  imp_brain_stats stats() const;          // of the brain in use; counts for the report are of all brains
  std::uint64_t parameter_count() const;  // of the brain in use

 private:
  struct LearnerBrain;
  class BodyMind;

  PetBrain(BrainContext& context, const Setup& setup);
  LearnerBrain& used() { return *brains_[used_]; }
  const LearnerBrain& used() const { return *brains_[used_]; }

  BrainContext* context_;
  Setup setup_;
  std::vector<std::unique_ptr<LearnerBrain>> brains_;  // one per learner
  std::vector<std::unique_ptr<BodyMind>> bodies_;      // pets, then probes
  std::size_t used_ = 0, saving_ = 0;
  bool learning_ = true;
};

// The hash of a saved brain, computed by a separate context on the game's device. The GPU must be idle.
Result<std::string> hash_of_saved(const imp_vk_device_info& submit_device, const PetBrain::Setup& setup,
                                  const std::string& path);

}  // namespace pet
