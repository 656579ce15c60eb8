// Creates a game: brains, pets, teachers and log. Then loads the saved pet.

#include <algorithm>
#include <filesystem>
#include <utility>

#include "samples/pet/game_state.h"
#include "samples/pet/kept/folders.h"
#include "samples/pet/kept/kept_beside.h"
#include "samples/pet/kept/life_file.h"
#include "samples/pet/kept/names_file.h"

namespace pet {
namespace {

// A brain answers all its agents together. A kennel examines each pet with few probes, which takes two
// seconds of play.
std::uint32_t probes_per_pet(std::uint32_t pets) { return pets == 1 ? kTrialsPerTrick : kTrickCount; }

// The brain assumes the quickest person. Life dates back the feedback of slower ones.
double brain_reaction(const Options& options, const SessionLogReader* replay) {
  return (replay ? replay->header().idle && replay->header().teacher == TeacherKind::none
                 : options.teacher == TeacherKind::none)
             ? kQuickestReaction
             : kUsualReaction;
}

// Every learner that may come into use, the first one first. Only a person changes it, and only for a single
// pet.
std::vector<Learner> learners(const Options& options, const SessionLogReader* replay) {
  std::vector<Learner> wanted{options.learner};
  const bool changes =
      replay ? replay->changes_learner() : options.teacher == TeacherKind::none || !options.headless;
  if (!changes || options.kennel > 1) return wanted;
  for (const Learner learner : kLearners) {
    if (learner != options.learner) wanted.push_back(learner);
  }
  return wanted;
}

PetBrain::Setup brain_setup(const Options& options, const char* what, double reaction_s,
                            std::vector<Learner> learners) {
  return {what,       options.seed,        options.kennel,  probes_per_pet(options.kennel),
          reaction_s, std::move(learners), options.describe};
}

BrainContext::Setup context_setup(const Options& options,
                                  const std::function<void(const std::string&)>& log) {
  BrainContext::Setup setup;
  setup.access = options.access;
  setup.budget_us = options.budget_us;
  setup.slice_us = options.slice_us;
  const std::string cache = cache_directory();
  if (!cache.empty()) setup.shader_cache = (std::filesystem::path(cache) / "shaders").string();
  setup.log = log;
  return setup;
}

std::vector<std::vector<Mind*>> probes(PetBrain& brain) {
  std::vector<std::vector<Mind*>> minds(brain.setup().pets);
  for (std::uint32_t pet = 0; pet < brain.setup().pets; ++pet) {
    for (std::uint32_t i = 0; i < brain.setup().probes; ++i) minds[pet].push_back(&brain.probe(pet, i));
  }
  return minds;
}

Options with_replay(Options options, const SessionLogReader* replay) {
  if (!replay) return options;
  options.seed = replay->header().seed;
  options.kennel = replay->header().pets;
  options.learner = replay->header().learner;
  return options;
}

}  // namespace

Game::State::State(const Options& wanted, std::unique_ptr<SessionLogReader> log,
                   std::unique_ptr<BrainContext> on_device, std::unique_ptr<PetBrain> of_pets,
                   std::unique_ptr<PetBrain> of_ghost)
    : replay(std::move(log)),
      options(wanted),
      context(std::move(on_device)),
      brain(std::move(of_pets)),
      ghost_brain(std::move(of_ghost)),
      checkup(probes(*brain)),
      dice(options.seed, 1u << 20),
      keeper(*brain),
      memories(*brain, ghost_brain.get(), keeper, options.memories) {}

Result<std::unique_ptr<Game::State>> Game::State::create(const Options& wanted,
                                                         const imp_vk_device_info& device, const Log& log,
                                                         const std::function<void(float)>& progress) {
  std::unique_ptr<SessionLogReader> replay;
  if (!wanted.replay.empty()) {
    PET_ASSIGN(SessionLogReader read, SessionLogReader::open(wanted.replay));
    replay = std::make_unique<SessionLogReader>(std::move(read));
  }
  const Options options = with_replay(wanted, replay.get());
  const double reaction_s = brain_reaction(options, replay.get());
  PET_ASSIGN(auto context, BrainContext::create(device, context_setup(options, log)));
  PET_ASSIGN(auto brain, PetBrain::create(*context, brain_setup(options, "pet", reaction_s,
                                                                learners(options, replay.get()))));
  std::unique_ptr<PetBrain> ghost_brain;
  if (options.ghost && options.kennel == 1) {
    const PetBrain::Setup ghost = brain_setup(options, "ghost", reaction_s, {options.learner});
    PET_ASSIGN(ghost_brain, PetBrain::create(*context, ghost));
  }
  auto state = std::make_unique<State>(options, std::move(replay), std::move(context), std::move(brain),
                                       std::move(ghost_brain));
  const LifeOptions life = state->life_options();
  state->add_pets(life);
  if (state->ghost_brain) state->add_ghost(life);
  PET_CHECK(state->open_log(life.idle));
  PET_CHECK(state->begin(log, progress));
  return state;
}

LifeOptions Game::State::life_options() {
  const bool by_person = options.teacher == TeacherKind::none;
  LifeOptions life;
  const auto leaves_alone = [](const PlanStage& stage) { return stage.idle != Idle::never; };
  const bool plans_idle = replay ? replay->header().idle && teacher() != TeacherKind::none
                                 : std::any_of(options.plan.begin(), options.plan.end(), leaves_alone);
  life.idle = replay ? replay->header().idle : by_person || plans_idle;
  if (plans_idle) life.shortest_idle_s = 0.2f, life.longest_idle_s = 0.6f;  // a script needs no rest
  life.uneasy = !replay || replay->header().version >= 3;
  keeps_unease = life.uneasy;
  life.brain_reaction_s = brain->setup().reaction_s;
  has_pace = life.idle && !plans_idle && life.uneasy;
  if (has_pace) pace = pace_of(options.seed);
  return life;
}

void Game::State::add_pets(const LifeOptions& life) {
  const bool by_person = options.teacher == TeacherKind::none;
  for (std::uint32_t pet = 0; pet < options.kennel; ++pet) {
    LifeOptions own = life;
    if (has_pace)
      own.shortest_idle_s *= pace_of(options.seed + pet), own.longest_idle_s *= pace_of(options.seed + pet);
    lives.push_back(std::make_unique<Life>(brain->pet(pet), options.seed, own));
    teachers.emplace_back();
    // In a kennel the person teaches the first pet, and scripted teachers the others.
    if (replay || (by_person && pet == 0)) continue;
    teachers[pet].emplace(teacher_style(by_person ? TeacherKind::demo : options.teacher), options.plan,
                          options.seed, pet);
  }
  for (std::uint32_t pet = 0; pet < options.kennel; ++pet) listen(pet);
}

void Game::State::listen(std::size_t pet) {
  Life& life = *lives[pet];
  life.on_onset = [this, pet](double now_s, Action action, bool right) {
    if (teachers[pet]) teachers[pet]->see_onset(now_s, right);
    if (pet == 0 && action == Action::bark) say("Woof!");
  };
  life.on_idle = [this, pet](double now_s, Action action, bool sofa) {
    if (teachers[pet]) teachers[pet]->see_idle(now_s, sofa);
    if (pet != 0) return;
    if (action == Action::bark) say("Woof!");
    idle.push_back({now_s, action});
    if (lessons.record_idle(sofa)) report_status("It has learned to stay off the sofa.");
  };
  if (pet != 0) return;
  life.on_led = [this](Action) {
    overlay.ticks.push_back({static_cast<float>(clock_s), FeedbackKind::demonstration});
    say("\"like this\"");
  };
  life.on_trial_end = [this](const Trial& trial, bool shown) {
    command_over_s = clock_s;
    if (shown || !lessons.record(trial)) return;
    report_status(std::string("It has learned \"") + overlay.names.of(trial.cue()) + "\".");
    if (!teachers[0] && !replay) inputs.push_back(signal(SignalKind::snapshot));
  };
  life.on_chain_end = [this](bool success) {
    if (lessons.record_chain(success)) report_status("It follows two commands at once.");
  };
}

void Game::State::add_ghost(const LifeOptions& life) {
  ghost_brain->set_learning(false);
  ghost_checkup = std::make_unique<Checkup>(probes(*ghost_brain));
  LifeOptions untaught = life;
  if (has_pace) untaught.shortest_idle_s *= pace, untaught.longest_idle_s *= pace;
  untaught.taught = false;
  ghost = std::make_unique<Life>(ghost_brain->pet(0), options.seed, untaught);
}

Result<> Game::State::open_log(bool idle_pets) {
  if (options.log.empty()) return {};
  const std::uint32_t version = replay ? replay->header().version : kLogVersion;
  PET_ASSIGN(log_file,
             SessionLogWriter::create(options.log, LogHeader{options.seed, options.kennel, idle_pets,
                                                             teacher(), options.learner, version}));
  return {};
}

Result<> Game::State::begin(const Log& log, const std::function<void(float)>& progress) {
  if (options.teacher == TeacherKind::off) inputs.push_back(signal(SignalKind::learning, 0));
  PET_CHECK(context->warmup(progress));
  if (!options.load.empty()) {
    PET_CHECK(brain->load(options.load));
    load_names(log);
    load_lives(log);
  }
  memories.begin();
  overlay.budget_us = static_cast<float>(options.budget_us);
  overlay.ghost = ghost != nullptr;
  show();
  return context->failure();
}

// A pet can do without its names. An unreadable file stays until other names replace it.
void Game::State::load_names(const Log& log) {
  const Result<CueNames> names = read_names(names_file(options.load));
  if (!names) {
    log("the commands keep their own names: " + names.error().message);
    unread_names = true;
    return;
  }
  overlay.names = *names;
  has_names = overlay.names.changed();
  if (replay) return;
  // Sent as signals too, so that a log has them.
  for (const Cue cue : kTricks) {
    if (std::string_view(overlay.names.of(cue)) != name(cue))
      inputs.push_back(name_cue(cue, overlay.names.of(cue)));
  }
}

// A pet can do without this file too.
void Game::State::load_lives(const Log& log) {
  const Result<std::vector<float>> unease = read_life(life_file(options.load));
  if (!unease) {
    log("the pet is at ease with everything: " + unease.error().message);
    unread_lives = true;
    return;
  }
  for (std::size_t pet = 0; pet < std::min(unease->size(), lives.size()); ++pet)
    lives[pet]->set_unease((*unease)[pet]);
}

// Returns why the files are not on disk, or "". They have about a hundred bytes, so writing at once is fine.
std::string Game::State::save_beside(const std::string& path) {
  const bool over_loaded = path == options.load;
  std::string of_names, of_lives;
  if (has_names) {
    of_names = write_names(names_file(path), overlay.names, unread_names && over_loaded);
    if (over_loaded && of_names.empty()) unread_names = false;
  }
  std::vector<float> unease;
  for (const auto& life : lives) unease.push_back(life->unease());
  const bool at_ease = std::all_of(unease.begin(), unease.end(), [](float value) { return value == 0.0f; });
  if (keeps_unease && !(at_ease && unread_lives && over_loaded)) {
    of_lives = write_life(life_file(path), unease, unread_lives && over_loaded);
    if (over_loaded && of_lives.empty()) unread_lives = false;
  }
  return of_names.empty() ? of_lives : of_names;
}

}  // namespace pet
