#include "plugin/agent/brain.h"

#include <algorithm>
#include <ranges>

#include "plugin/agent/brain_impl.h"
#include "plugin/agent/brain_programs.h"
#include "plugin/agent/decide/noise.h"

namespace imprint::agent {
namespace {

std::uint64_t bytes_of(std::span<const StateVariable> state) {
  std::uint64_t bytes = 0;
  for (const StateVariable& entry : state) bytes += entry.variable.bytes();
  return bytes;
}

}  // namespace

Brain::Brain(const Surroundings& surroundings, const BrainSpec& spec, const SharedTensors& shared,
             std::uint32_t action_width)
    : at_(surroundings),
      spec_(spec),
      layout_(SampleLayout::of(spec)),
      parameter_count_(spec.parameter_count()),
      noise_seed_(spec.seed),
      shared_(shared),
      action_width_(action_width),
      captured_(spec.seat_count(), 0),
      resets_(spec.seat_count(), 1),
      counts_(std::make_unique<Counts>()) {
  seats_.reserve(spec.seat_count());
  const bool follows = traits_of(spec.learner).follows;
  for (std::uint32_t i = 0; i < spec.seat_count(); ++i)
    seats_.emplace_back(spec.action, spec.action_latency_frames, spec.decision_period_frames > 1, follows);
  if (follows) {
    trails_.resize(spec.seat_count());
    newest_step_.assign(spec.brain_count, UINT32_MAX);
    broken_.assign(spec.seat_count(), 0);
  }
}

Brain::~Brain() { give_up(); }

void Brain::give_up() {
  if (inference_ && inference_->compiled()) at_.context.cancel(inference_->program());
  if (learner_ && learner_->compiled()) at_.context.cancel(learner_->program());
  if (snapshots_) snapshots_->each_program([&](Program& program) { at_.context.cancel(program); });
  if (!saving_) return;
  for (StateReader* reader : {&shadow_->reader(), &saving_->reader()})
    for (const Commands& commands : reader->commands()) at_.context.cancel(commands);
  if (saving_->idle()) return;
  Error error = make_error(ErrorCode::wrong_state,
                           "brain_save: '" + spec_.name +
                               "' was destroyed before it was read back; nothing was written to '" +
                               saving_->path() + "'");
  at_.log(LogLevel::warning, error.message);
  saving_->fail(std::move(error));
}

Result<std::shared_ptr<Brain>> Brain::create(const Surroundings& surroundings, const BrainSpec& spec,
                                             const SharedTensors& shared) {
  IMPRINT_CHECK(validate(spec));
  std::shared_ptr<Brain> brain(new Brain(surroundings, spec, shared, action_width(spec)));
  IMPRINT_CHECK(brain->check_shared());
  IMPRINT_CHECK(brain->check_memory());
  IMPRINT_CHECK(brain->build_learning());
  return brain;
}

Status Brain::check_shared() const {
  const auto refuse = [&](ErrorCode code, const SharedTensor& tensor, const std::string& expected) {
    return make_error(code, "brain_create: '" + spec_.name + "' cannot use the tensor '" + tensor.name +
                                "', which is " + std::string(dtype_name(tensor.dtype)) + tensor.shape.text() +
                                "; expected " + expected);
  };
  if (shared_.observations.buffer && traits_of(spec_.learner).looks_ahead)
    return make_error(ErrorCode::unsupported,
                      "brain_create: '" + spec_.name + "' is to learn by " + learner_name(spec_.learner) +
                          " and to observe through the tensor '" + shared_.observations.name +
                          "'; its samples have two observations, and those are numbers of the host's. Use "
                          "agent_observe, or "
                          "another learner");
  for (const SharedTensor* tensor : {&shared_.observations, &shared_.actions})
    if (tensor->buffer && tensor->dtype != DType::float32)
      return refuse(ErrorCode::dtype_mismatch, *tensor, "float32");
  if (shared_.observations.buffer && shared_.observations.element_count() < spec_.observation.count)
    return refuse(ErrorCode::shape_mismatch, shared_.observations,
                  "at least one observation of " + std::to_string(spec_.observation.count) + " numbers");
  const Shape actions{spec_.seat_count(), action_width_};
  if (shared_.actions.buffer && !(shared_.actions.shape == actions))
    return refuse(ErrorCode::shape_mismatch, shared_.actions,
                  actions.text() + ", a row of choices, continuous actions and values for each agent");
  return {};
}

Result<std::shared_ptr<Brain>> Brain::create_policy(const Surroundings& surroundings,
                                                    std::unique_ptr<PolicyModel> model,
                                                    const SharedTensors& shared) {
  std::shared_ptr<Brain> brain(
      new Brain(surroundings, model->spec, shared, model->spec.action.continuous_count));
  IMPRINT_CHECK(brain->check_shared());
  brain->parameter_count_ = model->parameter_count;
  IMPRINT_CHECK(surroundings.context.runtime().place_together(model->state));
  brain->inference_ = std::make_unique<Inference>(model->graph, model->spec);
  brain->policy_ = std::move(model);
  return brain;
}

// Multiplied before anything of that size is made, which would take long.
Status Brain::check_memory() const {
  const vk::Device* device = at_.context.vulkan();
  if (!device || spec_.learner == LearnerKind::none) return {};
  const bool replays = traits_of(spec_.learner).replays;
  const std::uint32_t samples = replays ? spec_.replay_capacity : rows_per_step(spec_);
  const std::uint64_t bytes = std::uint64_t{samples} * spec_.brain_count * layout_.width * sizeof(float);
  const std::uint64_t reach = device->capabilities().max_storage_buffer_range;
  if (bytes <= reach) return {};
  return make_error(
      ErrorCode::unsupported,
      std::string("brain_create: ") + (replays ? "the memory of '" : "what a step takes in of '") +
          spec_.name + "', " + std::to_string(samples) + " samples of " + std::to_string(layout_.width) +
          " numbers for each of " + std::to_string(spec_.brain_count) + " brains, takes " +
          std::to_string(bytes) + " bytes; this device's kernels reach " + std::to_string(reach) +
          " (maxStorageBufferRange). Lower " + (replays ? "replay_capacity" : "batch_size or rollout_steps"));
}

Status Brain::build_learning() {
  IMPRINT_ASSIGN(BrainPrograms programs,
                 describe_brain(spec_, shared_.observations.parts, shared_.actions.parts));
  Runtime& runtime = at_.context.runtime();
  IMPRINT_CHECK(runtime.place_together(programs.together));
  for (const Variable& replay : programs.yielding) IMPRINT_CHECK(runtime.place(replay, true));
  state_ = std::move(programs.state);
  inference_ = std::make_unique<Inference>(std::move(programs.infer), spec_);
  if (programs.learn) learner_ = std::make_unique<Learner>(spec_, std::move(*programs.learn));
  IMPRINT_ASSIGN(snapshots_, Snapshots::create(runtime, spec_.name, state_, spec_.snapshot_count));
  saving_ = std::make_unique<Saving>(at_.files, spec_, state_);
  shadow_ = std::make_unique<Shadow>(at_.files, spec_, state_);
  if (learner_ && at_.context.vulkan()) retreat_ = std::make_unique<Retreat>();
  return {};
}

BrainInfo Brain::info() const {
  BrainInfo info;
  info.observation_count = spec_.observation.count;
  info.goal_count = spec_.goal_count;
  info.branch_count = static_cast<std::uint32_t>(spec_.action.branch_sizes.size());
  info.continuous_count = spec_.action.continuous_count;
  info.brain_count = spec_.brain_count;
  info.agent_capacity = spec_.seat_count();
  info.action_width = action_width_;
  info.parameter_count = parameter_count_;
  return info;
}

BrainStats Brain::stats() const {
  BrainStats stats;
  stats.counters = counts_->counters();
  stats.samples = counts_->samples;
  stats.last_loss = counts_->last_loss;
  stats.snapshots = counts_->snapshots;
  stats.infer_dispatches = counts_->infer_dispatches;
  stats.learn_dispatches = counts_->learn_dispatches;
  stats.infer_barriers = counts_->infer_barriers;
  stats.learn_barriers = counts_->learn_barriers;
  stats.late_actions = counts_->late_actions;
  stats.stopped_brains = counts_->stopped;
  stats.dropped_samples = counts_->dropped;
  if (const auto shadow = shadow_ ? shadow_->newest() : nullptr) stats.shadow_frame = shadow->frame;
  stats.bytes_away = bytes_away();
  return stats;
}

void Brain::publish() {
  if (learner_) {
    counts_->samples = learner_->replay().sample_count();
    counts_->dropped = learner_->replay().waiting.dropped();
    counts_->stopped = learner_->stopped_brains();
  }
  if (snapshots_) counts_->snapshots = snapshots_->count();
}

std::size_t Brain::programs_to_compile() const {
  std::size_t count = inference_->compiled() ? 0 : 1;
  if (retreat_ && retreat_->phase != Retreat::Phase::present) return count;  // learning comes back by itself
  if (learner_ && !learner_->compiled()) ++count;
  if (snapshots_) count += snapshots_->programs_to_compile();
  return count;
}

Status Brain::warmup(const std::function<void()>& advance) {
  Runtime& runtime = at_.context.runtime();
  settle_memory();
  if (!inference_->compiled()) {
    IMPRINT_CHECK(inference_->compile(runtime));
    counts_->infer_dispatches = inference_->stats()->dispatches;
    counts_->infer_barriers = inference_->stats()->barriers;
    IMPRINT_CHECK(at_.context.measure(inference_->program()));
    advance();
  }
  if (programs_to_compile() == 0) return {};
  if (learner_ && !learner_->compiled()) {
    IMPRINT_ASSIGN(std::unique_ptr<Program> program, learner_->compile(runtime));
    learner_->install(std::move(program));
    counts_->learn_dispatches = learner_->stats()->dispatches;
    counts_->learn_barriers = learner_->stats()->barriers;
    IMPRINT_CHECK(at_.context.measure(learner_->program()));
    advance();
  }
  if (snapshots_ && snapshots_->programs_to_compile() > 0) {
    IMPRINT_ASSIGN(std::vector<Snapshots::Programs> programs, snapshots_->compile(runtime, advance));
    snapshots_->install(std::move(programs));
  }
  return {};
}

Status Brain::prepare_saving() {
  if (!saving_) return {};
  if (at_.shadow_period_frames > 0 && learner_ && !shadow_->prepared()) {
    Status prepared = shadow_->prepare(at_.context.runtime());
    if (!prepared && prepared.error().code != ErrorCode::out_of_device_memory) return prepared;
    if (!prepared)
      at_.log(LogLevel::warning,
              "brain '" + spec_.name + "': no memory for the " + std::to_string(bytes_of(state_)) +
                  " bytes of its shadow's way back to the host, so nothing of it survives a lost device: " +
                  prepared.error().message);
  }
  Status prepared = saving_->prepare(at_.context.runtime());
  if (prepared || prepared.error().code != ErrorCode::out_of_device_memory) return prepared;
  at_.log(LogLevel::warning, "brain '" + spec_.name + "': no memory for the " +
                                 std::to_string(bytes_of(state_)) +
                                 " bytes of its way back to the host, so it can be saved between frames "
                                 "only, if there is room then: " +
                                 prepared.error().message);
  return {};
}

// ---- the frame
// -----------------------------------------------------------------------------------------------------------------------------------

Status Brain::enqueue_frame(bool may_learn) {
  for (std::uint32_t seat = 0; seat < trails_.size(); ++seat) remember_settled(seat);
  IMPRINT_CHECK(enqueue_inference());
  if (!saving_) return {};
  const std::uint64_t frame = at_.clock.frame;
  if (retreat_ && retreat_->moving()) {
    if (!retreat_->done.load(std::memory_order_acquire)) return {};  // what is asked meanwhile waits
    finish_move();
  }
  IMPRINT_CHECK(enqueue_save());
  IMPRINT_CHECK(enqueue_shadow());
  // A step whose deadline is this frame still writes, behind this frame's inference.
  bool writes = false;
  if (learner_ && learner_->stepping()) {
    if (frame < learner_->deadline()) return {};
    learner_->end();
    writes = true;
  }
  IMPRINT_CHECK(enqueue_requests(frame, writes));
  // A save that waits for the next frame reads before a new step can write; anything behind it is for a state
  // that no step may touch before.
  if (requests_.empty()) {
    begin_shadow(writes);
    IMPRINT_CHECK(enqueue_shadow());
  }
  if (retreat_ && (requests_.empty() || copies_wait())) IMPRINT_CHECK(move_memory(writes));
  const bool only_save = requests_.size() == 1 && requests_.front().kind == Request::Kind::save;
  const bool present = !retreat_ || retreat_->phase == Retreat::Phase::present;
  if (may_learn && present && (requests_.empty() || only_save)) return start_step();
  return {};
}

// Snapshots hold the replay memory too, which is not where they are.
bool Brain::copies_wait() const {
  return retreat_ && retreat_->is_away() && retreat_->replay && !requests_.empty() &&
         requests_.front().kind == Request::Kind::copy;
}

// What waits for a boundary, in the order of the calls.
Status Brain::enqueue_requests(std::uint64_t frame, bool& writes) {
  while (!requests_.empty() && !copies_wait()) {
    Request& request = requests_.front();
    if (request.kind == Request::Kind::save) {
      if (request.from_frame == 0) request.from_frame = writes ? frame + 1 : frame;
      IMPRINT_CHECK(enqueue_save());
      break;
    }
    bridge::Job job;
    job.program = &snapshots_->program(request.copy, request.restores);
    job.kind = bridge::JobKind::learn;
    job.deadline_frame = frame;
    job.stream = stream();
    IMPRINT_CHECK(at_.context.enqueue(std::move(job)));
    if (request.restores && learner_) learner_->weights_restored();
    requests_.pop_front();
    writes = true;
  }
  return {};
}

// What is handed over between queue families must be ours while we use it.
Status Brain::check_turns() const {
  for (const SharedTensor* tensor : {&shared_.observations, &shared_.actions})
    if (tensor->buffer && !tensor->buffer->ours())
      return make_error(ErrorCode::wrong_state,
                        "submit: agents of '" + spec_.name + "' ask, and the tensor '" + tensor->name +
                            "' is with the host's queue family; call tensor_acquire in this frame first");
  return {};
}

Status Brain::enqueue_inference() {
  const auto decides = [](const Seat& seat) {
    return seat.mode() == Mode::learning || seat.mode() == Mode::inference;
  };
  const auto has_turn = [&](std::uint32_t i) { return spec_.turn_of(i) == turn_; };
  const auto asks = [&](std::uint32_t i) {
    return seats_[i].wants_decision() && decides(seats_[i]) && has_turn(i);
  };
  const auto looks = [&](std::uint32_t i) {
    return seats_[i].look() && (!decides(seats_[i]) || has_turn(i));
  };
  const auto all = std::views::iota(0u, static_cast<std::uint32_t>(seats_.size()));
  if (std::ranges::none_of(all, [&](std::uint32_t i) { return asks(i) || looks(i); })) {
    turn_ = (turn_ + 1) % spec_.decision_period_frames;
    return {};
  }
  IMPRINT_CHECK(check_turns());
  const std::optional<std::uint32_t> slot = inference_->free_slot();
  if (!slot) return {};  // the GPU is far behind: asked again in the next frame, and late
  inference_->begin(*slot);
  InferenceRun& run = inference_->run(*slot);
  run.frame = at_.clock.frame;
  run.asked.clear();
  for (std::uint32_t i = 0; i < seats_.size(); ++i) {
    Seat& seat = seats_[i];
    if (looks(i)) {
      const Seat::Look look = seat.take_look();
      captured_[i] = look.number;
      inference_->look(*slot, i, look.place, sight_row(spec_, {i, look.number}));
    }
    if (!asks(i)) continue;
    const Seat::Taken taken =
        seat.take(at_.clock.frame, learner_ ? learner_->acting_version(i / spec_.agents_per_brain) : 0);
    inference_->put(*slot, i, *taken.choice);
    const std::span<std::int32_t> mask = inference_->mask(*slot, i);
    if (!mask.empty()) seat.write_mask(mask);
    explore(inference_->noise(*slot, i), mask, i, taken.draw);
    if (resets_[i]) inference_->set_reset(*slot, i);
    resets_[i] = 0;
    run.asked.push_back({i, taken.ticket});
  }
  counts_->decisions += run.asked.size();
  turn_ = (turn_ + 1) % spec_.decision_period_frames;
  bridge::Job job;
  job.program = &inference_->program();
  job.slot = *slot;
  // Of two words, for which a function needs no memory; give_up() cancels it before this goes.
  job.on_complete = [this, slot = *slot](std::uint64_t) { finish_inference(slot); };
  run.under_way = true;
  Status enqueued = at_.context.enqueue(std::move(job));
  if (!enqueued.ok()) run.under_way = false;
  return enqueued;
}

void Brain::explore(std::span<float> noise, std::span<const std::int32_t> allowed, std::uint32_t seat,
                    std::uint64_t draw) const {
  const std::uint64_t seed = noise_seed_ + seat / spec_.agents_per_brain;
  const std::uint32_t agent = seat % spec_.agents_per_brain;
  const bool learning = seats_[seat].mode() == Mode::learning;
  if (learning && traits_of(spec_.learner).draws_actions) return fill_gumbel(noise, seed, agent, draw);
  fill_noise(noise, learning ? spec_.exploration : 0.0f, seed, agent, draw);
  if (learning && spec_.learner == LearnerKind::dqn)
    add_random_choice(noise, allowed, spec_.random_share(draw), seed, agent, draw);
}

void Brain::finish_inference(std::uint32_t slot) {
  InferenceRun& run = inference_->run(slot);
  run.under_way = false;
  const bool late = at_.clock.frame > run.frame + spec_.action_latency_frames;
  for (const InferenceRun::Asked& asked : run.asked) {
    const Inference::SeatAnswer answer = inference_->answer(slot, asked.seat);
    const bool wanted =
        seats_[asked.seat].answer(asked.ticket, answer.branches, answer.continuous, answer.values);
    if (late && wanted) ++counts_->late_actions;
  }
}

Status Brain::enqueue_save() {
  if (requests_.empty()) return {};
  const Request& request = requests_.front();
  if (request.kind != Request::Kind::save || request.from_frame == 0 || at_.clock.frame < request.from_frame)
    return {};
  IMPRINT_CHECK(enqueue_all(saving_->reader().commands(), [weak = weak_from_this()](std::uint64_t) {
    if (const auto brain = weak.lock()) brain->saving_->delivered();
  }));
  requests_.pop_front();
  return {};
}

// Complete with the last of them.
Status Brain::enqueue_all(std::span<const Commands> commands,
                          std::function<void(std::uint64_t)> on_complete) {
  for (std::size_t i = 0; i + 1 < commands.size(); ++i) IMPRINT_CHECK(at_.context.enqueue(commands[i], {}));
  return at_.context.enqueue(commands.back(), std::move(on_complete));
}

// At a boundary, before anything of the next step. `writes`: this frame still changes the state, behind its
// immediate jobs.
void Brain::begin_shadow(bool writes) {
  const std::uint64_t frame = at_.clock.frame;
  if (at_.shadow_period_frames == 0 || !learner_ || !shadow_->prepared() || !shadow_->idle() || !changed_ ||
      frame < next_shadow_)
    return;
  shadow_->begin(frame, host_state());
  shadow_from_ = writes ? frame + 1 : frame;
  next_shadow_ = frame + at_.shadow_period_frames;
  changed_ = false;
}

Status Brain::enqueue_shadow() {
  if (!shadow_->begun() || at_.clock.frame < shadow_from_) return {};
  IMPRINT_CHECK(enqueue_all(shadow_->reader().commands(), [weak = weak_from_this()](std::uint64_t) {
    if (const auto brain = weak.lock()) brain->shadow_->delivered();
  }));
  shadow_->issued();
  return {};
}

Status Brain::start_step() {
  if (!learner_ || !learner_->compiled() || !learning_ || learner_->stepping() || !learner_->has_work())
    return {};
  const std::optional<std::uint32_t> slot = learner_->free_slot();
  if (!slot) return {};  // the GPU is far behind: the step begins later
  const std::uint64_t deadline = at_.clock.frame + spec_.learn_period_frames;
  if (learner_->begin(*slot, deadline, captured_)) counts_->minibatches += learner_->minibatches_per_step();
  changed_ = true;
  bridge::Job job;
  job.program = &learner_->program();
  job.slot = *slot;
  job.kind = bridge::JobKind::learn;
  job.deadline_frame = deadline;
  job.stream = stream();
  job.on_complete = [this, slot = *slot](std::uint64_t) { finish_step(slot); };
  publish();
  return at_.context.enqueue(std::move(job));
}

void Brain::finish_step(std::uint32_t slot) {
  const Learner::Outcome outcome = learner_->finish(slot);
  if (outcome.learned > 0) counts_->last_loss = outcome.loss;
  if (outcome.stopped > 0) {
    at_.log(LogLevel::error, "brain '" + spec_.name + "': the loss of " + std::to_string(outcome.stopped) +
                                 " of " + std::to_string(spec_.brain_count) +
                                 " brains is not finite; they stop learning and keep their last finite "
                                 "weights. Restore a snapshot or load a file to "
                                 "go on, with a lower learning_rate");
  }
  publish();
}

}  // namespace imprint::agent
