// Ppo where the world is on the device as well.

#include "compute/nn/ppo.h"

namespace imprint::nn {

Status Ppo::check(const Worlds& worlds) const {
  const auto refuse = [&](ErrorCode code, const std::string& text) {
    return make_error(code, "ppo '" + options_.name + "' in world '" + worlds.world().name + "': " + text);
  };
  if (options_.masked) return refuse(ErrorCode::unsupported, "a world does not say which choices are open");
  if (worlds.world().observations != options_.observations)
    return refuse(ErrorCode::invalid_argument,
                  "the world shows " + std::to_string(worlds.world().observations) +
                      " numbers, the learner expects " + std::to_string(options_.observations));
  if (worlds.world().action.branches != options_.action.branches ||
      worlds.world().action.continuous != options_.action.continuous)
    return refuse(ErrorCode::invalid_argument, "they differ in what there is to do");
  return {};
}

Result<ProgramDescription> Ppo::start(const Worlds& worlds) const {
  IMPRINT_CHECK(check(worlds));
  if (worlds.count() != options_.agents)
    return make_error(ErrorCode::invalid_argument, "ppo '" + options_.name +
                                                       "': " + std::to_string(worlds.count()) +
                                                       " copies of world '" + worlds.world().name + "' for " +
                                                       std::to_string(options_.agents) + " agents");
  ProgramDescription program{.name = options_.name + ".start"};
  const Worlds::Step begun = worlds.start();
  worlds.assign(begun, program.updates);
  Experience seen;
  seen.observation = begun.observation;
  observe(seen, program.updates);
  return program;
}

Result<ProgramPart> Ppo::rollout(const Worlds& worlds) const {
  IMPRINT_CHECK(start(worlds));
  ProgramPart part{{.name = "rollout"}, static_cast<std::uint32_t>(options_.steps)};
  std::vector<Update>& updates = part.description.updates;
  const Worlds::Step step = worlds.advance(act(remembered(), updates));
  worlds.assign(step, updates);
  observe({step.observation, step.reward, step.terminated, step.truncated,
           worlds.world().step_limit > 0 ? step.last_observation : Tensor(), Tensor()},
          updates);
  return part;
}

Result<ProgramSequence> Ppo::judge(const Worlds& worlds, std::uint32_t turns) const {
  IMPRINT_CHECK(check(worlds));
  ProgramSequence sequence{.name = options_.name + ".judge"};
  const Variable sum = Variable::zeros(worlds.world().name + ".first_return", {worlds.count()}),
                 over = Variable::zeros(worlds.world().name + ".over", {worlds.count()});
  ProgramPart first{
      {.name = "start",
       .updates = {Update::assign(sum, zeros(sum.shape())), Update::assign(over, zeros(over.shape()))}},
      1};
  worlds.assign(worlds.start(), first.description.updates);
  sequence.parts.push_back(std::move(first));

  ProgramPart turn{{.name = "turn"}, turns};
  Tensor observation = worlds.observation();
  if (options_.normalise_observations) observation = normalise(observation, observation_moments_.now());
  const Worlds::Step step = worlds.advance(distribution(actor_, observation, Tensor()).most_likely());
  worlds.assign(step, turn.description.updates);
  const Tensor ended = cast(logical_or(step.terminated, step.truncated), DType::float32);
  turn.description.updates.push_back(Update::assign(sum, sum.value() + step.reward * (1.0f - over.value())));
  turn.description.updates.push_back(Update::assign(over, maximum(over.value(), ended)));
  sequence.parts.push_back(std::move(turn));
  sequence.parts.push_back({{.name = "mean", .outputs = {mean(sum.value(), {0}, true)}}, 1});
  return sequence;
}

}  // namespace imprint::nn
