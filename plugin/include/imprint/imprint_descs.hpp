#ifndef IMPRINT_IMPRINT_DESCS_HPP_
#define IMPRINT_IMPRINT_DESCS_HPP_
// Part of imprint.hpp, which includes it: what contexts, brains and tensors are made from. Spans
// and names are borrowed until the call that takes the descriptor has returned. Units, ranges and
// defaults are those of the C struct named in each comment, to which each converts. The C form
// borrows from the C++ form.

#include <optional>
#include <type_traits>
#include <variant>

#include "imprint_models.hpp"
#include "imprint_types.hpp"

// From Vulkan's header, which need not be included.
struct VkAllocationCallbacks;
struct VkDeviceCreateInfo;
struct VkMemoryAllocateInfo;
struct VkPhysicalDeviceFeatures;
struct VkSubmitInfo;

namespace imprint::game {
namespace detail {

// T, looked up when the template with Parameter is used: by then Vulkan's header has completed it.
template <class Parameter, class T>
struct DependsOn {
  using Type = T;
};
template <class Parameter, class T>
using Depends = typename DependsOn<Parameter, T>::Type;

}  // namespace detail

// imp_limits with its defaults: set the fields of the C struct.
struct Limits : imp_limits {
  Limits() : imp_limits(imp_limits_init()) {}
};
// FeedbackOptions, DqnOptions and so on: imp_feedback_options, imp_dqn_options with their defaults.
#define IMP_OPTIONS(name, NAME, Name, bytes)                               \
  struct Name##Options : imp_##name##_options {                            \
    Name##Options() : imp_##name##_options(imp_##name##_options_init()) {} \
  };
IMP_LEARNERS(IMP_OPTIONS)
#undef IMP_OPTIONS
struct NetworkOptions : imp_network_options {
  NetworkOptions() : imp_network_options(imp_network_options_init()) {}
  // It borrows them until the brain is made.
  void set_streams(std::span<const imp_stream> given) {
    streams = given.data();
    stream_count = detail::count_of(given.size());
  }
};
struct DemonstrationOptions : imp_demonstration_options {
  DemonstrationOptions() : imp_demonstration_options(imp_demonstration_options_init()) {}
};
struct GroupOptions : imp_group_options {
  GroupOptions() : imp_group_options(imp_group_options_init()) {}
};
struct SelfPlayOptions : imp_self_play_options {
  SelfPlayOptions() : imp_self_play_options(imp_self_play_options_init()) {}
};
struct SignalOptions : imp_signal_options {
  SignalOptions() : imp_signal_options(imp_signal_options_init()) {}
};
// One part of an observation each.
inline imp_stream vector_stream(std::uint32_t count) {
  imp_stream stream{};
  stream.count = count;
  return stream;
}
inline imp_stream picture_stream(std::uint32_t channels, std::uint32_t height,
                                 std::uint32_t width) {
  imp_stream stream{};
  stream.kind = IMP_STREAM_PICTURE;
  stream.channels = channels;
  stream.height = height;
  stream.width = width;
  return stream;
}
inline imp_stream entity_stream(std::uint32_t most, std::uint32_t features) {
  imp_stream stream{};
  stream.kind = IMP_STREAM_ENTITIES;
  stream.count = most;
  stream.features = features;
  return stream;
}
inline imp_stream id_stream(std::uint32_t count, std::uint32_t vocabulary) {
  imp_stream stream{};
  stream.kind = IMP_STREAM_IDS;
  stream.count = count;
  stream.vocabulary = vocabulary;
  return stream;
}
struct NoLearner {};

#define IMP_OPTIONS(name, NAME, Name, bytes) , Name##Options
using Learner = std::variant<NoLearner IMP_LEARNERS(IMP_OPTIONS)>;
#undef IMP_OPTIONS

// A Vulkan struct of the host, or none. It must live until the call that uses it has returned.
template <class T>
class Borrowed {
 public:
  Borrowed() = default;
  Borrowed(const T& lent) : lent_(&lent) {}
  Borrowed(const T&&) = delete;
  const T* get() const { return lent_; }

 private:
  const T* lent_ = nullptr;
};

