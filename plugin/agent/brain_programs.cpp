#include "plugin/agent/brain_programs.h"

#include <optional>

#include "plugin/agent/decide/observation_copy.h"
#include "plugin/agent/keep/snapshots.h"
#include "plugin/agent/learn/training/describe_learning.h"
#include "plugin/agent/spec/network.h"
#include "plugin/agent/validate.h"

namespace imprint::agent {

Result<BrainPrograms> describe_brain(const BrainSpec& spec, const std::vector<Variable>& observations,
                                     const std::vector<Variable>& actions) {
  IMPRINT_ASSIGN(const Network network, Network::create(spec));
  SharedVariables shared{observations, actions, {}, {}};
  if (spec.has_cell())
    shared.states = Variable::zeros("states", {spec.brain_count, spec.agents_per_brain, spec.state_count()});
  if (!observations.empty() && copies_observations(spec))
    shared.observation_copies = Variable::zeros(
        "observation copies",
        {std::int64_t{spec.agent_capacity()} * copy_rows_per_agent(spec), spec.observation.width()});

  std::optional<Network> pool;
  if (spec.pool_size > 0) {
    BrainSpec entries = spec;
    entries.brain_count *= spec.pool_size;
    IMPRINT_ASSIGN(pool, Network::create(entries, "pool"));
  }
  BrainPrograms programs;
  programs.infer = describe_inference(spec, network, shared, pool ? &*pool : nullptr);
  programs.state = network.state();
  if (pool) {
    add_state(programs.state, "pool", pool->parameters());
    if (pool->log_deviation().ok()) programs.state.push_back({"pool.log_deviation", pool->log_deviation()});
  }
  if (spec.learns()) {
    IMPRINT_ASSIGN(programs.learn,
                   describe_learning(spec, network, shared.observation_copies, pool ? &*pool : nullptr));
    programs.state.insert(programs.state.end(), programs.learn->state.begin(), programs.learn->state.end());
  }
  for (const StateVariable& entry : programs.state)
    (is_replay(entry) ? programs.evictable : programs.together).push_back(entry.variable);
  if (programs.learn)
    programs.together.insert(programs.together.end(), programs.learn->work.begin(),
                             programs.learn->work.end());
  if (shared.states.ok()) programs.together.push_back(shared.states);
  if (shared.observation_copies.ok()) programs.together.push_back(shared.observation_copies);
  return programs;
}

Result<> bake_brain(Baker& baker, const BrainSpec& given, const std::vector<Variable>& observations,
                    const std::vector<Variable>& actions) {
  IMPRINT_ASSIGN(const BrainSpec spec, checked(given));
  IMPRINT_ASSIGN(const BrainPrograms programs, describe_brain(spec, observations, actions));
  std::vector<std::vector<Variable>> groups{programs.together};
  IMPRINT_CHECK(baker.add(programs.infer.description, groups));
  if (programs.learn) IMPRINT_CHECK(programs.learn->bake(baker, groups, programs.evictable));
  if (spec.snapshot_count == 0 && !spec.fall_back) return {};
  std::vector<Variable> live;
  for (const StateVariable& entry : programs.state) live.push_back(entry.variable);
  const std::vector<Variable> copies = describe_snapshot(programs.state, 0);  // all snapshots are alike
  groups.push_back(copies);
  IMPRINT_CHECK(baker.add(describe_copy(spec.name + " keep", live, copies), groups, programs.evictable));
  return baker.add(describe_copy(spec.name + " restore", copies, live), groups, programs.evictable);
}

Result<> bake_policy(Baker& baker, const PolicySpec& spec) {
  IMPRINT_ASSIGN(const std::unique_ptr<PolicyModel> model, make_policy(spec));
  const std::vector<std::vector<Variable>> groups{model->state};
  return baker.add(model->graph.description, groups);
}

Result<> bake_model(Baker& baker, const ModelSpec& spec) {
  IMPRINT_ASSIGN(const ModelProgram model, describe_model(spec));
  const std::vector<std::vector<Variable>> groups{model.state};
  return baker.add(model.description, groups);
}

}  // namespace imprint::agent
