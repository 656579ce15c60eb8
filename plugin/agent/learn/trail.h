#pragma once
// What an agent did lately, on its way to become samples of a learner that has to know what came of it. No
// GPU.
//
//   act -> (reward, credited feedback)* -> the next act, or the end of the episode -> settled -> a sample
//
// A step stays on the trail until it is known what it led to and nobody can praise it any more: people react
// late, so that their word for an action comes when the next one has begun. Of the newest step nothing is
// known before the next action begins: where the chain is cut, it is dropped.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugin/agent/decide/agent_slot.h"

namespace imprint::agent {

struct Step {
  Choice choice;  // what was seen and done
  double onset_s = 0;
  float reward = 0;         // with the feedback that was credited to it
  bool begins = false;      // nothing of its episode lies before it
  bool followed = false;    // what it led to is known:
  bool terminated = false;  //   nothing, or
  Choice next;              //   what was seen then, under which goal, and what was open
};

enum class EpisodeEnd : std::uint8_t { terminated, truncated };

class Trail {
 public:
  // An action begins: it is what the one before led to.
  void act(const Choice& choice, double time_s);
  // For the seat's n-th action (Choice::action). Nothing happens where that has left the trail.
  void reward(std::uint64_t action, float amount);
  void reward_newest(float amount);
  // The episode ends, and with it all credit. last_seen: what was seen after the last action, or null: then
  // where a truncated episode would have gone on is not known, and its last step is dropped.
  void end(EpisodeEnd end, const Choice* last_seen);
  void cut();     // what follows does not follow from what was
  void forget();  // all of it

  // The oldest step, once it is followed and began longer than `reach_s` ago; null when there is none.
  const Step* settled(double time_s, double reach_s);
  void pop();

 private:
  struct Entry {
    Step step;
    bool sealed = false;  // of an episode that is over: nothing can be credited any more
  };

  Entry& at(std::size_t i) { return entries_[(first_ + i) % entries_.size()]; }  // 0: the oldest
  Entry& push();
  bool is_open() { return count_ > 0 && !at(count_ - 1).step.followed; }

  // A ring: once warm a step allocates nothing, for those that are over keep their memory for the next ones.
  std::vector<Entry> entries_;
  std::size_t first_ = 0, count_ = 0;
  bool begins_ = true;
};

}  // namespace imprint::agent
