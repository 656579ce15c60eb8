#include "compute/training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>

#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/model/state_dict.h"
#include "compute/nn/optimisers/loss_scaler.h"
#include "compute/program/program_sequence.h"
#include "compute/training/checkpoint.h"
#include "compute/training/curves.h"
#include "compute/training/trainer_checks.h"

namespace imprint::training {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
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

Result<Recorded> record(const Model& model, const std::optional<nn::DtypePolicy>& policy,
                        const Loader& loader, nn::Pass& pass) {
  Recorded recorded{.inputs = batch_inputs(loader)};
  const Tensor weights = input("sample weights", {loader.options().batch});
  const Computed computed = model(recorded.inputs, pass);
  recorded.inputs.push_back(weights);
  recorded.outputs.push_back(averaged(computed.loss, weights));
  for (const auto& [name, value] : computed.metrics) {
    recorded.metric_names.push_back(name);
    recorded.outputs.push_back(averaged(value, weights));
  }
  if (policy) recorded.outputs = (*policy)(recorded.outputs, pass);
  for (const Tensor& output : recorded.outputs)
    if (!output.ok()) return output.error();
  return recorded;
}

void add_batch(Sums& sums, const std::vector<HostTensor>& outputs, std::int64_t count) {
  const double samples = static_cast<double>(count);
  sums.metrics.resize(outputs.size() - 1);
  sums.loss += samples * static_cast<double>(outputs[0].floats[0]);
  for (std::size_t i = 1; i < outputs.size(); ++i)
    sums.metrics[i - 1] += samples * static_cast<double>(outputs[i].floats[0]);
  sums.samples += samples;
}

Scores scores_of(const Sums& sums, const std::vector<std::string>& names, double seconds) {
  const double samples = std::max(sums.samples, 1.0);
  Scores scores{.loss = sums.loss / samples, .samples = std::llround(sums.samples), .seconds = seconds};
  for (std::size_t i = 0; i < std::min(names.size(), sums.metrics.size()); ++i)
    scores.metrics.emplace_back(names[i], sums.metrics[i] / samples);
  return scores;
}

double speed(const Scores& scores) {
  return scores.seconds > 0 ? static_cast<double>(scores.samples) / scores.seconds : 0;
}

}  // namespace

double Scores::metric(std::string_view name) const {
  for (const auto& [each, value] : metrics)
    if (each == name) return value;
  return std::numeric_limits<double>::quiet_NaN();
}

namespace {

std::string words(const char* split, const Scores& scores) {
  std::string line = text("  ", split, " loss ", decimals(scores.loss, 4));
  for (const auto& [name, value] : scores.metrics) line += " " + name + " " + decimals(value, 4);
  return line;
}

}  // namespace

std::string line_of(const Report& report) {
  std::string line = text("epoch ", report.epoch, "/", report.epochs);
  if (!report.ends_epoch) line += text(" batch ", report.batch, "/", report.batches);
  line += words("training", report.training);
  if (report.validation != nullptr) line += words("validation", *report.validation);
  return line + "  " + decimals(speed(report.training), 0) + " samples/s";
}

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

  std::vector<std::string> metric_names;
  std::optional<Program> step, gather_step;  // the optimiser's; of a batch before it

  // Batches that the device may still compute, oldest first, while this thread prepares the next.
  struct Started {
    Program* program = nullptr;
    std::uint32_t slot = 0;
    std::int64_t samples = 0, step = 0;
  };
  std::deque<Started> started;
  std::uint32_t next_slot = 0;
  std::optional<Program> measuring;                                                  // of the plateau
  std::map<std::int64_t, std::pair<Program, std::vector<std::string>>> evaluations;  // by batch size

  Impl(Session& used, Model given, const nn::Parameters& state, std::shared_ptr<const nn::Optimiser> trains,
       TrainerOptions chosen)
      : session(used),
        model(std::move(given)),
        optimiser(std::move(trains)),
        options(std::move(chosen)),
        pass("training", options.seed + (static_cast<std::uint64_t>(options.sharer) << 40)),
        rate("training", options.rate),
        model_state(state) {
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

  bool shares() const { return options.sharers > 1; }
  Result<> compile(const Loader& training);
  Result<std::vector<Update>> step_by(std::vector<Tensor> slopes);
  Result<Program> compile_shared(ProgramDescription gathering, const std::vector<Tensor>& slopes,
                                 const Tensor& samples);
  Result<Scores> evaluate(Loader& data);
  Result<> save(const std::string& path);
  Result<> run_group(Loader& training, std::int64_t first);
  Result<> finish_oldest();
  Result<> finish_started();
  Result<> curve(const std::string& split, const Scores& scores, double used_rate);
  Result<> keep(double loss);
  Result<> open_folder();
  Result<> restore_best();
  Result<double> current_rate();
  Result<bool> end_epoch(Loader* validation, Outcome& outcome, Report& report);
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
  ProgramPart taken{{.name = "step", .precision = options.precision}};
  IMPRINT_ASSIGN(taken.description.updates, step_by(std::move(means)));
  ProgramSequence sequence{.name = "training step"};
  sequence.parts = {std::move(gradient), std::move(taken)};
  sequence.add_up = options.add_up;
  sequence.shared_sums = options.shared_sums;
  return Program::compile(session.runtime(), sequence);
}

