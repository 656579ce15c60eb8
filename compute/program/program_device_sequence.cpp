// A device's sequence: parts run in turns; inputs, outputs and commands belong to the sequence.

#include <algorithm>

#include "compute/program/program_impl.h"
#include "compute/program/task_work.h"

namespace imprint {

using namespace graph;
using namespace program;

Result<std::unique_ptr<Program::Impl>> Program::Impl::compile(RuntimeImpl& runtime,
                                                              const ProgramSequence& sequence) {
  auto impl = std::make_unique<Impl>(runtime);
  impl->source.name = sequence.name;
  impl->source.slot_count = std::max(1u, sequence.slot_count);
  // In one block, as Baker expects.
  if (!sequence.own.empty()) IMPRINT_CHECK(runtime.place_together(sequence.own));
  if (sequence.all_reduce)
    for (const ProgramPart& part : sequence.parts) IMPRINT_CHECK(runtime.place_together(part.summed));
  impl->runs = runs_of(sequence);
  std::uint64_t dispatches = 0;
  for (std::size_t i = 0; i < sequence.parts.size(); ++i) {
    const std::uint32_t turns = turns_of(i, impl->runs);
    IMPRINT_ASSIGN(ProgramGraph source, build_part_graph(sequence, i));
    auto made = compile(runtime, std::move(source));
    if (!made) return in_sequence(sequence, i, std::move(made).error());
    if (Result<> added = add_turns(turns, (*made)->stats.dispatches, dispatches); !added)
      return in_sequence(sequence, i, std::move(added).error());
    if (Result<> opened = (*made)->open_with_barrier(); !opened)
      return in_sequence(sequence, i, std::move(opened).error());
    impl->parts.push_back({std::move(*made), turns});
  }
  impl->own = sequence.own;
  for (std::size_t i = 0; i < impl->parts.size(); ++i)
    if (Result<> placed = impl->place_ports(*impl->parts[i].impl); !placed)
      return in_sequence(sequence, i, std::move(placed).error());
  list_extents_last(impl->source.inputs);
  impl->all_reduce_parts();
  IMPRINT_CHECK(impl->make_slots());
  IMPRINT_CHECK(impl->record_sequence());
  if (!sequence.all_reduce) return impl;
  impl->all_reduce = sequence.all_reduce;
  IMPRINT_CHECK(impl->make_sums(sequence));
  IMPRINT_CHECK(impl->record_stretches());
  return impl;
}

// A part's first dispatch waits for all earlier work: the previous part, or the part's own previous turn.
Result<> Program::Impl::open_with_barrier() {
  if (dispatches.empty() || barrier_before[0]) return {};
  barrier_before[0] = 1;
  ++stats.barriers;
  runtime.retire(dispatch_commands[0]);
  dispatch_commands[0] = {};
  IMPRINT_ASSIGN(dispatch_commands[0],
                 runtime.record([&](VkCommandBuffer buffer) { record_dispatch(buffer, 0); }));
  return {};
}

Result<> Program::Impl::place_ports(const Impl& part) {
  for (std::size_t i = 0; i < part.source.inputs.size(); ++i) {
    const Port& port = part.source.inputs[i];
    IMPRINT_ASSIGN(const std::uint64_t from, input_offset(source.inputs, port, input_bytes));
    if (port.bytes > 0)
      part.each_part({PlaceKind::input, static_cast<std::int32_t>(i)}, port.bytes,
                     [&](VkBuffer section, const VkBufferCopy& copy) {
                       upload_copies.push_back({section, {from + copy.srcOffset, copy.dstOffset, copy.size}});
                     });
  }
  for (std::size_t i = 0; i < part.source.outputs.size(); ++i) {
    const Port& port = part.source.outputs[i];
    source.outputs.push_back(port);
    source.outputs.back().offset = output_bytes;
    if (port.bytes > 0)
      part.each_part(
          {PlaceKind::output, static_cast<std::int32_t>(i)}, port.bytes,
          [&](VkBuffer section, const VkBufferCopy& copy) {
            download_copies.push_back({section, {copy.dstOffset, output_bytes + copy.srcOffset, copy.size}});
          });
    output_bytes += aligned(port.bytes);
  }
  return {};
}

void Program::Impl::all_reduce_parts() {
  for (const Part& part : parts) {
    const ProgramStats& one = part.impl->stats;
    // A part makes no transfers of its own.
    const std::uint32_t transfers = part.impl->output_bytes > 0 ? part.impl->download_barrier + 1u : 0u;
    stats.dispatches += one.dispatches * part.repeat;
    stats.kernels += one.kernels * part.repeat;
    stats.barriers += (one.barriers - transfers) * part.repeat;
    program::add_repeated(one, part.repeat, stats);
    stats.arena_bytes += one.arena_bytes;
    stats.unplanned_bytes += one.unplanned_bytes;
    stats.io_bytes += one.io_bytes;
  }
  if (output_bytes > 0) stats.barriers += 2;
  stats.io_bytes += (input_bytes + output_bytes) * source.slot_count;
}

void Program::Impl::record_copies_in(VkCommandBuffer commands, std::uint32_t slot) const {
  for (const Copy& copy : upload_copies) {
    const VkBufferCopy region{upload_slots[slot].offset + copy.region.srcOffset, copy.region.dstOffset,
                              copy.region.size};
    runtime.device().functions().vkCmdCopyBuffer(commands, upload_slots[slot].buffer, copy.buffer, 1,
                                                 &region);
  }
}

void Program::Impl::record_copies_out(VkCommandBuffer commands, std::uint32_t slot) const {
  if (download_copies.empty()) return;
  const vk::Functions& functions = runtime.device().functions();
  global_barrier(functions, commands, kWorkStages, kWorkStages);
  for (const Copy& copy : download_copies) {
    const VkBufferCopy region{copy.region.srcOffset, readback_slots[slot].offset + copy.region.dstOffset,
                              copy.region.size};
    functions.vkCmdCopyBuffer(commands, copy.buffer, readback_slots[slot].buffer, 1, &region);
  }
  global_barrier(functions, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT);
}

void Program::Impl::encode_sequence(VkCommandBuffer commands, std::uint32_t slot) const {
  record_copies_in(commands, slot);
  for (const PartRun& run : runs) {
    const Impl& part = *parts[run.part].impl;
    for (std::uint32_t turn = 0; turn < run.turns; ++turn)
      for (std::size_t i = 0; i < part.dispatches.size(); ++i) part.record_dispatch(commands, i);
  }
  record_copies_out(commands, slot);
}

Result<> Program::Impl::record_sequence() {
  std::vector<VkCommandBuffer> primary, secondary;  // of all turns
  for (const PartRun& run : runs)
    for (std::uint32_t turn = 0; turn < run.turns; ++turn)
      for (const Commands& commands : parts[run.part].impl->dispatch_commands) {
        primary.push_back(commands.primary);
        secondary.push_back(commands.secondary);
      }
  for (std::uint32_t slot = 0; slot < source.slot_count; ++slot) {
    IMPRINT_ASSIGN(const Commands upload,
                   runtime.record([&](VkCommandBuffer buffer) { record_copies_in(buffer, slot); }));
    upload_commands.push_back(upload);
    IMPRINT_ASSIGN(const Commands download,
                   runtime.record([&](VkCommandBuffer buffer) { record_copies_out(buffer, slot); }));
    download_commands.push_back(download);
    IMPRINT_ASSIGN(const Commands whole, runtime.record([&](VkCommandBuffer buffer) {
      const vk::CommandLabel label(runtime.device().functions(), buffer, source.name.c_str());
      global_barrier(runtime.device().functions(), buffer, kWorkStages, kWorkStages);
      encode_sequence(buffer, slot);
    }));
    whole_commands.push_back(whole);

    const auto framed = [](const std::vector<VkCommandBuffer>& turns, VkCommandBuffer first,
                           VkCommandBuffer last) {
      std::vector<VkCommandBuffer> pieces{first};
      pieces.insert(pieces.end(), turns.begin(), turns.end());
      pieces.push_back(last);
      return pieces;
    };
    primary_pieces.push_back(framed(primary, upload.primary, download.primary));
    secondary_pieces.push_back(framed(secondary, upload.secondary, download.secondary));
  }
  return {};
}

}  // namespace imprint