// The feature structs that the device was made with, in any order: of a VkDeviceCreateInfo its
// pNext, of any other Vulkan struct the chain that begins with it. Borrowed, as Borrowed is.
class FeatureChain {
 public:
  FeatureChain() = default;
  template <class Struct>
  requires requires(const Struct& first) {
    first.sType;
    first.pNext;
  }
  FeatureChain(const Struct& first) {
    if constexpr (std::is_same_v<Struct, VkDeviceCreateInfo>)
      first_ = first.pNext;
    else
      first_ = &first;
  }
  template <class Struct>
  FeatureChain(const Struct&&) = delete;
  const void* get() const { return first_; }

 private:
  friend class MergedDevice;
  explicit FeatureChain(const void* first) : first_(first) {}

  const void* first_ = nullptr;
};

// A job for the game's job system: call it exactly once, on any thread.
class Job {
 public:
  void operator()() const { run_(data_); }

 private:
  friend struct HostDesc;
  Job(void (*run)(void* data), void* data) : run_(run), data_(data) {}

  void (*run_)(void* data);
  void* data_;
};

// imp_host. `services` is an object of the game with any of these member functions; it must live
// until the context is destroyed. Imprint calls them from any thread:
//   void log(LogLevel level, std::string_view message);
//   void device_lost(std::string_view message);
//   void submit_job(Job job);
struct HostDesc {
  std::span<const std::byte> kernel_archive{};  // of imprint bake: bytes or path
  Text kernel_archive_path{};
  Text shader_cache_directory{};
  Text shader_dump_directory{};
  Text kernel_archive_sha256{};  // 64 hex digits, as imprint bake prints; none: any archive

  HostDesc() = default;
  template <class Services>
  requires(!std::is_same_v<std::remove_const_t<Services>, HostDesc>) explicit HostDesc(
      Services& services) {
    // The first form also finds overloads; the second makes a wrong parameter an error below.
    constexpr bool logs = requires(const char* message) { services.log(LogLevel::info, message); }
    || requires { &Services::log; };
    constexpr bool hears_loss = requires(const char* message) { services.device_lost(message); }
    || requires { &Services::device_lost; };
    constexpr bool runs_jobs = requires(Job job) { services.submit_job(job); }
    || requires { &Services::submit_job; };
    static_assert(logs || hears_loss || runs_jobs, "no public log, device_lost or submit_job");
    calls_.user = detail::user_of(services);
    if constexpr (logs)
      calls_.log = [](void* user, imp_log_level level, const char* message) {
        static_cast<Services*>(user)->log(static_cast<LogLevel>(level), message);
      };
    if constexpr (hears_loss)
      calls_.device_lost = [](void* user, const char* message) {
        static_cast<Services*>(user)->device_lost(message);
      };
    if constexpr (runs_jobs)
      calls_.job_submit = [](void* user, void (*run)(void* data), void* data) {
        static_cast<Services*>(user)->submit_job(Job{run, data});
      };
  }

  operator imp_host() const {
    imp_host host = calls_;
    host.kernel_archive = kernel_archive.empty() ? nullptr : kernel_archive.data();
    host.kernel_archive_size = kernel_archive.size();
    host.kernel_archive_path = kernel_archive_path.c_str();
    host.shader_cache_directory = shader_cache_directory.c_str();
    host.shader_dump_directory = shader_dump_directory.c_str();
    host.kernel_archive_sha256 = kernel_archive_sha256.c_str();
    return host;
  }

 private:
  imp_host calls_ = imp_host_init();
};

