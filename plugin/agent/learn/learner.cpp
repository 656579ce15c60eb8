#include "plugin/agent/learn/learner.h"

#include "compute/base/text.h"

namespace imprint::agent {
namespace {

Error bad_actions(const BrainSpec& spec, const char* expected) {
  return make_error(
      ErrorCode::unsupported,
      text("brain_create: actions: found branch_count ", spec.action.branch_sizes.size(),
           " and continuous_count ", spec.action.continuous_count, ", but the ", learner_name(spec.learner),
           " learner ", expected, ". Or use the PPO learner; to imitate, the cloning learner."));
}

}  // namespace

void Learner::label(std::span<float> row, const SampleLayout& layout, float, float weight,
                    LabelSource) const {
  row[layout.weight] = weight;
}

void Learner::explore(const BrainSpec& spec, const DecisionDraw& draw, std::span<const std::int32_t>,
                      std::span<float> noise) const {
  fill_noise(noise, spec.exploration, draw);
}

Result<> check_one_branch(const BrainSpec& spec) {
  if (spec.action.branch_sizes.size() == 1 && spec.action.continuous_count == 0) return {};
  return bad_actions(spec, "rates the choices of exactly one branch. Use one branch");
}

Result<> check_branches_only(const BrainSpec& spec) {
  if (spec.action.continuous_count == 0) return {};
  return bad_actions(spec, "draws from choices only. Use branches");
}

}  // namespace imprint::agent
