// Bytes as calls of the C ABI on device "cpu": a byte chooses the function, further ones its arguments. Some
// programs run a second thread that makes the calls tagged [any].

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "imprint/imprint.h"
#include "imprint/imprint_models.h"
#include "imprint/imprint_tools.h"
#include "tests/fuzz/harness.h"

namespace imprint::fuzz {
namespace {

// Numbers from the bytes; zeros after the end.
class Source {
 public:
  explicit Source(Bytes bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::uint32_t below(std::uint32_t limit) { return number() % limit; }
  std::uint32_t number() {
    if (bytes_.empty()) return 0;
    const auto first = std::to_integer<std::uint32_t>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    return first;
  }
  // Mostly small, sometimes at the borders of its type.
  std::uint32_t count(std::uint32_t small) {
    constexpr std::uint32_t kBorders[] = {0, 1, (1u << 20) + 1, 1u << 31, UINT32_MAX};
    const std::uint32_t byte = number();
    return byte < 240 ? byte % small : kBorders[byte % 5];
  }
  float real() {
    constexpr float kBorders[] = {0,
                                  -1,
                                  1,
                                  2,
                                  1e30f,
                                  -1e-30f,
                                  std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::quiet_NaN()};
    return kBorders[below(8)];
  }
  Bytes rest() const { return bytes_; }

 private:
  Bytes bytes_;
};

const imp_api& api() {
  static const imp_api* const table = [] {
    const imp_api* found = nullptr;
    require(imp_get_api(IMP_ABI_VERSION, &found) == IMP_OK, "the library gives its table");
    return found;
  }();
  return *table;
}

std::atomic<std::uint64_t> calls_made{0}, calls_watched{0};

void check(imp_result result) {
  ++calls_made;
  require(result != IMP_ERROR_INTERNAL, "no call finds a bug in the library");
  require(std::strcmp(api().result_name(result), "") != 0, "each result has a name");
  if (result < 0) require(api().last_error()[0] != '\0', "a failure has a text");
}

constexpr std::size_t kMost = 8;          // handles of a kind
constexpr std::uint32_t kCap = 8u << 20;  // bytes, so that large brains are refused
constexpr std::uint32_t kObservation = 3, kGoals = 2;

class Player {
 public:
  explicit Player(Source& source) : source_(source) {
    imp_standalone_info info = imp_standalone_info_init();
    info.device = "cpu";
    imp_limits limits = imp_limits_init();
    limits.memory_cap_bytes = kCap;
    limits.worker_threads = source.below(2);
    check(api().tools->context_create_standalone(&info, nullptr, &limits, &context_));
    static const std::string file = [] {
      return (std::filesystem::temp_directory_path() /
              ("imprint-fuzz-" + std::to_string(std::random_device{}())))
          .string();
    }();
    path_ = file;
  }
  ~Player() {
    if (open_) check(api().frame_end(context_));
    const imp_result destroyed = api().context_destroy(context_);
    check(destroyed);
    if (destroyed < IMP_OK) check(api().context_destroy(context_));  // a lost save is said once
  }
  imp_context context() const { return context_; }

  void step() {
    switch (source_.below(32)) {
      case 0:
        return create_brain();
      case 1:
        return create_policy();
      case 2:
        return create_agent();
      case 3:
      case 4:
      case 5:
        return begin();
      case 6:
      case 7:
        return check(api().frame_submit(context_, source_.below(2) ? UINT32_MAX : source_.count(1000)));
      case 8:
      case 9: {
        const imp_result ended = api().frame_end(context_);
        if (ended == IMP_OK) open_ = false;
        return check(ended);
      }
      case 10:
        return check(api().context_warmup(context_, nullptr, nullptr));
      case 11:
        return check(api().context_drain(context_, source_.below(50)));
      case 12:
        return check(api().brain_set_learning(brain(), source_.count(2)));
      case 13:
        return check(api().brain_save(brain(), path_.c_str()));
      case 14:
        return check(api().brain_save_status(brain()));
      case 15:
        return check(source_.below(2) ? api().brain_load(brain(), path_.c_str())
                                      : api().brain_load_weights(brain(), path_.c_str()));
      case 16:
        return check(api().brain_snapshot(brain(), &snapshot_));
      case 17:
        return check(api().brain_restore(brain(), source_.below(4) ? snapshot_ : source_.number()));
      case 18:
        return check(api().brain_destroy(brain()));
      case 19:
        return check(api().agent_destroy(agent()));
      case 20:
        return check(api().agent_set_mode(agent(), static_cast<imp_mode>(source_.below(5))));
      case 21:
        return check(api().agent_set_goal(agent(), source_.count(kGoals)));
      case 22:
        return mask();
      case 23:
      case 24:
        return observe();
      case 25:
      case 26:
        return act();
      case 27:
        return teach();
      case 28:
        return check(api().agent_end_episode(agent(), static_cast<imp_episode_end>(source_.below(3))));
      case 29:
        return create_model();
      case 30:
        return use_model();
      default:
        return tool();
    }
  }

