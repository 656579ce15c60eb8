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

imp_brain brain_of(const pet::PetBrain& pets) {
  std::vector<imp_brain> found;
  pets.each_brain(
      [&](const std::string&, const imprint::game::Brain& brain) { found.push_back(brain.handle()); });
  return found.front();
}

pet::Cue cue_of(const std::string& name) {
  for (const pet::Cue cue : pet::kTricks)
    if (name == pet::name(cue)) return cue;
  throw std::runtime_error("--tricks: found '" + name + "', expected sit, spin, come, fetch or bed");
}

int play(pet::Options options) {
  const std::string device = studio::device();
  options.headless = true;
  options.ghost = false;
  options.seconds = 1e9;  // the studio ends the run
  options.seed += studio::rank();
  options.describe = [](imp_brain_desc& desc) { studio::share(desc); };
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
  studio::Member member = studio::join(game.context().context().handle(), brain_of(game.brain()));
  std::size_t told = 0;
  while (member.frame()) {
    must(run->frame());
    for (; told < game.checks().size(); ++told) member.episode_ended(100.0 * game.checks()[told].success);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  pet::Options options;
  std::string teacher = "demo";
  std::vector<std::string> tricks;
  CLI::App app{"Teaches a pet in a yard, as one of the games of imprint studio."};
  app.add_option("--seed", options.seed, "of the yards");
  app.add_option("--teacher", teacher, "demo, praise or careless")
      ->check(CLI::IsMember({"demo", "praise", "careless"}));
  app.add_option("--tricks", tricks, "that are taught; all of them without it")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  options.teacher = teacher == "demo"     ? pet::TeacherKind::demo
                    : teacher == "praise" ? pet::TeacherKind::praise
                                          : pet::TeacherKind::careless;
  try {
    if (!tricks.empty()) options.plan.push_back({.until_s = 1e9});
    for (const std::string& trick : tricks) options.plan[0].tricks.push_back(cue_of(trick));
    return play(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "studio_yard: %s\n", error.what());
    return 1;
  }
}