// imp_vk_queue: which queue, and how Imprint may use it. Objects given here must live until the
// context is destroyed.
class QueueDesc : public imp_vk_queue {
 public:
  static QueueDesc record_only(std::uint32_t family) {
    return QueueDesc(IMP_QUEUE_RECORD_ONLY, family, nullptr);
  }
  static QueueDesc single_thread(VkQueue queue, std::uint32_t family) {
    return QueueDesc(IMP_QUEUE_SINGLE_THREAD, family, queue);
  }
  static QueueDesc internally_synchronized(VkQueue queue, std::uint32_t family) {
    return QueueDesc(IMP_QUEUE_INTERNALLY_SYNCHRONIZED, family, queue);
  }
  static QueueDesc exclusive(VkQueue queue, std::uint32_t family) {
    return QueueDesc(IMP_QUEUE_EXCLUSIVE, family, queue);
  }
  // mutex: lock() and unlock(), as std::mutex has.
  template <class Mutex>
  static QueueDesc locked(VkQueue queue, std::uint32_t family, Mutex& mutex) {
    QueueDesc made(IMP_QUEUE_LOCK, family, queue);
    made.user = detail::user_of(mutex);
    made.lock = [](void* user, VkQueue) { static_cast<Mutex*>(user)->lock(); };
    made.unlock = [](void* user, VkQueue) { static_cast<Mutex*>(user)->unlock(); };
    return made;
  }
  // submit(VkQueue, std::span<const VkSubmitInfo>, std::uint64_t fence) returns the VkResult.
  template <class Submit>
  static QueueDesc submitted_by(VkQueue queue, std::uint32_t family, Submit& submit,
                                bool without_fence = false) {
    QueueDesc made(IMP_QUEUE_SUBMIT_CALLBACK, family, queue);
    made.user = detail::user_of(submit);
    made.submit = [](void* user, VkQueue to, std::uint32_t count, const void* submits,
                     std::uint64_t fence) {
      using Info = detail::Depends<Submit, VkSubmitInfo>;
      const std::span<const Info> infos(static_cast<const Info*>(submits), count);
      return static_cast<std::int32_t>((*static_cast<Submit*>(user))(to, infos, fence));
    };
    made.submit_without_fence = without_fence ? 1 : 0;
    return made;
  }
  // run(work) calls work(queue) where the host may submit, and returns when that has returned.
  template <class Run>
  static QueueDesc run_by(VkQueue queue, std::uint32_t family, Run& run) {
    QueueDesc made(IMP_QUEUE_RUN_ON_QUEUE, family, queue);
    made.user = detail::user_of(run);
    made.run_on_queue = [](void* user, void (*work)(void* data, VkQueue queue), void* data) {
      (*static_cast<Run*>(user))([work, data](VkQueue on) { work(data, on); });
    };
    return made;
  }

  QueueDesc() : QueueDesc(IMP_QUEUE_RECORD_ONLY, 0, nullptr) {}

 private:
  QueueDesc(imp_queue_access how, std::uint32_t of_family, VkQueue which) : imp_vk_queue{} {
    access = how;
    family = of_family;
    queue = which;
  }
};

// imp_vk_device_info: the host's device, as it was made.
struct DeviceDesc {
  imp_get_instance_proc_addr get_instance_proc_addr = nullptr;
  VkInstance instance = nullptr;
  VkPhysicalDevice physical_device = nullptr;
  VkDevice device = nullptr;
  std::uint32_t api_version = 0;
  Names instance_extensions{};
  Names device_extensions{};
  FeatureChain features{};
  Borrowed<VkPhysicalDeviceFeatures> enabled_features{};
  QueueDesc queue{};
  Borrowed<VkAllocationCallbacks> allocation_callbacks{};  // pUserData: as the queue's objects
  std::uint64_t pipeline_cache = 0;
  bool allow_own_device = false;

  // memory: an object that must live until the context is destroyed, called from any thread:
  //   VkResult allocate(const VkMemoryAllocateInfo& info, std::uint64_t& memory);
  //   void release(std::uint64_t memory);
  template <class Memory>
  void set_memory(Memory& memory) {
    memory_.memory_user = detail::user_of(memory);
    memory_.allocate_device_memory = [](void* user, const void* info, std::uint64_t* made) {
      return static_cast<std::int32_t>(static_cast<Memory*>(user)->allocate(
          *static_cast<const VkMemoryAllocateInfo*>(info), *made));
    };
    memory_.free_device_memory = [](void* user, std::uint64_t given) {
      static_cast<Memory*>(user)->release(given);
    };
  }

  operator imp_vk_device_info() const {
    imp_vk_device_info info = memory_;
    info.get_instance_proc_addr = get_instance_proc_addr;
    info.instance = instance;
    info.physical_device = physical_device;
    info.device = device;
    info.api_version = api_version;
    info.instance_extension_count = detail::count_of(instance_extensions.size());
    info.instance_extensions = instance_extensions.data();
    info.device_extension_count = detail::count_of(device_extensions.size());
    info.device_extensions = device_extensions.data();
    info.features = features.get();
    info.enabled_features = enabled_features.get();
    info.queue = queue;
    info.allocation_callbacks = allocation_callbacks.get();
    info.pipeline_cache = pipeline_cache;
    info.allow_own_device = allow_own_device ? 1 : 0;
    return info;
  }

 private:
  imp_vk_device_info memory_ = imp_vk_device_info_init();
};

