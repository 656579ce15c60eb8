#include "samples/pet/game.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "samples/pet/brain/keeper.h"
#include "samples/pet/brain/pet_brain.h"
#include "samples/pet/kept/folders.h"
#include "samples/pet/kept/kept_beside.h"
#include "samples/pet/kept/life_file.h"
#include "samples/pet/kept/names_file.h"
#include "samples/pet/kept/session_log.h"
#include "samples/pet/memories.h"
#include "samples/pet/meters.h"
#include "samples/pet/yard/checkup.h"
#include "samples/pet/yard/lessons.h"
#include "samples/pet/yard/life.h"
#include "samples/pet/yard/teacher.h"
#include "samples/pet/yard/temperament.h"

namespace pet {
namespace {

constexpr double kCheckSeconds = 15.0;
constexpr std::uint64_t kSettleFrames = 12;  // for minibatches under way when learning ends
constexpr double kCaptionSeconds = 1.2;
constexpr double kStatusSeconds = 3.0;
constexpr double kAutoCuePause = 1.5;

// All seats of a brain are answered together, so each pet of a kennel is examined by few probes at a time;
// that takes two seconds of play.
std::uint32_t probes_per_pet(std::uint32_t pets) { return pets == 1 ? kTrialsPerTrick : kTrickCount; }

// A person's reaction is measured, or guessed: the brain reckons with the quickest, and Life dates back what
// slower ones say.
double brain_reaction(const Options& options, const SessionLogReader* replay) {
  return (replay ? replay->header().idle && replay->header().teacher == TeacherKind::none
                 : options.teacher == TeacherKind::none)
             ? kQuickestReaction
             : kUsualReaction;
}

// Of each learner that may come into use, the one to begin with first. Only a person changes it, and only
// that of a single pet.
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
  return {what,       options.seed,       options.kennel, probes_per_pet(options.kennel),
          reaction_s, std::move(learners)};
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

struct Game::Inside {
  enum class Phase : std::uint8_t { playing, settling, examining, done };

  Inside(const Options& wanted, const imp_vk_device_info& device,
         const std::function<void(const std::string&)>& log, const std::function<void(float)>& progress);

  void gather(std::size_t pet, std::uint64_t frame, std::vector<Signal>& signals);
  void apply(std::size_t pet, const Signal& signal);
  void apply_to_brain(const Signal& signal);
  void auto_cue();
  void play(std::uint64_t frame, std::uint32_t steps);
  bool time_up(std::uint64_t frame) const;  // learning is over before this frame
  TeacherKind teacher() const { return replay ? replay->header().teacher : options.teacher; }
  void advance_phase(std::uint64_t frame);
  void examine(std::uint64_t frame);
  void record_check();
  void say(const std::string& caption);
  void report_status(const std::string& text);
  void show();
  void load_names(const std::function<void(const std::string&)>& log);
  void load_lives(const std::function<void(const std::string&)>& log);
  std::string save_beside(const std::string& path);

  std::unique_ptr<SessionLogReader> replay;
  Options options;
  BrainContext context;
  PetBrain brain;
  std::unique_ptr<PetBrain> ghost_brain;  // same seed, never taught
  std::vector<std::unique_ptr<Life>> lives;
  std::unique_ptr<Life> ghost;
  std::vector<std::optional<Teacher>> teachers;  // nothing: the person
  std::unique_ptr<SessionLogWriter> log_file;
  Checkup checkup;
  std::unique_ptr<Checkup> ghost_checkup;
  Meters meters;
  Lessons lessons;

