#include "compute/nn/learners/environment.h"

#include <utility>

#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

namespace {

std::string array(const char* type, const std::string& name, std::int64_t count) {
  return text(type, " ", name, "[", count, "]");
}

}  // namespace

Environments::Environments(Environment environment, std::int64_t count, std::uint64_t seed)
    : environment_(std::move(environment)), count_(count) {
  state_numbers_ = Variable::zeros(environment_.name + ".state", {count, environment_.state});
  observation_ = Variable::zeros(environment_.name + ".observation", {count, environment_.observations});
  steps_ = Variable::zeros(environment_.name + ".steps", {count, 1});
  returns_ = Variable::zeros(environment_.name + ".returns", {count});
  ended_ = Variable::zeros(environment_.name + ".ended", {count, 2});
  const std::int32_t generator[4] = {static_cast<std::int32_t>(seed), static_cast<std::int32_t>(seed >> 32),
                                     0, 0};
  generator_ = Variable(environment_.name + ".generator", {4}, std::span<const std::int32_t>(generator));
  state_.add("state", state_numbers_);
  state_.add("observation", observation_);
  state_.add("steps", steps_);
  state_.add("generator", generator_);
  state_.add("returns", returns_);
  state_.add("ended", ended_);
}

Result<> Environments::validate() const {
  if (environment_.state >= 1 && environment_.observations >= 1) return {};
  return make_error(
      ErrorCode::invalid_argument,
      text("environment '", environment_.name, "': found ", environment_.state, " floats of state and ",
           environment_.observations, " observations, expected at least 1 each"));
}

Result<> Environments::validate(const Actions& actions) const {
  IMPRINT_CHECK(validate());
  const auto branches = static_cast<std::int64_t>(environment_.action.branches.size());
  const auto fits = [&](const Tensor& given, DType dtype, std::int64_t width) {
    return given.dtype() == dtype && given.shape() == Shape{count_, width};
  };
  const auto refuse = [&](const Tensor& given, const char* what, std::int64_t width) {
    if (!given.ok() && !is_empty(given)) return given.error();
    return make_error(ErrorCode::shape_mismatch,
                      text("environment '", environment_.name, "': found ",
                           (given.ok() ? describe(given) : std::string("no actions")), ", expected ", what,
                           " [", count_, ", ", width, "]"));
  };
  if (branches > 0 && !fits(actions.discrete, DType::int32, branches))
    return refuse(actions.discrete, "int32 choices", branches);
  if (environment_.action.continuous > 0 &&
      !fits(actions.continuous, DType::float32, environment_.action.continuous))
    return refuse(actions.continuous, "float32 numbers", environment_.action.continuous);
  return {};
}

