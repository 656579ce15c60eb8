#include "plugin/agent/models/model.h"

#include <algorithm>
#include <cstring>

#include "compute/base/saturated.h"
#include "compute/base/text.h"
#include "compute/program/program_extents.h"
#include "compute/tensor/extent_sums.h"

namespace imprint::agent {
namespace {

// Frames from issuing the last piece until the host has the outputs, with two frames in flight.
constexpr std::uint32_t kReturnFrames = 2;

Error bad_value(const char* call, const std::string& model, const std::string& found) {
  return make_error(ErrorCode::invalid_argument, text(call, ": model '", model, "': ", found));
}

// Which value each array is for, of the shapes that the slot's run has. Exchange: ModelInput or ModelOutput.
template <class Exchange>
Result<std::vector<std::size_t>> places_of(const char* call, const Program& program, std::uint32_t slot,
                                           const char* kind, std::span<const Exchange> given,
                                           std::span<const ModelValue> values) {
  const std::string& model = program.name();
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < given.size(); ++i) {
    std::size_t place = i;
    if (given[i].name) {
      const auto found = std::ranges::find(values, std::string_view(given[i].name), &ModelValue::name);
      place = static_cast<std::size_t>(found - values.begin());
    }
    if (place >= values.size()) {
      std::string names;
      for (const ModelValue& value : values) names += text(names.empty() ? "'" : ", '", value.name, "'");
      return bad_value(call, model,
                       text(kind, "s[", i, "]: found ",
                            given[i].name ? text("'", given[i].name, "'") : text("position ", i),
                            ", expected one of: ", names.empty() ? "none" : names));
    }
    const ModelValue& value = values[place];
    if (std::ranges::find(places, place) != places.end())
      return bad_value(
          call, model,
          text(kind, "s[", i, "]: found '", value.name, "' again, expected each ", kind, " once"));
    const Shape used = program.used_shape(slot, value.shape);
    if (given[i].bytes.size() != value.bytes_of(used))
      return bad_value(call, model,
                       text(kind, " '", value.name, "': found ", given[i].bytes.size(), " bytes, expected ",
                            value.bytes_of(used), ", which is ", onnx::element_type_name(value.type),
                            used.text(), value.shape.is_named() ? text(" of ", value.shape.text()) : ""));
    places.push_back(place);
  }
  return places;
}

}  // namespace

Model::Model(const BrainServices& services, const ModelSpec& spec, ModelProgram described)
    : services_(services),
      described_(std::move(described)),
      latency_frames_(spec.latency_frames),
      operation_limit_(spec.operation_limit),
      bounds_(spec.bounds),
      runs_(spec.run_capacity) {
  services_.stream = reinterpret_cast<std::uintptr_t>(this);
  for (const ModelBinding& binding : spec.bindings) shared_.push_back(binding.tensor);
  for (const DimensionBound& bound : spec.bounds)  // sums follow from the others
    if (bound.sum.empty()) extents_.push_back({bound.name, bound.most});
}

Result<std::shared_ptr<Model>> Model::create(const BrainServices& services, const ModelSpec& spec) {
  IMPRINT_ASSIGN(ModelProgram described, describe_model(spec));
  std::shared_ptr<Model> model(new Model(services, spec, std::move(described)));
  IMPRINT_CHECK(services.context.runtime().place_together(model->described_.state));
  return model;
}

Model::~Model() { cancel(); }

void Model::cancel() {
  for (const Commands& run : runs_once_) services_.context.cancel(run);
  runs_once_.clear();
  if (program_) services_.context.cancel(*program_);
}

bool Model::uses(const bridge::SharedBuffer& buffer) const {
  return std::ranges::any_of(shared_,
                             [&](const SharedTensor& shared) { return shared.buffer.get() == &buffer; });
}

ModelStats Model::stats() const { return {begun_, late_, dispatches_, operations_}; }

Result<> Model::compile() {
  IMPRINT_ASSIGN(Program program, Program::compile(services_.context.runtime(), described_.description));
  if (const std::uint64_t found = saturated_sum(program.stats().work, program.stats().bytes_moved);
      found > operation_limit_)
    return make_error(ErrorCode::unsupported,
                      text("context_warmup: model '", name(), "': found ", found,
                           " operations and bytes moved per run, expected at most ", operation_limit_,
                           ". If you trust the file, raise operation_limit"));
  program_ = std::make_unique<Program>(std::move(program));
  for (std::uint32_t slot = 0; slot < program_->slot_count(); ++slot)
    for (std::size_t i = 0; i < described_.description.inputs.size(); ++i)
      std::ranges::fill(program_->input_bytes(slot, i), std::byte{0});
  dispatches_ = program_->stats().dispatches;
  operations_ = program_->stats().flops;
  return services_.context.measure(*program_);
}

