#include "tests/hosts/bridge_fault_shim.h"

#include <cstring>
#include <string_view>

#include "compute/vk/functions.h"

namespace imprint::bridge {
namespace {

FaultShim* shim = nullptr;

template <int Index, class F>
struct Between;
template <int Index, class... Arguments>
struct Between<Index, VkResult(VKAPI_PTR*)(Arguments...)> {
  static inline VkResult(VKAPI_PTR* real)(Arguments...) = nullptr;
  static inline const char* name = "";
  static VkResult VKAPI_CALL call(Arguments... arguments) {
    VkResult result = VK_SUCCESS;
    const bool passed = shim->before(name, true, result);
    if (passed) result = real(arguments...);
    shim->after(name, result, passed);
    return result;
  }
};
template <int Index, class... Arguments>
struct Between<Index, void(VKAPI_PTR*)(Arguments...)> {
  static inline void(VKAPI_PTR* real)(Arguments...) = nullptr;
  static inline const char* name = "";
  static void VKAPI_CALL call(Arguments... arguments) {
    VkResult ignored = VK_SUCCESS;
    (void)shim->before(name, false, ignored);
    real(arguments...);
    shim->after(name, VK_SUCCESS);
  }
};

// The three that pipelines are kept by.
PFN_vkCreateShaderModule real_create_module = nullptr;
PFN_vkCreateComputePipelines real_create_pipelines = nullptr;

VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo* info,
                                  const VkAllocationCallbacks* callbacks, VkShaderModule* module) {
  VkResult result = VK_SUCCESS;
  if (shim->before("vkCreateShaderModule", true, result))
    result = real_create_module(device, info, callbacks, module);
  shim->after("vkCreateShaderModule", result);
  if (result == VK_SUCCESS) shim->pipelines().made(*module, *info);
  return result;
}
VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache, std::uint32_t count,
                                     const VkComputePipelineCreateInfo* infos,
                                     const VkAllocationCallbacks* callbacks, VkPipeline* pipelines) {
  VkResult result = VK_SUCCESS;
  if (shim->before("vkCreateComputePipelines", true, result)) {
    for (std::uint32_t i = 0; i < count && result == VK_SUCCESS; ++i) {
      pipelines[i] = shim->pipelines().find(infos[i].stage.module);
      if (pipelines[i]) continue;
      result = real_create_pipelines(device, cache, 1, &infos[i], callbacks, &pipelines[i]);
      if (result == VK_SUCCESS) shim->pipelines().keep(infos[i].stage.module, pipelines[i]);
    }
  }
  shim->after("vkCreateComputePipelines", result);
  return result;
}
void VKAPI_CALL destroy_pipeline(VkDevice, VkPipeline, const VkAllocationCallbacks*) {
  VkResult ignored = VK_SUCCESS;
  (void)shim->before("vkDestroyPipeline", false, ignored);
  shim->after("vkDestroyPipeline", VK_SUCCESS);
}

template <int Index, class F>
PFN_vkVoidFunction put_between(PFN_vkVoidFunction real, const char* name) {
  using Call = Between<Index, F>;
  Call::real = reinterpret_cast<F>(real);
  Call::name = name;
  return reinterpret_cast<PFN_vkVoidFunction>(static_cast<F>(Call::call));
}

PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  const PFN_vkVoidFunction real = shim->real_device_function(device, name);
  if (!real) return nullptr;
  if (std::strcmp(name, "vkCreateShaderModule") == 0) {
    real_create_module = reinterpret_cast<PFN_vkCreateShaderModule>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_vkCreateShaderModule>(create_module));
  }
  if (std::strcmp(name, "vkCreateComputePipelines") == 0) {
    real_create_pipelines = reinterpret_cast<PFN_vkCreateComputePipelines>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_vkCreateComputePipelines>(create_pipelines));
  }
  if (std::strcmp(name, "vkDestroyPipeline") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_vkDestroyPipeline>(destroy_pipeline));
#define X(function) \
  if (std::strcmp(name, #function) == 0) return put_between<__COUNTER__, PFN_##function>(real, #function);
  IMPRINT_VK_DEVICE_FUNCTIONS(X)
  IMPRINT_VK_OPTIONAL_DEVICE_FUNCTIONS(X)
#undef X
  return real;
}

PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction real = shim->real_instance_function(instance, name);
  if (!real) return nullptr;
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_vkGetDeviceProcAddr>(device_function));
  if (std::strcmp(name, "vkEnumerateDeviceExtensionProperties") == 0)
    return put_between<__COUNTER__, PFN_vkEnumerateDeviceExtensionProperties>(
        real, "vkEnumerateDeviceExtensionProperties");
  return real;
}

// The kind that a call creates or destroys: "Buffer" for vkCreateBuffer. Empty: not counted.
std::string kind_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  if (name == "CommandBuffers" || name == "DescriptorSets") return {};  // freed with their pools
  return name == "ComputePipelines" ? "Pipeline" : std::string(name);
}
std::string made_by(const char* name) {
  const std::string created = kind_of(name, "vkCreate");
  return created.empty() ? kind_of(name, "vkAllocate") : created;
}
std::string destroyed_by(const char* name) {
  const std::string destroyed = kind_of(name, "vkDestroy");
  return destroyed.empty() ? kind_of(name, "vkFree") : destroyed;
}
// By the specification these cannot return a lost device.
bool cannot_lose(std::string_view name) {
  return name == "vkSetDebugUtilsObjectNameEXT" || name == "vkEnumerateDeviceExtensionProperties";
}
bool uses_queue(std::string_view name) { return name.starts_with("vkQueue"); }  // submissions and labels
bool only_destroys(std::string_view name) {
  return name.starts_with("vkDestroy") || name.starts_with("vkFree") || name == "vkUnmapMemory";
}

}  // namespace

