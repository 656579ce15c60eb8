#include "compute/tuning/tuner.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <unordered_map>
#include <utility>

#include "compute/program/device_profile.h"
#include "compute/program/program_impl.h"
#include "compute/tuning/tuner_timer.h"
#include "compute/vk/pipelines/glsl_compiler.h"

namespace imprint {

using namespace graph;
using namespace program;
using namespace tensor;
using namespace tuning;

namespace {

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

std::shared_ptr<VariableState> zeros_like(const VariableState& state) {
  auto scratch = std::make_shared<VariableState>();
  scratch->name = state.name;
  scratch->dtype = state.dtype;
  scratch->shape = state.shape;
  scratch->initial = SharedBytes(std::vector<std::byte>(state.bytes()));
  return scratch;
}

NodeRef on_variable(const Node& node, const std::shared_ptr<VariableState>& variable) {
  auto copy = std::make_shared<Node>();
  copy->op = node.op;
  copy->dtype = node.dtype;
  copy->shape = node.shape;
  copy->variable = variable;
  copy->label = node.label;
  copy->id = node.id;
  return copy;
}

// A copy of the program that leaves the game's state alone. Zeros replace the variables that it writes or
// that the host holds.
ProgramGraph beside_state(const ProgramGraph& source) {
  ProgramGraph scratch = source;
  scratch.slot_count = 1;
  std::unordered_map<const VariableState*, std::shared_ptr<VariableState>> replaced;
  for (std::size_t i = 0; i < source.request.variables.size(); ++i) {
    const std::shared_ptr<VariableState>& own = source.request.variables[i];
    const bool is_written = std::ranges::find(source.request.updates, static_cast<std::int32_t>(i),
                                              &GraphUpdate::variable) != source.request.updates.end();
    if (is_written || own->external) scratch.request.variables[i] = replaced[own.get()] = zeros_like(*own);
  }
  for (GraphNode& node : scratch.graph.nodes)
    if (node.op == Op::variable)
      if (const auto found = replaced.find(node.source->variable.get()); found != replaced.end())
        node.source = on_variable(*node.source, found->second);
  return scratch;
}

}  // namespace

// Measures one program.
class Tuner::Subject {
 public:
  Subject(Tuner& tuner, RuntimeImpl& runtime, const ProgramGraph& source)
      : tuner_(tuner), runtime_(runtime), source_(beside_state(source)) {}

  Result<> run() {
    IMPRINT_ASSIGN(Built usual, build(tuner_.table_));
    for (const VariantChoice* choice = next(usual.choices); choice; choice = next(usual.choices)) {
      if (usual.us == 0) {
        IMPRINT_ASSIGN(usual.us, tuner_.timer_->time(usual.commands(), tuner_.options_.runs));
      }
      const VariantChoice decided = *choice;
      bool is_changed = false;
      IMPRINT_CHECK(decide(decided, usual, is_changed));
      if (tuner_.is_over()) return {};
      if (!is_changed) continue;
      usual = {};  // frees its memory before the next build
      IMPRINT_ASSIGN(usual, build(tuner_.table_));
    }
    return {};
  }

  std::uint32_t kernels = 0, variants = 0;

 private:
  struct Built {
    std::unique_ptr<Program::Impl> impl;
    std::vector<VariantChoice> choices;
    double us = 0;

    VkCommandBuffer commands() const { return impl->whole(0, VK_COMMAND_BUFFER_LEVEL_SECONDARY); }
  };

  Result<Built> build(const VariantTable& table) {
    Built built;
    built.impl = std::make_unique<Program::Impl>(runtime_);
    built.impl->source = source_;
    IMPRINT_CHECK(built.impl->build(&table, profiles_of(runtime_.device()).back()));
    for (const Task& task : built.impl->schedule.tasks)
      built.choices.insert(built.choices.end(), task.choices.begin(), task.choices.end());
    return built;
  }

  // The first choice without a measurement; null if there is none.
  const VariantChoice* next(const std::vector<VariantChoice>& choices) {
    const auto is_open = [&](const VariantChoice& choice) { return !tuner_.table_.contains(choice.kernel); };
    open_variants_ = 0;
    std::set<std::string> kernels_seen;
    for (const VariantChoice& choice : choices)
      if (is_open(choice) && kernels_seen.insert(choice.kernel).second)
        open_variants_ += choice.variants.size();
    const auto found = std::ranges::find_if(choices, is_open);
    return found == choices.end() ? nullptr : &*found;
  }

