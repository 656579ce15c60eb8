#pragma once
// What the learning table is made of: experiments with the pet game, each a row of figures against bars.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "samples/pet/run.h"

namespace learning {

struct Row {
  std::string experiment;
  std::string measured;  // "98.2 %"
  std::string bar;       // ">= 85 %"
  bool passed = false;
};

struct Plan {
  std::string device;
  bool fast = false;
  bool validation = false;
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 10;  // so many, one after the other
  std::uint64_t last_seed() const { return first_seed + seeds - 1; }
  std::vector<std::string> only;  // names of experiments; empty = all
};

class Table {
 public:
  explicit Table(const Plan& plan);

  // Runs what the plan asks for; rows are printed as they come. True when all passed.
  bool run();
  const std::vector<Row>& rows() const { return rows_; }

 private:
  // One game from start to end, as the options say. between is called after every frame.
  struct Played {
    pet::Report report;
    std::vector<std::vector<pet::Action>> exam;
  };
  using Between = std::function<void(pet::Game&)>;
  Played play(pet::Options options, const Between& between = {});
  std::vector<pet::Report> play_seeds(pet::TeacherKind teacher, double seconds,
                                      pet::Learner learner = pet::Learner::feedback);

  void learning_off();
  void demonstration();
  void praise_only();
  void careless();
  void retention();
  void save_and_load();
  void undo();
  void then();
  void same_hash();
  void replayed_log();
  void kennel();
  void sofa();
  void lure();
  void learners();
  void switched();

  pet::Options options(std::uint64_t seed, pet::TeacherKind teacher, double seconds) const;
  void row(const std::string& experiment, const std::string& measured, const std::string& bar, bool passed);
  void at_least(const std::string& experiment, double value, double bar);

  Plan plan_;
  std::unique_ptr<pet::VulkanHost> host_;  // null on the processor
  std::vector<Row> rows_;
  std::vector<std::string> complaints_;
};

}  // namespace learning