namespace detail {

inline imp_learner learner_of(const NoLearner&) { return IMP_LEARNER_NONE; }
#define IMP_LEARNER_OF(name, NAME, Name, bytes) \
  inline imp_learner learner_of(const Name##Options&) { return IMP_LEARNER_##NAME; }
IMP_LEARNERS(IMP_LEARNER_OF)
#undef IMP_LEARNER_OF

}  // namespace detail

// imp_brain_desc. `learner` says how the brain learns, and with which options:
//   desc.learner = DqnOptions();
struct BrainDesc {
  Text name = "brain";
  std::uint32_t observation_count = 0;
  std::span<const float> observation_scale{};
  std::uint32_t goal_count = 1;
  List<std::uint32_t, IMP_MAX_BRANCHES> branch_sizes{};
  std::uint32_t continuous_count = 0;
  List<std::uint32_t, 16> hidden_sizes{64, 64};
  Activation activation = Activation::relu;
  std::uint32_t brain_count = 1;
  std::uint32_t agents_per_brain = 1;
  std::uint64_t seed = 0;
  std::uint32_t action_latency_frames = 0;
  std::uint32_t decision_period_frames = 1;
  std::uint32_t snapshot_count = 4;
  Learner learner{};
  imp_tensor observations{};
  imp_tensor actions{};
  bool fall_back = false;
  // The C form links them to the learner's options.
  mutable NetworkOptions network{};
  mutable std::optional<DemonstrationOptions> demonstrations{};
  mutable std::optional<SignalOptions> reward_signals{};
  mutable std::optional<SelfPlayOptions> self_play{};
  mutable std::optional<GroupOptions> groups{};

  // From the values that every game sets: BrainDesc::of(DqnOptions(), 28, {10}, 16).
  static BrainDesc of(const Learner& learner, std::uint32_t observations,
                      const List<std::uint32_t, IMP_MAX_BRANCHES>& branch_sizes,
                      std::uint32_t agents_per_brain = 1) {
    BrainDesc desc;
    desc.learner = learner;
    desc.observation_count = observations;
    desc.branch_sizes = branch_sizes;
    desc.agents_per_brain = agents_per_brain;
    return desc;
  }

  // It points into this object, which must therefore have a name.
  operator imp_brain_desc() const&& = delete;
  operator imp_brain_desc() const& {
    imp_brain_desc desc = imp_brain_desc_init();
    desc.name = name.c_str();
    desc.observation_count = observation_count;
    desc.observation_scale = observation_scale.empty() ? nullptr : observation_scale.data();
    desc.goal_count = goal_count;
    desc.branch_count = detail::count_of(branch_sizes.size());
    desc.branch_sizes = branch_sizes.data();
    desc.continuous_count = continuous_count;
    desc.hidden_count = detail::count_of(hidden_sizes.size());
    desc.hidden_sizes = hidden_sizes.data();
    desc.activation = static_cast<imp_activation>(activation);
    desc.brain_count = brain_count;
    desc.agents_per_brain = agents_per_brain;
    desc.seed = seed;
    desc.action_latency_frames = action_latency_frames;
    desc.decision_period_frames = decision_period_frames;
    desc.snapshot_count = snapshot_count;
    desc.observations = observations;
    desc.actions = actions;
    desc.fall_back = fall_back ? 1 : 0;
    std::visit(
        [&desc, this](const auto& options) {
          desc.learner = detail::learner_of(options);
          const void* next = nullptr;
          if constexpr (!std::is_same_v<decltype(options), const NoLearner&>) next = &options;
          const auto link = [&next](auto& part) {
            if (!part) return;
            part->header.next = next;
            next = &*part;
          };
          link(groups);
          link(self_play);
          link(reward_signals);
          link(demonstrations);
          network.header.next = next;
        },
        learner);
    desc.header.next = &network;
    return desc;
  }
};

// imp_policy_desc: a trained network from the bytes of an ONNX file. The C form points into this
// object: keep it until the call has returned.
struct PolicyDesc {
  Text name = "policy";
  std::span<const std::byte> file{};
  std::uint32_t agent_capacity = 64;
  std::uint32_t action_latency_frames = 0;
  imp_tensor observations{};
  imp_tensor actions{};
  std::uint64_t constant_limit_bytes = std::uint64_t{1} << 30;
  std::uint64_t operation_limit = std::uint64_t{1} << 34;
  std::optional<PolicyNames> names{};                          // none: by a rule
  mutable imp_policy_names c_names = imp_policy_names_init();  // the C form of names

