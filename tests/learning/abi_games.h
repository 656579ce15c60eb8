#pragma once
// The games of the learners' table beside the classic control problems.

#include <cstdint>
#include <imprint/imprint.hpp>
#include <memory>
#include <vector>

#include "tests/learning/abi_trial.h"
#include "tools/trials/environments.h"

namespace imprint::trials {

// The trial's game. Throws std::runtime_error for an unknown one.
std::unique_ptr<Environment> make_game(const AbiTrial& trial);
// The encoders that suit it. Empty: one vector.
std::vector<imp_stream> streams_of(const AbiTrial& trial);

// The opponent of a fight takes another habit.
void change_habit(Environment& fight);
// Score of a mean reward: 0 = random play, 1 = the Bayes answer.
double fight_score(double mean_reward);

}  // namespace imprint::trials