KeptPipelines::KeptPipelines(const vk::DeviceDescription& real) : device_(real.device) {
  const auto get_device = reinterpret_cast<PFN_vkGetDeviceProcAddr>(
      real.get_instance_proc_addr(real.instance, "vkGetDeviceProcAddr"));
  destroy_ = reinterpret_cast<PFN_vkDestroyPipeline>(get_device(device_, "vkDestroyPipeline"));
}

KeptPipelines::~KeptPipelines() {
  for (const auto& [shader, pipeline] : pipelines_) destroy_(device_, pipeline, nullptr);
}

void KeptPipelines::made(VkShaderModule module, const VkShaderModuleCreateInfo& info) {
  const std::lock_guard lock(mutex_);
  shaders_[module] = std::string(reinterpret_cast<const char*>(info.pCode), info.codeSize);
}

VkPipeline KeptPipelines::find(VkShaderModule module) const {
  const std::lock_guard lock(mutex_);
  const auto found = pipelines_.find(shaders_.at(module));
  return found == pipelines_.end() ? VK_NULL_HANDLE : found->second;
}

void KeptPipelines::keep(VkShaderModule module, VkPipeline pipeline) {
  const std::lock_guard lock(mutex_);
  pipelines_[shaders_.at(module)] = pipeline;
}

FaultShim::FaultShim(const vk::DeviceDescription& real, KeptPipelines& pipelines)
    : real_(real.get_instance_proc_addr), device_(real.device), pipelines_(pipelines) {
  get_device_ = reinterpret_cast<PFN_vkGetDeviceProcAddr>(real_(real.instance, "vkGetDeviceProcAddr"));
  wait_idle_ = reinterpret_cast<PFN_vkDeviceWaitIdle>(get_device_(device_, "vkDeviceWaitIdle"));
  shim = this;
}

FaultShim::~FaultShim() {
  if (shim == this) shim = nullptr;
}

PFN_vkGetInstanceProcAddr FaultShim::get_instance_proc_addr() const { return instance_function; }

void FaultShim::fail(std::uint64_t number, VkResult fault) {
  const std::lock_guard lock(mutex_);
  fail_at_ = number == kNever ? kNever : calls_ + number;
  fault_ = fault;
  failed_ = false;
  failed_call_.clear();
}

bool FaultShim::before(const char* name, bool returns_result, VkResult& fault) {
  std::unique_lock lock(mutex_);
  const std::thread::id self = std::this_thread::get_id();
  if (lost_ && !only_destroys(name)) {
    if (knows_.contains(self)) {
      if (touches_++ == 0) first_touch_ = name;
    } else if (told_) {
      ++late_;
      knows_.insert(self);
    }
  }
  const bool may_fail = returns_result && !(fault_ == VK_ERROR_DEVICE_LOST && cannot_lose(name));
  if (may_fail) ++calls_;
  if (may_fail && !failed_ && calls_ >= fail_at_) {
    failed_ = true;
    failed_call_ = name;
    lost_ = fault_ == VK_ERROR_DEVICE_LOST;
    if (lost_) {
      no_use_.wait(lock, [&] { return uses_ == 0; });  // must not overlap a wait for the device
      wait_idle_(device_);
    }
    if (lost_) knows_.insert(self);
    fault = fault_;
    return false;
  }
  if (lost_ && returns_result) {
    fault = VK_ERROR_DEVICE_LOST;
    knows_.insert(self);
  }
  const bool passes = !lost_ || !returns_result;
  if (passes && uses_queue(name)) ++uses_;
  return passes;
}

void FaultShim::after(const char* name, VkResult result, bool passed) {
  const std::lock_guard lock(mutex_);
  if (passed && uses_queue(name) && --uses_ == 0) no_use_.notify_all();
  if (result != VK_SUCCESS) return;
  if (const std::string made = made_by(name); !made.empty()) ++alive_[made];
  if (const std::string gone = destroyed_by(name); !gone.empty()) --alive_[gone];
}

void FaultShim::told() {
  const std::lock_guard lock(mutex_);
  if (!lost_) return;
  told_ = true;
  knows_.insert(std::this_thread::get_id());
}

std::uint64_t FaultShim::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}
bool FaultShim::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}
std::string FaultShim::failed_call() const {
  const std::lock_guard lock(mutex_);
  return failed_call_;
}
std::uint64_t FaultShim::touches_after_loss() const {
  const std::lock_guard lock(mutex_);
  return touches_;
}
std::uint64_t FaultShim::late_calls() const {
  const std::lock_guard lock(mutex_);
  return late_;
}
std::string FaultShim::first_touch() const {
  const std::lock_guard lock(mutex_);
  return first_touch_;
}
std::map<std::string, std::int64_t> FaultShim::alive() const {
  const std::lock_guard lock(mutex_);
  return alive_;
}
std::string FaultShim::alive_text() const {
  std::string text;
  for (const auto& [kind, count] : alive()) {
    if (count != 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
  }
  return text;
}

}  // namespace imprint::bridge
