#include "plugin/agent/keep/brain_state.h"

#include <algorithm>
#include <string_view>

#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "plugin/agent/spec/state_variable.h"

namespace imprint::agent {
namespace {

Error in_file(const char* call, const std::string& path, const Error& error) {
  return make_error(error.code, text(call, ": '", path, "': ", error.message));
}

}  // namespace

BrainState::BrainState(const BrainServices& services, const BrainSpec& spec, BrainCounts& counts,
                       Decisions& decisions, std::shared_ptr<Learning> learning,
                       std::vector<StateVariable> variables)
    : services_(services),
      spec_(spec),
      counts_(counts),
      decisions_(decisions),
      learning_(std::move(learning)),
      variables_(std::move(variables)) {}

Result<std::shared_ptr<BrainState>> BrainState::create(const BrainServices& services, const BrainSpec& spec,
                                                       BrainCounts& counts, Decisions& decisions,
                                                       std::shared_ptr<Learning> learning,
                                                       std::vector<StateVariable> variables, bool changes) {
  std::shared_ptr<BrainState> state(
      new BrainState(services, spec, counts, decisions, std::move(learning), std::move(variables)));
  if (!changes) return state;
  for (const StateVariable& entry : state->variables_)
    if (entry.merge != Merge::none) state->shared_.push_back(entry);
  IMPRINT_ASSIGN(state->snapshots_,
                 Snapshots::create(services.context.runtime(), spec.name, state->variables_,
                                   spec.snapshot_count, spec.fall_back));
  state->saving_ = std::make_unique<Saving>(services.files, spec, state->variables_);
  state->host_copy_ = std::make_unique<HostCopy>(services.files, spec, state->variables_);
  if (state->learning_ && services.context.vulkan())
    state->eviction_ = std::make_shared<MemoryEviction>(
        MemoryEviction::Parts{services, spec, *state->learning_, *state->snapshots_, *state->saving_,
                              *state->host_copy_, state->replay_variables()});
  return state;
}

std::vector<Variable> BrainState::replay_variables() const {
  std::vector<Variable> replay;
  for (const StateVariable& entry : variables_)
    if (is_replay(entry)) replay.push_back(entry.variable);
  return replay;
}

std::uint64_t BrainState::state_bytes() const {
  std::uint64_t bytes = 0;
  for (const StateVariable& entry : variables_) bytes += entry.variable.bytes();
  return bytes;
}

Result<> BrainState::check_changes(const char* call) const {
  if (saving_) return {};
  return make_error(ErrorCode::unsupported,
                    text(call, ": brain '", spec_.name,
                         "': found a policy from a file, which does not change, expected a brain that "
                         "brain_create made"));
}

HostState BrainState::host_state() const {
  HostState host;
  host.seed = decisions_.noise_seed();
  host.counters = counts_.counters();
  for (const AgentSlot& agent : decisions_.agents()) host.draws.push_back(agent.draws());
  if (learning_) {
    host.replay = learning_->training().replay();
    host.replay.waiting.drop_observation_copies();
  }
  return host;
}

void BrainState::publish() {
  if (learning_) learning_->publish();
  if (snapshots_) counts_.snapshots = snapshots_->count();
}

// ---- create-time ----

std::size_t BrainState::programs_to_compile() const {
  return snapshots_ && learning_present() ? snapshots_->programs_to_compile() : 0;
}

Result<> BrainState::compile(const std::function<void()>& advance) {
  if (programs_to_compile() == 0) return {};
  IMPRINT_ASSIGN(std::vector<Snapshots::Programs> programs,
                 snapshots_->compile(services_.context.runtime(), advance));
  snapshots_->install(std::move(programs));
  return {};
}

Result<> BrainState::run_once(RunOnce& runs) {
  if (!learning_present()) return {};
  if (put_back_pending_) IMPRINT_CHECK(put_back(runs));
  if (learning_ && learning_->may_run_once() && runs.wants(learning_->training().program()))
    IMPRINT_CHECK(run_learning_once(runs));
  if (!snapshots_ || snapshots_->programs_to_compile() > 0) return {};
  // A snapshot that was just kept restores what is there.
  return snapshots_->run_once(runs);
}

Result<> BrainState::run_learning_once(RunOnce& runs) {
  std::vector<Variable> changed;  // a step without samples leaves the replay memory as it is
  for (const StateVariable& entry : variables_)
    if (!is_replay(entry)) changed.push_back(entry.variable);
  Result<std::unique_ptr<StateCopy>> copy = services_.context.runtime().copy(changed);
  if (!copy && copy.error().code == ErrorCode::out_of_device_memory) {
    services_.log(LogLevel::info, text("brain '", spec_.name,
                                       "': no memory to run its learning once before play, so the first step "
                                       "may wait for the driver's compiler: ",
                                       copy.error().message));
    return {};
  }
  if (!copy) return std::move(copy).error();
  beside_ = std::move(*copy);
  IMPRINT_CHECK(runs.run(beside_->keep()));
  put_back_pending_ = true;  // also when the call fails: the GPU may run it nevertheless
  IMPRINT_CHECK(learning_->run_once(runs));
  return put_back(runs);
}

Result<> BrainState::put_back(RunOnce& runs) {
  Result<> put = runs.run(beside_->put_back(), [this] { beside_.reset(); });
  put_back_pending_ = !put.ok();
  return put;
}

Result<> BrainState::prepare_saving() {
  if (!saving_) return {};
  const auto without_room = [&](const Result<>& prepared, const char* consequence) -> Result<> {
    if (prepared || prepared.error().code != ErrorCode::out_of_device_memory) return prepared;
    services_.log(LogLevel::warning,
                  text("brain '", spec_.name, "': no memory to read its ", state_bytes(),
                       " bytes back to the host, so ", consequence, ": ", prepared.error().message));
    return {};
  };
  if (services_.host_copy_period_frames > 0 && learning_ && !host_copy_->prepared())
    IMPRINT_CHECK(without_room(host_copy_->prepare(services_.context.runtime()),
                               "it has no host copies and nothing of it survives a device loss"));
  return without_room(saving_->prepare(services_.context.runtime()),
                      "it can be saved between frames only, once there is room");
}

namespace {

// Work that a call waits for. An error of Context::run_now then names the call that the game made.
Result<> run_for(std::string_view call, bridge::Context& context, const Commands& commands) {
  Result<> ran = context.run_now(commands);
  if (ran.ok()) return {};
  Error error = std::move(ran).error();
  constexpr std::string_view kInner = "run_now";
  if (error.message.starts_with(kInner)) error.message.replace(0, kInner.size(), call);
  return error;
}

}  // namespace

Result<Hash128> BrainState::hash() {
  IMPRINT_CHECK(check_changes("brain_hash"));
  settle_eviction();
  StateReader reader(variables_);
  if (eviction_ && eviction_->replay()) reader.replay_left(eviction_->replay());
  IMPRINT_CHECK(reader.prepare(services_.context.runtime()));
  IMPRINT_CHECK(services_.context.check_running("brain_hash"));
  for (const Commands& commands : reader.commands())
    IMPRINT_CHECK(run_for("brain_hash", services_.context, commands));
  Hasher hasher;
  for (std::size_t i = 0; i < variables_.size(); ++i) hasher.text(variables_[i].name).bytes(reader.bytes(i));
  if (learning_) {
    const ReplayState& replay = learning_->training().replay();
    for (const std::int32_t row : replay.next) hasher.number(row);
    for (const std::int32_t rows : replay.filled) hasher.number(rows);
  }
  return hasher.digest();
}

Result<> BrainState::check_can_load(const char* call) const {
  IMPRINT_CHECK(check_changes(call));
  if (saving_->idle() && requests_.empty()) return {};
  return make_error(
      ErrorCode::wrong_state,
      text(call, ": brain '", spec_.name,
           "': found a save, snapshot or restore under way, expected none. Call context_drain, or run "
           "frames until brain_save_status returns the outcome."));
}

Result<> BrainState::replace(const char* call, std::vector<std::vector<std::byte>> contents) {
  give_up_host_copy();
  changed_ = true;
  if (learning_) learning_->drop_step();
  std::size_t remembered = 0;  // variables of the replay memory so far
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const std::size_t part = is_replay(variables_[i]) ? remembered++ : 0;
    if (contents[i].empty()) continue;
    if (eviction_ && eviction_->replay() && is_replay(variables_[i])) {
      eviction_->replace_replay(part, std::move(contents[i]));
      continue;
    }
    if (Result<> written = services_.context.runtime().write(variables_[i].variable, contents[i]);
        !written.ok())
      return make_error(written.error().code,
                        text(call, ": brain '", spec_.name,
                             "' is only partly loaded. Load it again: ", written.error().message));
  }
  if (learning_) learning_->experience().forget_steps();
  return {};
}

