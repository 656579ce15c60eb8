#include "tests/hosts/pupil.h"

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>

#include "samples/pet/brain/pet_brain.h"
#include "samples/pet/yard/checkup.h"
#include "samples/pet/yard/life.h"
#include "samples/pet/yard/teacher.h"

namespace imprint::hosts {
namespace {

constexpr std::uint64_t kSettleFrames = 12;  // for minibatches still running when the lessons end
constexpr float kLearned = 0.8f;             // an untaught pet stays below 0.2

// Shared by all hosts, in the folder of their programs.
std::string shader_cache() {
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename("shader-cache").string();
}

pet::BrainContext::Setup context_setup(const PupilOptions& options, std::vector<std::string>& warnings) {
  pet::BrainContext::Setup setup;
  setup.access = options.submit ? pet::Access::submit : pet::Access::record;
  setup.shader_cache = shader_cache();
  setup.log = [&warnings](const std::string& message) { warnings.push_back(message); };
  return setup;
}

pet::PetBrain::Setup brain_setup(const PupilOptions& options) {
  return {"pet", options.seed, 1, pet::kTrialsPerTrick, pet::kUsualReaction};
}

template <class T>
T expect(pet::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

void expect(const pet::Result<>& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

std::vector<std::vector<pet::Mind*>> probes(pet::PetBrain& brain) {
  std::vector<std::vector<pet::Mind*>> minds(1);
  for (std::uint32_t i = 0; i < brain.setup().probes; ++i) minds[0].push_back(&brain.probe(0, i));
  return minds;
}

}  // namespace

struct Pupil::Inside {
  Inside(const imp_vk_device_info& device, const PupilOptions& wanted)
      : options(wanted),
        context(expect(pet::BrainContext::create(device, context_setup(options, warnings)))),
        brain(expect(pet::PetBrain::create(*context, brain_setup(options)))),
        life(brain->pet(0), options.seed, {}),
        teacher(pet::teacher_style(pet::TeacherKind::demo), {}, options.seed, 0),
        checkup(probes(*brain)) {
    life.on_onset = [this](double now_s, pet::Action, bool right) { teacher.see_onset(now_s, right); };
    brain->set_learning(options.learning);
    expect(context->warmup({}));
  }

  double time_s() const { return life.world().time_s(); }

  void play(std::uint64_t now) {
    signals.clear();
    teacher.step(life.world(), life.trial(), signals);
    for (const pet::Signal& signal : signals) life.apply(signal);
    life.act(now);
    life.step();
    life.ask(now);
  }

  std::vector<std::string> warnings;
  PupilOptions options;
  std::unique_ptr<pet::BrainContext> context;
  std::unique_ptr<pet::PetBrain> brain;
  pet::Life life;
  pet::Teacher teacher;
  pet::Checkup checkup;
  std::vector<pet::Signal> signals;
  std::uint64_t frame = 0;
  std::optional<std::uint64_t> lessons_over;  // since this frame
  bool examined = false;
  std::vector<std::uint32_t> decisions;
};

Pupil::Pupil(const imp_vk_device_info& device, const PupilOptions& options)
    : inside_(std::make_unique<Inside>(device, options)) {}
Pupil::~Pupil() = default;

void Pupil::begin(std::uint64_t frame, std::uint64_t safe_frame) {
  Inside& in = *inside_;
  in.frame = frame;
  expect(in.context->begin_frame(frame, safe_frame, in.time_s()));
  if (!in.lessons_over && in.options.seconds > 0 && in.time_s() >= in.options.seconds) {
    in.lessons_over = frame;
    in.brain->set_learning(false);
  }
  if (!in.lessons_over) {
    in.play(frame);
  } else if (!in.examined && frame >= *in.lessons_over + kSettleFrames) {
    if (!in.checkup.running()) in.checkup.begin(in.options.seed);
    in.examined = in.checkup.step(frame);
  }
}

void Pupil::send(VkCommandBuffer commands) { expect(inside_->context->send_work(commands)); }

void Pupil::end() {
  Inside& in = *inside_;
  expect(in.context->end_frame());
  if (!in.examined || !in.decisions.empty()) return;
  for (const auto& trial : in.checkup.decisions())
    for (const pet::Action action : trial) in.decisions.push_back(static_cast<std::uint32_t>(action));
}

bool Pupil::finished() const { return inside_->examined; }

void Pupil::close() { inside_->context->close(inside_->frame, inside_->time_s()); }

Place Pupil::place() const {
  const pet::Vec2 position = inside_->life.world().view().pet.position;
  return {position.x, position.y};
}

float Pupil::success() const { return pet::mean_success(inside_->checkup.marks()); }

const std::vector<std::uint32_t>& Pupil::decisions() const { return inside_->decisions; }

void Pupil::set_learning(bool on) { inside_->brain->set_learning(on); }

imp_context_stats Pupil::context_stats() const { return inside_->context->stats(); }

imp_brain_stats Pupil::brain_stats() const { return inside_->brain->stats(); }

const std::vector<std::string>& Pupil::warnings() const { return inside_->warnings; }

std::string faults(const Pupil& pupil) {
  std::string text;
  const imp_context_stats context = pupil.context_stats();
  const auto zero = [&](const char* what, std::uint64_t count) {
    if (count) text += std::to_string(count) + " " + what + " within frames; ";
  };
  zero("compiles", context.frame_compiles);
  zero("allocations", context.frame_allocations);
  zero("waits", context.frame_waits);
  if (pupil.brain_stats().minibatches == 0) text += "no minibatch ran; ";
  if (!(pupil.success() >= kLearned))
    text += "carried out " + std::to_string(100 * pupil.success()) + " % of its commands; ";
  for (const std::string& warning : pupil.warnings()) text += "it warned: " + warning + "; ";
  return text;
}

}  // namespace imprint::hosts
