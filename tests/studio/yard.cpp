// The pet's yard as a game of the studio: in each process a scripted teacher teaches a pet of its own, and
// all pets share one brain. The outcome is a pet that the sample loads: pet --load final.brain.

#include <CLI/CLI.hpp>

#include <imprint/studio.h>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "samples/pet/brain/pet_brain.h"
#include "samples/pet/run.h"

namespace {

namespace studio = imprint::studio;

template <class T>
T must(pet::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}
void must(const pet::Result<>& result) {
  if (!result) throw std::runtime_error(result.error().message);
}

const imprint::game::Brain& first_brain(const pet::PetBrain& pets) {
  std::vector<const imprint::game::Brain*> found;
  pets.each_brain([&](const std::string&, const imprint::game::Brain& brain) { found.push_back(&brain); });
  return *found.front();
}

// The GPU's time in learning, by timestamps.
class LearningTime {
 public:
  void add(const imp_context_stats& stats) {
    if (stats.measured_frame != frame_) us_ += static_cast<double>(stats.learn_gpu_us);
    frame_ = stats.measured_frame;
  }
  void print(std::uint64_t minibatches) const {
    if (frame_ > 0 && minibatches > 0)
      std::printf("learning of rank %u: %.1f us of the GPU per minibatch, %llu minibatches\n", studio::rank(),
                  us_ / static_cast<double>(minibatches), static_cast<unsigned long long>(minibatches));
  }

 private:
  std::uint64_t frame_ = 0;
  double us_ = 0;
};

pet::Cue cue_of(const std::string& name) {
  for (const pet::Cue cue : pet::kTricks)
    if (name == pet::name(cue)) return cue;
  throw std::runtime_error("--tricks: found '" + name + "', expected sit, spin, come, fetch or bed");
}

// simulated_s: of this yard, after which the run ends; 0: the studio ends it.
int play(pet::Options options, double simulated_s) {
  const std::string device = studio::device();
  options.headless = true;
  options.ghost = false;
  options.seconds = 1e9;  // the studio ends the run
  options.seed += studio::rank();
  std::unique_ptr<pet::VulkanHost> host;
  if (device == "cpu") {
    options.access = pet::Access::cpu;
  } else {
    options.access = pet::Access::submit;
    pet::VulkanOptions vulkan;
    vulkan.device = device;
    host = must(pet::VulkanHost::create(vulkan));
  }
  const auto run = must(pet::Run::create(host.get(), options, [](const std::string& message) {
    std::fprintf(stderr, "imprint: %s\n", message.c_str());
  }));
  pet::Game& game = run->game();
  studio::Member member = studio::join(game.context().context().handle(), first_brain(game.brain()).handle());
  std::size_t told = 0;
  LearningTime learning;
  const imprint::game::Context& context = game.context().context();
  while (member.frame()) {
    must(run->frame());
    if (const auto stats = context.stats()) learning.add(*stats);
    if (simulated_s > 0 && game.time_s() >= simulated_s) member.end();
    for (; told < game.checks().size(); ++told) member.episode_ended(100.0 * game.checks()[told].success);
  }
  if (const auto stats = first_brain(game.brain()).stats()) learning.print(stats->minibatches);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  pet::Options options;
  std::string teacher = "demo";
  std::vector<std::string> tricks;
  double simulated_s = 0;
  CLI::App app{"Teaches a pet in a yard, as one of the games of imprint studio."};
  app.add_option("--seed", options.seed, "of the yards");
  app.add_option("--teacher", teacher, "demo, praise or careless")
      ->check(CLI::IsMember({"demo", "praise", "careless"}));
  app.add_option("--tricks", tricks, "that are taught; all of them without it")->delimiter(',');
  app.add_option("--simulated", simulated_s, "seconds of a yard after which the run ends");
  CLI11_PARSE(app, argc, argv);
  options.teacher = teacher == "demo"     ? pet::TeacherKind::demo
                    : teacher == "praise" ? pet::TeacherKind::praise
                                          : pet::TeacherKind::careless;
  try {
    if (!tricks.empty()) options.plan.push_back({.until_s = 1e9});
    for (const std::string& trick : tricks) options.plan[0].tricks.push_back(cue_of(trick));
    return play(options, simulated_s);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "studio_yard: %s\n", error.what());
    return 1;
  }
}
