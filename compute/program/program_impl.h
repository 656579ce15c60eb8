#pragma once
// Implementation of a device's Program. build makes everything except commands; record makes the commands.

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "compute/kernels/dispatch_source.h"
#include "compute/program/copy_queue.h"
#include "compute/program/imported_memory.h"
#include "compute/program/program_body.h"
#include "compute/program/runtime_impl.h"
#include "compute/vk/pipelines/capability_profile.h"

namespace imprint::program {

// Fusion options of the program for a device of this profile.
graph::FusionOptions fusion_options(const ProgramGraph& source, const vk::CapabilityProfile& profile);
// The kernels to request from the pipeline store, in dispatch order.
std::vector<vk::KernelSource> kernel_sources(const std::string& program,
                                             std::span<const kernels::DispatchSource> dispatches);

}  // namespace imprint::program

namespace imprint {

struct Program::Impl : Program::Body {
  explicit Impl(program::RuntimeImpl& owner) : runtime(owner) {}
  ~Impl() override;

  const Runtime& owner() const override { return runtime; }
  std::string explain() const override;
  std::vector<ScheduleFigures> schedule_figures() const override;
  std::vector<std::string> glsl() const override;
  void add_pipelines(std::vector<VkPipeline>& list) const override;
  std::byte* input_memory(std::uint32_t slot) override;
  const std::byte* output_memory(std::uint32_t slot) const override;
  // The first dispatch that writes a variable other than those listed.
  std::uint32_t first_write(std::span<const Variable> except) const override;
  std::span<const VkCommandBuffer> pieces(std::uint32_t slot, VkCommandBufferLevel level) const override;
  VkCommandBuffer head(std::uint32_t slot, VkCommandBufferLevel level) const override;
  VkCommandBuffer tail(std::uint32_t slot, VkCommandBufferLevel level) const override;
  VkCommandBuffer whole(std::uint32_t slot, VkCommandBufferLevel level) const override;
  void encode(VkCommandBuffer commands, std::uint32_t slot) const override;
  Result<VkCommandBuffer> several_runs(std::uint32_t first, std::uint32_t count) override;
  Result<> run_pieces(std::uint32_t slot, std::uint32_t first, std::uint32_t count) override;

  static Result<std::unique_ptr<Impl>> compile(program::RuntimeImpl& runtime, program::ProgramGraph source);
  static Result<std::unique_ptr<Impl>> compile(program::RuntimeImpl& runtime,
                                               const ProgramSequence& sequence);

  // ---- building ----
  // variants: null for the cost model's choices. profile: the device to generate kernels for. apart:
  // operations that need kernels of their own.
  Result<> build(const VariantTable* variants, const vk::CapabilityProfile& profile,
                 const std::unordered_set<const tensor::Node*>& apart = {});
  static Result<> build_split(program::RuntimeImpl& runtime, const program::ProgramGraph& source,
                              const VariantTable* variants, const vk::CapabilityProfile& profile,
                              std::unique_ptr<Impl>& impl);
  Result<> place_variables();
  Result<> place_constants();
  Result<> upload_constants();
  void release_sources();
  Result<> plan();  // offsets of inputs, outputs, intermediates
  Result<> make_arena();
  Result<> make_slots();                // memory where the host writes inputs and reads outputs
  std::uint64_t section_bytes() const;  // of the arena's sections and the constants'
  std::uint64_t arena_offset(const graph::Place& place) const;
  void each_port_copy(graph::PlaceKind kind, std::uint64_t slot,
                      const std::function<void(VkBuffer, const VkBufferCopy&)>& use) const;
  std::int32_t buffer_of(const graph::Place& place);
  std::int32_t part_count(const graph::Place& place) const;
  void each_part(graph::Place place, std::uint64_t bytes,
                 const std::function<void(VkBuffer, const VkBufferCopy&)>& use) const;
  std::uint64_t byte_offset(const graph::Place& place) const;  // from where the place's buffer is bound
  vk::Allocation allocation_of(const graph::Place& place) const;
  Result<> make_kernels(const kernels::DispatchLimits& limits);
  Result<> make_tables();
  void count();

  // ---- recording ----
  Result<> make_descriptor_sets();
  Result<> record();
  void record_upload(VkCommandBuffer commands, std::uint32_t slot) const;
  // after_barrier: the commands end with a barrier that it needs no other after.
  void record_dispatch(VkCommandBuffer commands, std::size_t dispatch, bool after_barrier = false) const;
  void record_download(VkCommandBuffer commands, std::uint32_t slot) const;