// The step's program takes the batch and, with accumulation, its share of the step.
Result<> Trainer::Impl::compile(const Loader& training) {
  if (step) return {};
  for (const nn::Parameter& each : policy ? policy->state() : nn::Parameters())
    if (each.variable.ok() && dtype_is_narrow_float(each.variable.dtype()))
      return make_error(ErrorCode::invalid_argument,
                        text("trainer: found storage of 16 bits for ", each.name,
                             ", expected compute alone. Parameters that are trained stay float32."));
  pass.updates().clear();  // of a call that failed
  IMPRINT_ASSIGN(Recorded recorded, record(model, policy, training, pass));
  IMPRINT_CHECK(check_training(recorded.outputs[0], pass, model_state, *optimiser, options.frozen));
  metric_names = recorded.metric_names;
  const nn::Parameters& parameters = optimiser->parameters();
  Tensor loss = scaler ? scaler->scaled(recorded.outputs[0]) : recorded.outputs[0];
  Tensor samples = sum(recorded.inputs.back());
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
                                 .precision = options.precision};
  IMPRINT_ASSIGN(Program made, shares() ? compile_shared(description, slopes, samples)
                                        : Program::compile(session.runtime(), description));
  step = std::move(made);
  if (options.accumulate <= 1) return {};
  description.name = "accumulation";
  description.updates = std::move(gather_updates);
  IMPRINT_ASSIGN(Program gathering, Program::compile(session.runtime(), description));
  gather_step = std::move(gathering);
  return {};
}

Result<Scores> Trainer::Impl::evaluate(Loader& data) {
  const Clock::time_point start = Clock::now();
  const std::int64_t size = data.options().batch;
  if (!evaluations.contains(size)) {
    nn::Pass evaluation;
    IMPRINT_ASSIGN(Recorded recorded, record(model, policy, data, evaluation));
    IMPRINT_ASSIGN(Program made, Program::compile(session.runtime(), {.name = "evaluation",
                                                                      .inputs = recorded.inputs,
                                                                      .outputs = recorded.outputs,
                                                                      .precision = options.precision}));
    evaluations.emplace(size, std::pair(std::move(made), recorded.metric_names));
  }
  auto& [program, names] = evaluations.at(size);
  data.start(0);
  Sums sums;
  Batch batch;
  while (true) {
    IMPRINT_ASSIGN(const bool has_batch, data.next(batch));
    if (!has_batch) break;
    std::vector<HostTensor> inputs = std::move(batch.fields);
    inputs.push_back(std::move(batch.weights));
    IMPRINT_ASSIGN(const std::vector<HostTensor> outputs, session.run(program, inputs));
    add_batch(sums, outputs, batch.count);
  }
  return scores_of(sums, names, seconds_since(start));
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
  for (const std::optional<Program>* program : {&step, &gather_step})
    if (*program) bytes += (*program)->stats().arena_bytes + (*program)->stats().io_bytes;
  return bytes;
}

Result<> Trainer::Impl::finish_oldest() {
  const Started oldest = started.front();
  started.pop_front();
  IMPRINT_ASSIGN(const std::vector<HostTensor> outputs, session.finish(*oldest.program, oldest.slot));
  if (!std::isfinite(outputs[0].floats[0]))
    return make_error(
        ErrorCode::invalid_argument,
        text("trainer: found loss ", loss_text(static_cast<double>(outputs[0].floats[0])), " in step ",
             oldest.step,
             ", expected a finite number. Lower the rate or clip gradients, or look for NaN in the data, "
             "labels outside the classes, or the loaded weights."));
  add_batch(position.sums, outputs, oldest.samples);
  return {};
}

