#include "plugin/agent/learn/learn_graph.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace imprint::agent {

Result<Program> LearnGraph::compile(Runtime& runtime) const {
  if (sequence.parts.empty()) return Program::compile(runtime, description);
  return Program::compile(runtime, sequence);
}

Result<> LearnGraph::bake(Baker& baker, Baker::Groups groups, std::span<const Variable> apart) const {
  if (sequence.parts.empty()) return baker.add(description, groups, apart);
  return baker.add(sequence, groups, apart);
}

void publish_at_end(LearnGraph& graph, const nn::Parameters& working) {
  ProgramPart first{{.name = "begin"}, 1};
  std::vector<Update>& last = graph.sequence.parts.back().description.updates;
  for (const nn::Parameter& entry : working) {
    const Variable& copy = entry.variable;
    const Variable state = Variable::zeros("published." + copy.name(), copy.shape(), copy.dtype());
    state.state()->initial = copy.state()->initial;
    first.description.updates.push_back(Update::assign(copy, state.value()));
    const auto changes =
        std::ranges::find(last, copy.state(), [](const Update& u) { return u.target.state(); });
    if (changes != last.end())
      changes->target = state;
    else
      last.push_back(Update::assign(state, copy.value()));
    graph.state.push_back({entry.name, state});
    graph.work.push_back(copy);
  }
  graph.sequence.parts.insert(graph.sequence.parts.begin(), std::move(first));
  for (ProgramRounds& rounds : graph.sequence.rounds) ++rounds.first;
}

void add_metrics(std::span<const std::pair<Metric, Tensor>> metrics, LearnGraph& graph) {
  std::vector<Tensor> columns;
  for (const auto& [metric, figure] : metrics) {
    graph.metrics.push_back(metric);
    columns.push_back(figure);
  }
  graph.description.outputs.push_back(stack(columns, 1).named("metrics"));
}

std::uint32_t learn_slots(std::uint32_t learn_period_frames) {
  constexpr std::uint32_t frames_late = 6;
  return 2 + (frames_late + learn_period_frames - 1) / learn_period_frames;
}

double max_gradient_norm(const BrainSpec& spec) {
  return spec.max_gradient_norm > 0 ? spec.max_gradient_norm : std::numeric_limits<float>::max();
}

}  // namespace imprint::agent
