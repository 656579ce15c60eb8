// A player's pet, without the studio: it starts at what the studio's yards taught, and learns a trick that
// they left out. Argument: FINAL.brain. On the CPU.

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

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

void live(const std::string& brain) {
  pet::Options options;
  options.headless = true;
  options.ghost = false;
  options.access = pet::Access::cpu;
  options.teacher = pet::TeacherKind::demo;
  options.seed = 77;
  options.seconds = kLesson;
  options.load = brain;
  options.plan = {{.tricks = {kNew, pet::Cue::sit, pet::Cue::come}, .until_s = 1e9}};
  const auto run = must(pet::Run::create(nullptr, options, [](const std::string& message) {
    std::fprintf(stderr, "imprint: %s\n", message.c_str());
  }));
  pet::Game& game = run->game();
  while (!game.finished()) must(run->frame());
  const Marks first = marks_of(game.checks().front()), last = marks_of(game.checks().back());
  std::printf("at home: known tricks %.2f at once, %.2f later; the new one %.2f, %.2f later\n", first.known,
              last.known, first.fresh, last.fresh);
  if (first.known < 0.75) throw std::runtime_error("it does not know what the studio taught");
  if (first.fresh > 0.5) throw std::runtime_error("it knows the new trick already");
  if (last.fresh < 0.75) throw std::runtime_error("it did not learn the new trick");
  if (last.known < 0.6) throw std::runtime_error("it forgot what it knew");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw std::runtime_error("expected FINAL.brain");
    live(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "studio_pet_home: %s\n", error.what());
    return 1;
  }
}
