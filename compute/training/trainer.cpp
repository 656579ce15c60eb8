#include "compute/training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <filesystem>
#include <limits>
#include <optional>

#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/model/state_dict.h"
#include "compute/nn/optimisers/loss_scaler.h"
#include "compute/program/program_sequence.h"
#include "compute/training/checkpoint.h"
#include "compute/training/curves.h"
#include "compute/training/feed.h"
#include "compute/training/pending_runs.h"
#include "compute/training/scores.h"
#include "compute/training/trainer_checks.h"

namespace imprint::training {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs of a program that may be under way. Whole batches take memory.
std::uint32_t slots_for(const Feed& feed) {
  constexpr std::uint64_t kBytes = 8ull << 20, kLeast = 3;
  std::uint64_t bytes = 1;
  for (const Tensor& input : feed.inputs())
    bytes += static_cast<std::uint64_t>(input.shape().element_count()) * dtype_size(input.dtype());
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kBytes / bytes, kLeast, PendingRuns::kSlots));
}

// The mean over the samples that count.
Tensor averaged(const Tensor& values, const Tensor& weights) {
  if (!values.ok() || values.rank() == 0) return values;
  Axes axes;
  for (int axis = 1; axis < values.rank(); ++axis) axes.push_back(axis);
  const Tensor rows = axes.empty() ? values : mean(values, axes);
  if (rows.extent(0) != weights.extent(0))
    return Tensor(make_error(ErrorCode::shape_mismatch,
                             text("trainer: found ", values.shape().text(), ", expected losses and metrics [",
                                  weights.extent(0), ", ...], one per sample, or a scalar")));
  return sum(rows * weights) / clamp_min(sum(weights), 1);
}

// The inputs and outputs of one batch; outputs are the loss, then the metrics.
struct Recorded {
  std::vector<Tensor> inputs, outputs;
  std::vector<std::string> metric_names;
};

Result<Recorded> record(const Model& model, const std::optional<nn::DtypePolicy>& policy, const Feed& feed,
                        nn::Pass& pass) {
  Recorded recorded{.inputs = feed.inputs()};
  const Computed computed = model(feed.fields(), pass);
  recorded.outputs.push_back(averaged(computed.loss, feed.weights()));
  for (const auto& [name, value] : computed.metrics) {
    recorded.metric_names.push_back(name);
    recorded.outputs.push_back(averaged(value, feed.weights()));
  }
  if (policy) recorded.outputs = (*policy)(recorded.outputs, pass);
  for (const Tensor& output : recorded.outputs)
    if (!output.ok()) return output.error();
  return recorded;
}

// compile(bytes of data that may lie on the device); again without any, if they do not fit.
Result<> with_less_memory(std::uint64_t most, const std::function<Result<>(std::uint64_t most)>& compile) {
  Result<> done = compile(most);
  if (done.ok() || most == 0) return done;
  const ErrorCode code = done.error().code;
  const bool is_full = code == ErrorCode::out_of_device_memory || code == ErrorCode::out_of_host_memory ||
                       code == ErrorCode::unsupported;
  return is_full ? compile(0) : done;
}

}  // namespace

struct Trainer::Impl {
  Session& session;
  Model model;
  std::shared_ptr<const nn::Optimiser> optimiser;
  TrainerOptions options;
  nn::Pass pass;
  nn::ScheduledRate rate;
  std::optional<nn::PlateauRate> plateau;
  std::optional<nn::DtypePolicy> policy;
  std::optional<nn::LossScaler> scaler;  // of float16
  nn::Parameters model_state;
  nn::Parameters saved;  // everything that a checkpoint holds
  Position position{.best_loss = kInfinity};
  bool was_loaded = false;

  std::optional<Feed> feed;  // of the training's programs
  std::vector<std::string> metric_names;
  std::optional<Program> step, gather_step;  // the optimiser's; of a batch before it
  PendingRuns pending;
  std::optional<double> last_rate;
  Report report;  // of the epoch under way
  Clock::time_point epoch_start;