Result<> Model::run_once(bool in_frame, std::set<VkPipeline>& ran) {
  // Runs of one program must not overlap. One that is under way runs the pipelines itself.
  const bool idle = std::ranges::all_of(runs_, [](const Run& run) { return run.phase != Phase::under_way; });
  if (!services_.context.vulkan() || !compiled() || !idle || runs_[0].phase != Phase::free || !check_owned())
    return {};
  if (begun_ > 0) return {};  // in play: its state is the game's
  RunOnce runs(services_.context, in_frame, runs_once_, ran);
  if (!runs.wants(*program_)) return {};
  set_reset(0, true);
  reset_next_ = true;
  runs_[0] = {Phase::under_way, false, 0, services_.clock.frame};
  Result<> run = runs.run(*program_, [this] { runs_[0].phase = Phase::free; });
  if (!run.ok()) runs_[0].phase = Phase::free;
  return run;
}

// The model may use a tensor only while Imprint's queue family owns it.
Result<> Model::check_owned() const {
  for (const SharedTensor& shared : shared_)
    if (!shared.buffer->owned_by_imprint())
      return make_error(ErrorCode::wrong_state,
                        text("model_run: tensor '", shared.name, "' of model '", name(),
                             "': found with the host's queue family, expected with Imprint's. Call "
                             "tensor_acquire in this frame first."));
  return {};
}

std::optional<std::uint32_t> Model::free_slot() const {
  const auto found = std::ranges::find(runs_, Phase::free, &Run::phase);
  if (found == runs_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - runs_.begin());
}

void Model::set_reset(std::uint32_t slot, bool reset) {
  if (described_.reset < 0) return;
  const std::int32_t flag = reset ? 1 : 0;
  const std::span<std::byte> bytes = program_->input_bytes(slot, static_cast<std::size_t>(described_.reset));
  std::memcpy(bytes.data(), &flag, sizeof flag);
}

Shape Model::shape_now(const ModelValue& value) const {
  const std::lock_guard lock(extents_mutex_);
  Shape used = value.shape;
  for (int axis = 0; axis < used.rank(); ++axis) {
    const auto extent_of_run = [&](const std::string& name) {
      const tensor::GivenExtent given = tensor::given_extent(name);
      const auto found = std::ranges::find(extents_, given.name, &ModelExtent::name);
      return found == extents_.end() ? 1 : (found->value + given.less) / given.step;
    };
    std::int64_t places = 1;
    for (const tensor::AxisPart& part : value.shape.parts(axis)) {
      const auto derived = tensor::derived_value(part.extent, extent_of_run);
      places *= part.extent.empty() ? part.places()
                                    : (derived ? *derived : extent_of_run(part.extent)) * part.factor;
    }
    used[axis] = places;
  }
  return used;
}

Result<> Model::set_extent(const std::string& extent, std::int64_t value) {
  for (const DimensionBound& bound : bounds_) {
    if (bound.name != extent || !bound.sum.empty()) continue;
    const std::int64_t least = bound.step > 1 ? bound.step : bound.least;
    if (value < least || value > bound.most || value % bound.step != 0)
      return bad_value("model_set_extent", name(),
                       text("value: found ", value, " for '", extent, "', expected ", least, " to ",
                            bound.most, bound.step > 1 ? text(" in steps of ", bound.step) : ""));
    const std::lock_guard lock(extents_mutex_);
    std::ranges::find(extents_, extent, &ModelExtent::name)->value = value;
    return {};
  }
  std::string names;
  for (const DimensionBound& bound : bounds_) names += text(names.empty() ? "'" : ", '", bound.name, "'");
  return bad_value("model_set_extent", name(),
                   text("name: found '", extent,
                        "', expected a name of imp_model_desc::bounds: ", names.empty() ? "none" : names));
}

Result<> Model::fill(std::uint32_t slot, std::span<const ModelInput> inputs) {
  for (const ModelExtent& extent : extents_) {
    const Result<> set = program_->set_extent(slot, extent.name, extent.value);
    if (!set && set.error().code != ErrorCode::not_found) return set.error();  // else no axis has it
  }
  IMPRINT_ASSIGN(const std::vector<std::size_t> places,
                 places_of("model_run", *program_, slot, "input", inputs, this->inputs()));
  if (places.size() < this->inputs().size()) {
    std::size_t missing = 0;
    while (std::ranges::find(places, missing) != places.end()) ++missing;
    return bad_value("model_run", name(),
                     text("inputs: found ", places.size(), ", expected ", this->inputs().size(), ": '",
                          this->inputs()[missing].name, "' is missing"));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ModelValue& value = this->inputs()[places[i]];
    const std::span<std::byte> held = program_->input_bytes(slot, places[i]);
    const std::size_t held_size = dtype_size(value.held), size = onnx::element_type_size(value.type);
    Result<> taken;
    program::each_used_run(
        *program_, slot, value.shape, held_size, [&](std::size_t from, std::size_t to, std::size_t bytes) {
          if (!taken.ok()) return;
          taken =
              take_elements(value, inputs[i].bytes.subspan(from / held_size * size), held.subspan(to, bytes));
        });
    if (!taken) return bad_value("model_run", name(), taken.error().message);
  }
  return {};
}

