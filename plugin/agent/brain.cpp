#include "plugin/agent/brain.h"

#include <algorithm>

#include "compute/base/text.h"
#include "plugin/agent/brain_programs.h"
#include "plugin/agent/decide/policy.h"
#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/samples/replay_memory.h"
#include "plugin/agent/validate.h"

namespace imprint::agent {
namespace {

AgentSlot::Keeps keeps(const BrainSpec& spec) {
  const Learner* learner = find_learner(spec.learner);
  if (!learner || !learner->records_steps()) return AgentSlot::Keeps::nothing;
  return learner->collects_rollouts() ? AgentSlot::Keeps::masks_and_probabilities : AgentSlot::Keeps::masks;
}

}  // namespace

Brain::Brain(const BrainServices& services, const BrainSpec& spec, const SharedTensors& shared,
             std::uint32_t action_width)
    : services_(services),
      spec_(spec),
      parameter_count_(spec.parameter_count()),
      action_width_(action_width),
      decisions_(services_, spec_, shared, counts_, keeps(spec)) {
  services_.stream = reinterpret_cast<std::uintptr_t>(this);
}

Brain::~Brain() { cancel(); }

void Brain::cancel() {
  for (const Commands& run : runs_once_) services_.context.cancel(run);
  runs_once_.clear();
  decisions_.cancel();
  if (learning_) learning_->cancel();
  if (state_) state_->cancel();
}

Result<std::shared_ptr<Brain>> Brain::create(const BrainServices& services, const BrainSpec& given,
                                             const SharedTensors& shared) {
  IMPRINT_ASSIGN(const BrainSpec spec, checked(given));
  std::shared_ptr<Brain> brain(new Brain(services, spec, shared, action_width(spec)));
  IMPRINT_CHECK(brain->check_shared());
  IMPRINT_CHECK(brain->check_sample_memory());
  IMPRINT_CHECK(brain->check_memory_cap());
  IMPRINT_CHECK(brain->make_parts());
  return brain;
}

Result<std::shared_ptr<Brain>> Brain::create_policy(const BrainServices& services,
                                                    std::unique_ptr<PolicyModel> model,
                                                    const SharedTensors& shared) {
  std::shared_ptr<Brain> brain(new Brain(services, model->spec, shared, model->spec.action.continuous_count));
  IMPRINT_CHECK(brain->check_shared());
  brain->parameter_count_ = model->parameter_count;
  IMPRINT_CHECK(services.context.runtime().place_together(model->state));
  brain->decisions_.set_graph(model->graph);
  brain->policy_ = std::move(model);
  IMPRINT_ASSIGN(brain->state_, BrainState::create(brain->services_, brain->spec_, brain->counts_,
                                                   brain->decisions_, nullptr, {}, false));
  brain->agents_ =
      std::make_unique<Agents>(brain->services_, brain->spec_, brain->counts_, brain->decisions_, nullptr);
  return brain;
}

Result<> Brain::check_shared() const {
  const SharedTensors& shared = decisions_.shared();
  const auto refuse = [&](ErrorCode code, const SharedTensor& tensor, const std::string& expected) {
    return make_error(code, text("brain_create: brain '", spec_.name, "', tensor '", tensor.name, "': found ",
                                 dtype_name(tensor.dtype), tensor.shape.text(), ", expected ", expected));
  };
  if (shared.observations.buffer && (spec_.keeps_demonstrations() || spec_.has_signals()))
    return make_error(ErrorCode::unsupported,
                      text("brain_create: brain '", spec_.name, "': found tensor '", shared.observations.name,
                           "' for observations, but demonstrations and signals need them as numbers. Use "
                           "agent_observe, or remove imp_demonstration_options and imp_signal_options."));
  if (shared.observations.buffer && (spec_.sends_experience || spec_.receives_experience))
    return make_error(
        ErrorCode::unsupported,
        text("brain_create: brain '", spec_.name, "': found tensor '", shared.observations.name,
             "' for observations, but imp_shared_learning::experience needs them as numbers. Use "
             "agent_observe."));
  for (const SharedTensor* tensor : {&shared.observations, &shared.actions})
    if (tensor->buffer && tensor->dtype != DType::float32)
      return refuse(ErrorCode::dtype_mismatch, *tensor, "float32");
  if (shared.observations.buffer && shared.observations.element_count() < spec_.observation.count)
    return refuse(ErrorCode::shape_mismatch, shared.observations,
                  text("at least ", spec_.observation.count, " numbers, one observation"));
  const Shape actions{spec_.agent_capacity(), action_width_};
  if (shared.actions.buffer && !(shared.actions.shape == actions))
    return refuse(ErrorCode::shape_mismatch, shared.actions,
                  text(actions.text(), ": per agent its choices, continuous actions and values"));
  return {};
}

// Before anything of that size is made, which would take long.
Result<> Brain::check_sample_memory() const {
  const vk::Device* device = services_.context.vulkan();
  if (!device || spec_.learner == LearnerKind::none) return {};
  const Learner& learner = learner_of(spec_);
  const std::uint32_t samples = learner.replays() ? spec_.replay_capacity : rows_per_step(spec_);
  const std::uint32_t width =
      learner.replays() ? replay_columns(spec_).longest() : learner.layout(spec_).width;
  const std::uint64_t bytes =
      std::max(std::uint64_t{samples} * width,
               std::uint64_t{spec_.demonstration_capacity} * demonstration_layout(spec_).width) *
      spec_.brain_count * sizeof(float);
  const std::uint64_t reach = device->capabilities().max_storage_buffer_range;
  if (bytes <= reach) return {};
  const char* field = learner.replays() ? "replay_capacity" : "batch_size or rollout_steps";
  return make_error(ErrorCode::unsupported,
                    text("brain_create: brain '", spec_.name, "': found ", bytes, " bytes for ", samples,
                         " samples of ", width, " numbers in each of ", spec_.brain_count,
                         " brains, expected at most ", reach, " (maxStorageBufferRange). Lower ", field));
}

// Describing a brain makes its first weights and its empty replay memory on the host. Counts only those, so
// that nothing is refused that fits.
Result<> Brain::check_memory_cap() const {
  const std::uint64_t most = services_.memory_cap_bytes;
  if (most == 0) return {};
  const bool learns = spec_.learner != LearnerKind::none;
  const std::uint64_t copies = learns ? 3 : 1;  // learners keep two moments per weight
  const std::uint64_t weights = copies * spec_.parameter_count() * sizeof(float);
  std::uint64_t replay = 0;
  if (learns && learner_of(spec_).replays())
    replay = std::uint64_t{spec_.brain_count} * spec_.replay_capacity * replay_columns(spec_).row_bytes();
  if (weights <= most && replay <= most - weights) return {};
  return make_error(ErrorCode::out_of_device_memory,
                    text("brain_create: brain '", spec_.name, "': found ", weights,
                         " bytes for weights and their moments and ", replay,
                         " for the replay memory, expected at most ", most,
                         ", which is memory_cap_bytes. Lower hidden_sizes, brain_count or "
                         "replay_capacity, or raise the cap"));
}

Result<> Brain::make_parts() {
  const SharedTensors& shared = decisions_.shared();
  IMPRINT_ASSIGN(BrainPrograms programs,
                 describe_brain(spec_, shared.observations.parts, shared.actions.parts));
  Runtime& runtime = services_.context.runtime();
  IMPRINT_CHECK(runtime.place_together(programs.together));
  for (const Variable& replay : programs.evictable) IMPRINT_CHECK(runtime.place(replay, true));
  decisions_.set_graph(std::move(programs.infer));
  if (programs.learn) {
    learning_ = std::make_shared<Learning>(services_, spec_, std::move(*programs.learn), counts_);
    decisions_.set_hooks(
        {[learning = learning_.get()](std::uint32_t brain) {
           return learning->training().acting_version(brain);
         },
         [learning = learning_.get(), this](const DecisionDraw& draw, std::span<const std::int32_t> allowed,
                                            std::span<float> noise) {
           learning->learner().explore(spec_, draw, allowed, noise);
         },
         [learning = learning_.get()](std::uint32_t brain) {
           return learning->experience().explores_slowly(brain);
         }});
  }
  IMPRINT_ASSIGN(state_, BrainState::create(services_, spec_, counts_, decisions_, learning_,
                                            std::move(programs.state), true));
  agents_ = std::make_unique<Agents>(services_, spec_, counts_, decisions_, learning_);
  return {};
}

void Brain::write_curves(const std::string& path) {
  if (!curves()) return;
  services_.files.add([path, rows = curves()->all(), log = services_.log] {
    if (const Result<> written = agent::write_curves(path, rows); !written.ok())
      log(LogLevel::error, written.error().message);
  });
}

bool Brain::uses(const bridge::SharedBuffer& buffer) const {
  const SharedTensors& shared = decisions_.shared();
  return shared.observations.buffer.get() == &buffer || shared.actions.buffer.get() == &buffer;
}

BrainInfo Brain::info() const {
  BrainInfo info;
  info.observation_count = spec_.observation.count;
  info.goal_count = spec_.goal_count;
  info.branch_count = static_cast<std::uint32_t>(spec_.action.branch_sizes.size());
  info.continuous_count = spec_.action.continuous_count;
  info.brain_count = spec_.brain_count;
  info.agent_capacity = spec_.agent_capacity();
  info.action_width = action_width_;
  info.parameter_count = parameter_count_;
  return info;
}

BrainStats Brain::stats() const {
  BrainStats stats;
  stats.counters = counts_.counters();
  stats.samples = counts_.samples;
  stats.last_loss = counts_.last_loss;
  stats.snapshots = counts_.snapshots;
  stats.infer_dispatches = counts_.infer_dispatches;
  stats.learn_dispatches = counts_.learn_dispatches;
  stats.infer_barriers = counts_.infer_barriers;
  stats.learn_barriers = counts_.learn_barriers;
  stats.late_actions = counts_.late_actions;
  stats.stopped_brains = counts_.stopped;
  stats.used_samples = counts_.used;
  stats.lost = counts_.lost();
  stats.alarms = counts_.alarms;
  stats.fall_backs = counts_.fall_backs;
  stats.inference_decisions = counts_.inference_decisions;
  stats.rating = counts_.rating;
  stats.kept_demonstrations = counts_.kept_demonstrations;
  stats.reliability = counts_.reliability;
  stats.host_copy_frame = state_->host_copy_frame();
  stats.evicted_bytes = state_->evicted_bytes();
  return stats;
}

// Learning that was evicted is compiled when it returns.
std::size_t Brain::programs_to_compile() const {
  std::size_t count = decisions_.compiled() ? 0 : 1;
  if (learning_ && state_->learning_present() && !learning_->training().compiled()) ++count;
  return count + state_->programs_to_compile();
}

Result<> Brain::warmup(const std::function<void()>& advance) {
  state_->settle_eviction();
  if (!decisions_.compiled()) {
    IMPRINT_CHECK(decisions_.compile());
    advance();
  }
  if (learning_ && state_->learning_present() && !learning_->training().compiled()) {
    IMPRINT_CHECK(learning_->compile());
    advance();
  }
  return state_->compile(advance);
}

Result<> Brain::run_once(bool in_frame, std::set<VkPipeline>& ran) {
  if (!services_.context.vulkan() || !decisions_.compiled()) return {};
  RunOnce runs(services_.context, in_frame, runs_once_, ran);
  IMPRINT_CHECK(state_->run_once(runs));
  return decisions_.run_once(runs);  // last: the first frame finds its work in the CPU's caches
}

Result<> Brain::set_learning(bool enabled) {
  if (!learning_ && enabled)
    return make_error(ErrorCode::unsupported,
                      text("brain_set_learning: brain '", spec_.name,
                           "': learner: found none, expected one. Create the brain with a learner."));
  if (learning_) learning_->experience().set_enabled(enabled);
  return {};
}

Result<std::uint64_t> Brain::sent_bytes() const {
  if (spec_.sends_experience) return learning_->sent_bytes();
  return make_error(ErrorCode::wrong_state,
                    text("brain_take_experience: brain '", spec_.name,
                         "': imp_shared_learning::experience: found another, expected IMP_EXPERIENCE_SENT."));
}

Result<> Brain::take_experience(std::span<std::byte> into) {
  learning_->take_sent(into);
  return {};
}

Result<bool> Brain::give_experience(std::uint32_t source, std::span<const std::byte> from) {
  if (spec_.receives_experience) return learning_->receive(source, from);
  return make_error(
      ErrorCode::wrong_state,
      text("brain_give_experience: brain '", spec_.name,
           "': imp_shared_learning::experience: found another, expected IMP_EXPERIENCE_RECEIVED."));
}

void Brain::keep_the_best() {
  if (!spec_.fall_back || !state_->learning_present() || state_->programs_to_compile() > 0) return;
  if (state_->has_best() && learning_->wants_back()) {
    state_->restore_best();
    learning_->went_back();
  } else if (learning_->takes_best()) {
    state_->keep_best();
  }
}

Result<> Brain::enqueue_frame(bool may_learn) {
  if (learning_) {
    learning_->experience().settle(services_.clock.time_s);
    learning_->watch();
    keep_the_best();
  }
  IMPRINT_CHECK(decisions_.enqueue());
  IMPRINT_ASSIGN(const bool at_boundary, state_->enqueue());
  if (!learning_ || !may_learn || !at_boundary) return {};
  IMPRINT_ASSIGN(const bool began, learning_->start_step(decisions_.captured()));
  if (began) state_->changed();
  return {};
}

}  // namespace imprint::agent
