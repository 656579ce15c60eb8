#include "compute/graph/plan/workgroups.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "compute/graph/schedule/cost.h"

namespace imprint::graph {
namespace {

// Terms of a column per lane, where few workgroups fold columns.
constexpr std::int64_t kColumnLaneTerms = 32;

class Chooser {
 public:
  Chooser(const Graph& graph, const FusionOptions& options, const std::vector<std::uint8_t>& materialized)
      : graph_(graph), options_(options), materialized_(materialized) {}

  void choose_map(Task& task) const {
    task.invocations = options_.map_invocations;
    if (options_.fuse)
      task.invocations =
          choose_power(task, kernel_of(task) + " invocations", " invocations", options_.map_invocations,
                       std::max(options_.map_invocations / 4, 32), options_.most_invocations);
  }

  // `folds` is not empty. Folds of one level share a dispatch if they use equal numbers of invocations. That
  // is one choice, named after the first fold. beside_region: the level has a region, whose dispatch takes
  // folds of the usual number only.
  void choose_folds(const std::vector<Task*>& folds, bool beside_region) const {
    const std::int32_t usual = beside_region ? options_.fold_invocations : usual_invocations(folds);
    for (Task* task : folds) {
      task->invocations = usual;
      if (task->kind == TaskKind::row_fold) task->row_lanes = usual_lanes(*task);
    }
    if (!options_.fuse) return;
    const std::string kernel = folds.size() == 1 ? kernel_of(*folds[0]) : kernel_of(folds);
    const std::int32_t chosen =
        choose_power(*folds[0], kernel + " invocations", " invocations", usual,
                     std::max(options_.fold_invocations / 4, 32), options_.most_invocations);
    for (Task* task : folds) {
      task->invocations = chosen;
      if (task->kind == TaskKind::row_fold)
        task->row_lanes = choose_power(*task, kernel_of(*task) + " lanes", " lanes a row", task->row_lanes,
                                       std::max(task->row_lanes / 4, 1), chosen);
    }
  }

 private:
  // A few long columns: more lanes share each, since their workgroups leave most of a GPU idle.
  std::int32_t usual_invocations(const std::vector<Task*>& folds) const {
    if (options_.pages.processor) return options_.fold_invocations;
    auto usual = static_cast<std::uint32_t>(options_.fold_invocations);
    const std::uint32_t most = std::bit_floor(static_cast<std::uint32_t>(options_.most_invocations));
    for (const Task* task : folds) {
      if (task->kind != TaskKind::column_fold || task->element_count >= kFoldColumns * options_.region_groups)
        continue;
      const std::int64_t lanes =
          std::min(terms_of(task->anchor) / kColumnLaneTerms, fold_length(graph_, task->anchor));
      const auto wanted = static_cast<std::uint32_t>(std::min<std::int64_t>(lanes * kFoldColumns, most));
      usual = std::max(usual, std::bit_ceil(wanted));
    }
    return static_cast<std::int32_t>(usual);
  }

  // With those of a fold that each of its terms computes: a long fold is split, and its parts may stay
  // together.
  std::int64_t terms_of(NodeIndex fold) const {
    std::int64_t terms = 1;
    for (NodeIndex i = fold; !materialized_[at(i)] || i == fold; i = graph_[i].inputs[0]) {
      if (graph_[i].kind() == OpKind::reduce)
        terms *= fold_length(graph_, i);
      else if (graph_[i].kind() != OpKind::view)
        break;
    }
    return terms;
  }

  // Half as many where no lane then idles in the last turn of fours: rows of 384 in 32 instead of 64.
  std::int32_t usual_lanes(const Task& task) const {
    constexpr std::int64_t kFours = 4;
    const std::int64_t length = fold_length(graph_, task.anchor);
    const auto wanted = static_cast<std::uint64_t>(length / options_.row_lane_elements);
    const auto lanes = static_cast<std::int32_t>(std::clamp<std::uint64_t>(
        std::bit_ceil(wanted), 1, static_cast<std::uint64_t>(options_.fold_invocations)));
    const bool idles = lanes > 1 && length % (kFours * lanes) != 0 && length % (kFours * lanes / 2) == 0;
    return idles && !options_.pages.processor ? lanes / 2 : lanes;
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

  // Chooses the usual number, a smaller one from `least` on, or one up to four times larger.
  std::int32_t choose_power(Task& task, const std::string& kernel, const std::string& unit,
                            std::int32_t usual, std::int32_t least, std::int32_t most) const {
    std::vector<Variant> variants;
    std::vector<std::int32_t> numbers;
    for (std::int32_t number = std::min(usual, most); number >= least; number /= 2) numbers.push_back(number);
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
  bool has_region = false;   // that level
  std::int32_t level = -1;
  for (Task& task : schedule.tasks) {
    if (task.level != level && !folds.empty()) chooser.choose_folds(std::exchange(folds, {}), has_region);
    has_region = (task.level == level && has_region) || task.kind == TaskKind::region;
    level = task.level;
    if (shares_folds(task.kind))
      folds.push_back(&task);
    else if (task.kind == TaskKind::map && task.element_count >= kLargeMap)
      chooser.choose_map(task);
  }
  if (!folds.empty()) chooser.choose_folds(folds, has_region);
}

}  // namespace imprint::graph