  std::optional<Program> measuring;  // of the plateau
  struct Evaluation {
    Feed feed;
    Program program;
    std::vector<std::string> metric_names;
  };
  std::deque<Evaluation> evaluations;

  Impl(Session& used, Model given, const nn::Parameters& state, std::shared_ptr<const nn::Optimiser> trains,
       TrainerOptions chosen)
      : session(used),
        model(std::move(given)),
        optimiser(std::move(trains)),
        options(std::move(chosen)),
        pass("training", options.seed + (static_cast<std::uint64_t>(options.process_index) << 40)),
        rate("training", options.rate),
        model_state(state),
        pending(session, [this](const PendingRuns::Run& run, const std::vector<HostTensor>& outputs) {
          return end_run(run, outputs);
        }) {
    saved.add("model", state);
    saved.add("optimiser", optimiser->state());
    saved.add("pass", pass.state());
    saved.add("rate", rate.state());
    if (options.plateau)
      saved.add("plateau", plateau.emplace("training.plateau", 1, *options.plateau).state());
    if (!options.dtypes.empty()) policy.emplace("training.types", state, options.dtypes);
    if (options.precision != Precision::float32 || (policy && policy->computes_in(DType::float16)))
      saved.add("scaler", scaler.emplace("training").state());
  }

  std::string in_folder(const std::string& name) const {
    return (std::filesystem::path(options.folder) / name).string();
  }

  bool shares() const { return options.process_count > 1; }
  Result<> compile(const Loader& training);
  Result<> compile_with(const Loader& training, std::uint64_t most_resident);
  Result<Evaluation*> evaluation_of(const Loader& data);
  std::uint64_t resident_left() const;
  Result<std::vector<Update>> step_by(std::vector<Tensor> slopes);
  Result<Program> compile_shared(ProgramDescription gathering, const std::vector<Tensor>& slopes,
                                 const Tensor& samples);
  Result<Scores> evaluate(Loader& data);
  Result<> save(const std::string& path);
  Result<> run_group(Loader& training, std::int64_t first);
  Result<> end_run(const PendingRuns::Run& run, const std::vector<HostTensor>& outputs);
  void fill_report(std::int64_t batch, std::int64_t step_number);
  Result<> curve(const std::string& split, const Scores& scores, double used_rate);
  Result<> keep(double loss);
  Result<> open_folder();
  Result<> restore_best();
  Result<> run_epoch(Loader& training, Outcome& outcome);
  Result<bool> end_epoch(Loader* validation, Outcome& outcome);
  Tensor rate_now() const { return plateau ? rate.value() * plateau->value() : rate.value(); }
  Result<> measure(double loss);
  bool has_steps() const { return options.steps == 0 || position.step < options.steps; }
  std::uint64_t memory() const;
  bool must_stop() const { return options.stop != nullptr && options.stop->load(); }
};

// The optimiser's step by these gradients.
Result<std::vector<Update>> Trainer::Impl::step_by(std::vector<Tensor> slopes) {
  std::vector<Update> step_updates;
  Tensor active;
  if (options.clip_norm > 0 || scaler) {
    const double most = options.clip_norm > 0 ? options.clip_norm : kInfinity;
    IMPRINT_ASSIGN(nn::ClippedGradients clipped,
                   nn::clip_by_global_norm(slopes, most, 0, scaler ? scaler->scale() : Tensor()));
    slopes = std::move(clipped.gradients);
    if (scaler) {
      active = scaler->active(clipped.norm);
      step_updates = scaler->step(clipped.norm);
    }
  }
  IMPRINT_ASSIGN(const std::vector<Update> updates, optimiser->step(slopes, rate_now(), active));
  step_updates.insert(step_updates.end(), updates.begin(), updates.end());
  rate.advance(step_updates, active);
  return step_updates;
}