Result<> BrainState::resume_loaded() {
  if (learning_) {
    learning_->experience().loaded();
    Training& training = learning_->training();
    training.resume_all();
    // Cancelling forgot the program's measured cost.
    if (training.compiled()) IMPRINT_CHECK(services_.context.measure(training.program()));
  }
  publish();
  return {};
}

Result<std::vector<std::byte>> BrainState::read_save(const char* call, const std::string& path) const {
  IMPRINT_CHECK(check_can_load(call));
  IMPRINT_CHECK(services_.context.check_running(call));
  auto bytes = read_file(path);
  if (!bytes) return make_error(bytes.error().code, text(call, ": ", bytes.error().message));
  return bytes;
}

Result<> BrainState::load(const std::string& path) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_save("brain_load", path));
  auto decoded = decode_brain(bytes, spec_, variables_);
  if (!decoded) return in_file("brain_load", path, decoded.error());
  SavedBrain saved = std::move(*decoded);
  settle_eviction();

  // The file is good from here on. Only memory may still run out.
  IMPRINT_CHECK(replace("brain_load", std::move(saved.state)));
  decisions_.set_noise_seed(saved.host.seed);
  counts_.set(saved.host.counters);
  for (std::size_t i = 0; i < saved.host.draws.size(); ++i)
    decisions_.agents()[i].set_draws(saved.host.draws[i]);
  if (learning_) {
    learning_->training().replay() = std::move(saved.host.replay);
    learning_->training().weights_replaced();
  }
  return resume_loaded();
}