  operator imp_policy_desc() const {
    imp_policy_desc desc = imp_policy_desc_init();
    if (names) {
      c_names = *names;
      desc.header.next = &c_names;
    }
    desc.name = name.c_str();
    desc.data = file.data();
    desc.size = file.size();
    desc.agent_capacity = agent_capacity;
    desc.action_latency_frames = action_latency_frames;
    desc.observations = observations;
    desc.actions = actions;
    desc.constant_limit_bytes = constant_limit_bytes;
    desc.operation_limit = operation_limit;
    return desc;
  }
};

// imp_demonstration. The C form points into this object: keep it until the call has returned.
struct Demonstration {
  std::span<const float> observation{};
  std::uint32_t goal = 0;
  List<std::uint32_t, IMP_MAX_BRANCHES> branches{};
  List<float, IMP_MAX_CONTINUOUS> continuous{};
  float weight = 2;

  operator imp_demonstration() const& {
    imp_demonstration shown = imp_demonstration_init();
    shown.observation = observation.data();
    shown.observation_count = detail::count_of(observation.size());
    shown.goal = goal;
    shown.branches = branches.data();
    shown.branch_count = detail::count_of(branches.size());
    shown.continuous = continuous.data();
    shown.continuous_count = detail::count_of(continuous.size());
    shown.weight = weight;
    return shown;
  }
};

// imp_tensor_desc.
struct TensorDesc {
  Text name = "tensor";
  Element element = Element::float32;
  List<std::uint64_t, IMP_MAX_RANK> shape{};

  operator imp_tensor_desc() const {
    imp_tensor_desc desc = imp_tensor_desc_init();
    desc.name = name.c_str();
    desc.dtype = static_cast<imp_dtype>(element);
    desc.rank = detail::count_of(shape.size());
    std::copy_n(shape.data(), IMP_MAX_RANK, desc.shape);
    return desc;
  }
};

// imp_vk_buffer.
struct BufferDesc {
  std::uint64_t buffer = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint32_t usage = 0;
  std::uint32_t sharing = 0;
  std::span<const std::uint32_t> families{};
  std::uint32_t memory_flags = 0;
  std::uint64_t device_address = 0;
  std::uint32_t stages = 0;
  std::uint32_t access = 0;
  std::uint64_t memory = 0;

  operator imp_vk_buffer() const {
    imp_vk_buffer made = imp_vk_buffer_init();
    made.buffer = buffer;
    made.offset = offset;
    made.size = size;
    made.usage = usage;
    made.sharing = sharing;
    made.family_count = detail::count_of(families.size());
    made.families = families.data();
    made.memory_flags = memory_flags;
    made.device_address = device_address;
    made.stages = stages;
    made.access = access;
    made.memory = memory;
    return made;
  }
};

// imp_standalone_info.
struct StandaloneDesc {
  Text device{};  // none: the best GPU
  bool validation = false;
  std::uint32_t cpu_threads = 1;  // device "cpu": of one frame_submit

  operator imp_standalone_info() const {
    imp_standalone_info info = imp_standalone_info_init();
    info.device = device.c_str();
    info.validation = validation ? 1 : 0;
    info.cpu_threads = cpu_threads;
    return info;
  }
};

// imp_vk_plan: a device that the host is about to make.
struct PlanDesc {
  imp_get_instance_proc_addr get_instance_proc_addr = nullptr;
  VkInstance instance = nullptr;
  VkPhysicalDevice physical_device = nullptr;
  std::uint32_t api_version = 0;

  operator imp_vk_plan() const {
    imp_vk_plan plan = imp_vk_plan_init();
    plan.get_instance_proc_addr = get_instance_proc_addr;
    plan.instance = instance;
    plan.physical_device = physical_device;
    plan.api_version = api_version;
    return plan;
  }
};

namespace detail {

// Without families, which Imprint does not fill.
inline BufferDesc cpp_form(const imp_vk_buffer& from) {
  BufferDesc buffer;
  buffer.buffer = from.buffer;
  buffer.offset = from.offset;
  buffer.size = from.size;
  buffer.usage = from.usage;
  buffer.sharing = from.sharing;
  buffer.memory_flags = from.memory_flags;
  buffer.device_address = from.device_address;
  buffer.stages = from.stages;
  buffer.access = from.access;
  buffer.memory = from.memory;
  return buffer;
}

}  // namespace detail
}  // namespace imprint::game

#endif  // IMPRINT_IMPRINT_DESCS_HPP_