 private:
  imp_brain brain() { return brains_[source_.below(kMost)]; }
  imp_agent agent() { return agents_[source_.below(kMost)]; }

  void create_brain() {
    imp_brain_desc desc = imp_brain_desc_init();
    const std::uint32_t branch_sizes[] = {2, 3, source_.count(4)}, hidden[] = {4, source_.count(16)};
    desc.observation_count = source_.below(8) ? kObservation : source_.count(64);
    desc.goal_count = source_.below(4) ? 1 : source_.count(4);
    desc.branch_count = source_.below(8) ? 1 : source_.count(4) % 4;
    desc.branch_sizes = branch_sizes;
    desc.continuous_count = source_.below(4) ? 0 : source_.count(4);
    desc.hidden_count = source_.below(3);
    desc.hidden_sizes = hidden;
    desc.learner = static_cast<imp_learner>(source_.below(7));
    desc.brain_count = source_.below(4) ? 1 : source_.count(4);
    desc.agents_per_brain = source_.below(4) ? 2 : source_.count(8);
    desc.action_latency_frames = source_.below(4) ? 1 : source_.count(8);
    desc.snapshot_count = source_.below(3);
    imp_brain made = {};
    const imp_result result = api().brain_create(context_, &desc, &made);
    if (result == IMP_OK) brains_[source_.below(kMost)] = made;
    check(result);
  }

  void create_policy() {
    imp_policy_desc desc = imp_policy_desc_init();
    desc.data = source_.rest().data();
    desc.size = source_.rest().size();
    desc.agent_capacity = source_.count(4);
    desc.operation_limit = 1u << 24;
    imp_brain made = {};
    const imp_result result = api().brain_create_from_onnx(context_, &desc, &made);
    if (result == IMP_OK) brains_[source_.below(kMost)] = made;
    check(result);
  }

  void create_model() {
    const imp_model_extent extents[] = {{"batch", source_.count(4)}};
    const imp_model_state states[] = {{"state", "next"}};
    imp_model_desc desc = imp_model_desc_init();
    desc.extents = extents;
    desc.extent_count = source_.below(4) == 0;
    desc.bounds = extents;
    desc.bound_count = source_.below(4) == 0;
    desc.states = states;
    desc.state_count = source_.below(8) == 0;
    desc.run_capacity = source_.below(4) ? 2 : source_.count(4);
    desc.latency_frames = source_.below(4) ? 1 : source_.count(8);
    desc.operation_limit = 1u << 24;
    desc.data = source_.rest().data();
    desc.size = source_.rest().size();
    imp_model made = {};
    const imp_result result = api().models->model_create(context_, &desc, &made);
    if (result == IMP_OK) models_[source_.below(kMost)] = made;
    check(result);
  }

  void use_model() {
    const imp_model model = models_[source_.below(kMost)];
    const imp_models_api& models = *api().models;
    switch (source_.below(7)) {
      case 0:
        return check(models.model_destroy(model));
      case 1:
        return check(models.model_discard(model, source_.count(8)));
      case 2:
        return check(models.model_reset(model));
      case 3: {
        std::vector<std::byte> bytes(source_.below(2) ? 4096 : source_.below(64));
        imp_model_output output = {nullptr, bytes.data(), bytes.size()};
        return check(models.model_read(model, source_.count(8), &output, source_.below(2)));
      }
      case 4:
        return check(models.model_set_extent(model, "batch", source_.count(4)));
      case 5: {
        imp_model_info info = imp_model_info_init();
        return check(models.model_get_info(model, &info));
      }
      default:
        return run_model(model);
    }
  }

  // Mostly with inputs of the right sizes.
  void run_model(imp_model model) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<imp_model_input> inputs;
    imp_model_value value = imp_model_value_init();
    for (std::uint32_t i = 0; i < 4 && api().models->model_get_input(model, i, &value) == IMP_OK; ++i) {
      if (value.size > 1u << 20) break;
      bytes.emplace_back(value.size - (source_.below(16) == 0 && value.size > 0), std::byte{1});
      inputs.push_back({value.name, bytes.back().data(), bytes.back().size()});
    }
    std::uint64_t run = 0;
    check(api().models->model_run(model, inputs.data(), static_cast<std::uint32_t>(inputs.size()), &run));
  }

  void create_agent() {
    imp_agent made = {};
    const imp_result result = api().agent_create(brain(), source_.below(4) ? 0 : source_.count(4), &made);
    if (result == IMP_OK) agents_[source_.below(kMost)] = made;
    check(result);
  }