  // ---- sequences: parts run in turns; inputs, outputs and commands belong to the sequence ----
  Result<> open_with_barrier();  // for a part
  Result<> place_ports(const Impl& part);
  void all_reduce_parts();
  Result<> record_sequence();
  void encode_sequence(VkCommandBuffer commands, std::uint32_t slot) const;
  // ---- sequences with sums over processes (program_stretches.cpp) ----
  Result<> make_sums(const ProgramSequence& sequence);
  Result<> make_sum_memory(const ProgramSequence& sequence, std::uint64_t bytes);
  Result<bool> import_sum_memory(SharedSums& shared, std::uint64_t bytes);
  std::size_t last_write(const Variable& variable) const;
  std::size_t last_use(const Variable& variable) const;
  std::vector<Variable> in_order_of_writes(const Impl& part, std::vector<Variable> summed) const;
  Result<> record_stretches();
  Result<> record_stretch_copies();
  void retire_sums();
  std::span<const Stretch> stretches(std::uint32_t slot) const override;
  void record_copies_in(VkCommandBuffer commands, std::uint32_t slot) const;
  void record_copies_out(VkCommandBuffer commands, std::uint32_t slot) const;

  program::RuntimeImpl& runtime;
  graph::Schedule schedule;
  std::vector<std::int32_t> too_wide;  // tasks that bind more than the device can; build() then fails
  std::vector<kernels::DispatchSource> dispatches;
  std::vector<vk::Kernel> kernels;           // per dispatch
  std::vector<std::uint8_t> barrier_before;  // per dispatch
  bool download_barrier = true;

  // Memory. Offsets in the arena and the constants: section number * section_bytes() + bytes in the section.
  // The arena's layout: [inputs][outputs][intermediates].
  std::vector<vk::Allocation> arena, constants;  // sections
  std::vector<std::uint64_t> arena_bytes;        // per section
  vk::Allocation tables;
  std::vector<vk::Allocation> upload_slots, readback_slots;
  std::uint64_t input_bytes = 0, output_bytes = 0;
  std::vector<std::uint64_t> input_offsets, output_offsets;  // per port, in the arena
  std::vector<std::uint64_t> temporary_offset;               // per node, in the arena
  std::vector<std::uint64_t> constant_offset;                // per node, in `constants`
  std::vector<std::uint32_t> table_offset;                   // per dispatch, bytes in `tables`
  std::vector<std::vector<std::int32_t>> pushed;  // per dispatch: its table, if it is push constants
  struct Buffer {
    VkBuffer buffer;
    std::uint64_t offset, size;
  };                            // ranges that descriptors bind
  std::vector<Buffer> buffers;  // 0 is the arena's first section

  VkDescriptorPool descriptor_pool = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets;  // per dispatch; dispatches with equal buffers share one

  std::vector<Commands> upload_commands, download_commands, whole_commands;  // per slot
  std::vector<Commands> head_commands, tail_commands;                        // per slot, or none
  std::vector<Commands> dispatch_commands;
  std::vector<Commands> several_commands;                                      // of several runs
  std::vector<std::pair<std::uint32_t, std::uint32_t>> several_of;             // their first slot and number
  std::vector<std::vector<VkCommandBuffer>> primary_pieces, secondary_pieces;  // per slot

  // Only for a sequence, which has no dispatches of its own.
  struct Part {
    std::unique_ptr<Impl> impl;
    std::uint32_t repeat;  // turns of all rounds
  };
  struct Copy {
    VkBuffer buffer;
    VkBufferCopy region;
  };  // between a part's arena and the start of a slot
  // Variables of a part that are added up over processes with one call, and their copy on the host.
  struct Sum {
    std::size_t dispatch = 0;  // of the part: the last that writes one of them
    std::span<float> numbers;
    std::vector<Copy> copies;     // from the variables: one for those that follow each other in memory
    std::vector<float*> padding;  // of the numbers: those between two variables
    std::unique_ptr<vk::Event> there;
    std::unique_ptr<Impl> out, in;  // copy it on the main queue; null: copy commands do
    // On the copy queue, if there is one.
    VkCommandBuffer to_host = VK_NULL_HANDLE, to_device = VK_NULL_HANDLE;
    void add(const Variable& added, std::uint64_t& offset);
  };
  Result<> make_copy_kernels(Sum& sum);
  void record_sum_out(VkCommandBuffer commands, const Sum& sum) const;
  void record_sum_in(VkCommandBuffer commands, const Sum& sum) const;
  void record_dispatches(VkCommandBuffer commands) const;
  std::vector<Part> parts;
  std::vector<program::PartRun> runs;
  std::vector<std::vector<Sum>> sums;  // per part
  // Host memory of all sums: where numbers go, and where sums come from. The same without shared memory.
  std::vector<vk::Allocation> sum_memory;                               // at most one
  std::unique_ptr<program::ImportedMemory> own_numbers, shared_totals;  // of shared_memory
  VkBuffer numbers_buffer = VK_NULL_HANDLE, totals_buffer = VK_NULL_HANDLE;
  std::vector<std::vector<Stretch>> stretches_;  // per slot
  std::vector<Commands> stretch_commands;
  std::vector<Copy> upload_copies, download_copies;
};

}  // namespace imprint