// Before anything that looks at the position or saves it. The first error counts; all runs are waited for.
Result<> Trainer::Impl::finish_started() {
  Result<> first;
  while (!started.empty())
    if (Result<> done = finish_oldest(); !done && first.ok()) first = std::move(done);
  return first;
}

// Starts the batches of one optimiser step.
Result<> Trainer::Impl::run_group(Loader& training, std::int64_t first) {
  const std::int64_t count =
      std::min(std::max<std::int64_t>(options.accumulate, 1), training.batches() - first);
  for (std::int64_t i = 0; i < count; ++i) {
    Batch batch;
    IMPRINT_ASSIGN(const bool has_batch, training.next(batch));
    if (!has_batch) break;
    std::vector<HostTensor> inputs = std::move(batch.fields);
    inputs.push_back(std::move(batch.weights));
    if (options.accumulate > 1) inputs.push_back(HostTensor::from({1.0f / static_cast<float>(count)}, {}));
    Program& program = i + 1 < count ? *gather_step : *step;
    while (started.size() + 1 >= program.slot_count()) IMPRINT_CHECK(finish_oldest());
    next_slot = (next_slot + 1) % program.slot_count();
    IMPRINT_CHECK(session.start(program, next_slot, inputs));
    started.push_back({&program, next_slot, batch.count, position.step + 1});
    ++position.batch;
  }
  ++position.step;
  return {};
}

Result<double> Trainer::Impl::current_rate() {
  IMPRINT_ASSIGN(const HostTensor value, session.evaluate(rate_now()));
  return static_cast<double>(value.floats[0]);
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
Result<bool> Trainer::Impl::end_epoch(Loader* validation, Outcome& outcome, Report& report) {
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

Result<Outcome> Trainer::fit(Loader& training, Loader* validation) {
  Impl& it = *impl_;
  IMPRINT_CHECK(it.compile(training));
  Position& position = it.position;
  IMPRINT_CHECK(it.open_folder());
  Outcome outcome;
  while (position.epoch < it.options.epochs && !outcome.stopped_early && !outcome.interrupted &&
         it.has_steps()) {
    const Clock::time_point start = Clock::now();
    training.start(position.epoch, position.batch);
    Report report{.epoch = position.epoch + 1, .epochs = it.options.epochs, .batches = training.batches()};
    const auto fill = [&]() -> Result<> {
      IMPRINT_ASSIGN(report.rate, it.current_rate());
      report.batch = position.batch;
      report.step = position.step;
      report.memory = it.memory();
      report.training = scores_of(position.sums, it.metric_names, seconds_since(start));
      return {};
    };
    while (position.batch < training.batches() && !outcome.interrupted && it.has_steps()) {
      if (Result<> ran = it.run_group(training, position.batch); !ran) {
        (void)it.finish_started();
        return ran.error();
      }
      const bool is_last = position.batch >= training.batches() || !it.has_steps();
      const std::int64_t every = it.options.report_every;
      if (every > 0 && position.batch % every == 0 && !is_last && it.options.report) {
        IMPRINT_CHECK(it.finish_started());
        IMPRINT_CHECK(fill());
        it.options.report(report);
      }
      outcome.interrupted = it.must_stop();
      const std::int64_t saves = it.options.checkpoint_every;
      const bool is_asked = it.options.save != nullptr && it.options.save->exchange(false);
      const bool must_save = outcome.interrupted || is_asked || (saves > 0 && position.step % saves == 0);
      if (must_save && !it.options.folder.empty()) {
        IMPRINT_CHECK(it.finish_started());
        IMPRINT_CHECK(it.save(it.in_folder("last.safetensors")));
      }
    }
    IMPRINT_CHECK(it.finish_started());
    if (outcome.interrupted && position.batch < training.batches()) break;
    IMPRINT_CHECK(fill());
    IMPRINT_ASSIGN(outcome.stopped_early, it.end_epoch(validation, outcome, report));
    if (outcome.interrupted && !it.options.folder.empty())
      IMPRINT_CHECK(it.save(it.in_folder("last.safetensors")));
  }
  if (!it.options.folder.empty() && it.options.checkpoint_every > 0)
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
