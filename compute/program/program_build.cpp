#include <algorithm>

#include "compute/base/text.h"
#include "compute/graph/passes/page_expand.h"
#include "compute/graph/passes/set_apart.h"
#include "compute/program/device_profile.h"
#include "compute/program/memory_attempts.h"
#include "compute/program/program_impl.h"
#include "compute/program/task_work.h"
#include "compute/program/variant_tuner.h"
#include "compute/tensor/pages/library_page.h"
#include "compute/vk/access_tracker.h"
#include "compute/vk/pipelines/glsl_compiler.h"

namespace imprint {

using namespace graph;
using namespace kernels;
using namespace program;
using namespace tensor;

FusionOptions program::fusion_options(const ProgramGraph& source, const vk::CapabilityProfile& profile) {
  FusionOptions options = fusion_options(profile);
  options.fuse = source.fuse;
  options.expand = source.is_expanded ? Expand::none : Expand::device;
  options.writes_late = source.writes_late;
  options.narrow_products = source.precision != Precision::float32 && profile.storage_16bit;
  options.channels_last = options.narrow_products && options.matrix_units;
  options.half_values = options.channels_last && source.precision == Precision::float16;
  // Attention's kernels have run in the NV dialect alone.
  options.pages.matrix_units =
      options.narrow_products && options.matrix_units && !profile.cooperative_matrix_khr;
  return options;
}

std::vector<vk::KernelSource> program::kernel_sources(const std::string& program,
                                                      std::span<const DispatchSource> dispatches) {
  std::vector<vk::KernelSource> sources;
  for (std::size_t i = 0; i < dispatches.size(); ++i) {
    vk::KernelSource kernel;
    kernel.name = (program.empty() ? "program" : program) + "." + std::to_string(i);
    kernel.glsl = dispatches[i].glsl;
    kernel.subgroup_size = dispatches[i].subgroup_size;
    kernel.storage_buffer_count = static_cast<std::uint32_t>(dispatches[i].buffers.size());
    sources.push_back(std::move(kernel));
  }
  return sources;
}

// Splits kernels that bind too much, one attempt after the other.
Result<> Program::Impl::build_split(RuntimeImpl& runtime, const ProgramGraph& source,
                                    const VariantTable* variants, const vk::CapabilityProfile& profile,
                                    std::unique_ptr<Impl>& impl) {
  std::unordered_set<const Node*> apart;
  std::string reason;
  Result<> built;
  for (int splits = 0; splits <= kMostSplits; ++splits) {
    impl = std::make_unique<Impl>(runtime);
    impl->source = source;  // fusion renumbers its own copy
    built = impl->build(variants, profile, apart);
    if (built.ok() || !source.fuse) break;
    if (set_apart(impl->source.graph, impl->schedule, impl->too_wide, apart) == 0) break;
    reason = built.error().message;
  }
  if (built.ok() && !apart.empty())
    runtime.device().options().log(LogLevel::info, text("program '", source.name, "': ", apart.size(),
                                                        " operations have kernels of their own. ", reason));
  return built;
}

Result<std::unique_ptr<Program::Impl>> Program::Impl::compile(RuntimeImpl& runtime, ProgramGraph source) {
  const std::vector<vk::CapabilityProfile> profiles = profiles_of(runtime.device());
  if (!profiles.front().storage_16bit && source.precision != Precision::float32)
    runtime.device().options().log(LogLevel::warning,
                                   "program '" + source.name +
                                       "' stays in float32: found a device without storageBuffer16BitAccess, "
                                       "or one that does not declare it");
  Result<> built;
  std::unique_ptr<Impl> impl;
  const auto build_for = [&](const vk::CapabilityProfile& profile, const VariantTable* variants) {
    ProgramGraph expanded = source;  // once: operations that are set apart must stay the same nodes
    expanded.is_expanded = true;
    built = expand_pages(expanded.graph, expanded.request, fusion_options(expanded, profile));
    if (!built.ok()) return false;
    built = build_within_memory(
        expanded,
        {[&](const ProgramGraph& graph) { return build_split(runtime, graph, variants, profile, impl); },
         [&] {
           return Planned{impl->source.graph, impl->schedule};
         },
         [&](const std::string& how) { runtime.device().options().log(LogLevel::info, how); }});
    return built.ok();
  };
  for (const vk::CapabilityProfile& profile : profiles) {
    // Only the last profile uses the tuning table. One before it is an archive's, tried with the cost model's
    // variants.
    std::shared_ptr<const VariantTable> variants;
    if (&profile == &profiles.back()) {
      if (const std::shared_ptr<VariantTuner> tuner = runtime.tuner(); tuner && source.fuse)
        tuner->tune(runtime, source);
      variants = runtime.variants();
    }
    if (build_for(profile, variants.get())) return impl;
    if (built.error().code == ErrorCode::not_found && impl->schedule.takes_from_table()) {
      const std::string missing = built.error().message;
      if (build_for(profile, nullptr)) {
        runtime.device().options().log(
            LogLevel::warning,
            "program '" + source.name +
                "' uses the cost model's kernels: those of the tuning table were not baked (imprint bake "
                "--tuning): " +
                missing);
        return impl;
      }
    }
    // The next profile may work if an archive lacks kernels (not_found), or if the compiler does not know an
    // extension that they use (compile_failed).
    if (built.error().code != ErrorCode::not_found && built.error().code != ErrorCode::compile_failed) break;
  }
  if (built.error().code != ErrorCode::unsupported || !source.fuse) return built.error();

  // Fused work may read more memory blocks or tensors than one kernel of this device can, however it is
  // split. Fusion does not know where tensors lie. Unfused operations fit, because none reads many.
  auto plain = std::make_unique<Impl>(runtime);
  plain->source = std::move(source);
  plain->source.fuse = false;
  impl.reset();
  if (!plain->build(nullptr, profiles.back())) return built.error();
  runtime.device().options().log(
      LogLevel::warning,
      "program '" + plain->source.name + "' is not fused, which is slower: " + built.error().message);
  return plain;
}

Result<> Program::Impl::build(const VariantTable* variants, const vk::CapabilityProfile& profile,
                              const std::unordered_set<const Node*>& apart) {
  FusionOptions options = fusion_options(source, profile);
  options.variants = variants;
  if (!apart.empty()) options.apart = &apart;
  // Regions and matrix units load whole arrays, and a longer value has several.
  if (std::ranges::any_of(
          source.graph.nodes,
          [&](const GraphNode& node) { return tensor_bytes(node.shape, node.dtype) > section_bytes(); }) ||
      std::ranges::any_of(source.request.variables,
                          [&](const auto& variable) { return variable->bytes() > section_bytes(); }))
    options.regions = options.matrix_units = options.matrix_tiles = options.matrix_workgroups = false;
  IMPRINT_ASSIGN(schedule, graph::fuse(source.graph, source.request, options));
  schedule.extents = source.extents();
  for (const std::string& note : schedule.notes)
    runtime.device().options().log(LogLevel::info, "program '" + source.name + "': " + note);
  IMPRINT_CHECK(place_variables());
  IMPRINT_CHECK(place_constants());
  IMPRINT_CHECK(plan());
  IMPRINT_CHECK(make_arena());
  IMPRINT_CHECK(make_slots());
  IMPRINT_CHECK(make_kernels(dispatch_limits(profile)));
  IMPRINT_CHECK(make_tables());
  IMPRINT_CHECK(make_descriptor_sets());
  count();
  IMPRINT_CHECK(record());
  release_sources();
  return {};
}

// Constants and the operations that led to them: uploads that still wait keep what they read. Explanations
// need labels and pages.
void Program::Impl::release_sources() {
  for (GraphNode& node : source.graph.nodes) {
    if (!node.source) continue;
    auto kept = std::make_shared<Node>();
    kept->op = node.source->op;
    kept->dtype = node.source->dtype;
    kept->shape = node.source->shape;
    kept->page = node.source->page;
    kept->variable = node.source->variable;
    kept->label = node.source->label;
    node.source = std::move(kept);
  }
}

Program::Impl::~Impl() {
  for (const std::vector<Commands>* list :
       {&upload_commands, &download_commands, &whole_commands, &head_commands, &tail_commands,
        &dispatch_commands, &several_commands, &stretch_commands})
    for (const Commands& commands : *list) runtime.retire(commands);
  runtime.retire(tables);
  for (const std::vector<vk::Allocation>* list :
       {&arena, &constants, &upload_slots, &readback_slots, &sum_memory})
    for (const vk::Allocation& allocation : *list) runtime.retire(allocation);
  retire_sums();
  if (descriptor_pool != VK_NULL_HANDLE) {
    vk::Device& device = runtime.device();
    device.retire(device.last_ticket(), [&device, pool = descriptor_pool] {
      device.functions().vkDestroyDescriptorPool(device.handle(), pool, device.allocation_callbacks());
    });
  }
}

// ---- kernels ----

Result<> Program::Impl::make_kernels(const DispatchLimits& limits) {
  DispatchLimits with_parts = limits;
  with_parts.part_bytes = section_bytes();
  with_parts.part_count = [this](const Place& place) { return part_count(place); };
  IMPRINT_ASSIGN(dispatches, build_dispatches(
                                 source.graph, schedule, with_parts,
                                 [this](const Place& place) { return buffer_of(place); }, &too_wide));
  if (dispatches.empty()) return {};
  IMPRINT_ASSIGN(kernels, runtime.device().pipelines().get(kernel_sources(source.name, dispatches)));
  return {};
}

Result<> Program::Impl::make_tables() {
  std::vector<std::byte> bytes;
  const std::uint64_t step =
      std::max(kAlignment, runtime.device().capabilities().min_uniform_buffer_offset_alignment);
  for (const DispatchSource& dispatch : dispatches) {
    std::vector<std::int32_t> elements;
    for (const Place& place : dispatch.table)
      elements.push_back(static_cast<std::int32_t>(byte_offset(place) / 4));
    elements.resize((elements.size() + 3) / 4 * 4);
    if (dispatch.pushes_table) {
      table_offset.push_back(0);
    } else {
      bytes.resize((bytes.size() + step - 1) / step * step);
      table_offset.push_back(static_cast<std::uint32_t>(bytes.size()));
      const auto words = std::as_bytes(std::span(elements));
      bytes.insert(bytes.end(), words.begin(), words.end());
    }
    pushed.push_back(dispatch.pushes_table ? std::move(elements) : std::vector<std::int32_t>{});
  }
  if (dispatches.empty()) return {};
  bytes.resize(*std::ranges::max_element(table_offset) +
               vk::kTableBytes);  // the descriptor's range must fit after the last table too
  IMPRINT_ASSIGN(tables, runtime.device().memory().allocate(bytes.size(), kAlignment, vk::MemoryUse::device));
  return runtime.upload(tables, bytes);
}

// ---- figures and barriers ----

void Program::Impl::count() {
  stats.dispatches = static_cast<std::uint32_t>(dispatches.size());
  vk::AccessTracker tracker;
  std::unordered_map<VkBuffer, std::uint32_t> name_of;
  // Declares whole bindings: a dispatch binds whole blocks, and a validation layer checks those. This costs
  // nothing where all kernels of a level share a dispatch. If a level outgrows one dispatch, its dispatches
  // wait for each other.
  const auto add = [&](std::vector<vk::Access>& accesses, Place place, bool write) {
    for (const std::int32_t count = part_count(place); place.part < count; ++place.part) {
      const vk::Allocation allocation = allocation_of(place);
      const std::uint32_t name =
          name_of.try_emplace(allocation.buffer, static_cast<std::uint32_t>(name_of.size())).first->second;
      accesses.push_back(
          {name, allocation.bound_offset, allocation.bound_offset + allocation.bound_size, write});
    }
  };
  const auto ports = [&](PlaceKind kind, const std::vector<Port>& list) {
    std::vector<vk::Access> accesses;
    for (std::size_t i = 0; i < list.size(); ++i)
      add(accesses, {kind, static_cast<std::int32_t>(i)}, kind == PlaceKind::input);
    return accesses;
  };
  if (input_bytes > 0) tracker.dispatch(ports(PlaceKind::input, source.inputs));
  for (const DispatchSource& dispatch : dispatches) {
    std::vector<vk::Access> accesses;
    for (std::int32_t t : dispatch.tasks) {
      const Task& task = schedule.tasks[static_cast<std::size_t>(t)];
      add_work(source.graph, schedule, task, stats);
      for (const Read& read : task.reads)
        add(accesses, schedule.place[static_cast<std::size_t>(read.node)], false);
      for (const Store& store : task.stores) add(accesses, store.place, true);
      if (task.kind == TaskKind::page && source.graph[task.anchor].source->page->marks > 0)
        add(accesses, {PlaceKind::constant, task.anchor}, true);
    }
    for (const RunExtent& extent : schedule.extents) add(accesses, {PlaceKind::input, extent.input}, false);
    accesses.push_back(
        {name_of.try_emplace(tables.buffer, static_cast<std::uint32_t>(name_of.size())).first->second, 0,
         tables.bound_size, false});
    const bool needed = tracker.dispatch(accesses);
    barrier_before.push_back(needed);
    stats.barriers += needed;
  }
  if (output_bytes > 0) {
    download_barrier = tracker.dispatch(ports(PlaceKind::output, source.outputs));
    stats.barriers += download_barrier + 1;
  }
}

}  // namespace imprint