// A result's columns: state, observation, last observation, reward, terminated, truncated, steps.
std::string Environments::glsl(bool starts) const {
  const std::int64_t state = environment_.state, seen = environment_.observations;
  const auto branches = static_cast<std::int64_t>(environment_.action.branches.size());
  std::string parameters, arguments = "state";
  if (branches > 0) parameters += ", " + array("int", "choice", branches), arguments += ", choice";
  if (environment_.action.continuous > 0)
    parameters += ", " + array("float", "number", environment_.action.continuous), arguments += ", number";

  std::string result =
      "int world_draws;\nivec4 world_generator;\n"  // the row, seed low, seed high, step
      "float draw(float low, float high) {\n"
      "  float u = imp_uniform(world_generator.x * 256 + world_draws, 0x776f726cu, world_generator.y, "
      "world_generator.z, world_generator.w);\n"
      "  ++world_draws;\n  return low + (high - low) * u;\n}\n\n" +
      environment_.glsl + "\n";
  result += "void imp_row(int row, " + array("float", "state", state) + ", " + array("float", "steps", 1) +
            ", int generator[4]" + (starts ? "" : parameters) + ", out " +
            array("float", "result", state + 2 * seen + 4) + ") {\n";
  result += "  world_draws = 0;\n  world_generator = ivec4(row, generator[0], generator[1], generator[2]);\n";
  result += "  float reward = 0.0;\n  bool terminated = false, truncated = false;\n  float count = 0.0;\n  " +
            array("float", "last", seen) + ", " + array("", "seen", seen).substr(1) + ";\n";
  if (starts) {
    result += "  start(state);\n  observe(state, seen);\n  last = seen;\n";
  } else {
    result += "  reward = advance(" + arguments +
              ", terminated);\n  observe(state, last);\n  seen = last;\n  count = steps[0] + 1.0;\n";
    if (environment_.step_limit > 0)
      result += "  truncated = !terminated && count >= " + text(environment_.step_limit) + ".0;\n";
    result +=
        "  if (terminated || truncated) {\n    start(state);\n    observe(state, seen);\n    count = 0.0;\n  "
        "}\n";
  }
  result += "  for (int k = 0; k < " + text(state) + "; ++k) result[k] = state[k];\n";
  result += "  for (int k = 0; k < " + text(seen) + "; ++k) {\n    result[" + text(state) +
            " + k] = seen[k];\n    result[" + text(state + seen) + " + k] = last[k];\n  }\n";
  const std::int64_t end = state + 2 * seen;
  result += "  result[" + text(end) + "] = reward;\n  result[" + text(end + 1) +
            "] = float(terminated);\n  result[" + text(end + 2) + "] = float(truncated);\n  result[" +
            text(end + 3) + "] = count;\n}\n";
  return result;
}

Environments::Transition Environments::unpacked(const Tensor& packed) const {
  std::int64_t first = 0;
  const auto columns = [&](std::int64_t count) {
    return narrow(packed, 1, std::exchange(first, first + count), count);
  };
  Transition step;
  step.state = columns(environment_.state);
  step.observation = columns(environment_.observations);
  step.last_observation = columns(environment_.observations);
  step.reward = squeeze(columns(1), 1);
  step.terminated = squeeze(columns(1), 1) > 0.0f;
  step.truncated = squeeze(columns(1), 1) > 0.0f;
  step.steps = columns(1);
  step.generator = generator_next(generator_.value());
  return step;
}

Environments::Transition Environments::start() const {
  if (Result<> bad = validate(); !bad) return unpacked(Tensor(bad.error()));
  const Tensor inputs[] = {state_numbers_.value(), steps_.value(), generator_.value()};
  return unpacked(custom_rows(environment_.name + ".start", glsl(true), inputs,
                              environment_.state + 2 * environment_.observations + 4));
}

Environments::Transition Environments::advance(const Actions& actions) const {
  if (Result<> bad = validate(actions); !bad) return unpacked(Tensor(bad.error()));
  std::vector<Tensor> inputs{state_numbers_.value(), steps_.value(), generator_.value()};
  if (!environment_.action.branches.empty()) inputs.push_back(actions.discrete);
  if (environment_.action.continuous > 0) inputs.push_back(actions.continuous);
  return unpacked(custom_rows(environment_.name + ".advance", glsl(false), inputs,
                              environment_.state + 2 * environment_.observations + 4));
}

void Environments::assign(const Transition& step, std::vector<Update>& updates) const {
  updates.push_back(Update::assign(state_numbers_, step.state));
  updates.push_back(Update::assign(observation_, step.observation));
  updates.push_back(Update::assign(steps_, step.steps));
  updates.push_back(Update::assign(generator_, step.generator));
  const Tensor over = cast(logical_or(step.terminated, step.truncated), DType::float32);
  const Tensor returned = returns_.value() + step.reward;
  updates.push_back(Update::assign(returns_, returned * (1.0f - over)));
  updates.push_back(Update::assign(ended_, ended_.value() + stack({returned * over, over}, 1)));
}

}  // namespace imprint::nn