// slopes: of the sum of the losses of this process's samples. The first part leaves them in variables, which
// are added up over all processes; the second divides by the number of samples of all and takes the step.
Result<Program> Trainer::Impl::compile_shared(ProgramDescription gathering, const std::vector<Tensor>& slopes,
                                              const Tensor& samples) {
  gathering.name = "gradients";
  ProgramPart gradient{std::move(gathering)};
  const Variable count = Variable::zeros("total samples", {});
  gradient.description.updates.push_back(Update::assign(count, samples));
  std::vector<Tensor> means;
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    const Variable total = Variable::zeros("total." + optimiser->parameters()[i].name, slopes[i].shape());
    gradient.description.updates.push_back(Update::assign(total, slopes[i]));
    gradient.summed.push_back(total);
    means.push_back(total.value() / clamp_min(count.value(), 1e-6));
  }
  // The last layers' gradients are known first.
  std::ranges::reverse(gradient.summed);
  gradient.summed.insert(gradient.summed.begin(), count);
  ProgramPart taken{{.name = "step", .outputs = {rate_now()}, .precision = options.precision}};
  IMPRINT_ASSIGN(taken.description.updates, step_by(std::move(means)));
  ProgramSequence sequence{.name = "training step"};
  sequence.parts = {std::move(gradient), std::move(taken)};
  sequence.all_reduce = options.all_reduce;
  sequence.shared_sums = options.shared_sums;
  return Program::compile(session.runtime(), sequence);
}

std::uint64_t Trainer::Impl::resident_left() const {
  constexpr std::size_t kEvaluations = 8;  // data sets of evaluations that stay on the device
  if (session.runtime().on_cpu() || evaluations.size() >= kEvaluations) return 0;
  std::uint64_t used = feed ? feed->bytes() : 0;
  for (const Evaluation& each : evaluations) used += each.feed.bytes();
  return options.resident_bytes - std::min(used, options.resident_bytes);
}

Result<> Trainer::Impl::compile(const Loader& training) {
  if (step && feed->serves(training)) return {};
  step.reset();
  gather_step.reset();
  feed.reset();
  return with_less_memory(resident_left(), [&](std::uint64_t most) { return compile_with(training, most); });
}

// The step's program takes the batch and, with accumulation, its share of the step.
Result<> Trainer::Impl::compile_with(const Loader& training, std::uint64_t most_resident) {
  for (const nn::Parameter& each : policy ? policy->state() : nn::Parameters())
    if (each.variable.ok() && dtype_is_narrow_float(each.variable.dtype()))
      return make_error(ErrorCode::invalid_argument,
                        text("trainer: found storage of 16 bits for ", each.name,
                             ", expected compute alone. Parameters that are trained stay float32."));
  pass.restart();  // after a call that failed, or for other data
  IMPRINT_ASSIGN(feed, Feed::create(training, most_resident));
  IMPRINT_ASSIGN(Recorded recorded, record(model, policy, *feed, pass));
  nn::Parameters frozen = options.frozen;
  for (const Variable& array : feed->arrays()) frozen.add(array.name(), array);
  IMPRINT_CHECK(check_training(recorded.outputs[0], pass, model_state, *optimiser, frozen));
  metric_names = recorded.metric_names;
  const nn::Parameters& parameters = optimiser->parameters();
  Tensor loss = scaler ? scaler->scaled(recorded.outputs[0]) : recorded.outputs[0];
  Tensor samples = sum(feed->weights());
  if (shares()) loss = loss * samples;
  IMPRINT_ASSIGN(std::vector<Tensor> slopes, gradients(loss, parameters.values()));
  std::vector<Update> step_updates, gather_updates;
  if (options.accumulate > 1) {
    const Tensor share = input("share", {});
    recorded.inputs.push_back(share);
    if (shares()) {
      const Variable seen = Variable::zeros("accumulated samples", {});
      samples = seen.value() + share * samples;
      gather_updates.push_back(Update::assign(seen, samples));
      step_updates.push_back(Update::assign(seen, zeros({})));
    }
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      const Variable sum = Variable::zeros("accumulated." + parameters[i].name, slopes[i].shape());
      slopes[i] = sum.value() + share * slopes[i];
      gather_updates.push_back(Update::assign(sum, slopes[i]));
      step_updates.push_back(Update::assign(sum, zeros(slopes[i].shape())));
    }
    pass.finish(gather_updates);
  }
  if (!shares()) {
    IMPRINT_ASSIGN(const std::vector<Update> updates, step_by(slopes));
    step_updates.insert(step_updates.end(), updates.begin(), updates.end());
  }
  pass.finish(step_updates);
  ProgramDescription description{.name = "training step",
                                 .inputs = recorded.inputs,
                                 .outputs = recorded.outputs,
                                 .updates = std::move(step_updates),
                                 .slot_count = slots_for(*feed),
                                 .precision = options.precision};
  ProgramDescription gathering = description;
  if (!shares()) description.outputs.push_back(rate_now());
  IMPRINT_ASSIGN(Program made, shares() ? compile_shared(description, slopes, samples)
                                        : Program::compile(session.runtime(), description));
  if (options.accumulate > 1) {
    gathering.name = "accumulation";
    gathering.updates = std::move(gather_updates);
    IMPRINT_ASSIGN(Program gathers, Program::compile(session.runtime(), gathering));
    gather_step = std::move(gathers);
  }
  step = std::move(made);
  return {};
}