  void begin() {
    imp_frame_info info = imp_frame_info_init();
    info.frame = frame_ += source_.below(8) ? 1 : source_.count(3);
    info.time_s = static_cast<double>(frame_) / 60;
    if (source_.below(16) == 0) info.time_s = static_cast<double>(source_.real());
    const imp_result begun = api().frame_begin(context_, &info);
    if (begun == IMP_OK) open_ = true;
    check(begun);
  }

  void observe() {
    std::vector<float> observation(kObservation);
    for (float& value : observation) value = source_.below(8) ? 0.5f : source_.real();
    check(api().agent_observe(agent(), observation.data(),
                              source_.below(8) ? kObservation : source_.below(kObservation + 1)));
  }

  void act() {
    imp_action action = imp_action_init();
    const imp_result result = api().agent_act(agent(), &action);
    check(result);
    if (result != IMP_OK) return;
    for (std::uint32_t i = 0; i < action.continuous_count; ++i)
      require(std::isfinite(action.continuous[i]), "actions are finite");
  }

  void mask() {
    const std::uint8_t allowed[] = {1, 0, 1, 1};
    check(api().agent_set_mask(agent(), source_.below(2) ? allowed : nullptr, source_.below(5)));
  }

  void teach() {
    switch (source_.below(4)) {
      case 0: {
        imp_feedback feedback = imp_feedback_init();
        feedback.value = source_.real();
        feedback.weight = source_.below(4) ? 1 : source_.real();
        feedback.credit = static_cast<imp_credit>(source_.below(3));
        feedback.time_s = static_cast<double>(frame_) / 60;
        return check(api().agent_feedback(agent(), &feedback));
      }
      case 1: {
        const float observation[kObservation] = {0, source_.real(), 1};
        const std::uint32_t branches[] = {source_.count(3), 0};
        const float continuous[] = {source_.real(), 0};
        imp_demonstration demonstration = imp_demonstration_init();
        demonstration.observation = observation;
        demonstration.observation_count = kObservation;
        demonstration.branches = branches;
        demonstration.branch_count = source_.below(8) ? 1 : source_.below(3);
        demonstration.continuous = continuous;
        demonstration.continuous_count = source_.below(8) ? 0 : source_.below(3);
        return check(api().agent_demonstrate(agent(), &demonstration));
      }
      case 2: {
        const std::uint32_t branches[] = {source_.count(3), 0};
        const float continuous[] = {source_.real(), 0};
        return check(
            api().agent_heuristic(agent(), branches, source_.below(3), continuous, source_.below(3)));
      }
      default:
        return check(api().agent_reward(agent(), source_.real()));
    }
  }

  void tool() {
    const imp_tools_api& tools = *api().tools;
    const char* bytes = reinterpret_cast<const char*>(source_.rest().data());
    switch (source_.below(9)) {
      case 0: {
        std::uint64_t low = 0, high = 0;
        return check(tools.brain_hash(brain(), &low, &high));
      }
      case 1:
        return check(tools.tuning_set(context_, bytes, source_.rest().size()));
      case 2:
        return check(tools.pipeline_cache_set(context_, bytes, source_.rest().size()));
      case 3: {
        std::size_t size = 0;
        return check(tools.context_get_report_text(context_, nullptr, &size));
      }
      case 4:
        return check(tools.context_run_jobs(context_, source_.count(100), nullptr));
      case 5:
        return check(api().context_trim(context_, nullptr));
      case 6:
        return check(api().context_quiesce(context_, source_.below(10)));
      case 7:
        return check(api().context_resume(context_));
      default: {
        imp_limits limits = imp_limits_init();
        limits.memory_cap_bytes = kCap;
        limits.gpu_us_per_frame = source_.count(1000);
        return check(api().context_set_limits(context_, &limits));
      }
    }
  }

  Source& source_;
  imp_context context_ = {};
  imp_brain brains_[kMost] = {};
  imp_agent agents_[kMost] = {};
  imp_model models_[kMost] = {};
  std::string path_;
  std::uint64_t frame_ = 0, snapshot_ = 0;
  bool open_ = false;
};

}  // namespace

CallCounts abi_calls() { return {calls_made - calls_watched, calls_watched}; }

void abi(Bytes bytes) {
  Source source(bytes);
  const bool two_threads = source.below(4) == 3;
  Player player(source);
  std::atomic<bool> over{false};
  std::thread observer;
  if (two_threads)
    observer = std::thread([&] {
      while (!over) {
        imp_context_stats stats = imp_context_stats_init();
        check(api().tools->context_get_stats(player.context(), &stats));
        check(api().tools->tuning_stop(player.context()));
        calls_watched += 2;
        std::this_thread::yield();
      }
    });
  for (int calls = 0; calls < 400 && !source.empty(); ++calls) player.step();
  over = true;
  if (observer.joinable()) observer.join();
}

}  // namespace imprint::fuzz
