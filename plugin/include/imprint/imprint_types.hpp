#ifndef IMPRINT_IMPRINT_TYPES_HPP_
#define IMPRINT_IMPRINT_TYPES_HPP_
// Part of imprint.hpp, which includes it: the library, outcomes of calls and the enumerations.

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
#error "imprint.hpp needs C++20 (CMake: cxx_std_20); imprint.h, the C interface, needs C11 or C++11"
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "imprint.h"
#include "imprint_models.h"
#include "imprint_tools.h"
#include "imprint_vulkan.h"

namespace imprint::game {

enum class Code : std::int32_t {
  ok = IMP_OK,
  not_ready = IMP_NOT_READY,
  invalid_argument = IMP_ERROR_INVALID_ARGUMENT,
  shape_mismatch = IMP_ERROR_SHAPE_MISMATCH,
  dtype_mismatch = IMP_ERROR_DTYPE_MISMATCH,
  unsupported = IMP_ERROR_UNSUPPORTED,
  out_of_device_memory = IMP_ERROR_OUT_OF_DEVICE_MEMORY,
  out_of_host_memory = IMP_ERROR_OUT_OF_HOST_MEMORY,
  device_lost = IMP_ERROR_DEVICE_LOST,
  io = IMP_ERROR_IO,
  corrupt_file = IMP_ERROR_CORRUPT_FILE,
  compile_failed = IMP_ERROR_COMPILE_FAILED,
  wrong_state = IMP_ERROR_WRONG_STATE,
  not_found = IMP_ERROR_NOT_FOUND,
  internal = IMP_ERROR_INTERNAL,
  invalid_handle = IMP_ERROR_INVALID_HANDLE
};

enum class Mode : std::uint32_t {
  learning = IMP_MODE_LEARNING,
  inference = IMP_MODE_INFERENCE,
  heuristic = IMP_MODE_HEURISTIC,
  record = IMP_MODE_RECORD
};
enum class Credit : std::uint32_t { by_onset = IMP_CREDIT_BY_ONSET, current = IMP_CREDIT_CURRENT };
enum class EpisodeEnd : std::uint32_t {
  terminated = IMP_EPISODE_TERMINATED,
  truncated = IMP_EPISODE_TRUNCATED
};
enum class Activation : std::uint32_t {
  relu = IMP_ACTIVATION_RELU,
  tanh = IMP_ACTIVATION_TANH,
  silu = IMP_ACTIVATION_SILU,
  elu = IMP_ACTIVATION_ELU,
  gelu = IMP_ACTIVATION_GELU
};
enum class LogLevel : std::uint32_t {
  debug = IMP_LOG_DEBUG,
  info = IMP_LOG_INFO,
  warning = IMP_LOG_WARNING,
  error = IMP_LOG_ERROR
};
enum class Engine : std::uint32_t {
  own = IMP_ENGINE_OWN,
  unity = IMP_ENGINE_UNITY,
  unreal = IMP_ENGINE_UNREAL,
  godot = IMP_ENGINE_GODOT,
  vulkan_scene_graph = IMP_ENGINE_VULKAN_SCENE_GRAPH
};
enum class FrameScope : std::uint32_t {
  frame = IMP_SCOPE_FRAME,
  warmup = IMP_SCOPE_WARMUP,
  everything = IMP_SCOPE_EVERYTHING
};
enum class Element : std::uint32_t { float32 = IMP_DTYPE_FLOAT32, int32 = IMP_DTYPE_INT32 };

inline constexpr std::uint32_t kWholeBudget = UINT32_MAX;  // imp_limits::gpu_us_per_frame

// The result of a call. ok() also for a success with a remark (not_ready).
class [[nodiscard]] Outcome {
 public:
  Outcome() = default;
  Outcome(const imp_api* api, imp_result result, const char* text = nullptr)
      : api_(api), text_(text), result_(result) {}

  bool ok() const { return result_ >= IMP_OK; }
  bool ready() const { return result_ == IMP_OK; }
  explicit operator bool() const { return ok(); }
  Code code() const { return static_cast<Code>(result_); }
  imp_result result() const { return result_; }
  const char* name() const {
    if (api_) return api_->result_name(result_);
    return ready() ? "IMP_OK" : "no library";
  }
  // A text for printf: of this thread's newest failure. Read it before the next call that fails.
  const char* message() const {
    if (ok()) return "";
    if (text_) return text_;
    return api_ ? api_->last_error()
                : "the object was never made, or the library has another version";
  }

 private:
  const imp_api* api_ = nullptr;
  const char* text_ = nullptr;  // null: the library has it
  imp_result result_ = IMP_ERROR_WRONG_STATE;
};

// A value, or why there is none. True if there is one: Code::not_ready has none either.
template <class T>
struct [[nodiscard]] Made {
  T value{};
  Outcome outcome{};

  explicit operator bool() const { return outcome.ready(); }
  T& operator*() & { return value; }
  const T& operator*() const& { return value; }
  T&& operator*() && { return std::move(value); }
  T* operator->() { return &value; }
  const T* operator->() const { return &value; }
};

// The loaded library. False when it cannot serve this header.
class Library {
 public:
  Library() = default;
  // imp_get_api as linked, or as dlsym or GetProcAddress found it.
  explicit Library(imp_get_api_function get_api) {
    const imp_api* api = nullptr;
    if (get_api && get_api(IMP_ABI_VERSION, &api) == IMP_OK && api->size >= sizeof(imp_api) &&
        api->vulkan->size >= sizeof(imp_vulkan_api) && api->tools->size >= sizeof(imp_tools_api) &&
        api->models->size >= sizeof(imp_models_api))
      api_ = api;
  }