Result<Trainer::Impl::Evaluation*> Trainer::Impl::evaluation_of(const Loader& data) {
  for (Evaluation& each : evaluations)
    if (each.feed.serves(data)) return &each;
  IMPRINT_CHECK(with_less_memory(resident_left(), [&](std::uint64_t most) -> Result<> {
    nn::Pass evaluation;
    IMPRINT_ASSIGN(Feed used, Feed::create(data, most));
    IMPRINT_ASSIGN(Recorded recorded, record(model, policy, used, evaluation));
    IMPRINT_ASSIGN(Program made, Program::compile(session.runtime(), {.name = "evaluation",
                                                                      .inputs = recorded.inputs,
                                                                      .outputs = recorded.outputs,
                                                                      .slot_count = slots_for(used),
                                                                      .precision = options.precision}));
    evaluations.push_back({std::move(used), std::move(made), std::move(recorded.metric_names)});
    return {};
  }));
  return &evaluations.back();
}

Result<Scores> Trainer::Impl::evaluate(Loader& data) {
  const Clock::time_point start = Clock::now();
  IMPRINT_ASSIGN(Evaluation* const used, evaluation_of(data));
  data.start(0);
  Sums sums;
  PendingRuns runs(session, [&](const PendingRuns::Run& run, const std::vector<HostTensor>& outputs) {
    add_batch(sums, outputs, used->metric_names.size(), run.samples);
    return Result<>();
  });
  std::vector<HostTensor> inputs;
  for (std::int64_t count = 0;;) {
    const Result<bool> has_batch = used->feed.next(data, inputs, count);
    Result<> started;
    if (has_batch && *has_batch) started = runs.start({.program = &used->program, .samples = count}, inputs);
    if (has_batch && *has_batch && started.ok()) continue;
    const Result<> finished = runs.finish_all();
    if (!has_batch) return has_batch.error();
    if (!started) return started.error();
    IMPRINT_CHECK(finished);
    return scores_of(sums, used->metric_names, seconds_since(start));
  }
}

Result<> Trainer::Impl::save(const std::string& path) {
  IMPRINT_ASSIGN(safetensors::File file, nn::save_state(session, saved));
  file.metadata = metadata_of(position);
  return safetensors::save(file, path);
}