Result<> BrainState::load_weights(const std::string& path) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_save("brain_load_weights", path));
  auto weights = decode_weights(bytes, spec_, variables_);
  if (!weights) return in_file("brain_load_weights", path, weights.error());
  settle_eviction();
  IMPRINT_CHECK(replace("brain_load_weights", std::move(*weights)));
  if (learning_) learning_->training().weights_restored();
  return resume_loaded();
}

void BrainState::cancel() {
  if (snapshots_) snapshots_->each_program([&](Program& program) { services_.context.cancel(program); });
  if (!saving_) return;
  if (shared_reader_) services_.context.cancel(shared_reader_->commands().front());
  for (StateReader* reader : {&host_copy_->reader(), &saving_->reader()})
    for (const Commands& commands : reader->commands()) services_.context.cancel(commands);
  if (saving_->idle()) return;
  Error error = make_error(
      ErrorCode::wrong_state,
      text("brain_save: brain '", spec_.name,
           "' was destroyed before it was read back. Nothing was written to '", saving_->path(), "'."));
  services_.log(LogLevel::warning, error.message);
  saving_->fail(std::move(error));
}

Result<> BrainState::close_save() {
  if (!saving_) return {};
  if (services_.context.lost() && saving_->waits_for_gpu() && host_copy_->newest()) {
    const std::string path = saving_->path();
    saving_->fail(make_error(ErrorCode::device_lost, "brain_save: the device was lost"));
    services_.log(LogLevel::warning,
                  text("brain_save: brain '", spec_.name, "': the device was lost, so '", path,
                       "' gets the copy in host memory of frame ", host_copy_->newest()->frame));
    IMPRINT_CHECK(save_host_copy(path));
    services_.files.flush();
  }
  if (services_.context.lost())
    saving_->fail(
        make_error(ErrorCode::device_lost, "brain_save: the device was lost before the brain was read back"));
  const Result<> outcome = saving_->tell();
  if (outcome) return {};
  const bool waits = outcome.error().code == ErrorCode::not_ready;
  return make_error(
      waits ? ErrorCode::wrong_state : outcome.error().code,
      text("context_destroy: brain '", spec_.name, "': the save to '", saving_->path(), "' is not on disk",
           waits ? ", because the GPU has not delivered it. Record a frame with IMP_SCOPE_EVERYTHING, submit "
                   "it, wait until your device is idle, and call context_device_idle"
                 : ": " + outcome.error().message + ". Save again",
           ". Nothing is destroyed; a further context_destroy gives the save up."));
}

Result<> BrainState::settle() {
  if (!saving_) return {};
  settle_eviction();
  if (learning_) learning_->training().end();
  give_up_host_copy();
  while (!requests_.empty()) {
    const Request& request = requests_.front();  // stays after an error, for another try
    if (copies_wait())
      return make_error(ErrorCode::not_ready,
                        text("context_drain: brain '", spec_.name,
                             "': its snapshots and restores wait until there is device memory for its "
                             "replay memory again"));
    if (request.kind == Request::Kind::copy) {
      IMPRINT_CHECK(services_.context.run_now(snapshots_->program(request.copy, request.restores)));
      if (request.restores && learning_) learning_->training().weights_restored();
    } else {
      for (const Commands& commands : saving_->reader().commands())
        IMPRINT_CHECK(services_.context.run_now(commands));
      saving_->delivered();
    }
    requests_.pop_front();
  }
  return {};
}