  explicit operator bool() const { return api_ != nullptr; }
  const imp_api* api() const { return api_; }
  const char* version() const { return api_ ? api_->version : ""; }
  const char* last_error() const { return api_ ? api_->last_error() : ""; }

 private:
  const imp_api* api_ = nullptr;
};

// Frame numbers, safe frames and time, for a host that waits for frame n - in_flight before it
// begins frame n. Others give an in_flight of 0, and call completed().
class Frames {
 public:
  explicit Frames(std::uint32_t in_flight) : frames_(imp_frames_init(in_flight)) {}

  // step_s: simulated seconds since the last frame; 0 while the game pauses.
  imp_frame_info next(double step_s) { return imp_frames_next(&frames_, step_s); }
  // The host saw this frame's fence signalled: the GPU has completed it and all before.
  void completed(std::uint64_t frame) {
    frames_.safe_frame = (std::max)(frames_.safe_frame, frame);
  }
  // After the host waited for its whole GPU: a frame in which all earlier ones are safe.
  imp_frame_info idle() { return imp_frames_idle(&frames_); }

  std::uint64_t number() const { return frames_.frame; }
  double time_s() const { return frames_.time_s; }

 private:
  imp_frames frames_;
};

// A text that is borrowed: a literal, or a string or path with c_str(). None by default.
class Text {
 public:
  Text() = default;
  Text(const char* text) : text_(text) {}
  template <class String>
  requires std::is_convertible_v<decltype(std::declval<const String&>().c_str()), const char*> Text(
      const String& text)
      : text_(text.c_str()) {}

  const char* c_str() const { return text_; }  // null: none
  explicit operator bool() const { return text_ != nullptr; }

 private:
  const char* text_ = nullptr;
};

// Up to `capacity` values in place. size() is as given: the library refuses what is too long.
template <class T, std::size_t capacity>
class List {
 public:
  List() = default;
  List(std::initializer_list<T> values) : List(std::span<const T>(values.begin(), values.size())) {}
  // A span, an array or a vector of T.
  template <class Values>
  requires std::is_convertible_v<const Values&, std::span<const T>> List(const Values& values) {
    const std::span<const T> given(values);
    size_ = given.size();
    std::copy_n(given.begin(), size_ < capacity ? size_ : capacity, values_.begin());
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* data() const { return values_.data(); }

 private:
  std::array<T, capacity> values_{};
  std::size_t size_ = 0;
};

// Names that are borrowed: an array, a vector or a span of texts, or of C strings as Vulkan has
// them.
class Names {
 public:
  Names() = default;
  template <class Values>
  requires std::is_convertible_v<const Values&, std::span<const char* const>> Names(
      const Values& names)
      : names_(names) {}
  template <class Values>
  requires std::is_convertible_v<const Values&, std::span<const Text>> Names(const Values& names)
      : names_(c_form(names)) {}

  std::size_t size() const { return names_.size(); }
  const char* const* data() const { return names_.data(); }

 private:
  // A Text is one pointer.
  static std::span<const char* const> c_form(std::span<const Text> texts) {
    static_assert(sizeof(Text) == sizeof(const char*) && std::is_standard_layout_v<Text>);
    return {reinterpret_cast<const char* const*>(texts.data()), texts.size()};
  }

  std::span<const char* const> names_{};
};

// vkGetInstanceProcAddr, as Vulkan's header, volk or an engine declares it.
class Loader {
 public:
  Loader() = default;
  template <class Function>
  requires std::is_function_v<Function> Loader(Function* function)
      : function_(reinterpret_cast<imp_get_instance_proc_addr>(function)) {}

  operator imp_get_instance_proc_addr() const { return function_; }

 private:
  imp_get_instance_proc_addr function_ = nullptr;
};

// imp_vk_semaphore from a VkSemaphore of the host, for submit().
template <class Semaphore>
imp_vk_semaphore timeline_semaphore(Semaphore semaphore, std::uint64_t value) {
  static_assert(sizeof semaphore == sizeof(std::uint64_t), "expected a VkSemaphore");
  imp_vk_semaphore made{};
  std::memcpy(&made.semaphore, &semaphore, sizeof semaphore);
  made.value = value;
  made.timeline = 1;
  return made;
}
template <class Semaphore>
imp_vk_semaphore binary_semaphore(Semaphore semaphore) {
  imp_vk_semaphore made = timeline_semaphore(semaphore, 0);
  made.timeline = 0;
  return made;
}

namespace detail {

// The user pointer of a callback that calls `object`, which may be const.
template <class T>
void* user_of(T& object) {
  return const_cast<void*>(static_cast<const void*>(&object));
}

// A copy of a message, until this thread's next call of this function.
inline const char* kept_text(const char* message) {
  thread_local char kept[1024];
  const std::size_t size = (std::min)(std::strlen(message), sizeof kept - 1);
  std::memcpy(kept, message, size);
  kept[size] = 0;
  return kept;
}

inline std::uint32_t count_of(std::size_t size) {
  return size > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(size);
}

}  // namespace detail
}  // namespace imprint::game

#endif  // IMPRINT_IMPRINT_TYPES_HPP_
