#include "plugin/agent/learn/learn_graph.h"

#include <limits>

namespace imprint::agent {

Result<Program> LearnGraph::compile(Runtime& runtime) const {
  if (sequence.parts.empty()) return Program::compile(runtime, description);
  return Program::compile(runtime, sequence);
}

Result<> LearnGraph::bake(Baker& baker, Baker::Groups groups, std::span<const Variable> apart) const {
  if (sequence.parts.empty()) return baker.add(description, groups, apart);
  return baker.add(sequence, groups, apart);
}

std::uint32_t learn_slots(std::uint32_t learn_period_frames) {
  constexpr std::uint32_t frames_late = 6;
  return 2 + (frames_late + learn_period_frames - 1) / learn_period_frames;
}

double max_gradient_norm(const BrainSpec& spec) {
  return spec.max_gradient_norm > 0 ? spec.max_gradient_norm : std::numeric_limits<float>::max();
}

}  // namespace imprint::agent
