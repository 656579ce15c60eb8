// A frame of a game: signals, time, examinations, and their display.

#include "samples/pet/game_state.h"

namespace pet {
namespace {

// The examination of a kennel takes two seconds.
constexpr double kCheckSeconds = 5.0, kKennelCheckSeconds = 15.0;
constexpr std::uint64_t kSettleFrames = 12;  // for minibatches under way when learning ends
constexpr double kCaptionSeconds = 1.2;
constexpr double kStatusSeconds = 3.0;
constexpr double kAutoCuePause = 1.5;

}  // namespace

void Game::State::say(const std::string& caption) {
  overlay.caption = caption;
  silent_until_s = clock_s + kCaptionSeconds;
}

void Game::State::report_status(const std::string& text) {
  overlay.status = text;
  status_until_s = clock_s + kStatusSeconds;
}

void Game::State::gather(std::size_t pet, std::uint64_t now_frame, std::vector<Signal>& into) {
  into.clear();
  if (replay) {
    replay->read(now_frame, pet, into);
    return;
  }
  if (pet == 0) into.swap(inputs);
  if (teachers[pet]) teachers[pet]->step(lives[pet]->world(), lives[pet]->trial(), into);
}

void Game::State::apply(std::size_t pet, const Signal& signal) {
  if (log_file) log_file->write(frame, pet, signal);
  lives[pet]->apply(signal);
  if (pet != 0) return;
  if (ghost) apply_to_ghost(signal);
  switch (signal.kind) {
    case SignalKind::name:
      rename_command(signal);
      break;
    case SignalKind::snapshot:
    case SignalKind::undo:
    case SignalKind::learning:
    case SignalKind::learner:
      apply_to_brain(signal);
      break;
    default:
      show_signal(signal);
      break;
  }
}

// The ghost hears commands and lives in the same yard. The player neither teaches nor leads it.
void Game::State::apply_to_ghost(const Signal& signal) {
  switch (signal.kind) {
    case SignalKind::redraw:
    case SignalKind::move_player:
    case SignalKind::move_ball:
    case SignalKind::cue:
    case SignalKind::then:
      ghost->apply(signal);
      break;
    default:
      break;
  }
}

void Game::State::show_signal(const Signal& signal) {
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
    default:
      break;
  }
}

void Game::State::rename_command(const Signal& signal) {
  const std::string before = overlay.names.of(signal.cue);
  const std::string why = overlay.names.set(signal.cue, signal.text.data());
  if (why.empty() && before == overlay.names.of(signal.cue)) return;
  has_names = has_names || why.empty();
  report_status(why.empty()
                    ? std::string("You call ") + name(signal.cue) + " \"" + overlay.names.of(signal.cue) +
                          "\" now: say it by typing (Enter) or by its key."
                    : why);
}

void Game::State::apply_to_brain(const Signal& signal) {
  if (signal.kind == SignalKind::learning) {
    brain->set_learning(signal.number != 0);
  } else if (signal.kind == SignalKind::learner) {
    const auto learner = static_cast<Learner>(signal.number);
    report_status(brain->use(learner)
                      ? std::string("It now learns by ") + name(learner) +
                            ", with a mind of its own for that."
                      : std::string("This game has no mind that learns by ") + name(learner) + ".");
  } else if (signal.kind == SignalKind::snapshot) {
    memories.keep(clock_s, checks.empty() ? std::nullopt : std::optional(checks.back().success), overlay);
  } else {
    report_status(memories.restore(signal.number, overlay));
  }
}

void Game::State::auto_cue() {
  const Life& life = *lives[0];
  if (!overlay.auto_cue || !life.trial().over() || clock_s < command_over_s + kAutoCuePause) return;
  command_over_s = clock_s;
  inputs.push_back(give_cue(lessons.choose(static_cast<std::uint32_t>(dice.next() >> 33))));
  if (lessons.chain_is_next())
    inputs.push_back(then_cue(lessons.choose(static_cast<std::uint32_t>(dice.next() >> 33))));
}

void Game::State::play(std::uint64_t now_frame, std::uint32_t steps) {
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

void Game::State::examine(std::uint64_t now_frame) {
  if (!checkup.running() && !(ghost_checkup && ghost_checkup->running())) {
    const bool due = phase == Phase::playing ? clock_s >= next_check_s - 1e-6 && !time_up(now_frame + 1)
                                             : phase == Phase::examining;
    if (!due) return;
    // One step late counts as on time. Otherwise the examination is dated when it really began.
    check_began_s =
        phase == Phase::playing && clock_s < next_check_s + 2.5 * kStepSeconds ? next_check_s : clock_s;
    next_check_s = check_began_s + (lives.size() > 1 ? kKennelCheckSeconds : kCheckSeconds);
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

void Game::State::record_check() {
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

bool Game::State::time_up(std::uint64_t at_frame) const {
  return ended || (replay ? at_frame >= replay->end_frame()
                          : options.seconds > 0.0 && clock_s >= options.seconds - 1e-6);
}

void Game::State::advance_phase(std::uint64_t now_frame) {
  if (phase == Phase::playing) {
    if (!time_up(now_frame)) return;
    phase = Phase::settling;
    settled_frame = now_frame + kSettleFrames;
    if (brain->learning()) brain->set_learning(false);
    if (log_file) log_file->write_end(now_frame);
  }
  if (phase == Phase::settling && now_frame >= settled_frame && !checkup.running() &&
      !(ghost_checkup && ghost_checkup->running())) {
    phase = Phase::examining;
  }
}

void Game::State::show() {
  overlay.seconds = clock_s;
  overlay.learning = brain->learning();
  overlay.learner = brain->learner();
  overlay.tricks = lessons.scores();
  // Its lesson comes after the tricks: until then tries say nothing.
  overlay.rule = lessons.next() && !lessons.rule().mastered ? TrickScore{} : lessons.rule();
  overlay.chain = lessons.chain();
  if (clock_s >= silent_until_s) overlay.caption.clear();
  if (clock_s >= status_until_s) overlay.status.clear();
  if (frame % 15 == 0) {
    overlay.temperament = temperament(idle, pace);
    overlay.lesson = lessons.advice(overlay.names);
    meters.read(brain->stats(), clock_s);
    meters.show(overlay);
  }
}

}  // namespace pet