// ---- frame thread, or between frames ----

Result<> BrainState::save(const std::string& path) {
  IMPRINT_CHECK(check_changes("brain_save"));
  if (path.empty()) return make_error(ErrorCode::invalid_argument, "brain_save: path: found an empty one");
  if (services_.context.lost()) return save_host_copy(path);
  if (!saving_->prepared()) {
    if (services_.context.frame_state() != bridge::FrameState::closed)
      return make_error(
          ErrorCode::wrong_state,
          text("brain_save: brain '", spec_.name,
               "' has no memory for its readback, and a frame takes none. Call context_warmup first; "
               "where the memory cap leaves no room, save between frames."));
    IMPRINT_CHECK(saving_->prepare(services_.context.runtime()));
  }
  IMPRINT_CHECK(saving_->begin(path, host_state()));
  requests_.push_back({Request::Kind::save, 0, false, 0});
  return {};
}

Result<> BrainState::save_host_copy(const std::string& path) {
  services_.files.flush();  // a newer one may be in the making
  const std::shared_ptr<const HostCopy::Content> copy = host_copy_->newest();
  if (!copy)
    return make_error(
        ErrorCode::device_lost,
        text("brain_save: the device was lost, and brain '", spec_.name, "' has no copy in host memory",
             services_.host_copy_period_frames > 0 && learning_
                 ? " yet. The first is made when it has begun to learn."
                 : ". Set imp_limits::host_copy_period_frames before context_warmup."));
  (void)save_status();  // fails a save that was under way
  return saving_->write(path, {copy, &copy->file});
}

Result<> BrainState::save_status() {
  if (!saving_)
    return make_error(ErrorCode::not_found,
                      "brain_save_status: this brain was never saved. Call brain_save first.");
  if (services_.context.lost())
    saving_->fail(
        make_error(ErrorCode::device_lost, "brain_save: the device was lost before the brain was read back"));
  if (saving_->waits_for_gpu()) hint_at_frames();
  return saving_->status();
}

// A caller that waits for a save in a loop without frames waits for ever.
void BrainState::hint_at_frames() {
  constexpr std::uint32_t kManyPolls = 100;
  const std::uint64_t frames = services_.context.stats().frames;
  if (std::exchange(polled_at_, frames) != frames) polls_ = 0;
  if (++polls_ != kManyPolls || std::exchange(hinted_at_frames_, true)) return;
  services_.log(LogLevel::warning,
                text("brain_save_status: brain '", spec_.name, "': found ", kManyPolls,
                     " calls and no frame between them, expected frames: a save is read back by frames. Run "
                     "frames, or call context_drain."));
}

Result<std::uint64_t> BrainState::snapshot() {
  IMPRINT_CHECK(check_changes("brain_snapshot"));
  if (snapshots_->programs_to_compile() > 0 && learning_present())
    return make_error(ErrorCode::wrong_state, text("brain_snapshot: brain '", spec_.name,
                                                   "' is not compiled. Call context_warmup first."));
  IMPRINT_ASSIGN(const Snapshots::Taken taken,
                 snapshots_->take(learning_ ? learning_->training().replay() : ReplayState{}));
  requests_.push_back({Request::Kind::copy, taken.copy, false, 0});
  publish();
  return taken.id;
}

Result<> BrainState::restore(std::uint64_t snapshot) {
  IMPRINT_CHECK(check_changes("brain_restore"));
  IMPRINT_ASSIGN(const Snapshots::Found found, snapshots_->find(snapshot));
  go_back(found);
  return {};
}

void BrainState::keep_best() {
  requests_.push_back({Request::Kind::copy, snapshots_->take_best(learning_->training().replay()), false, 0});
}

void BrainState::restore_best() { go_back(snapshots_->find_best()); }

void BrainState::go_back(const Snapshots::Found& found) {
  if (learning_) {
    learning_->experience().forget_steps();
    learning_->training().replay() = *found.replay;
    learning_->training().resume_all();
  }
  requests_.push_back({Request::Kind::copy, found.copy, true, 0});
  changed_ = true;
  publish();
}

// ---- the frame ----

Result<bool> BrainState::enqueue() {
  if (!saving_) return false;
  if (eviction_ && !eviction_->poll()) return false;  // requests wait
  IMPRINT_CHECK(enqueue_save());
  IMPRINT_CHECK(enqueue_host_copy());
  // A step whose deadline is this frame still writes, after this frame's inference.
  bool writes = false;
  if (learning_ && learning_->training().stepping()) {
    if (services_.clock.frame < learning_->training().deadline()) return false;
    learning_->training().end();
    writes = true;
  }
  IMPRINT_CHECK(enqueue_requests(writes));
  if (requests_.empty()) {
    begin_host_copy(writes);
    IMPRINT_CHECK(enqueue_host_copy());
  }
  if (eviction_ && (requests_.empty() || copies_wait())) IMPRINT_CHECK(eviction_->begin(writes));
  // Requests are for a state that no step may touch before, a save for the moment of its host part too.
  return learning_present() && requests_.empty();
}

