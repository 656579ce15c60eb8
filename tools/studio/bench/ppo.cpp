// PPO in worlds on the device: poles, and a world that is seen as pictures.

#include <string>
#include <vector>

#include "compute/nn/learners/classic_environments.h"
#include "tools/studio/bench/bench.h"

namespace imprint::studio {
namespace {

constexpr std::int64_t kPicture = 84, kFrames = 4, kPerFrame = 3;

// Catch: a ball falls, a paddle at the bottom catches it. Observation: the ball's place and the paddle's, now
// and in the three frames before. Choice: paddle left, stay, right. Reward at the end of an episode: 1 or -1.
nn::Environment catch_world() {
  nn::Environment world{.name = "catch",
                        .glsl = R"(
void start(out float state[13]) {
  float x = draw(0.1, 0.9), paddle = draw(0.1, 0.9);
  for (int k = 0; k < 4; ++k) {
    state[3 * k] = x;
    state[3 * k + 1] = 0.0;
    state[3 * k + 2] = paddle;
  }
  state[12] = draw(-0.03, 0.03);
}

void observe(in float state[13], out float observation[12]) {
  for (int k = 0; k < 12; ++k) observation[k] = state[k];
}

float advance(inout float state[13], in int choice[1], out bool terminated) {
  for (int k = 11; k >= 3; --k) state[k] = state[k - 3];
  state[0] += state[12];
  if (state[0] < 0.0 || state[0] > 1.0) {
    state[12] = -state[12];
    state[0] = clamp(state[0], 0.0, 1.0);
  }
  state[1] += 0.04;
  state[2] = clamp(state[2] + 0.05 * float(choice[0] - 1), 0.0, 1.0);
  terminated = state[1] >= 0.96;
  return terminated ? (abs(state[0] - state[2]) < 0.1 ? 1.0 : -1.0) : 0.0;
}
)",
                        .state = 13,
                        .observations = kFrames * kPerFrame,
                        .step_limit = 200};
  world.action.branches = {3};
  return world;
}

// [n, 12] -> [n, 4, 84, 84]: the frames, drawn on the device.
Tensor drawn(const Tensor& places) {
  const Tensor axis = cast(arange(kPicture), DType::float32) / static_cast<float>(kPicture - 1);
  const Tensor x = reshape(axis, {1, 1, 1, kPicture}), y = reshape(axis, {1, 1, kPicture, 1});
  const Tensor frames = reshape(places, {places.extent(0), kFrames, kPerFrame});
  const auto place = [&](std::int64_t which) {
    return reshape(narrow(frames, 2, which, 1), {places.extent(0), kFrames, 1, 1});
  };
  const auto near = [](const Tensor& a, const Tensor& b, float half_width) {
    return clamp(1.5f - abs(a - b) / half_width, 0, 1);
  };
  const Tensor ball = near(x, place(0), 0.03f) * near(y, place(1), 0.03f);
  const Tensor paddle = near(x, place(2), 0.1f) * near(y, Tensor(0.98), 0.02f);
  return maximum(ball, paddle);
}

// Mnih et al., Human-level Control through Deep Reinforcement Learning, 2015.
nn::Module nature_cnn(const std::string& name, std::uint64_t seed) {
  const auto options = [&](std::int64_t stride) {
    nn::ConvOptions made;
    made.stride = stride;
    made.weight_values = {nn::Scheme::orthogonal, 1.414};
    made.bias_values = {nn::Scheme::zeros};
    made.seed = seed;
    return made;
  };
  const nn::Conv2d first(name + ".0", kFrames, 32, 8, options(4)), second(name + ".1", 32, 64, 4, options(2)),
      third(name + ".2", 64, 64, 3, options(1));
  nn::Sequential last(name + ".3");
  last.linear(
      64 * 7 * 7, 512,
      {.weight_values = {nn::Scheme::orthogonal, 1.414}, .bias_values = {nn::Scheme::zeros}, .seed = seed});
  nn::Parameters all;
  all.add("0", first.parameters());
  all.add("1", second.parameters());
  all.add("2", third.parameters());
  all.add("3", last.parameters());
  return {[=](const Tensor& places) {
            const Tensor seen = relu(third(relu(second(relu(first(drawn(places)))))));
            return relu(last(flatten(seen, 1)));
          },
          all};
}

// Mean return of the episodes that ended since the last call, of all processes.
class Returns {
 public:
  Returns(Session& session, const nn::Environments& worlds) : session_(session), ended_(worlds.ended()) {}
  Result<double> take() {
    IMPRINT_ASSIGN(const std::vector<HostTensor> read, session_.read(std::span(&ended_, 1)));
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < read[0].floats.size(); i += 2)
      sum += read[0].floats[i], count += read[0].floats[i + 1];
    const double new_sum = total_of(sum - sum_), new_count = total_of(count - count_);
    sum_ = sum;
    count_ = count;
    return new_count > 0 ? new_sum / new_count : 0;
  }

