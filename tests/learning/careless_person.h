#pragma once
// A person teaches a creature by words, and some words are wrong: through the C interface, on device cpu.
//
// The creature sees 40 numbers and hears one of 8 commands; one of 12 actions is right. The right action
// depends on the command, and with more than one situation on the signs of the first numbers too. The others
// say nothing. A command stands until its action was right, at most 8 actions. Each action is followed by a
// word with probability one half, 0.5 to 1.5 s after its onset.

#include <cstdint>
#include <string>
#include <vector>

namespace imprint::trials {

struct CarelessPerson {
  std::uint64_t seed = 1;
  double wrong = 0.2;            // share of the words
  bool demonstrates = false;     // first each command once, in each situation
  std::uint32_t situations = 2;  // 1, 2, 4
  double action_s = 1;           // from one action to the next
  double minutes = 30;
  std::vector<double> checks = {10, 30};  // minutes
};

// Shares of right answers to commands in new observations, in 0 to 1.
struct CarelessCheck {
  double minutes = 0;
  double learner = 0;  // greedy
  double ridge = 0;    // ridge regression of words on the observation, one for each command and action
  // Best answers from the same words, for an observer who knows that one number's sign matters, but not
  // which, and the share of wrong words. No learner does better from these words.
  double bayes = 0;
  std::uint32_t words = 0;
  double praise = 0;       // share of the words
  double reliability = 0;  // imp_brain_stats
};

// Throws std::runtime_error with the failure's text.
std::vector<CarelessCheck> teach_carelessly(const CarelessPerson& person);

struct CarelessRow {
  std::string key, what;
  CarelessPerson person;
  std::vector<double> bars;  // of the learner's mean share at the checks
};
std::vector<CarelessRow> careless_rows();

}  // namespace imprint::trials
