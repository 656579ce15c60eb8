// What a brain keeps: snapshots, files, hashes.

#include "compute/model/file.h"
#include "plugin/agent/brain.h"
#include "plugin/agent/brain_impl.h"

namespace imprint::agent {
HostState Brain::host_state() const {
  HostState host;
  host.seed = noise_seed_;
  host.counters = counts_->counters();
  for (const Seat& seat : seats_) host.draws.push_back(seat.draws());
  if (learner_) {
    host.replay = learner_->replay();
    host.replay.waiting.drop_sights();
  }
  return host;
}

Result<Hash128> Brain::hash() {
  if (policy_)
    return make_error(ErrorCode::unsupported,
                      "brain_hash: '" + spec_.name + "' is a policy from a file, which does not change");
  settle_memory();
  StateReader reader(state_);
  if (retreat_ && retreat_->replay) reader.replay_left(retreat_->replay);
  IMPRINT_CHECK(reader.prepare(at_.context.runtime()));
  IMPRINT_CHECK(at_.context.check_running("brain_hash"));
  for (const Commands& commands : reader.commands()) IMPRINT_CHECK(at_.context.run_now(commands));
  Hasher hasher;
  for (std::size_t i = 0; i < state_.size(); ++i) hasher.text(state_[i].name).bytes(reader.bytes(i));
  if (learner_) {
    for (const std::int32_t row : learner_->replay().next) hasher.number(row);
    for (const std::int32_t rows : learner_->replay().filled) hasher.number(rows);
  }
  return hasher.digest();
}

Status Brain::settle() {
  if (!saving_) return {};
  settle_memory();
  if (learner_) learner_->end();
  while (!requests_.empty()) {
    const Request& request = requests_.front();  // stays when it fails, for another try
    if (copies_wait())
      return make_error(ErrorCode::not_ready, "drain: snapshots and restores of '" + spec_.name +
                                                  "' wait until there is memory again for what they hold");
    if (request.kind == Request::Kind::copy) {
      IMPRINT_CHECK(at_.context.run_now(snapshots_->program(request.copy, request.restores)));
      if (request.restores && learner_) learner_->weights_restored();
    } else {
      for (const Commands& commands : saving_->reader().commands())
        IMPRINT_CHECK(at_.context.run_now(commands));
      saving_->delivered();
    }
    requests_.pop_front();
  }
  return {};
}

Status Brain::set_learning(bool enabled) {
  if (!learner_ && enabled) {
    return make_error(ErrorCode::unsupported,
                      "brain_set_learning: '" + spec_.name + "' has no learner; create it with one");
  }
  learning_ = enabled;
  if (!enabled) forget_steps();
  return {};
}

Status Brain::save(const std::string& path) {
  if (!saving_)
    return make_error(ErrorCode::unsupported,
                      "brain_save: '" + spec_.name + "' is a policy from a file, which does not change");
  if (path.empty()) return make_error(ErrorCode::invalid_argument, "brain_save: the path is empty");
  if (at_.context.lost()) return save_shadow(path);
  if (!saving_->prepared()) {
    if (at_.clock.open)
      return make_error(
          ErrorCode::wrong_state,
          "brain_save: '" + spec_.name +
              "' has no memory yet for its way back to the host, and none is taken in a frame: call "
              "warmup before, or where the memory cap left no room then, save between frames");
    IMPRINT_CHECK(saving_->prepare(at_.context.runtime()));
  }
  IMPRINT_CHECK(saving_->begin(path, host_state()));
  requests_.push_back({Request::Kind::save, 0, false, 0});
  return {};
}

Status Brain::save_shadow(const std::string& path) {
  at_.files.flush();  // one may be being put together
  const std::shared_ptr<const Shadow::Copy> copy = shadow_->newest();
  if (!copy)
    return make_error(
        ErrorCode::device_lost,
        "brain_save: the device was lost, and of '" + spec_.name +
            "' there is no copy in host memory: set imp_limits::shadow_period_frames before warmup");
  (void)save_status();  // one that was on its way has failed
  return saving_->write(path, {copy, &copy->file});
}

Status Brain::save_status() {
  if (!saving_) return make_error(ErrorCode::not_found, "brain_save_status: this brain was never saved");
  if (at_.context.lost())
    saving_->fail(
        make_error(ErrorCode::device_lost, "brain_save: the device was lost before the brain was read back"));
  return saving_->status();
}

Result<std::uint64_t> Brain::snapshot() {
  if (!snapshots_)
    return make_error(ErrorCode::unsupported,
                      "snapshot: '" + spec_.name + "' is a policy from a file, which does not change");
  const bool away = retreat_ && retreat_->phase != Retreat::Phase::present;
  if (snapshots_->programs_to_compile() > 0 && !away)
    return make_error(ErrorCode::wrong_state, "snapshot: call warmup first");
  IMPRINT_ASSIGN(const Snapshots::Taken taken,
                 snapshots_->take(learner_ ? learner_->replay() : ReplayState{}));
  requests_.push_back({Request::Kind::copy, taken.copy, false, 0});
  publish();
  return taken.id;
}

Status Brain::restore(std::uint64_t snapshot) {
  if (!snapshots_)
    return make_error(ErrorCode::unsupported,
                      "restore: '" + spec_.name + "' is a policy from a file, which does not change");
  IMPRINT_ASSIGN(const Snapshots::Found found, snapshots_->find(snapshot));
  forget_steps();
  if (learner_) {
    learner_->replay() = *found.replay;
    learner_->set_going();
  }
  requests_.push_back({Request::Kind::copy, found.copy, true, 0});
  changed_ = true;
  publish();
  return {};
}

Status Brain::check_can_load(const char* call) const {
  if (!saving_)
    return make_error(ErrorCode::unsupported, std::string(call) + ": '" + spec_.name +
                                                  "' is a policy from a file; a saved brain does not fit it");
  if (!saving_->idle() || !requests_.empty())
    return make_error(
        ErrorCode::wrong_state,
        std::string(call) + ": a save, snapshot or restore of '" + spec_.name +
            "' is still on its way; call drain, or run frames until brain_save_status says how it went");
  return {};
}

// The step under way ends nowhere: what it would have changed is replaced.
void Brain::drop_step() {
  if (!learner_ || !learner_->compiled()) return;
  at_.context.cancel(learner_->program());
  learner_->end();
  for (const std::uint32_t slot : learner_->slots_under_way()) {
    vk::Device* device = at_.context.vulkan();
    if (!device) {  // nothing is in flight
      learner_->release(slot);
      continue;
    }
    device->retire(device->last_ticket(), [weak = weak_from_this(), slot] {
      if (const auto brain = weak.lock()) brain->learner_->release(slot);
    });
  }
}

Status Brain::replace_state(const char* call, std::vector<std::vector<std::byte>> contents) {
  if (shadow_->begun()) shadow_->forget();  // it was of the brain before
  changed_ = true;
  drop_step();
  for (std::size_t i = 0; i < state_.size(); ++i) {
    if (contents[i].empty()) continue;
    if (retreat_ && retreat_->replay && state_[i].name == kReplayName) {
      retreat_->replay = std::make_shared<std::vector<std::byte>>(std::move(contents[i]));
      saving_->reader().replay_left(retreat_->replay);
      if (shadow_->prepared()) shadow_->reader().replay_left(retreat_->replay);
      continue;
    }
    if (Status written = at_.context.runtime().write(state_[i].variable, contents[i]); !written.ok())
      return make_error(written.error().code,
                        std::string(call) + ": '" + spec_.name +
                            "' is only partly loaded, load it again: " + written.error().message);
  }
  forget_steps();
  return {};
}

Status Brain::go_on_from_loaded() {
  if (learner_) {
    learner_->set_going();
    // Cancelling forgot what the program costs.
    if (learner_->compiled()) IMPRINT_CHECK(at_.context.measure(learner_->program()));
  }
  publish();
  return {};
}

Status Brain::load(const std::string& path) {
  IMPRINT_CHECK(check_can_load("brain_load"));
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  IMPRINT_ASSIGN(SavedBrain saved, decode_brain(bytes, spec_, state_));

  settle_memory();

  // From here on nothing is refused any more, but memory may run out in the middle.
  IMPRINT_CHECK(replace_state("brain_load", std::move(saved.state)));
  noise_seed_ = saved.host.seed;
  counts_->set(saved.host.counters);
  for (std::size_t i = 0; i < seats_.size(); ++i) seats_[i].set_draws(saved.host.draws[i]);
  if (learner_) {
    learner_->replay() = std::move(saved.host.replay);
    learner_->weights_replaced();
  }
  return go_on_from_loaded();
}

Status Brain::load_weights(const std::string& path) {
  IMPRINT_CHECK(check_can_load("brain_load_weights"));
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  IMPRINT_ASSIGN(std::vector<std::vector<std::byte>> weights, decode_weights(bytes, spec_, state_));
  settle_memory();
  IMPRINT_CHECK(replace_state("brain_load_weights", std::move(weights)));
  if (learner_) learner_->weights_restored();
  return go_on_from_loaded();
}

}  // namespace imprint::agent