  Phase phase = Phase::playing;
  std::uint64_t frame = 0;        // of this game, from 1; logs count by it
  std::uint64_t game_frames = 0;  // until it was finished
  struct InFlight {
    std::uint64_t host_frame;
    std::uint64_t frame;
  };
  std::deque<InFlight> in_flight;  // oldest first
  std::uint64_t safe_frame = 0;
  std::uint64_t settled_frame = 0;
  double clock_s = 0.0;  // of the simulation: that of every yard
  double next_check_s = 0.0;
  double check_began_s = 0.0;
  double silent_until_s = 0.0;
  double status_until_s = 0.0;
  double command_over_s = 0.0;
  bool ended = false;  // by finish()
  bool closed = false;
  std::vector<Signal> inputs;  // of the person, for the next frame
  std::vector<Signal> signals;
  Random dice;
  std::vector<Check> checks;
  std::vector<IdleDecision> idle;
  float pace = 1.0f;  // of the first pet's idle moments
  Keeper keeper;
  bool has_names = false;  // that were loaded or given: what is on disk is theirs to replace
  bool unread_names = false, unread_lives = false;  // beside the pet that was loaded: never overwritten
  bool keeps_unease = true;                         // not in a replay of a game that knew none
  std::map<std::size_t, std::string>
      beside_problems;  // of what is kept beside the brain, by the wish to save
  Memories memories;
  bool ghost_examined = false;  // in the examination under way, as the one that never learned
  OverlayState overlay;
};

Game::Inside::Inside(const Options& wanted, const imp_vk_device_info& device,
                     const std::function<void(const std::string&)>& log,
                     const std::function<void(float)>& progress)
    : replay(wanted.replay.empty() ? nullptr : std::make_unique<SessionLogReader>(wanted.replay)),
      options(with_replay(wanted, replay.get())),
      context(device, context_setup(options, log)),
      brain(context, brain_setup(options, "pet", brain_reaction(options, replay.get()),
                                 learners(options, replay.get()))),
      ghost_brain(options.ghost && options.kennel == 1
                      ? std::make_unique<PetBrain>(
                            context, brain_setup(options, "ghost", brain_reaction(options, replay.get()),
                                                 {options.learner}))
                      : nullptr),
      checkup(probes(brain)),
      dice(options.seed, 1u << 20),
      keeper(brain),
      memories(brain, ghost_brain.get(), keeper, options.memories) {
  const bool by_person = options.teacher == TeacherKind::none;
  LifeOptions life;
  const auto leaves_alone = [](const PlanStage& stage) { return stage.idle != Idle::never; };
  const bool plans_idle = replay ? replay->header().idle && teacher() != TeacherKind::none
                                 : std::any_of(options.plan.begin(), options.plan.end(), leaves_alone);
  life.idle = replay ? replay->header().idle : by_person || plans_idle;
  if (plans_idle)
    life.shortest_idle_s = 0.2f, life.longest_idle_s = 0.6f;  // a script watches, and does not tire
  life.uneasy = !replay || replay->header().version >= 3;
  keeps_unease = life.uneasy;
  life.brain_reaction_s = brain.setup().reaction_s;
  const bool has_pace = life.idle && !plans_idle && life.uneasy;
  if (has_pace) pace = pace_of(options.seed);
  for (std::uint32_t pet = 0; pet < options.kennel; ++pet) {
    LifeOptions own = life;
    if (has_pace)
      own.shortest_idle_s *= pace_of(options.seed + pet), own.longest_idle_s *= pace_of(options.seed + pet);
    lives.push_back(std::make_unique<Life>(brain.pet(pet), options.seed, own));
    teachers.emplace_back();
    // In a kennel the person teaches the first pet, and scripted teachers the others.
    if (replay || (by_person && pet == 0)) continue;
    teachers[pet].emplace(teacher_style(by_person ? TeacherKind::demo : options.teacher), options.plan,
                          options.seed, pet);
  }
  for (std::uint32_t pet = 0; pet < options.kennel; ++pet) {
    lives[pet]->on_onset = [this, pet](double now_s, Action action, bool right) {
      if (teachers[pet]) teachers[pet]->see_onset(now_s, right);
      if (pet == 0 && action == Action::bark) say("Woof!");
    };
    lives[pet]->on_idle = [this, pet](double now_s, Action action, bool sofa) {
      if (teachers[pet]) teachers[pet]->see_idle(now_s, sofa);
      if (pet != 0) return;
      if (action == Action::bark) say("Woof!");
      idle.push_back({now_s, action});
      if (lessons.record_idle(sofa)) report_status("It has learned to stay off the sofa.");
    };
  }
  lives[0]->on_led = [this](Action) {
    overlay.ticks.push_back({static_cast<float>(clock_s), FeedbackKind::demonstration});
    say("\"like this\"");
  };
  lives[0]->on_trial_end = [this](const Trial& trial, bool shown) {
    command_over_s = clock_s;
    if (shown || !lessons.record(trial)) return;
    report_status(std::string("It has learned \"") + overlay.names.of(trial.cue()) + "\".");
    if (!teachers[0] && !replay) inputs.push_back(signal(SignalKind::snapshot));
  };
  lives[0]->on_chain_end = [this](bool success) {
    if (lessons.record_chain(success)) report_status("It follows two commands at once.");
  };
  if (ghost_brain) {
    ghost_brain->set_learning(false);
    ghost_checkup = std::make_unique<Checkup>(probes(*ghost_brain));
    LifeOptions untaught = life;
    if (has_pace) untaught.shortest_idle_s *= pace, untaught.longest_idle_s *= pace;
    untaught.taught = false;
    ghost = std::make_unique<Life>(ghost_brain->pet(0), options.seed, untaught);
  }
  if (!options.log.empty()) {
    const std::uint32_t version = replay ? replay->header().version : kLogVersion;
    log_file = std::make_unique<SessionLogWriter>(
        options.log, LogHeader{options.seed, options.kennel, life.idle, teacher(), options.learner, version});
  }
  if (options.teacher == TeacherKind::off) inputs.push_back(signal(SignalKind::learning, 0));
  context.warmup(progress);
  if (!options.load.empty()) {
    brain.load(options.load);
    load_names(log);
    load_lives(log);
  }
  memories.begin();
  overlay.budget_us = static_cast<float>(options.budget_us);
  overlay.ghost = ghost != nullptr;
  show();
}

// They are no reason to do without the pet. What cannot be read stays where it is until other names take its
// place.
void Game::Inside::load_names(const std::function<void(const std::string&)>& log) {
  try {
    overlay.names = read_names(names_file(options.load));
  } catch (const std::runtime_error& error) {
    log(std::string("the commands go by their own words: ") + error.what());
    unread_names = true;
    return;
  }
  has_names = overlay.names.changed();
  if (replay) return;
  // They are said once more as signals, so that a log has them.
  for (const Cue cue : kTricks) {
    if (std::string_view(overlay.names.of(cue)) != name(cue))
      inputs.push_back(name_cue(cue, overlay.names.of(cue)));
  }
}

// As the names: a pet without them is a pet.
void Game::Inside::load_lives(const std::function<void(const std::string&)>& log) {
  try {
    const std::vector<float> unease = read_life(life_file(options.load));
    for (std::size_t pet = 0; pet < std::min(unease.size(), lives.size()); ++pet)
      lives[pet]->set_unease(unease[pet]);
  } catch (const std::runtime_error& error) {
    log(std::string("the pet is at ease with everything: ") + error.what());
    unread_lives = true;
  }
}

// A hundred bytes, when the player asks for it or leaves. Why it is not on disk; empty: it is.
std::string Game::Inside::save_beside(const std::string& path) {
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

void Game::Inside::say(const std::string& caption) {
  overlay.caption = caption;
  silent_until_s = clock_s + kCaptionSeconds;
}

void Game::Inside::report_status(const std::string& text) {
  overlay.status = text;
  status_until_s = clock_s + kStatusSeconds;
}

void Game::Inside::gather(std::size_t pet, std::uint64_t now_frame, std::vector<Signal>& into) {
  into.clear();
  if (replay) {
    replay->read(now_frame, pet, into);
    return;
  }
  if (pet == 0) into.swap(inputs);
  if (teachers[pet]) teachers[pet]->step(lives[pet]->world(), lives[pet]->trial(), into);
}

void Game::Inside::apply(std::size_t pet, const Signal& signal) {
  if (log_file) log_file->write(frame, pet, signal);
  lives[pet]->apply(signal);
  if (pet != 0) return;
  if (ghost) {
    // The ghost hears commands and finds the same yard, but the hand that scolds or leads does not reach it.
    const bool place = signal.kind == SignalKind::redraw || signal.kind == SignalKind::move_player ||
                       signal.kind == SignalKind::move_ball;
    if (place || signal.kind == SignalKind::cue || signal.kind == SignalKind::then) ghost->apply(signal);
  }
  const auto tick = [&](FeedbackKind kind) { overlay.ticks.push_back({static_cast<float>(clock_s), kind}); };
  switch (signal.kind) {
    case SignalKind::praise:
      tick(FeedbackKind::praise);
      break;
    case SignalKind::scold:
      tick(FeedbackKind::scold);
      break;
    case SignalKind::no:
      tick(FeedbackKind::scold), say("\"No!\"");
      break;
    case SignalKind::treat:
      tick(FeedbackKind::treat);
      break;
    case SignalKind::click:
      tick(FeedbackKind::click), say("click");
      break;
    case SignalKind::show:
      tick(FeedbackKind::demonstration);
      break;
    case SignalKind::cue:
      if (signal.cue != Cue::none) say(std::string("\"") + overlay.names.of(signal.cue) + "!\"");
      command_over_s = clock_s;
      break;
    case SignalKind::then:
      if (signal.cue != Cue::none) say(std::string("\"then ") + overlay.names.of(signal.cue) + "!\"");
      command_over_s = clock_s;
      break;
    case SignalKind::name: {
      const std::string before = overlay.names.of(signal.cue);
      const std::string why = overlay.names.set(signal.cue, signal.text.data());
      if (why.empty() && before == overlay.names.of(signal.cue)) break;
      has_names = has_names || why.empty();
      report_status(why.empty()
                        ? std::string("You call ") + name(signal.cue) + " \"" + overlay.names.of(signal.cue) +
                              "\" now: say it by typing (Enter) or by its key."
                        : why);
      break;
    }
    case SignalKind::snapshot:
    case SignalKind::undo:
    case SignalKind::learning:
    case SignalKind::learner:
      apply_to_brain(signal);
      break;
    default:
      break;
  }
}

void Game::Inside::apply_to_brain(const Signal& signal) {
  if (signal.kind == SignalKind::learning) {
    brain.set_learning(signal.number != 0);
  } else if (signal.kind == SignalKind::learner) {
    const auto learner = static_cast<Learner>(signal.number);
    report_status(brain.use(learner)
                      ? std::string("It now learns by ") + name(learner) +
                            ", with a mind of its own for that."
                      : std::string("This game has no mind that learns by ") + name(learner) + ".");
  } else if (signal.kind == SignalKind::snapshot) {
    memories.keep(clock_s, checks.empty() ? std::nullopt : std::optional(checks.back().success), overlay);
  } else {
    report_status(memories.restore(signal.number, overlay));
  }
}

void Game::Inside::auto_cue() {
  const Life& life = *lives[0];
  if (!overlay.auto_cue || !life.trial().over() || clock_s < command_over_s + kAutoCuePause) return;
  command_over_s = clock_s;
  inputs.push_back(give_cue(lessons.choose(static_cast<std::uint32_t>(dice.next() >> 33))));
  if (lessons.chain_is_next())
    inputs.push_back(then_cue(lessons.choose(static_cast<std::uint32_t>(dice.next() >> 33))));
}

void Game::Inside::play(std::uint64_t now_frame, std::uint32_t steps) {
  if (log_file && steps != 1) log_file->write_steps(now_frame, steps);
  auto_cue();
  for (std::size_t pet = 0; pet < lives.size(); ++pet) {
    gather(pet, now_frame, signals);
    for (const Signal& signal : signals) apply(pet, signal);
  }
  const auto live = [&](Life& life) {
    life.act(now_frame);
    for (std::uint32_t i = 0; i < steps; ++i) life.step();
    life.ask(now_frame);
  };
  for (const auto& life : lives) live(*life);
  if (ghost) live(*ghost);
  clock_s = lives[0]->world().time_s();
}

void Game::Inside::examine(std::uint64_t now_frame) {
  if (!checkup.running() && !(ghost_checkup && ghost_checkup->running())) {
    const bool due = phase == Phase::playing ? clock_s >= next_check_s - 1e-6 && !time_up(now_frame + 1)
                                             : phase == Phase::examining;
    if (!due) return;
    // A step late is on time; where the last one took long, or the screen is slow, this one counts from when
    // it really began.
    check_began_s =
        phase == Phase::playing && clock_s < next_check_s + 2.5 * kStepSeconds ? next_check_s : clock_s;
    next_check_s = check_began_s + kCheckSeconds;
    ghost_examined = !overlay.then;
    checkup.begin(options.seed);
    if (ghost_checkup) ghost_checkup->begin(options.seed);
  }
  const bool pet_done = checkup.step(now_frame) || !checkup.running();
  const bool ghost_done = !ghost_checkup || ghost_checkup->step(now_frame) || !ghost_checkup->running();
  if (!pet_done || !ghost_done) return;
  record_check();
  if (phase == Phase::examining) phase = Phase::done;
}

void Game::Inside::record_check() {
  Check check;
  check.seconds = check_began_s;
  check.per_trick = mean_per_trick(checkup.marks());
  check.success = mean_success(checkup.marks());
  overlay.curve.push_back({static_cast<float>(check.seconds), check.success});
  if (ghost_checkup && ghost_examined && !overlay.then) {
    check.ghost = success(ghost_checkup->marks()[0]);
    overlay.ghost_curve.push_back({static_cast<float>(check.seconds), *check.ghost});
  }
  if (lives.size() > 1) {
    overlay.kennel.clear();
    for (const Marks& marks : checkup.marks()) overlay.kennel.push_back(success(marks));
  }
  for (SnapshotEntry& entry : overlay.snapshots) {
    if (!entry.examined) entry.success = check.success, entry.examined = true;
  }
  checks.push_back(check);
}

bool Game::Inside::time_up(std::uint64_t at_frame) const {
  return ended || (replay ? at_frame >= replay->end_frame()
                          : options.seconds > 0.0 && clock_s >= options.seconds - 1e-6);
}

void Game::Inside::advance_phase(std::uint64_t now_frame) {
  if (phase == Phase::playing) {
    if (!time_up(now_frame)) return;
    phase = Phase::settling;
    settled_frame = now_frame + kSettleFrames;
    if (brain.learning()) brain.set_learning(false);
    if (log_file) log_file->write_end(now_frame);
  }
  if (phase == Phase::settling && now_frame >= settled_frame && !checkup.running() &&
      !(ghost_checkup && ghost_checkup->running())) {
    phase = Phase::examining;
  }
}

void Game::Inside::show() {
  overlay.seconds = clock_s;
  overlay.learning = brain.learning();
  overlay.learner = brain.learner();
  overlay.tricks = lessons.scores();
  overlay.rule = lessons.rule();
  overlay.chain = lessons.chain();
  if (clock_s >= silent_until_s) overlay.caption.clear();
  if (clock_s >= status_until_s) overlay.status.clear();
  if (frame % 15 == 0) {
    overlay.temperament = temperament(idle, pace);
    overlay.lesson = lessons.advice(overlay.names);
    meters.read(brain.stats(), clock_s);
    meters.show(overlay);
  }
}

// ---- the face
// -------------------------------------------------------------------------------------------------------------------------------

Game::Game(const Options& options, const imp_vk_device_info& device,
           const std::function<void(const std::string&)>& log, const std::function<void(float)>& progress)
    : inside_(std::make_unique<Inside>(options, device, log, progress)) {}

Game::~Game() = default;

void Game::input(const Signal& signal) { inside_->inputs.push_back(signal); }

void Game::set_auto_cue(bool on) { inside_->overlay.auto_cue = on; }

void Game::begin_frame(std::uint64_t frame, std::uint64_t safe_frame, std::uint32_t steps) {
  Inside& in = *inside_;
  ++in.frame;
  // The host may have had frames of its own in between (a picture taken): Imprint counts the game's, one
  // after the other.
  in.in_flight.push_back({frame, in.frame});
  while (!in.in_flight.empty() && in.in_flight.front().host_frame <= safe_frame) {
    in.safe_frame = in.in_flight.front().frame;
    in.in_flight.pop_front();
  }
  in.context.begin_frame(in.frame, in.safe_frame, in.clock_s);
  in.advance_phase(in.frame);
  if (in.phase == Inside::Phase::playing) in.play(in.frame, steps);
  in.examine(in.frame);
}

void Game::send_work(VkCommandBuffer commands) { inside_->context.send_work(commands); }

void Game::end_frame() {
  Inside& in = *inside_;
  in.context.end_frame();
  // Frames after the game only wait for a save: they would be the most of a short game's, and cost next to
  // nothing.
  if (in.phase != Inside::Phase::done) {
    in.meters.read(in.context.stats());
    ++in.game_frames;
  }
  in.keeper.step();
  if (const std::string word = in.memories.step(in.frame, in.overlay); !word.empty()) in.report_status(word);
  in.show();
}

void Game::close() {
  if (!std::exchange(inside_->closed, true)) inside_->context.close(inside_->frame, inside_->clock_s);
}

double Game::time_s() const { return inside_->clock_s; }

std::uint32_t Game::replay_steps() {
  return inside_->replay ? inside_->replay->steps(inside_->frame + 1) : 1;
}

bool Game::finished() const { return inside_->phase == Inside::Phase::done; }

void Game::finish() { inside_->ended = true; }

std::size_t Game::pet_count() const { return inside_->lives.size(); }

const WorldView& Game::yard(std::size_t pet) const { return inside_->lives[pet]->world().view(); }

const WorldView* Game::ghost() const { return inside_->ghost ? &inside_->ghost->world().view() : nullptr; }

const OverlayState& Game::overlay() const { return inside_->overlay; }

const std::vector<Check>& Game::checks() const { return inside_->checks; }

const std::vector<std::vector<Action>>& Game::exam_decisions() const { return inside_->checkup.decisions(); }

const std::vector<IdleDecision>& Game::idle_decisions() const { return inside_->idle; }

std::size_t Game::save(const std::string& path) {
  const std::size_t wish = save_brain(path);
  inside_->beside_problems[wish] = inside_->save_beside(path);
  return wish;
}

std::size_t Game::save_brain(const std::string& path) {
  return inside_->keeper.save(path, PetBrain::Which::first);
}

bool Game::saved(std::size_t wish) const { return inside_->keeper.done(wish); }

const std::string& Game::save_problem(std::size_t wish) const {
  const std::string& problem = inside_->keeper.problem(wish);
  const auto beside = inside_->beside_problems.find(wish);
  return problem.empty() && beside != inside_->beside_problems.end() ? beside->second : problem;
}

std::string Game::log_problem() const {
  return inside_->log_file ? inside_->log_file->problem() : std::string();
}

void Game::show_then(std::optional<std::size_t> memory) { inside_->memories.show(memory); }

Report Game::report() const {
  const Inside& in = *inside_;
  Report report;
  report.driver = in.context.driver();
  report.seed = in.options.seed;
  report.teacher = in.teacher();
  report.learner = in.brain.learner();
  report.replayed = in.replay != nullptr;
  report.access = in.options.access;
  report.pets = in.options.kennel;
  report.budget_us = in.options.budget_us;
  report.slice_us = in.options.slice_us;
  report.simulated_seconds = in.clock_s;
  report.frames = in.game_frames;
  report.checks = in.checks;
  if (!in.checks.empty()) report.final_success = in.checks.back().success;
  report.final_per_pet = in.overlay.kennel;
  report.held_90_at_s = held_90(in.checks);
  report.parameters = in.brain.parameter_count();
  Meters meters = in.meters;
  meters.read(in.brain.stats(), in.clock_s);
  meters.fill(report);
  return report;
}

std::string Game::weights_hash(const imp_vk_device_info& submit_device, const std::string& saved_file) const {
  const Inside& in = *inside_;
  if (in.options.access != Access::record) return in.brain.hash();
  return hash_of_saved(submit_device, in.brain.setup(), saved_file);
}

}  // namespace pet