 private:
  Session& session_;
  Variable ended_;
  double sum_ = 0, count_ = 0;
};

Result<BenchOutcome> run(Session& session, const BenchSettings& settings, nn::PpoOptions options,
                         const nn::Environment& world, double rate) {
  options.observations = world.observations;
  options.action = world.action;
  options.seed = settings.seed;
  if (!settings.by_updates()) {
    options.process_count = ranks();
    options.process_index = rank();
  }
  IMPRINT_ASSIGN(const nn::Ppo ppo, nn::Ppo::create(options));
  const nn::Environments worlds(world, options.agents,
                                settings.seed + (static_cast<std::uint64_t>(rank()) << 32));
  IMPRINT_ASSIGN(ProgramSequence sequence, ppo.update());
  IMPRINT_ASSIGN(ProgramPart rollout, ppo.rollout(worlds));
  sequence.parts.insert(sequence.parts.begin(), std::move(rollout));
  for (ProgramRounds& rounds : sequence.rounds) ++rounds.first;
  if (settings.by_updates() && ranks() > 1) {
    nn::Parameters averaged = ppo.parameters();
    for (const nn::Parameter& entry : ppo.state())
      if (entry.name.starts_with("adam")) averaged.add(entry.name, entry.variable);
    // Before the actors take the new weights.
    sequence.parts.insert(sequence.parts.end() - 1, mean_part(averaged));
  }
  if (ranks() > 1) share(sequence, settings);
  sequence.slot_count = 1;
  IMPRINT_ASSIGN(const ProgramDescription begin, ppo.start(worlds));
  IMPRINT_ASSIGN(Program start, Program::compile(session.runtime(), begin));
  IMPRINT_ASSIGN(Program learn, Program::compile(session.runtime(), sequence));
  IMPRINT_CHECK(session.run(start));
  Returns returns(session, worlds);
  bool judged = false;
  BenchClock clock(settings, options.agents * options.steps);
  do {
    const double progress = clock.progress();
    if (!judged && settings.samples > 0 && progress > 0.9) {  // the score is that of the last tenth
      IMPRINT_CHECK(returns.take());
      judged = true;
    }
    const HostTensor rates[] = {HostTensor::from({static_cast<float>(rate * (1 - progress))}, {}),
                                HostTensor::from({0.2f}, {})};
    IMPRINT_CHECK(session.run(learn, rates));
  } while (!clock.is_over());
  BenchOutcome outcome = clock.outcome();
  IMPRINT_ASSIGN(outcome.score, returns.take());
  outcome.score_name = "score";
  return outcome;
}

}  // namespace

Result<BenchOutcome> bench_cart_pole(Session& session, const BenchSettings& settings) {
  nn::PpoOptions options;
  options.agents = settings.count > 0 ? settings.count : 4096;
  options.steps = 16;
  options.minibatch = 4 * options.agents;
  options.discount = 0.98;
  options.advantage_decay = 0.9;
  options.entropy_coefficient = 0;
  return run(session, settings, options, nn::cart_pole(), 2.5e-3);
}

Result<BenchOutcome> bench_pictures(Session& session, const BenchSettings& settings) {
  nn::PpoOptions options;
  options.agents = settings.count > 0 ? settings.count : 256;
  options.steps = 32;
  options.minibatch = 4 * options.agents;
  options.entropy_coefficient = 0.01;
  options.hidden = {};
  options.trunk = [seed = settings.seed](const std::string& name) { return nature_cnn(name, seed); };
  options.features = 512;
  return run(session, settings, options, catch_world(), 5e-4);
}

}  // namespace imprint::studio
