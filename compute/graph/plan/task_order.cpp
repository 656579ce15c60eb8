#include "compute/graph/plan/task_order.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace imprint::graph {
namespace {

// Drops tasks that store nothing: row numbers that every writer computes itself.
void drop_idle_tasks(std::vector<Task>& tasks) {
  std::vector<std::int32_t> position(tasks.size(), -1);
  std::vector<Task> kept;
  for (std::size_t t = 0; t < position.size(); ++t) {
    Task& task = tasks[t];
    if (task.stores.empty()) continue;
    position[t] = static_cast<std::int32_t>(kept.size());
    kept.push_back(std::move(task));
  }
  for (Task& task : kept) {
    for (std::int32_t& before : task.after) before = position[static_cast<std::size_t>(before)];
    std::erase(task.after, -1);
  }
  tasks = std::move(kept);
}

// A region's dispatch has room only for small tasks, and a page is alone. Others at such a level move to a
// later level that has tasks and neither, if that is still before their consumers.
void leave_large_kernels_alone(Schedule& schedule, const FusionOptions& options) {
  std::vector<Task>& tasks = schedule.tasks;
  const auto is_large = [](const Task& task) {
    return task.kind == TaskKind::region || task.kind == TaskKind::page;
  };
  std::vector<std::int32_t> latest(tasks.size(), INT32_MAX);
  for (const Task& task : tasks)
    for (std::int32_t before : task.after)
      latest[static_cast<std::size_t>(before)] =
          std::min(latest[static_cast<std::size_t>(before)], task.level - 1);
  std::vector<std::uint8_t> has_large, has_page, has_other;
  std::vector<std::vector<std::int32_t>> regions;  // per level
  for (const Task& task : tasks) {
    const auto level = static_cast<std::size_t>(task.level);
    has_large.resize(std::max(has_large.size(), level + 1));
    has_other.resize(has_large.size());
    (is_large(task) ? has_large : has_other)[level] = 1;
    has_page.resize(has_large.size());
    if (task.kind == TaskKind::page) has_page[level] = 1;
    regions.resize(has_large.size());
    if (task.kind == TaskKind::region) regions[level].push_back(task.region);
  }
  const auto goes_beside_all = [&](const Task& task) {
    return !has_page[static_cast<std::size_t>(task.level)] &&
           std::ranges::all_of(regions[static_cast<std::size_t>(task.level)], [&](std::int32_t region) {
             return goes_beside_region(schedule.regions[static_cast<std::size_t>(region)], task,
                                       options.fold_invocations, options.region_shared_bytes);
           });
  };
  // Per level: itself or the next one that has only other tasks; beyond the last: INT32_MAX.
  std::vector<std::int32_t> suitable(has_large.size() + 1, INT32_MAX);
  for (std::size_t level = has_large.size(); level-- > 0;)
    suitable[level] =
        has_other[level] && !has_large[level] ? static_cast<std::int32_t>(level) : suitable[level + 1];
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    Task& task = tasks[t];
    if (is_large(task) || !has_large[static_cast<std::size_t>(task.level)] || latest[t] == INT32_MAX ||
        goes_beside_all(task))
      continue;
    const std::int32_t level = suitable[static_cast<std::size_t>(task.level) + 1];
    if (level <= latest[t]) task.level = level;
  }
}

// Sets each task's level to one above the highest that it waits for. Visits each task once, after those that
// it waits for. False if tasks wait for each other in a circle.
bool number_levels(std::vector<Task>& tasks) {
  std::vector<std::vector<std::int32_t>> dependents(tasks.size());
  std::vector<std::size_t> waits(tasks.size(), 0);
  std::vector<std::int32_t> ready;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    tasks[t].level = 0;
    waits[t] = tasks[t].after.size();
    for (std::int32_t before : tasks[t].after)
      dependents[static_cast<std::size_t>(before)].push_back(static_cast<std::int32_t>(t));
    if (waits[t] == 0) ready.push_back(static_cast<std::int32_t>(t));
  }
  for (std::size_t done = 0; done < ready.size(); ++done) {
    const auto before = static_cast<std::size_t>(ready[done]);
    for (std::int32_t t : dependents[before]) {
      Task& task = tasks[static_cast<std::size_t>(t)];
      task.level = std::max(task.level, tasks[before].level + 1);
      if (--waits[static_cast<std::size_t>(t)] == 0) ready.push_back(t);
    }
  }
  return ready.size() == tasks.size();
}

void sort_by_level(Schedule& schedule) {
  std::vector<Task>& tasks = schedule.tasks;
  std::vector<std::int32_t> order(tasks.size()), position(tasks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  // Within a level, tasks that share dispatches come first, then regions, then pages, which would part them.
  std::ranges::stable_sort(order, {}, [&](std::int32_t t) {
    const Task& task = tasks[static_cast<std::size_t>(t)];
    return std::pair(task.level, task.kind == TaskKind::page ? 2 : task.kind == TaskKind::region ? 1 : 0);
  });
  for (std::size_t i = 0; i < order.size(); ++i)
    position[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
  std::vector<Task> sorted;
  for (std::int32_t t : order) {
    Task& task = tasks[static_cast<std::size_t>(t)];
    for (std::int32_t& before : task.after) before = position[static_cast<std::size_t>(before)];
    schedule.level_count = std::max(schedule.level_count, task.level + 1);
    sorted.push_back(std::move(task));
  }
  tasks = std::move(sorted);
}

}  // namespace

Result<> order_tasks(Schedule& schedule, const FusionOptions& options) {
  std::vector<Task>& tasks = schedule.tasks;
  drop_idle_tasks(tasks);
  for (const Task& task : tasks) count_steps(options, 1 + static_cast<std::int64_t>(task.after.size()));
  if (!number_levels(tasks))
    return make_error(ErrorCode::internal,
                      "schedule: found a cycle, expected updates that do not wait for each other");
  std::vector<std::uint8_t> waited_for(tasks.size(), 0);
  std::int32_t last = 0;
  for (const Task& task : tasks) {
    last = std::max(last, task.level);
    for (std::int32_t before : task.after) waited_for[static_cast<std::size_t>(before)] = 1;
  }
  leave_large_kernels_alone(schedule, options);
  for (std::size_t t = 0; options.writes_late && t < tasks.size(); ++t)
    if (!waited_for[t] && std::ranges::all_of(tasks[t].stores, [](const Store& store) {
          return store.place.kind == PlaceKind::variable;
        }))
      tasks[t].level = last;
  sort_by_level(schedule);
  return {};
}

}  // namespace imprint::graph
