#pragma once
// Games that rewards alone do not teach, or that have none, each with a player who masters it.

#include <cstdint>
#include <memory>

#include "tools/trials/environments.h"

namespace imprint::trials {

// A game whose player is known.
class ShownGame : public Environment {
 public:
  virtual double expert() const = 0;  // the action that the player would take now
};

// Two rooms with a wall between them. The key lies in the far corner of the first, the goal in that of the
// second; the door opens to who has the key. Observation: row, column, key, a number each. Choices: up, down,
// left, right. Reward: 1 at the goal, and nothing before it. 200 steps; chance gets there about never.
std::unique_ptr<ShownGame> make_keys();

// A lock. In each position one of four choices turns the next wheel, another one each
// time; any other resets the lock. Observation: how many wheels are turned, one number each. Reward: 1 when
// all are, and nothing before it. 60 steps; chance opens six wheels once in 4,096 tries.
std::unique_ptr<ShownGame> make_lock(std::uint32_t wheels);

// A walker in the plane, with no reward. The player walks around the middle, at a distance of 0.6. Choices: 8
// directions. Observation: place. Returns, and does not tell the brain, the share of steps that go around it
// as the player does: 1 for a step along the circle, 0 off it or the other way around.
std::unique_ptr<ShownGame> make_circle();

// Mountain car with a continuous action, and a player who always speeds up.
std::unique_ptr<ShownGame> make_shown_mountain_car();

}  // namespace imprint::trials
