#include "compute/graph/plan/task_links.h"

#include <algorithm>

namespace imprint::graph {

std::int32_t TaskLinks::add(Task task) {
  schedule_.tasks.push_back(std::move(task));
  states_.emplace_back();
  dependents_.emplace_back();
  return static_cast<std::int32_t>(schedule_.tasks.size()) - 1;
}

void TaskLinks::add_read(std::int32_t t, const Read& read) {
  step();
  std::vector<Read>& reads = task(t).reads;
  const auto [known, fresh] =
      read_position_.try_emplace(pair_key(t, read.node), static_cast<std::int32_t>(reads.size()));
  if (!fresh) {
    reads[at(known->second)].aligned = reads[at(known->second)].aligned && read.aligned;
    return;
  }
  reads.push_back(read);
  if (graph_[read.node].op != Op::variable) return;
  VariableLinks& links = links_of(schedule_.place[at(read.node)].index);
  links.readers.insert(t);
  links.node = read.node;
}

void TaskLinks::add_order(std::int32_t before, std::int32_t t) {
  step();
  Task& later = task(t);
  if (orders_.insert(pair_key(t, before))) {
    later.after.push_back(before);
    dependents_[at(before)].push_back(t);
    raise(t, states_[at(before)].rank + 1);
  }
  later.level = std::max(later.level, task(before).level + 1);
}

// Tasks that wait for it rise too. There are none while tasks are added in order. A rank beyond the number of
// tasks means that they wait in a circle, which order_tasks() reports.
void TaskLinks::raise(std::int32_t t, std::int32_t rank) {
  if (states_[at(t)].rank < rank && dependents_[at(t)].empty()) {
    step();
    if (rank <= static_cast<std::int32_t>(states_.size())) states_[at(t)].rank = rank;
    return;
  }
  std::vector<std::pair<std::int32_t, std::int32_t>> stack{{t, rank}};
  while (!stack.empty()) {
    const auto [raised, least] = stack.back();
    stack.pop_back();
    step();
    if (states_[at(raised)].rank >= least || least > static_cast<std::int32_t>(states_.size())) continue;
    states_[at(raised)].rank = least;
    for (std::int32_t dependent : dependents_[at(raised)]) stack.emplace_back(dependent, least + 1);
  }
}

void TaskLinks::add_store(std::int32_t t, const Store& store) {
  task(t).stores.push_back(store);
  if (store.place.kind == PlaceKind::variable) links_of(store.place.index).writers.insert(t);
}

TaskLinks::VariableLinks& TaskLinks::links_of(std::int32_t variable) {
  if (variables_.size() <= at(variable)) variables_.resize(at(variable) + 1);
  return variables_[at(variable)];
}

std::vector<std::int32_t> TaskLinks::readers_of_variable(std::int32_t variable) const {
  if (variables_.size() <= at(variable)) return {};
  return {variables_[at(variable)].readers.begin(), variables_[at(variable)].readers.end()};
}

std::vector<std::int32_t> TaskLinks::writers_of_variable(std::int32_t variable) const {
  if (variables_.size() <= at(variable)) return {};
  return {variables_[at(variable)].writers.begin(), variables_[at(variable)].writers.end()};
}

const Read* TaskLinks::read_of_variable(std::int32_t t, std::int32_t variable) const {
  if (variables_.size() <= at(variable) || !variables_[at(variable)].readers.contains(t)) return nullptr;
  const std::int32_t position = read_position_.at(pair_key(t, variables_[at(variable)].node));
  return &schedule_.tasks[at(t)].reads[at(position)];
}

bool TaskLinks::any_waits_for(std::span<const std::int32_t> tasks, std::int32_t on) const {
  if (!is_waited_for(on)) return std::ranges::find(tasks, on) != tasks.end();
  std::vector<std::int32_t> stack(tasks.begin(), tasks.end());
  NumberSet seen;
  while (!stack.empty()) {
    const std::int32_t t = stack.back();
    stack.pop_back();
    step();
    if (t == on) return true;
    if (states_[at(t)].rank <= states_[at(on)].rank || !seen.insert(t)) continue;
    for (std::int32_t before : schedule_.tasks[at(t)].after) stack.push_back(before);
  }
  return false;
}

void TaskLinks::update_host(std::int32_t t, bool is_open) {
  const Task& own = task(t);
  TaskState& state = states_[at(t)];
  const auto each = [&](std::size_t first, std::size_t last, const auto& change) {
    for (std::size_t i = first; i < last; ++i)
      if (graph_[own.reads[i].node].element_count() > 1)
        change(hosts_[{own.reads[i].node, own.element_count}]);
    step(static_cast<std::int64_t>(last - first));
  };
  if (state.host_reads > 0 && (!is_open || state.host_level != own.level)) {
    each(0, state.host_reads, [&](Hosts& hosts) { hosts.erase({state.host_level, t}); });
    state.host_reads = 0;
  }
  if (!is_open) return;
  each(state.host_reads, own.reads.size(), [&](Hosts& hosts) { hosts.emplace(own.level, t); });
  state.host_level = own.level;
  state.host_reads = own.reads.size();
}

std::int32_t TaskLinks::highest_host(NodeIndex read, std::int64_t element_count) const {
  step();
  const auto found = hosts_.find({read, element_count});
  return found == hosts_.end() || found->second.empty() ? -1 : found->second.rbegin()->second;
}

}  // namespace imprint::graph
