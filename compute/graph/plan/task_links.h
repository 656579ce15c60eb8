#pragma once
// Which tasks read, write and wait for what, kept up to date while a schedule grows.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/number_set.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

// Tasks change through this class only. Each question costs what it answers, not what the schedule has.
class TaskLinks {
 public:
  TaskLinks(const Graph& graph, Schedule& schedule, std::int64_t* steps)
      : graph_(graph), schedule_(schedule), steps_(steps) {}

  // Returns its position.
  std::int32_t add(Task task);
  // Adds a read. If the task reads the node already, the read stays aligned only if both are.
  void add_read(std::int32_t t, const Read& read);
  // `t` runs after `before`, and its level rises above it.
  void add_order(std::int32_t before, std::int32_t t);
  void add_store(std::int32_t t, const Store& store);

  // ---- variables, by position in Schedule::variables ----

  std::vector<std::int32_t> readers_of_variable(std::int32_t variable) const;  // ascending
  std::vector<std::int32_t> writers_of_variable(std::int32_t variable) const;  // ascending
  const Read* read_of_variable(std::int32_t t, std::int32_t variable) const;   // null: none

  // ---- order ----

  bool is_waited_for(std::int32_t t) const { return !dependents_[at(t)].empty(); }
  // Whether any of the tasks is `on` or waits for it, directly or not. Walks back from all of them together,
  // only through tasks of a higher rank than `on`.
  bool any_waits_for(std::span<const std::int32_t> tasks, std::int32_t on) const;

  // ---- hosts: maps that further values may join ----

  // Lists the task under what it reads, or removes it when it is full. Call after its members or reads
  // change.
  void update_host(std::int32_t t, bool is_open);
  // The open map of `element_count` elements that reads the node and has the highest level; of equal levels
  // the latest. -1: none.
  std::int32_t highest_host(NodeIndex read, std::int64_t element_count) const;

 private:
  // Level and position. std::set finds the highest in constant time and removes any in logarithmic time.
  using Hosts = std::set<std::pair<std::int32_t, std::int32_t>>;
  struct TaskState {
    std::int32_t rank = 0;  // higher than that of every task that it waits for
    std::int32_t host_level = -1;
    std::size_t host_reads = 0;  // reads under which it is listed as a host, from the first
  };
  struct VariableLinks {
    NodeIndex node = -1;
    std::set<std::int32_t> readers, writers;
  };

  Task& task(std::int32_t t) { return schedule_.tasks[at(t)]; }
  VariableLinks& links_of(std::int32_t variable);
  void raise(std::int32_t t, std::int32_t rank);
  void step(std::int64_t count = 1) const {
    if (steps_) *steps_ += count;
  }
  static std::int64_t pair_key(std::int32_t a, std::int32_t b) {
    return std::int64_t{a} << 32 | static_cast<std::uint32_t>(b);
  }

  const Graph& graph_;
  Schedule& schedule_;
  std::int64_t* steps_;
  std::vector<TaskState> states_;                                 // per task
  std::vector<std::vector<std::int32_t>> dependents_;             // per task: those that wait for it
  std::unordered_map<std::int64_t, std::int32_t> read_position_;  // by task and node
  NumberSet orders_;                                              // by task and what it waits for
  std::vector<VariableLinks> variables_;                          // per variable, as far as used
  std::map<std::pair<NodeIndex, std::int64_t>, Hosts> hosts_;     // by read node and element count
};

}  // namespace imprint::graph
