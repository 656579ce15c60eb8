#include "compute/vk/pipelines/compiling_store.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <ranges>
#include <unordered_map>
#include <utility>

#include "compute/base/hash.h"
#include "compute/base/job_queue.h"
#include "compute/base/text.h"
#include "compute/vk/device.h"
#include "compute/vk/handle.h"
#include "compute/vk/pipelines/glsl_compiler.h"
#include "compute/vk/pipelines/kernel_archive.h"
#include "compute/vk/pipelines/newer_matrices.h"
#include "compute/vk/pipelines/pipeline_blob.h"
#include "compute/vk/pipelines/spirv_cache.h"

namespace imprint::vk {
namespace {

// The layouts of all kernels with one count of storage buffers.
struct Layouts {
  Handle<VkDescriptorSetLayout> set;
  Handle<VkPipelineLayout> pipeline;
};

// A kernel in compilation or ready. The compiling job writes pipeline and error. Other threads read them
// after `done`.
struct Entry {
  KernelSource source;
  Hash128 key;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  bool in_frame = false;  // first asked for inside a frame
  bool done = false;
  std::optional<Error> error;
  Handle<VkPipeline> pipeline;
};

Hash128 kernel_key(const KernelSource& source) {
  const Hash128 key = source_key(source.glsl);
  return Hasher()
      .number(key.low)
      .number(key.high)
      .number(source.storage_buffer_count)
      .number(source.subgroup_size)
      .digest();
}

class CompilingStore final : public PipelineStore {
 public:
  explicit CompilingStore(Device& device)
      : device_(device), cache_(device.options().shader_cache_directory, device.options().log) {}

  ~CompilingStore() override {
    if (jobs_) jobs_->withdraw(this);
  }

  Result<> start(VkPipelineCache host_cache);
  Result<std::vector<Kernel>> get(std::span<const KernelSource> sources) override;
  Result<Kernel> layouts(std::uint32_t storage_buffer_count) override;
  Result<std::vector<std::byte>> export_cache() override;
  Result<> import_cache(std::span<const std::byte> blob) override;
  PipelineStats stats() const override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  std::shared_ptr<Entry> entry_for(const KernelSource& source, VkPipelineLayout layout);
  void finish(Entry& entry);
  Result<> compile(Entry& entry);
  Result<Spirv> spirv_of(const KernelSource& source);
  Result<Layouts> create_layouts(std::uint32_t storage_buffer_count);
  Result<> check_own_cache() const;
  void log_profile() const;

  Device& device_;
  GlslCompiler compiler_;
  SpirvCache cache_;
  Handle<VkPipelineCache> own_cache_;
  VkPipelineCache pipeline_cache_ = VK_NULL_HANDLE;  // the host's, or own_cache_

  std::mutex layouts_mutex_;
  std::map<std::uint32_t, Layouts> layouts_;

