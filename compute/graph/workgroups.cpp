#include "compute/graph/workgroups.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "compute/graph/cost.h"

namespace imprint {
namespace {

class Chooser {
 public:
  Chooser(const Graph& graph, const FusionOptions& options, const std::vector<std::uint8_t>& materialized)
      : graph_(graph), options_(options), materialized_(materialized) {}

  void choose(Task& task) const {
    const bool is_large_map = task.kind == TaskKind::map && task.element_count >= kLargeMap;
    if (!shares_folds(task.kind) && !is_large_map) return;
    const std::int32_t usual = is_large_map ? options_.map_invocations : options_.fold_invocations;
    task.invocations = usual;
    if (task.kind == TaskKind::row_fold) task.row_lanes = usual_lanes(task);
    if (!options_.fuse) return;
    const std::string kernel = std::string(task_kind_name(task.kind)) + " " + std::to_string(task.element_count) + " " +
                               signature_down_to_memory(graph_, materialized_, task.kind == TaskKind::row_fold ? row_nodes(task) : task.members);
    task.invocations = choose_power(task, kernel + " invocations", " invocations", usual, 32, options_.most_invocations);
    if (task.kind == TaskKind::row_fold) task.row_lanes = choose_power(task, kernel + " lanes", " lanes a row", task.row_lanes, 1, task.invocations);
  }

 private:
  std::int32_t usual_lanes(const Task& task) const {
    const auto wanted = static_cast<std::uint64_t>(fold_length(graph_, task.anchor) / options_.row_lane_elements);
    return static_cast<std::int32_t>(std::clamp<std::uint64_t>(std::bit_ceil(wanted), 1, static_cast<std::uint64_t>(options_.fold_invocations)));
  }

  static std::vector<NodeIndex> row_nodes(const Task& task) {
    std::vector<NodeIndex> nodes = task.members;
    nodes.insert(nodes.end(), task.folds.begin(), task.folds.end());
    return nodes;
  }

  // The usual number, or a neighbour of it.
  std::int32_t choose_power(Task& task, const std::string& kernel, const std::string& unit, std::int32_t usual, std::int32_t least, std::int32_t most) const {
    std::vector<Variant> variants;
    std::vector<std::int32_t> numbers;
    for (std::int32_t number = std::min(usual, most); number >= std::max(least, usual / 4); number /= 2) numbers.push_back(number);
    for (std::int32_t number = 2 * usual; number <= std::min(most, 4 * usual); number *= 2) numbers.push_back(number);
    if (numbers.empty()) return std::min(usual, most);
    for (std::int32_t number : numbers)
      variants.push_back({std::to_string(number) + unit, std::abs(std::log2(static_cast<double>(number) / usual))});
    return numbers[choose_variant(options_.variants, kernel, variants, task.choices)];
  }

  const Graph& graph_;
  const FusionOptions& options_;
  const std::vector<std::uint8_t>& materialized_;
};

}  // namespace

void choose_workgroups(const Graph& graph, const FusionOptions& options, Schedule& schedule) {
  const Chooser chooser(graph, options, schedule.materialized);
  for (Task& task : schedule.tasks) chooser.choose(task);
}

}  // namespace imprint