Result<std::uint64_t> Model::begin(std::span<const ModelInput> inputs) {
  if (!compiled())
    return make_error(ErrorCode::wrong_state,
                      text("model_run: model '", name(),
                           "': found no compiled program. Call context_warmup before the first frame."));
  IMPRINT_CHECK(check_owned());
  const std::optional<std::uint32_t> slot = free_slot();
  if (!slot)
    return make_error(ErrorCode::not_ready,
                      text("model_run: model '", name(), "': found ", runs_.size(),
                           " runs under way or unread. Read or discard one, or raise run_capacity"));
  IMPRINT_CHECK(fill(*slot, inputs));
  set_reset(*slot, reset_next_);
  bridge::FrameJob job;
  job.program = program_.get();
  job.slot = *slot;
  // Cut like learning: in pieces that fit the budget, and whole at the deadline.
  job.kind = bridge::FrameJobKind::learn;
  job.deadline_frame = services_.clock.frame + latency_frames_ - std::min(latency_frames_, kReturnFrames);
  job.stream = services_.stream;
  job.on_complete = [this, slot = *slot](std::uint64_t) { finish(slot); };
  IMPRINT_CHECK(services_.context.enqueue(std::move(job)));
  reset_next_ = false;
  ++begun_;
  runs_[*slot] = {Phase::under_way, true, ++last_number_, services_.clock.frame};
  return last_number_;
}

void Model::finish(std::uint32_t slot) {
  Run& run = runs_[slot];
  run.phase = run.wanted ? Phase::complete : Phase::free;
  if (services_.clock.frame <= run.frame + latency_frames_) {
    late_in_a_row_ = 0;
    return;
  }
  ++late_;
  constexpr std::uint32_t kSome = 16;  // fewer are a hitch
  if (++late_in_a_row_ < kSome || told_late_) return;
  told_late_ = true;
  services_.log(LogLevel::warning,
                text("model '", name(), "': latency_frames: found ", latency_frames_, ", expected at least ",
                     services_.clock.frame - run.frame, ", because ", kSome,
                     " answers in a row arrived later. Set it to ", services_.clock.frame - run.frame, "."));
}

Result<std::uint32_t> Model::slot_of(const char* call, std::uint64_t number) const {
  const auto found = std::ranges::find_if(
      runs_, [&](const Run& run) { return run.phase != Phase::free && run.wanted && run.number == number; });
  if (found == runs_.end())
    return make_error(ErrorCode::not_found,
                      text(call, ": model '", name(), "': run: found ", number,
                           ", expected one that model_run began and that is neither read nor discarded"));
  return static_cast<std::uint32_t>(found - runs_.begin());
}

Result<> Model::read(std::uint64_t number, std::span<const ModelOutput> outputs) {
  IMPRINT_ASSIGN(const std::uint32_t slot, slot_of("model_read", number));
  IMPRINT_ASSIGN(const std::vector<std::size_t> places,
                 places_of("model_read", *program_, slot, "output", outputs, this->outputs()));
  Run& run = runs_[slot];
  const std::uint64_t due = run.frame + latency_frames_;
  if (run.phase != Phase::complete || services_.clock.frame < due)
    return make_error(ErrorCode::not_ready, text("model_read: model '", name(), "': run ", number,
                                                 " is due in frame ", due, " or later"));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ModelValue& value = this->outputs()[places[i]];
    const std::span<const std::byte> held = program_->output_bytes(slot, places[i]);
    const std::size_t held_size = dtype_size(value.held), size = onnx::element_type_size(value.type);
    program::each_used_run(
        *program_, slot, value.shape, held_size, [&](std::size_t to, std::size_t from, std::size_t bytes) {
          give_elements(value, held.subspan(from, bytes), outputs[i].bytes.subspan(to / held_size * size));
        });
  }
  run.phase = Phase::free;
  return {};
}

Result<> Model::discard(std::uint64_t number) {
  IMPRINT_ASSIGN(const std::uint32_t slot, slot_of("model_discard", number));
  Run& run = runs_[slot];
  run.wanted = false;
  if (run.phase == Phase::complete) run.phase = Phase::free;
  return {};
}

}  // namespace imprint::agent
