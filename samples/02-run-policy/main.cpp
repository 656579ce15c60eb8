// Runs two ONNX policies as agents of a game, on the game's device. Imprint records its work into the frame's
// command buffer; nothing waits for it. Usage: 02-run-policy [DEVICE]. Exit status 1 when an answer differs
// from the stored one.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "declare.h"
#include "host.h"
#include "imprint/imprint.hpp"

namespace game = imprint::game;

namespace {

constexpr std::uint64_t kFrames = 60;
constexpr float kTolerance = 1e-5f;

// Observations of each agent, and the known answers of its policy.
struct Scene {
  std::vector<std::vector<float>> observations, answers;
};

struct Creature {
  std::string name;
  Scene scene;
  game::Brain brain;
  std::vector<game::Agent> agents;
  std::uint64_t decisions = 0;
  float largest_error = 0;
};

bool read_scene(const std::string& path, Scene& scene) {
  std::ifstream file(path);
  std::size_t agents = 0, inputs = 0, outputs = 0;
  if (!(file >> agents >> inputs >> outputs)) return false;
  scene.observations.assign(agents, std::vector<float>(inputs));
  scene.answers.assign(agents, std::vector<float>(outputs));
  for (std::size_t i = 0; i < agents; ++i) {
    for (float& value : scene.observations[i]) file >> value;
    for (float& value : scene.answers[i]) file >> value;
  }
  return static_cast<bool>(file);
}

bool failed(const char* what, const game::Outcome& status) {
  if (status.ok()) return false;
  std::fprintf(stderr, "02-run-policy: %s: %s: %s\n", what, status.name(), status.message());
  return true;
}

// Loads a policy and places one agent for each observation of its scene.
bool load(game::Context& context, Creature& creature) {
  const std::string path = std::string(SAMPLE_MODELS) + "/" + creature.name;
  std::ifstream file(path + ".onnx", std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.empty() || !read_scene(path + ".answers.txt", creature.scene)) {
    std::fprintf(stderr, "02-run-policy: cannot read %s.onnx and its .answers.txt\n", path.c_str());
    return false;
  }
  game::PolicyDesc desc;
  desc.name = creature.name.c_str();
  desc.file = std::as_bytes(std::span(bytes));
  desc.agent_capacity = static_cast<std::uint32_t>(creature.scene.observations.size());
  auto brain = context.create_brain_from_onnx(desc);
  if (failed("create_brain_from_onnx", brain.outcome)) return false;
  creature.brain = std::move(*brain);
  auto agents = creature.brain.create_agents(desc.agent_capacity);
  if (failed("create_agents", agents.outcome)) return false;
  creature.agents = std::move(*agents);
  return true;
}

// One frame of a game's agents: take the answer to an earlier observation, then observe again.
void think(game::Frame& frame, Creature& creature) {
  for (std::size_t i = 0; i < creature.agents.size(); ++i) {
    const game::Action action = frame.act(creature.agents[i]);
    if (action.is_new) {
      const std::vector<float>& expected = creature.scene.answers[i];
      for (std::size_t j = 0; j < expected.size(); ++j) {
        const float error =
            std::abs(action.continuous[j] - expected[j]) / std::max(1.0f, std::abs(expected[j]));
        creature.largest_error = std::isnan(error) ? INFINITY : std::max(creature.largest_error, error);
      }
      ++creature.decisions;
    }
    if (action.wants_observation) frame.keep(creature.agents[i].observe(creature.scene.observations[i]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Host host;  // outlives the context
  if (!host.open(argc > 1 ? argv[1] : ""))
    return std::fprintf(stderr, "02-run-policy: %s\n", host.error().c_str()), 1;
  auto context = game::Context::create(game::Library(imp_get_api), declare(host));
  if (failed("context_create", context.outcome)) return 1;
  std::vector<Creature> creatures(2);
  creatures[0].name = "BallChase";
  creatures[1].name = "MultiAgentSimple_player";
  for (Creature& creature : creatures)
    if (!load(*context, creature)) return 1;
  if (failed("warmup", context->warmup())) return 1;  // compiles everything before the first frame
  std::printf("%s: two policies, %zu agents\n", host.device_name(),
              creatures[0].agents.size() + creatures[1].agents.size());

  game::Frames clock(Host::kFramesInFlight);
  for (std::uint64_t number = 1; number <= kFrames; ++number) {
    const VkCommandBuffer commands = host.begin_frame(number);
    if (!commands) return std::fprintf(stderr, "02-run-policy: %s\n", host.error().c_str()), 1;
    game::Frame frame(*context, clock.next(1.0 / 60));
    for (Creature& creature : creatures) think(frame, creature);
    frame.record(commands);
    if (failed("frame", frame.end())) return 1;
    if (!host.end_frame()) return std::fprintf(stderr, "02-run-policy: %s\n", host.error().c_str()), 1;
    if (number % 20 == 0)
      std::printf("frame %2llu: %llu decisions\n", static_cast<unsigned long long>(number),
                  static_cast<unsigned long long>(creatures[0].decisions + creatures[1].decisions));
  }

  bool good = true;
  for (const Creature& creature : creatures) {
    const bool right = creature.decisions > 0 && creature.largest_error <= kTolerance;
    std::printf("%-24s %4llu decisions, largest error %.1e: %s\n", creature.name.c_str(),
                static_cast<unsigned long long>(creature.decisions),
                static_cast<double>(creature.largest_error), right ? "as stored" : "WRONG");
    good = good && right;
  }
  host.wait_for_all();
  if (failed("close", context->close())) return 1;
  return good ? 0 : 1;
}
