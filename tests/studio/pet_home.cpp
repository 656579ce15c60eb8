// Players' pets, without the studio: each starts at what the studio's yards taught, and learns a trick that
// they left out. On the CPU. One pet must learn it; of several the program prints how many do.

#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include "samples/pet/brain/pet_brain.h"
#include "samples/pet/run.h"

namespace {

constexpr pet::Cue kNew = pet::Cue::bed;
constexpr double kLesson = 30;  // simulated seconds

template <class T>
T must(pet::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}
void must(const pet::Result<>& result) {
  if (!result) throw std::runtime_error(result.error().message);
}

struct Marks {
  double known = 0, fresh = 0;
};

Marks marks_of(const pet::Check& check) {
  Marks marks;
  for (std::size_t i = 0; i < pet::kTrickCount; ++i)
    if (pet::kTricks[i] == kNew)
      marks.fresh = check.per_trick[i];
    else
      marks.known += check.per_trick[i] / (pet::kTrickCount - 1);
  return marks;
}

// Empty: the pet did all that is expected of it.
std::string live(const std::string& brain, std::uint64_t seed, bool weights_alone) {
  pet::Options options;
  options.headless = true;
  options.ghost = false;
  options.access = pet::Access::cpu;
  options.teacher = pet::TeacherKind::demo;
  options.seed = seed;
  options.seconds = kLesson;
  if (!weights_alone) options.load = brain;
  options.plan = {{.tricks = {kNew, pet::Cue::sit, pet::Cue::come}, .until_s = 1e9}};
  const auto run = must(pet::Run::create(nullptr, options, [](const std::string& message) {
    std::fprintf(stderr, "imprint: %s\n", message.c_str());
  }));
  pet::Game& game = run->game();
  if (weights_alone) {
    const imp_api* api = nullptr;
    game.brain().each_brain([&](const std::string&, const imprint::game::Brain& own) {
      if (imp_get_api(IMP_ABI_VERSION, &api) != IMP_OK ||
          api->brain_load_weights(own.handle(), brain.c_str()) != IMP_OK)
        throw std::runtime_error(brain + ": its weights do not fit");
    });
  }
  while (!game.finished()) must(run->frame());
  const Marks first = marks_of(game.checks().front()), last = marks_of(game.checks().back());
  std::printf("at home: known tricks %.2f at once, %.2f later; the new one %.2f, %.2f later\n", first.known,
              last.known, first.fresh, last.fresh);
  if (first.known < 0.75) return "it does not know what the studio taught";
  if (first.fresh > 0.5) return "it knows the new trick already";
  if (last.fresh < 0.75) return "it did not learn the new trick";
  if (last.known < 0.6) return "it forgot what it knew";
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  std::string brain;
  std::uint64_t seed = 77, homes = 1;
  bool weights_alone = false;
  CLI::App app{"Players' pets that the studio's yards taught learn a new trick."};
  app.add_option("brain", brain, "final.brain of the yards")->required();
  app.add_option("--seed", seed, "of the first home");
  app.add_option("--homes", homes, "each with a pet and a seed of its own");
  app.add_flag("--weights", weights_alone, "by brain_load_weights: without what the yards' words were");
  CLI11_PARSE(app, argc, argv);
  try {
    std::uint64_t good = 0;
    for (std::uint64_t i = 0; i < homes; ++i) {
      const std::string problem = live(brain, seed + i, weights_alone);
      good += problem.empty() ? 1 : 0;
      if (!problem.empty())
        std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed + i), problem.c_str());
    }
    if (homes > 1)
      std::printf("%llu of %llu homes\n", static_cast<unsigned long long>(good),
                  static_cast<unsigned long long>(homes));
    return good == homes ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "studio_pet_home: %s\n", error.what());
    return 1;
  }
}
