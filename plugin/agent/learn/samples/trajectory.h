#pragma once
// An agent's newest steps, until they become samples of a learner that must know what each step led to. No
// GPU.
//
//   act -> (reward, credited feedback)* -> the next act, or the end of the episode -> settled -> a sample
//
// A step stays until its successor is known and credit can no longer reach it. Rewards reach only the newest
// step. People react late: praise for an action often arrives after the next one has begun. The newest step
// has no successor yet; where the trajectory is cut, it is dropped.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugin/agent/decide/agent_slot.h"

namespace imprint::agent {

struct Transition {
  Choice choice;  // what was observed and done
  double onset_s = 0;
  float reward = 0;         // with the feedback that was credited to it
  bool begins = false;      // the trajectory begins here
  bool followed = false;    // the successor is known:
  bool terminated = false;  //   none, or
  Choice next;              //   the next observation, its goal, and what was allowed
};

enum class EpisodeEnd : std::uint8_t { terminated, truncated };

class Trajectory {
 public:
  // An action begins. It is the successor of the one before.
  void act(const Choice& choice, double time_s);
  // Rewards an action (Choice::action). False: it has left the trajectory, or nothing is under way.
  bool reward(std::uint64_t action, float amount);
  bool reward_newest(float amount);
  // Ends the episode, and with it all credit. last_seen: the observation after the last action, or null: then
  // the last step of a truncated episode has no known successor and is dropped. Returns whether one was.
  bool end(EpisodeEnd end, const Choice* last_seen);
  bool cut();     // the next action does not follow from this one; whether a step was dropped
  void forget();  // drops all steps

  // The oldest step with those after it, at most `most` and to the end of its episode, once all are settled:
  // a step is when it has a successor and began more than `reach_s` ago. reach_s 0: no credit comes.
  struct Return {
    const Transition* first = nullptr;  // null: not yet
    const Transition* last = nullptr;
    std::uint32_t steps = 0;
    float reward = 0;  // discounted sum
  };
  Return returned(double time_s, double reach_s, std::uint32_t most, float discount);
  void pop();
  std::size_t size() const { return count_; }

 private:
  struct Entry {
    Transition step;
    bool sealed = false;  // its episode is over: nothing can be credited any more
  };

  Entry& at(std::size_t i) { return entries_[(first_ + i) % entries_.size()]; }  // 0: the oldest
  Entry& push();
  bool is_settled(std::size_t i, double time_s, double reach_s);
  bool is_open() { return count_ > 0 && !at(count_ - 1).step.followed; }

  // A ring. Once warm a step allocates nothing: entries keep their memory for later steps.
  std::vector<Entry> entries_;
  std::size_t first_ = 0, count_ = 0;
  bool begins_ = true;
};

}  // namespace imprint::agent
