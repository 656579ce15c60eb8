#include "compute/graph/plan/workgroups.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "compute/graph/schedule/cost.h"

namespace imprint::graph {
namespace {

class Chooser {
 public:
  Chooser(const Graph& graph, const FusionOptions& options, const std::vector<std::uint8_t>& materialized)
      : graph_(graph), options_(options), materialized_(materialized) {}

  void choose_map(Task& task) const {
    task.invocations = options_.map_invocations;
    if (options_.fuse)
      task.invocations = choose_power(task, kernel_of(task) + " invocations", " invocations",
                                      options_.map_invocations, 32, options_.most_invocations);
  }

  // `folds` is not empty. Folds of one level share a dispatch if they use equal numbers of invocations. That
  // is one choice, named after the first fold.
  void choose_folds(const std::vector<Task*>& folds) const {
    for (Task* task : folds) {
      task->invocations = options_.fold_invocations;
      if (task->kind == TaskKind::row_fold) task->row_lanes = usual_lanes(*task);
    }
    if (!options_.fuse) return;
    const std::string kernel = folds.size() == 1 ? kernel_of(*folds[0]) : kernel_of(folds);
    const std::int32_t chosen = choose_power(*folds[0], kernel + " invocations", " invocations",
                                             options_.fold_invocations, 32, options_.most_invocations);
    for (Task* task : folds) {
      task->invocations = chosen;
      if (task->kind == TaskKind::row_fold)
        task->row_lanes =
            choose_power(*task, kernel_of(*task) + " lanes", " lanes a row", task->row_lanes, 1, chosen);
    }
  }

 private:
  std::int32_t usual_lanes(const Task& task) const {
    const auto wanted =
        static_cast<std::uint64_t>(fold_length(graph_, task.anchor) / options_.row_lane_elements);
    return static_cast<std::int32_t>(std::clamp<std::uint64_t>(
        std::bit_ceil(wanted), 1, static_cast<std::uint64_t>(options_.fold_invocations)));
  }

  static std::vector<NodeIndex> nodes_of(const Task& task) {
    std::vector<NodeIndex> nodes = task.members;
    if (task.kind == TaskKind::row_fold) nodes.insert(nodes.end(), task.folds.begin(), task.folds.end());
    return nodes;
  }

  std::string kernel_of(const Task& task) const {
    return std::string(task_kind_name(task.kind)) + " " + std::to_string(task.element_count) + " " +
           signature_down_to_memory(graph_, materialized_, nodes_of(task));
  }
  std::string kernel_of(const std::vector<Task*>& folds) const {
    std::vector<NodeIndex> nodes;
    for (const Task* task : folds) {
      const std::vector<NodeIndex> own = nodes_of(*task);
      nodes.insert(nodes.end(), own.begin(), own.end());
    }
    return std::to_string(folds.size()) + " folds together " +
           signature_down_to_memory(graph_, materialized_, nodes);
  }

  // Chooses the usual number, or one up to four times smaller or larger.
  std::int32_t choose_power(Task& task, const std::string& kernel, const std::string& unit,
                            std::int32_t usual, std::int32_t least, std::int32_t most) const {
    std::vector<Variant> variants;
    std::vector<std::int32_t> numbers;
    for (std::int32_t number = std::min(usual, most); number >= std::max(least, usual / 4); number /= 2)
      numbers.push_back(number);
    for (std::int32_t number = 2 * usual; number <= std::min(most, 4 * usual); number *= 2)
      numbers.push_back(number);
    if (numbers.empty()) return std::min(usual, most);
    for (std::int32_t number : numbers)
      variants.push_back(
          {std::to_string(number) + unit, std::abs(std::log2(static_cast<double>(number) / usual))});
    return numbers[choose_variant(options_.variants, kernel, variants, task.choices)];
  }

  const Graph& graph_;
  const FusionOptions& options_;
  const std::vector<std::uint8_t>& materialized_;
};

}  // namespace

void choose_workgroups(const Graph& graph, const FusionOptions& options, Schedule& schedule) {
  const Chooser chooser(graph, options, schedule.materialized);
  std::vector<Task*> folds;  // of one level; tasks are in order of level
  for (Task& task : schedule.tasks) {
    if (!folds.empty() && folds[0]->level != task.level) chooser.choose_folds(std::exchange(folds, {}));
    if (shares_folds(task.kind))
      folds.push_back(&task);
    else if (task.kind == TaskKind::map && task.element_count >= kLargeMap)
      chooser.choose_map(task);
  }
  if (!folds.empty()) chooser.choose_folds(folds);
}

}  // namespace imprint::graph