std::uint64_t Trainer::Impl::memory() const {
  std::uint64_t bytes = 0;
  for (const nn::Parameter& each : saved) bytes += each.variable.bytes();
  if (options.accumulate > 1)
    for (const nn::Parameter& each : optimiser->parameters()) bytes += each.variable.bytes();
  if (feed) bytes += feed->bytes();
  for (const Evaluation& each : evaluations) bytes += each.feed.bytes();
  for (const std::optional<Program>* program : {&step, &gather_step})
    if (*program) bytes += (*program)->stats().arena_bytes + (*program)->stats().io_bytes;
  return bytes;
}

Result<> Trainer::Impl::end_run(const PendingRuns::Run& run, const std::vector<HostTensor>& outputs) {
  const double loss = static_cast<double>(outputs[0].floats[0]);
  if (!std::isfinite(loss))
    return make_error(
        ErrorCode::invalid_argument,
        text("trainer: found loss ", loss_text(loss), " in step ", run.step,
             ", expected a finite number. Lower the rate or clip gradients, or look for NaN in the data, "
             "labels outside the classes, or the loaded weights."));
  add_batch(position.sums, outputs, metric_names.size(), run.samples);
  if (outputs.size() > metric_names.size() + 1) last_rate = static_cast<double>(outputs.back().floats[0]);
  if (run.reports) {
    fill_report(run.batch, run.step);
    options.report(report);
  }
  return {};
}

// batch, step: those that are done.
void Trainer::Impl::fill_report(std::int64_t batch, std::int64_t step_number) {
  report.rate = last_rate.value_or(0);
  report.batch = batch;
  report.step = step_number;
  report.memory = memory();
  report.training = scores_of(position.sums, metric_names, seconds_since(epoch_start));
}

// Starts the batches of one optimiser step.
Result<> Trainer::Impl::run_group(Loader& training, std::int64_t first) {
  const std::int64_t count =
      std::min(std::max<std::int64_t>(options.accumulate, 1), training.batches() - first);
  std::vector<HostTensor> inputs;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_step = i + 1 == count;
    PendingRuns::Run run{
        .program = is_step ? &*step : &*gather_step, .step = position.step + 1, .batch = position.batch + 1};
    IMPRINT_ASSIGN(const bool has_batch, feed->next(training, inputs, run.samples));
    if (!has_batch) break;
    if (options.accumulate > 1) inputs.push_back(HostTensor::from({1.0f / static_cast<float>(count)}, {}));
    const bool is_last = run.batch >= training.batches() || (options.steps > 0 && run.step >= options.steps);
    run.reports = is_step && options.report && options.report_every > 0 &&
                  run.batch % options.report_every == 0 && !is_last;
    IMPRINT_CHECK(pending.start(run, inputs));
    ++position.batch;
  }
  ++position.step;
  return {};
}

Result<> Trainer::Impl::curve(const std::string& split, const Scores& scores, double used_rate) {
  if (options.folder.empty()) return {};
  CurveRow row{.epoch = position.epoch + 1,
               .step = position.step,
               .split = split,
               .rate = used_rate,
               .loss = scores.loss,
               .samples_per_second = speed(scores)};
  for (const auto& [name, value] : scores.metrics) row.metrics.push_back(value);
  return add_curve(options.folder, metric_names, row);
}

// Saves a checkpoint that is among the best, and removes the one that no longer is.
Result<> Trainer::Impl::keep(double loss) {
  if (options.folder.empty() || options.keep_best < 1) return {};
  std::vector<KeptCheckpoint>& kept = position.kept;
  const auto place =
      std::find_if(kept.begin(), kept.end(), [&](const KeptCheckpoint& each) { return loss < each.loss; });
  if (static_cast<std::int64_t>(place - kept.begin()) >= options.keep_best) return {};
  const std::string name = text("step-", position.step, ".safetensors");
  kept.insert(place, {loss, name});
  while (static_cast<std::int64_t>(kept.size()) > options.keep_best) {
    std::error_code ignored;
    std::filesystem::remove(in_folder(kept.back().file), ignored);
    kept.pop_back();
  }
  return save(in_folder(name));
}