  mutable std::mutex mutex_;
  std::unordered_map<Hash128, std::shared_ptr<Entry>, Hash128Hasher> entries_;
  PipelineStats stats_;
  std::shared_ptr<JobQueue> jobs_;
};

Result<> CompilingStore::start(VkPipelineCache host_cache) {
  pipeline_cache_ = host_cache;
  if (!host_cache) {
    const Functions& f = device_.functions();
    const VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    IMPRINT_ASSIGN(own_cache_,
                   make_handle<VkPipelineCache>(device_, "vkCreatePipelineCache", f.vkCreatePipelineCache,
                                                f.vkDestroyPipelineCache, info));
    pipeline_cache_ = own_cache_.get();
    set_debug_name(device_, VK_OBJECT_TYPE_PIPELINE_CACHE, pipeline_cache_, "imprint pipelines");
  }
  log_profile();
  const DeviceOptions& options = device_.options();
  if (jobs_ = options.jobs; jobs_) return {};
  IMPRINT_ASSIGN(jobs_, JobQueue::create({options.compile_threads, {}, options.log}));
  return {};
}

// An archive serves the devices of its profiles. A library with a compiler compiles the kernels of others,
// which run faster than those of a profile that asks for less.
void CompilingStore::log_profile() const {
  constexpr std::size_t kMostTold = 8;  // profiles in a message
  const DeviceOptions& options = device_.options();
  if (!options.kernels) return;
  const CapabilityProfile device = CapabilityProfile::of(device_.capabilities(), options.schedule_as_gpu);
  const CapabilityProfile* profile = options.kernels->profile_for(device);
  if (profile && profile->equals(device)) return;
  const CapabilityProfile compiled = device.as_compiled_here();
  const bool compiles = GlslCompiler::present();
  if (compiles && (!profile || (!profile->equals(compiled) && profile->lack(compiled).empty()))) {
    std::string differs;
    for (const CapabilityProfile& baked : options.kernels->profiles() | std::views::take(kMostTold))
      differs +=
          text(differs.empty() ? "" : "; ", "profile '", baked.name, "': ", baked.difference(compiled));
    options.log(
        LogLevel::warning,
        text("kernel archive: ", differs, ", as the game declared ", device.name,
             ". Kernels that differ are compiled. To ship them, run `imprint devices --profile FILE.json` "
             "there, give its fields the values expected here, and bake with --profile FILE.json."));
    return;
  }
  if (profile) {
    options.log(LogLevel::info,
                text("kernels on ", device.name, " are those baked for '", profile->name, "'"));
    return;
  }
  std::string lacks;
  for (const CapabilityProfile& baked : options.kernels->profiles() | std::views::take(kMostTold))
    lacks += text("; '", baked.name, "' ", baked.lack(device));
  options.log(LogLevel::warning, text("kernel archive: found no profile that ", device.name, " can run",
                                      lacks, ". Bake for this device's profile."));
}

Result<std::vector<Kernel>> CompilingStore::get(std::span<const KernelSource> sources) {
  if (device_.lost()) return lost_error();
  std::vector<Kernel> kernels;
  std::vector<std::shared_ptr<Entry>> entries;
  for (const KernelSource& source : sources) {
    IMPRINT_ASSIGN(Kernel kernel, layouts(source.storage_buffer_count));
    kernels.push_back(kernel);
    entries.push_back(entry_for(source, kernel.layout));
  }

  jobs_->wait([&] {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(entries, &Entry::done);
  });
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i]->error) return *entries[i]->error;
    kernels[i].pipeline = entries[i]->pipeline.get();
  }
  return kernels;
}

std::shared_ptr<Entry> CompilingStore::entry_for(const KernelSource& source, VkPipelineLayout layout) {
  const Hash128 key = kernel_key(source);
  auto made = std::make_shared<Entry>();
  {
    const std::lock_guard lock(mutex_);
    auto& entry = entries_[key];
    if (entry) return entry;
    made->source = source;
    made->key = key;
    made->layout = layout;
    made->in_frame = device_.counters().on_frame();
    entry = made;
  }
  jobs_->add(this, [this, made] { finish(*made); });
  // Counted on the asking thread: a worker compiles for a frame only if the frame asked.
  Counters& counters = device_.counters();
  counters.compiles.fetch_add(1, std::memory_order_relaxed);
  if (made->in_frame) counters.frame_compiles.fetch_add(1, std::memory_order_relaxed);
  return made;
}

void CompilingStore::finish(Entry& entry) {
  std::optional<Error> error;
  try {
    if (auto status = compile(entry); !status.ok()) error = std::move(status).error();
  } catch (const std::exception& exception) {
    error =
        make_error(ErrorCode::out_of_host_memory, text("kernel ", entry.source.name, ": ", exception.what()));
  }
  const std::lock_guard lock(mutex_);
  if (error) {
    entry.error = std::move(error);
    entries_.erase(entry.key);  // a later request tries again: memory may be free by then
  }
  entry.source = {};
  entry.done = true;
}

