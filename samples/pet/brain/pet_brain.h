#pragma once
// Where the game meets Imprint: all its calls are in this pair of files. Failures throw std::runtime_error
// with Imprint's own words.

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "samples/pet/brain/access.h"
#include "samples/pet/yard/learner.h"
#include "samples/pet/yard/mind.h"

namespace pet {

// A saved brain that cannot be used: damaged, or of another shape.
struct LoadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Imprint on the game's device, or with Access::cpu on none.
class BrainContext {
 public:
  struct Setup {
    Access access = Access::record;
    std::uint32_t budget_us = 500;
    std::uint32_t slice_us = 1000;
    std::string shader_cache;  // directory; empty = off
    std::function<void(const std::string&)> log;
  };
  BrainContext(const imp_vk_device_info& device, const Setup& setup);
  BrainContext(const BrainContext&) = delete;  // it lent Imprint its address, for the log
  BrainContext& operator=(const BrainContext&) = delete;

  // Compiles what the brains made so far need; nothing compiles afterwards.
  void warmup(const std::function<void(float)>& progress);

  void begin_frame(std::uint64_t frame, std::uint64_t safe_frame, double time_s);
  void send_work(VkCommandBuffer commands);
  void end_frame();
  // After the last frame, when the GPU is done with it: only then may the context be destroyed.
  void close(std::uint64_t last_frame, double time_s);

  imp_context_stats stats() const;
  const std::string& driver() const { return driver_; }  // of what computes
  imprint::game::Context& context() { return context_; }
  void log(imprint::game::LogLevel level, const char* message);  // Imprint's, from any thread

 private:
  Setup setup_;
  imprint::game::Context context_;
  std::string driver_;
};

// The brains of one or many pets of one shape: one body each, and probes that sit examinations with the same
// brain. A pet may have several brains, one for each learner, of which one is in use: the others wait, with
// all that they know.
class PetBrain {
 public:
  struct Setup {
    std::string name = "pet";
    std::uint64_t seed = 1;
    std::uint32_t pets = 1;
    std::uint32_t probes = 20;  // each pet's
    double reaction_s = 0.8;    // of the player, from the onset of an action: the centre of the credit
    std::vector<Learner> learners = {Learner::feedback};  // of each brain; the first is in use at first
  };
  PetBrain(BrainContext& context, const Setup& setup);
  ~PetBrain();
  PetBrain(const PetBrain&) = delete;
  PetBrain& operator=(const PetBrain&) = delete;

  // Minds of the brain in use, whichever that is.
  Mind& pet(std::size_t index);
  // Decides greedily and cannot be taught.
  Mind& probe(std::size_t pet, std::size_t index);
  const Setup& setup() const { return setup_; }
  // As many as it keeps; the oldest gives way.
  std::size_t snapshots_kept() const;

  Learner learner() const;
  // Within a frame or between two: nothing is made, since all brains are there. False when there is no brain
  // of that learner.
  bool use(Learner learner);

  void set_learning(bool on);
  bool learning() const { return learning_; }

  enum class Which : std::uint8_t { first, in_use };
  void save(const std::string& path, Which which);  // goes on over the next frames
  bool saved() const;                               // false while it goes on
  void load(const std::string& path);  // the first; not within a frame; throws LoadError and stays as it is
  std::uint64_t snapshot();
  void restore(std::uint64_t snapshot);  // the brain that it is of is in use then

  // Of the first: weights, moments and counters, 32 hexadecimal digits. Not within a frame, and only where
  // Imprint submits by itself.
  std::string hash() const;
  imp_brain_stats stats() const;          // of the one in use, but what is counted for the report is of all
  std::uint64_t parameter_count() const;  // of the one in use

 private:
  struct Self;
  class Body;

  Self& self() { return *selves_[used_]; }
  const Self& self() const { return *selves_[used_]; }

  Setup setup_;
  std::vector<std::unique_ptr<Self>> selves_;  // one a learner
  std::vector<std::unique_ptr<Body>> bodies_;  // pets, then probes
  std::size_t used_ = 0, saving_ = 0;
  bool learning_ = true;
};

// The hash of a brain that was saved, by a context of its own on the game's device. The GPU must be idle.
std::string hash_of_saved(const imp_vk_device_info& submit_device, const PetBrain::Setup& setup,
                          const std::string& path);

}  // namespace pet