  // Measures the variants of one kernel against the cost model's. Writes the fastest into the table, unless
  // time runs out before all are measured.
  Result<> decide(const VariantChoice& choice, const Built& usual, bool& is_changed) {
    std::string fastest = choice.taken;
    double least = usual.us * (1 - tuner_.options_.least_gain);
    tell(choice, choice.taken, usual.us, usual.us);
    for (const std::string& variant : choice.variants) {
      if (variant == choice.taken) continue;
      if (!tell(choice, variant, 0, usual.us)) return {};
      const double us = try_variant(choice.kernel, variant, usual, least);
      if (runtime_.device().lost()) return make_error(ErrorCode::device_lost, "tuning: the device was lost");
      tell(choice, variant, us, usual.us);
      if (us < 0 || us >= least) continue;
      least = us;
      fastest = variant;
    }
    tuner_.table_[choice.kernel] = fastest;
    is_changed = fastest != choice.taken;
    ++kernels;
    variants += static_cast<std::uint32_t>(choice.variants.size());
    told_ += choice.variants.size();
    return {};
  }

  // Microseconds; below 0: the variant cannot be built or run here. A time below `worth` must repeat in a
  // second measurement.
  double try_variant(const std::string& kernel, const std::string& variant, const Built& usual,
                     double worth) {
    VariantTable trial = tuner_.table_;
    trial[kernel] = variant;
    const Result<Built> built = build(trial);
    if (!built) return -1;
    const bool is_taken = std::ranges::any_of(built->choices, [&](const VariantChoice& made) {
      return made.kernel == kernel && made.taken == variant;
    });
    if (!is_taken) return -1;
    double us = 0;
    do {
      const auto times = tuner_.timer_->compare(usual.commands(), built->commands(), tuner_.options_.runs);
      if (!times) return -1;
      const double before = std::exchange(us, usual.us * times->other / times->usual);
      if (before > 0) return std::max(before, us);
    } while (us < worth);
    return us;
  }

  // False when time is over or the progress function asked to stop.
  bool tell(const VariantChoice& choice, const std::string& variant, double us, double usual_us) {
    if (us == 0 && tuner_.is_over()) return false;
    if (!tuner_.options_.progress) return true;
    TuningStep step{source_.name, choice.kernel, variant, us, usual_us, variant == choice.taken};
    const auto position = std::ranges::find(choice.variants, variant) - choice.variants.begin();
    step.position = told_ + static_cast<std::size_t>(position);
    step.count = told_ + open_variants_;
    if (!tuner_.options_.progress(step)) tuner_.stop();
    return !tuner_.stopped_;
  }

  Tuner& tuner_;
  RuntimeImpl& runtime_;
  const ProgramGraph source_;
  std::size_t told_ = 0, open_variants_ = 0;
};

Tuner::Tuner(Runtime& runtime, VariantTable known, TuningOptions options)
    : runtime_(runtime), table_(std::move(known)), options_(std::move(options)) {}

Tuner::~Tuner() = default;

Result<std::shared_ptr<Tuner>> Tuner::create(Runtime& runtime, vk::Queue& queue, VariantTable known,
                                             TuningOptions options) {
  if (runtime.on_cpu())
    return make_error(ErrorCode::unsupported,
                      "tuning: found the CPU, whose kernels have no variants, expected a Vulkan device");
  if (!vk::GlslCompiler::present())
    return make_error(
        ErrorCode::unsupported,
        "tuning: found a library without a shader compiler. Ship a table, and an archive of imprint "
        "bake --tuning.");
  options.runs = std::max(1u, options.runs);
  std::shared_ptr<Tuner> tuner(new Tuner(runtime, std::move(known), std::move(options)));
  tuner->deadline_ns_ =
      now_ns() + static_cast<std::uint64_t>(std::clamp(tuner->options_.seconds, 0.0, 1e6) * 1e9);
  IMPRINT_ASSIGN(tuner->timer_,
                 TuningTimer::create(static_cast<RuntimeImpl&>(runtime), queue, tuner->options_.seconds));
  return tuner;
}

bool Tuner::is_over() const { return stopped_ || now_ns() >= deadline_ns_; }

TuningStats Tuner::stats() const {
  const std::lock_guard lock(stats_mutex_);
  return stats_;
}

void Tuner::tune(Runtime& runtime, const ProgramGraph& source) {
  auto& own = static_cast<RuntimeImpl&>(runtime_);
  if (&runtime != &runtime_ || is_over() || own.device().lost()) return;
  if (own.device().counters().on_frame()) {
    const std::lock_guard lock(stats_mutex_);
    ++stats_.refused_in_frame;
    return;
  }
  Subject subject(*this, own, source);
  const Result<> measured = subject.run();
  if (!measured)
    own.device().options().log(LogLevel::info, "program '" + source.name + "' is not measured to the end: " +
                                                   measured.error().message);
  runtime_.set_variants(std::make_shared<const VariantTable>(table_));
  const std::lock_guard lock(stats_mutex_);
  ++stats_.programs;
  stats_.kernels += subject.kernels;
  stats_.variants += subject.variants;
  stats_.runs = timer_->runs();
  if (!measured) {
    ++stats_.failed;
    stats_.failure = measured.error().message;
  }
}

}  // namespace imprint
