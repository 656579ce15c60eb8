// How a brain's learning leaves the device under memory pressure and comes back: retreat.h says what and
// when.

#include <exception>

#include "plugin/agent/brain.h"
#include "plugin/agent/brain_impl.h"

namespace imprint::agent {
namespace {

constexpr std::uint64_t kFramesBetweenTries = 120;  // to come back, when memory ran out on the way

}  // namespace

const Variable* Brain::replay_variable() const {
  for (const StateVariable& entry : state_)
    if (entry.name == kReplayName) return &entry.variable;
  return nullptr;
}

std::uint64_t Brain::bytes_away() const { return retreat_ ? retreat_->bytes_away.load() : 0; }

void Brain::ask_to_retreat(bool retreat) {
  if (retreat_) retreat_->wanted = retreat;
}

// At a boundary with nothing requested. `writes`: this frame still changes the state, behind its immediate
// jobs.
Status Brain::move_memory(bool writes) {
  Retreat& retreat = *retreat_;
  if (retreat.phase == Retreat::Phase::present && retreat.wanted && !writes) return begin_retreat();
  if (retreat.is_away() && !retreat.wanted && at_.clock.frame >= retreat.retry_frame) begin_return();
  return {};
}

Status Brain::begin_retreat() {
  const bool quiet = learner_->compiled() && learner_->slots_under_way().empty() && saving_->idle() &&
                     shadow_->idle() && !shadow_->begun();
  if (!quiet) return {};
  retreat_->done = false;
  if (!saving_->prepared() || !replay_variable()) {
    retreat_->done = true;
    retreat_->phase = Retreat::Phase::leaving;
    finish_move();
    return {};
  }
  IMPRINT_CHECK(
      at_.context.enqueue(saving_->reader().replay_commands(), [weak = weak_from_this()](std::uint64_t) {
        if (const auto brain = weak.lock()) brain->replay_arrived();
      }));
  retreat_->phase = Retreat::Phase::reading;
  return {};
}

// Many megabytes are copied behind the frame's back.
void Brain::replay_arrived() {
  retreat_->phase = Retreat::Phase::leaving;
  at_.files.add([this] {
    try {
      const std::span<const std::byte> bytes = saving_->reader().replay_bytes();
      retreat_->replay = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    } catch (const std::exception&) {  // no host memory for it either: it stays where it is
      retreat_->replay.reset();
    }
    retreat_->done.store(true, std::memory_order_release);
  });
}

void Brain::begin_return() {
  retreat_->phase = Retreat::Phase::returning;
  retreat_->done = false;
  at_.files.add([this] {
    try {
      retreat_->outcome = come_back();
    } catch (const std::exception& exception) {
      retreat_->outcome = make_error(ErrorCode::out_of_host_memory, exception.what());
    }
    retreat_->done.store(true, std::memory_order_release);
  });
}

// On the writer's thread. What it makes is installed by the frame thread.
Status Brain::come_back() {
  Runtime& runtime = at_.context.runtime();
  Retreat::Returned& made = retreat_->returned;
  if (retreat_->replay) {
    const Variable& replay = *replay_variable();
    IMPRINT_CHECK(runtime.place(replay, true));
    IMPRINT_CHECK(runtime.write(replay, *retreat_->replay));
    IMPRINT_ASSIGN(made.saving, runtime.read(std::span(&replay, 1), true));
    if (shadow_->prepared()) {
      IMPRINT_ASSIGN(made.shadow, runtime.read(std::span(&replay, 1), true));
    }
    IMPRINT_ASSIGN(made.snapshots, snapshots_->compile(runtime, [] {}));
  }
  IMPRINT_ASSIGN(made.learning, learner_->compile(runtime));
  return {};
}

// What the writer was given is done.
void Brain::finish_move() {
  Retreat& retreat = *retreat_;
  if (retreat.phase == Retreat::Phase::leaving)
    leave();
  else if (retreat.phase == Retreat::Phase::returning)
    settle_return();
}

void Brain::leave() {
  Retreat& retreat = *retreat_;
  at_.context.cancel(learner_->program());  // forgets what it costs
  retreat.bytes_away = learner_->stats()->arena_bytes + learner_->stats()->io_bytes;
  learner_->install(nullptr);
  if (retreat.replay) {
    snapshots_->each_program([&](Program& program) { at_.context.cancel(program); });
    snapshots_->install({});
    at_.context.cancel(saving_->reader().replay_commands());
    if (shadow_->prepared()) at_.context.cancel(shadow_->reader().replay_commands());
    saving_->reader().replay_left(retreat.replay);
    if (shadow_->prepared()) shadow_->reader().replay_left(retreat.replay);
    (void)at_.context.runtime().displace(*replay_variable());  // ours, and of a device
    retreat.bytes_away += (shadow_->prepared() ? 3 : 2) * replay_variable()->bytes();
  }
  retreat.phase = Retreat::Phase::away;
  at_.log(LogLevel::info, "brain '" + spec_.name + "': its learning has left the device" +
                              (retreat.replay ? ", its replay memory is in host memory" : ""));
}

void Brain::settle_return() {
  Retreat& retreat = *retreat_;
  if (!retreat.outcome) {
    retreat.returned = {};
    if (retreat.replay) (void)at_.context.runtime().displace(*replay_variable());
    retreat.retry_frame = at_.clock.frame + kFramesBetweenTries;
    retreat.phase = Retreat::Phase::away;
    at_.log(LogLevel::info,
            "brain '" + spec_.name + "': no room yet for its learning: " + retreat.outcome.error().message);
    return;
  }
  learner_->install(std::move(retreat.returned.learning));
  if (retreat.replay) {
    snapshots_->install(std::move(retreat.returned.snapshots));
    saving_->reader().replay_came_back(std::move(retreat.returned.saving));
    if (retreat.returned.shadow) shadow_->reader().replay_came_back(std::move(retreat.returned.shadow));
  }
  retreat.returned = {};
  retreat.replay.reset();
  retreat.bytes_away = 0;
  retreat.phase = Retreat::Phase::present;
  at_.log(LogLevel::info, "brain '" + spec_.name + "': its learning is back on the device");
}

// For calls between frames, which may wait: no move is under way afterwards.
void Brain::settle_memory() {
  if (!retreat_ || !retreat_->moving()) return;
  if (retreat_->phase == Retreat::Phase::reading) {
    at_.context.cancel(saving_->reader().replay_commands());
    retreat_->phase = Retreat::Phase::present;
    return;
  }
  at_.files.flush();
  finish_move();
}

}  // namespace imprint::agent