Result<> Trainer::Impl::open_folder() {
  if (options.restore_best && (options.folder.empty() || options.keep_best < 1))
    return make_error(ErrorCode::invalid_argument,
                      text("restore_best: found folder '", options.folder, "' and keep_best ",
                           options.keep_best, ", expected a folder and 1 or more"));
  if (options.folder.empty()) return {};
  IMPRINT_CHECK(make_run_folder(options.folder));
  if (!was_loaded && position.step == 0) IMPRINT_CHECK(set_aside_earlier_run(options.folder));
  return cut_curves(options.folder, position.step);
}

// The model alone: what else training needs stays that of the last step.
Result<> Trainer::Impl::restore_best() {
  if (position.kept.empty()) return {};
  IMPRINT_ASSIGN(const safetensors::File file, safetensors::load(in_folder(position.kept[0].file)));
  return nn::load_state(session, model_state, file, "model.");
}

// The plateau's rate takes in a validation loss.
Result<> Trainer::Impl::measure(double loss) {
  if (!plateau) return {};
  if (!measuring) {
    const Tensor measured = input("loss", {});
    std::vector<Update> updates;
    plateau->measure(updates, measured);
    IMPRINT_ASSIGN(
        Program made,
        Program::compile(session.runtime(), {.name = "plateau", .inputs = {measured}, .updates = updates}));
    measuring = std::move(made);
  }
  const HostTensor value = HostTensor::from({static_cast<float>(loss)}, {});
  IMPRINT_CHECK(session.run(*measuring, std::span(&value, 1)));
  return {};
}

// Returns whether training stops early.
Result<bool> Trainer::Impl::end_epoch(Loader* validation, Outcome& outcome) {
  report.ends_epoch = true;
  outcome.training = report.training;
  IMPRINT_CHECK(curve("training", report.training, report.rate));
  bool is_number = false;
  if (validation != nullptr) {
    IMPRINT_ASSIGN(outcome.validation, evaluate(*validation));
    IMPRINT_CHECK(curve("validation", outcome.validation, report.rate));
    report.validation = &outcome.validation;
    is_number = !std::isnan(outcome.validation.loss);
    const bool is_better = outcome.validation.loss < position.best_loss;
    position.bad_validations = is_better ? 0 : position.bad_validations + 1;
    if (is_better) {
      position.best_loss = outcome.validation.loss;
      position.best_step = position.step;
    }
    if (is_number) IMPRINT_CHECK(measure(outcome.validation.loss));
  }
  if (options.report) options.report(report);
  report.validation = nullptr;
  if (report.batch >= report.batches) {  // else the steps are used up within the epoch
    ++position.epoch;
    position.batch = 0;
    position.sums = {};
  }
  if (is_number) IMPRINT_CHECK(keep(outcome.validation.loss));
  if (!options.folder.empty() && options.checkpoint_every == 0)
    IMPRINT_CHECK(save(in_folder("last.safetensors")));
  if (validation != nullptr && !is_number)
    return make_error(ErrorCode::invalid_argument,
                      text("trainer: found validation loss nan after step ", position.step,
                           ", expected a number. Look for NaN in the validation data or labels outside the "
                           "classes, or lower the rate."));
  return options.patience > 0 && position.bad_validations >= options.patience;
}

Trainer::Trainer(Session& session, Model model, const nn::Parameters& state,
                 std::shared_ptr<const nn::Optimiser> optimiser, TrainerOptions options)
    : impl_(std::make_unique<Impl>(session, std::move(model), state, std::move(optimiser),
                                   std::move(options))) {}
Trainer::~Trainer() = default;

