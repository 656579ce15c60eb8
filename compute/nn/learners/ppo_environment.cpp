// Ppo with environments on the device.

#include "compute/base/text.h"
#include "compute/nn/learners/ppo.h"

namespace imprint::nn {

Result<> Ppo::validate(const Environments& environments) const {
  const auto refuse = [&](ErrorCode code, const std::string& text) {
    return make_error(code, "ppo '" + options_.name + "' in environment '" + environments.environment().name +
                                "': " + text);
  };
  if (options_.masked)
    return refuse(ErrorCode::unsupported, "found masked choices. Environments have no masks.");
  if (environments.environment().observations != options_.observations)
    return refuse(ErrorCode::invalid_argument, text("found ", environments.environment().observations,
                                                    " observations, expected ", options_.observations));
  if (environments.environment().action.branches != options_.action.branches ||
      environments.environment().action.continuous != options_.action.continuous)
    return refuse(ErrorCode::invalid_argument,
                  "found other actions than the learner's, expected equal action spaces");
  return {};
}

Result<ProgramDescription> Ppo::start(const Environments& environments) const {
  IMPRINT_CHECK(validate(environments));
  if (environments.count() != options_.agents)
    return make_error(
        ErrorCode::invalid_argument,
        text("ppo '", options_.name, "': found ", environments.count(), " copies of environment '",
             environments.environment().name, "', expected ", options_.agents, ", one per agent"));
  ProgramDescription program{.name = options_.name + ".start"};
  const Environments::Transition begun = environments.start();
  environments.assign(begun, program.updates);
  Experience seen;
  seen.observation = begun.observation;
  observe(seen, program.updates);
  return program;
}

Result<ProgramPart> Ppo::rollout(const Environments& environments) const {
  IMPRINT_CHECK(start(environments));
  ProgramPart part{{.name = "rollout"}, static_cast<std::uint32_t>(options_.steps)};
  std::vector<Update>& updates = part.description.updates;
  const Environments::Transition step = environments.advance(act(remembered(), updates));
  environments.assign(step, updates);
  observe({step.observation, step.reward, step.terminated, step.truncated,
           environments.environment().step_limit > 0 ? step.last_observation : Tensor(), Tensor()},
          updates);
  return part;
}

Result<ProgramSequence> Ppo::judge(const Environments& environments, std::uint32_t turns) const {
  IMPRINT_CHECK(validate(environments));
  ProgramSequence sequence{.name = options_.name + ".judge"};
  const Variable sum = Variable::zeros(environments.environment().name + ".first_return",
                                       {environments.count()}),
                 over = Variable::zeros(environments.environment().name + ".over", {environments.count()});
  ProgramPart first{
      {.name = "start",
       .updates = {Update::assign(sum, zeros(sum.shape())), Update::assign(over, zeros(over.shape()))}},
      1};
  environments.assign(environments.start(), first.description.updates);
  sequence.parts.push_back(std::move(first));

  ProgramPart turn{{.name = "turn"}, turns};
  Tensor observation = environments.observation();
  if (options_.normalise_observations) observation = normalise(observation, observation_moments_.now());
  const Environments::Transition step =
      environments.advance(distribution(actor_, actor_.trunk(observation), Tensor()).most_likely());
  environments.assign(step, turn.description.updates);
  const Tensor ended = cast(logical_or(step.terminated, step.truncated), DType::float32);
  turn.description.updates.push_back(Update::assign(sum, sum.value() + step.reward * (1.0f - over.value())));
  turn.description.updates.push_back(Update::assign(over, maximum(over.value(), ended)));
  sequence.parts.push_back(std::move(turn));
  sequence.parts.push_back({{.name = "mean", .outputs = {mean(sum.value(), {0}, true)}}, 1});
  return sequence;
}

}  // namespace imprint::nn