Result<> CompilingStore::compile(Entry& entry) {
  const Functions& f = device_.functions();
  if (device_.lost()) return lost_error();
  IMPRINT_ASSIGN(Spirv spirv, spirv_of(entry.source));
  if (device_.capabilities().cooperative_matrix_khr)
    if (std::optional<Spirv> newer = in_newer_matrices(spirv)) spirv = *std::move(newer);
  if (device_.lost()) return lost_error();  // finding or compiling SPIR-V takes time

  VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_info.codeSize = spirv.size() * sizeof(std::uint32_t);
  module_info.pCode = spirv.data();
  IMPRINT_ASSIGN(const auto module,
                 make_handle<VkShaderModule>(device_, "vkCreateShaderModule", f.vkCreateShaderModule,
                                             f.vkDestroyShaderModule, module_info));

  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module.get();
  info.stage.pName = "main";
  info.layout = entry.layout;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroups{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  subgroups.requiredSubgroupSize = entry.source.subgroup_size;
  if (entry.source.subgroup_size > 0 && device_.capabilities().max_subgroup_size > 0)
    info.stage.pNext = &subgroups;
  if (entry.in_frame && device_.capabilities().pipeline_creation_cache_control)
    info.flags |= VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = device_.lost()
                              ? VK_ERROR_DEVICE_LOST
                              : f.vkCreateComputePipelines(device_.handle(), pipeline_cache_, 1, &info,
                                                           device_.allocation_callbacks(), &pipeline);
  if (result == VK_PIPELINE_COMPILE_REQUIRED) {
    return make_error(
        ErrorCode::wrong_state,
        text("kernel ", entry.source.name,
             ": a frame asked for it before the driver compiled it. Call warmup before frames."));
  }
  if (result != VK_SUCCESS) {
    Error error = vulkan_error(device_, "vkCreateComputePipelines", result);
    error.message = text("kernel ", entry.source.name, ": ", error.message);
    return error;
  }
  entry.pipeline = Handle<VkPipeline>(device_, pipeline, f.vkDestroyPipeline);
  set_debug_name(device_, VK_OBJECT_TYPE_PIPELINE, pipeline, entry.source.name);

  const std::lock_guard lock(mutex_);
  ++stats_.pipelines;
  return {};
}

Result<Spirv> CompilingStore::spirv_of(const KernelSource& source) {
  const DeviceOptions& options = device_.options();
  const Hash128 name = source_key(source.glsl);
  dump_glsl(options.shader_dump_directory, source.name, name, source.glsl, options.log);
  if (auto spirv = options.kernels ? options.kernels->find(name) : std::nullopt) {
    const std::lock_guard lock(mutex_);
    ++stats_.archive_hits;
    return std::move(*spirv);
  }
  if (!GlslCompiler::present()) return missing_kernel(source.name, name, options.kernels.get());
  if (options.kernels)
    options.log(LogLevel::info,
                text("kernel ", source.name,
                     ": found it not in the archive, so it is compiled. Bake again with the description that "
                     "the game creates it from."));
  const Hash128 key = spirv_key(source.glsl);
  if (auto spirv = cache_.load(key)) {
    const std::lock_guard lock(mutex_);
    ++stats_.disk_hits;
    return std::move(*spirv);
  }
  IMPRINT_ASSIGN(Spirv spirv, compiler_.compile(source.name, source.glsl));
  cache_.store(key, spirv);
  const std::lock_guard lock(mutex_);
  ++stats_.glsl_compiles;
  return spirv;
}

Result<Kernel> CompilingStore::layouts(std::uint32_t storage_buffer_count) {
  const std::uint32_t most = std::min(kTableBinding, device_.capabilities().max_storage_buffers_per_stage);
  if (storage_buffer_count > most) {
    return make_error(ErrorCode::unsupported, text("storage buffers: found ", storage_buffer_count,
                                                   ", expected at most ", most, " on this device"));
  }
  const std::lock_guard lock(layouts_mutex_);
  auto found = layouts_.find(storage_buffer_count);
  if (found == layouts_.end()) {
    IMPRINT_ASSIGN(Layouts made, create_layouts(storage_buffer_count));
    found = layouts_.emplace(storage_buffer_count, std::move(made)).first;
  }
  return Kernel{VK_NULL_HANDLE, found->second.pipeline.get(), found->second.set.get(), storage_buffer_count};
}

Result<> CompilingStore::check_own_cache() const {
  if (device_.lost()) return lost_error();
  if (own_cache_) return {};
  return make_error(
      ErrorCode::unsupported,
      "pipeline cache: found the host's, expected Imprint's own. Export and import it in the host.");
}

Result<std::vector<std::byte>> CompilingStore::export_cache() {
  IMPRINT_CHECK(check_own_cache());
  const Functions& f = device_.functions();
  std::vector<std::byte> data;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {
    std::size_t size = 0;
    result = f.vkGetPipelineCacheData(device_.handle(), pipeline_cache_, &size, nullptr);
    if (result != VK_SUCCESS) break;
    data.resize(size);
    result = f.vkGetPipelineCacheData(device_.handle(), pipeline_cache_, &size, data.data());
    data.resize(size);
  }
  if (result != VK_SUCCESS) return vulkan_error(device_, "vkGetPipelineCacheData", result);
  return wrap_pipeline_cache(data);
}

Result<> CompilingStore::import_cache(std::span<const std::byte> blob) {
  IMPRINT_CHECK(check_own_cache());
  IMPRINT_ASSIGN(const std::span<const std::byte> data, unwrap_pipeline_cache(blob, device_.capabilities()));
  const Functions& f = device_.functions();
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  IMPRINT_ASSIGN(const auto given,
                 make_handle<VkPipelineCache>(device_, "vkCreatePipelineCache", f.vkCreatePipelineCache,
                                              f.vkDestroyPipelineCache, info));
  const VkPipelineCache source = given.get();
  const VkResult result = f.vkMergePipelineCaches(device_.handle(), pipeline_cache_, 1, &source);
  return result == VK_SUCCESS ? Result<>{} : Result<>{vulkan_error(device_, "vkMergePipelineCaches", result)};
}

Result<Layouts> CompilingStore::create_layouts(std::uint32_t storage_buffer_count) {
  const Functions& f = device_.functions();
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (std::uint32_t i = 0; i < storage_buffer_count; ++i) {
    bindings.push_back({i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  }
  bindings.push_back(
      {kTableBinding, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});

  VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set_info.bindingCount = static_cast<std::uint32_t>(bindings.size());
  set_info.pBindings = bindings.data();
  Layouts made;
  IMPRINT_ASSIGN(made.set, make_handle<VkDescriptorSetLayout>(device_, "vkCreateDescriptorSetLayout",
                                                              f.vkCreateDescriptorSetLayout,
                                                              f.vkDestroyDescriptorSetLayout, set_info));

  const VkDescriptorSetLayout set = made.set.get();
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = 1;
  info.pSetLayouts = &set;
  const VkPushConstantRange table{VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                  std::min(kPushBytes, device_.capabilities().max_push_constant_bytes)};
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &table;
  IMPRINT_ASSIGN(made.pipeline,
                 make_handle<VkPipelineLayout>(device_, "vkCreatePipelineLayout", f.vkCreatePipelineLayout,
                                               f.vkDestroyPipelineLayout, info));
  const std::string name = text("imprint kernels of ", storage_buffer_count, " buffers");
  set_debug_name(device_, VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT, set, name);
  set_debug_name(device_, VK_OBJECT_TYPE_PIPELINE_LAYOUT, made.pipeline.get(), name);
  return made;
}

}  // namespace

Result<std::unique_ptr<PipelineStore>> create_compiling_store(Device& device, VkPipelineCache host_cache) {
  auto store = std::make_unique<CompilingStore>(device);
  IMPRINT_CHECK(store->start(host_cache));
  return std::unique_ptr<PipelineStore>(std::move(store));
}

}  // namespace imprint::vk
