#pragma once
// The learning table: experiments with the pet game. Each gives rows of figures against bars.

#include <functional>
#include <memory>
#include <string>
#include <utility>
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
  std::uint64_t seeds = 10;  // number of consecutive seeds
  std::uint64_t last_seed() const { return first_seed + seeds - 1; }
  std::vector<std::string> only;  // names of experiments; empty = all
};

class Table {
 public:
  static pet::Result<Table> create(const Plan& plan);

  // Runs the plan's experiments and prints rows as they come. True when all rows passed.
  bool run();
  const std::vector<Row>& rows() const { return rows_; }

 private:
  Table(const Plan& plan, std::unique_ptr<pet::VulkanHost> host) : plan_(plan), host_(std::move(host)) {}
  // One game from start to end. between is called after every frame. An error ends the program.
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
  void wrong_words();
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
  std::unique_ptr<pet::VulkanHost> host_;  // null with --device cpu
  std::vector<Row> rows_;
  std::vector<std::string> complaints_;
};

}  // namespace learning