Result<bool> BrainState::enqueue_rest() {
  if (!saving_ || (eviction_ && !eviction_->poll())) return false;
  if (learning_) learning_->training().end();
  give_up_host_copy();
  const std::size_t waiting = requests_.size();
  if (waiting == 0) return false;
  requests_.front().from_frame = 0;  // nothing that is issued still writes after it
  bool writes = false;
  IMPRINT_CHECK(enqueue_requests(writes));
  return requests_.size() < waiting;
}

// Snapshots hold the replay memory too, and it is not on the device.
bool BrainState::copies_wait() const {
  return eviction_ && eviction_->evicted() && eviction_->replay() && !requests_.empty() &&
         requests_.front().kind == Request::Kind::copy;
}

Result<> BrainState::enqueue_requests(bool& writes) {
  const std::uint64_t frame = services_.clock.frame;
  while (!requests_.empty() && !copies_wait()) {
    Request& request = requests_.front();
    if (request.kind == Request::Kind::save) {
      if (request.from_frame == 0) request.from_frame = writes ? frame + 1 : frame;
      IMPRINT_CHECK(enqueue_save());
      break;
    }
    bridge::FrameJob job;
    job.program = &snapshots_->program(request.copy, request.restores);
    job.kind = bridge::FrameJobKind::learn;
    job.deadline_frame = frame;
    job.stream = services_.stream;
    IMPRINT_CHECK(services_.context.enqueue(std::move(job)));
    if (request.restores && learning_) learning_->training().weights_restored();
    requests_.pop_front();
    writes = true;
  }
  return {};
}

Result<> BrainState::enqueue_save() {
  if (requests_.empty()) return {};
  const Request& request = requests_.front();
  if (request.kind != Request::Kind::save || request.from_frame == 0 ||
      services_.clock.frame < request.from_frame)
    return {};
  IMPRINT_CHECK(enqueue_all(saving_->reader().commands(), [weak = weak_from_this()](std::uint64_t) {
    if (const auto state = weak.lock()) state->saving_->delivered();
  }));
  requests_.pop_front();
  return {};
}

// At a boundary, before anything of the next step. writes: this frame still changes the state.
void BrainState::begin_host_copy(bool writes) {
  const std::uint64_t frame = services_.clock.frame;
  if (services_.host_copy_period_frames == 0 || !learning_ || !host_copy_->prepared() ||
      !host_copy_->idle() || !changed_ || frame < next_host_copy_)
    return;
  host_copy_->begin(frame, host_state());
  host_copy_from_ = writes ? frame + 1 : frame;
  next_host_copy_ = frame + services_.host_copy_period_frames;
  changed_ = false;
}

Result<> BrainState::enqueue_host_copy() {
  if (!host_copy_->begun() || services_.clock.frame < host_copy_from_) return {};
  IMPRINT_CHECK(enqueue_all(host_copy_->reader().commands(), [weak = weak_from_this()](std::uint64_t) {
    if (const auto state = weak.lock()) state->host_copy_->delivered();
  }));
  host_copy_->issued();
  return {};
}

void BrainState::give_up_host_copy() {
  if (!host_copy_->begun()) return;
  host_copy_->forget();
  changed_ = true;
  next_host_copy_ = 0;
}

// on_complete is called with the last of them.
Result<> BrainState::enqueue_all(std::span<const Commands> commands,
                                 std::function<void(std::uint64_t)> on_complete) {
  for (std::size_t i = 0; i + 1 < commands.size(); ++i)
    IMPRINT_CHECK(services_.context.enqueue(commands[i], {}));
  return services_.context.enqueue(commands.back(), std::move(on_complete));
}

void BrainState::settle_eviction() {
  if (eviction_) eviction_->settle();
}

void BrainState::request_eviction(bool evict) {
  if (eviction_) eviction_->request(evict);
}

std::uint64_t BrainState::evicted_bytes() const { return eviction_ ? eviction_->bytes() : 0; }

std::uint64_t BrainState::host_copy_frame() const {
  const auto newest = host_copy_ ? host_copy_->newest() : nullptr;
  return newest ? newest->frame : 0;
}

}  // namespace imprint::agent