// Runs the rest of the epoch, or until training is interrupted.
Result<> Trainer::Impl::run_epoch(Loader& training, Outcome& outcome) {
  epoch_start = Clock::now();
  training.start(position.epoch, position.batch);
  report = {.epoch = position.epoch + 1, .epochs = options.epochs, .batches = training.batches()};
  while (position.batch < training.batches() && !outcome.interrupted && has_steps()) {
    if (Result<> ran = run_group(training, position.batch); !ran) {
      (void)pending.finish_all();
      return ran;
    }
    outcome.interrupted = must_stop();
    const std::int64_t saves = options.checkpoint_every;
    const bool is_asked = options.save != nullptr && options.save->exchange(false);
    const bool must_save = outcome.interrupted || is_asked || (saves > 0 && position.step % saves == 0);
    if (!must_save || options.folder.empty()) continue;
    IMPRINT_CHECK(pending.finish_all());
    IMPRINT_CHECK(save(in_folder("last.safetensors")));
  }
  IMPRINT_CHECK(pending.finish_all());
  // A report of those runs may say so.
  if (position.batch >= training.batches()) outcome.interrupted = outcome.interrupted || must_stop();
  if (!last_rate) {  // a checkpoint at the end of an epoch
    IMPRINT_ASSIGN(const HostTensor value, session.evaluate(rate_now()));
    last_rate = static_cast<double>(value.floats[0]);
  }
  fill_report(position.batch, position.step);
  return {};
}

Result<Outcome> Trainer::fit(Loader& training, Loader* validation) {
  Impl& it = *impl_;
  IMPRINT_CHECK(it.compile(training));
  Position& position = it.position;
  IMPRINT_CHECK(it.open_folder());
  Outcome outcome;
  const std::int64_t first_step = position.step;
  while (position.epoch < it.options.epochs && !outcome.stopped_early && !outcome.interrupted &&
         it.has_steps()) {
    IMPRINT_CHECK(it.run_epoch(training, outcome));
    if (outcome.interrupted && position.batch < training.batches()) break;
    IMPRINT_ASSIGN(outcome.stopped_early, it.end_epoch(validation, outcome));
    if (outcome.interrupted && !it.options.folder.empty())
      IMPRINT_CHECK(it.save(it.in_folder("last.safetensors")));
  }
  if (!it.options.folder.empty() && (it.options.checkpoint_every > 0 || position.step == first_step))
    IMPRINT_CHECK(it.save(it.in_folder("last.safetensors")));
  // Nothing was left to train.
  if (validation != nullptr && !outcome.interrupted && outcome.validation.samples == 0) {
    IMPRINT_ASSIGN(outcome.validation, it.evaluate(*validation));
  }
  outcome.epochs = position.epoch;
  outcome.steps = position.step;
  outcome.best_loss = position.best_loss;
  outcome.best_step = position.best_step;
  if (!position.kept.empty()) outcome.best_checkpoint = it.in_folder(position.kept[0].file);
  if (it.options.restore_best && !outcome.interrupted) IMPRINT_CHECK(it.restore_best());
  return outcome;
}

Program* Trainer::step() { return impl_->step ? &*impl_->step : nullptr; }
Result<Scores> Trainer::evaluate(Loader& data) { return impl_->evaluate(data); }
Result<> Trainer::save(const std::string& path) { return impl_->save(path); }

Result<> Trainer::load(const std::string& path) {
  IMPRINT_ASSIGN(const safetensors::File file, safetensors::load(path));
  const auto of_file = [&](const Error& error) {
    return make_error(error.code, text("'", path, "': ", error.message));
  };
  Result<Position> position = position_of(file.metadata);
  if (!position) return of_file(position.error());
  if (const Result<> fits = check_optimiser_of(file, impl_->saved); !fits) return of_file(fits.error());
  const Result<> loaded = nn::load_state(impl_->session, impl_->saved, file);
  if (!loaded) return of_file(loaded.error());
  impl_->position = std::move(*position);
  impl_->was_loaded = true;
  return {};
}

}  // namespace imprint::training
