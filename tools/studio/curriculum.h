#pragma once
// Lessons by measured success, and parameters of worlds that are drawn for each episode. No MPI: all ranks
// keep equal copies, since they get the same scores.
//
// JSON, of which every part may be left out:
//
//   {"parameters": {"length": {"uniform": [0.3, 0.8]},      a number within
//                   "push": {"normal": [10, 0.5]},          mean, deviation
//                   "mass": {"grid": [0.1, 0.2]},           one of them
//                   "wind": {"adaptive": [0, 5]},           uniform within a range that grows with success
//                   "gravity": 9.8},
//    "lessons": [{"name": "short", "parameters": {"length": 0.3}, "score": 200, "episodes": 50}, {"name":
//    "all"}], "adapt": {"score": 200, "episodes": 50, "step": 0.1}}
//
// "uniform" has the lower number first. A lesson's name has no comma, quote or line break, since it stands in
// curve.csv. Its parameters replace those above. It is over when the mean score of `episodes` episodes of all
// games reaches `score`; the last one has no end. An adaptive range begins as its first number alone. Each
// time that the mean of "adapt"'s episodes reaches its score, the range grows by `step` of its whole, a
// number above 0 and at most 1. It shrinks where the score is missed by more than half of its size.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compute/base/result.h"

namespace imprint::studio {

class Curriculum {
 public:
  // Bounds for a text of n bytes: time O(n log n), memory 64 n + 64 KiB. Errors: not_found, io, corrupt_file
  // (with the field).
  static Result<Curriculum> read(const std::string& path);
  static Result<Curriculum> parse(const std::string& json);

  bool empty() const { return parameters_.empty() && lessons_.empty(); }
  bool has_parameters() const;  // of any lesson
  // Parameters of one episode: the same for the same numbers and state. episode: since seed.
  std::map<std::string, double> draw(std::uint64_t seed, std::uint64_t episode) const;
  // Scores of all games since the call before. True: a lesson ended or a range changed.
  bool take(double score_sum, double episodes);

  std::size_t lesson() const { return lesson_; }
  const std::string& lesson_name() const;  // "" without lessons
  double reach() const { return reach_; }  // of adaptive ranges: 0 .. 1

  // For checkpoints.
  std::vector<double> state() const {
    return {static_cast<double>(lesson_), reach_, sum_, count_, adapt_sum_, adapt_count_};
  }
  static constexpr std::size_t kStateNumbers = 6;
  // From a file: numbers that no run has are moved to the nearest that one may have.
  void set_state(const std::vector<double>& state);

 private:
  struct Parameter {
    enum class Kind : std::uint8_t { constant, uniform, normal, grid, adaptive };
    Kind kind = Kind::constant;
    std::vector<double> numbers;
  };
  using Parameters = std::map<std::string, Parameter>;
  struct Lesson {
    std::string name;
    Parameters parameters;
    double score = 0, episodes = 50;
  };
  struct Reader;  // of the JSON

  Parameters parameters_;
  std::vector<Lesson> lessons_;
  double adapt_score_ = 0, adapt_episodes_ = 50, adapt_step_ = 0.1;
  std::size_t lesson_ = 0;
  double reach_ = 0, sum_ = 0, count_ = 0, adapt_sum_ = 0, adapt_count_ = 0;
};

}  // namespace imprint::studio
