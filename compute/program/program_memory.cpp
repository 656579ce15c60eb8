// Memory of a device's program: sections of the arena and of the constants, each within the longest
// range that a descriptor binds, and the slots of inputs and outputs.

#include <algorithm>
#include <cstring>
#include <utility>

#include "compute/base/text.h"
#include "compute/graph/schedule/memory_plan.h"
#include "compute/program/program_impl.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint {

using namespace graph;
using namespace program;
using namespace tensor;

namespace {

// Lengthens the sections that the range lies in.
void occupy_sections(std::vector<std::uint64_t>& sections, std::uint64_t begin, std::uint64_t bytes,
                     std::uint64_t section_bytes) {
  for (std::uint64_t at = begin; at < begin + bytes; at += section_bytes - at % section_bytes) {
    const auto index = static_cast<std::size_t>(at / section_bytes);
    sections.resize(std::max(sections.size(), index + 1));
    sections[index] =
        std::max(sections[index], std::min(section_bytes, begin + bytes - index * section_bytes));
  }
}

bool has_constant(const GraphNode& node) {
  return node.op == Op::constant || (node.op == Op::page && node.source->page->marks > 0);
}

// Bytes of a constant, or of a page's marks before the first run: zeros.
SharedBytes constant_bytes(const GraphNode& node) {
  if (node.op == Op::constant) return node.source->constant->bytes;
  return SharedBytes(std::vector<std::byte>(4 * at(node.source->page->marks)));
}

constexpr std::uint64_t kSmallConstant = 64 << 10;  // bytes, up to which constants share an upload

}  // namespace

// The longest range that descriptors bind, in whole units of alignment.
std::uint64_t Program::Impl::section_bytes() const {
  return runtime.device().capabilities().max_storage_buffer_range / kAlignment * kAlignment;
}

Result<> Program::Impl::place_variables() {
  for (const std::shared_ptr<VariableState>& variable : source.request.variables)
    IMPRINT_CHECK(runtime.place(*variable));
  return {};
}

Result<> Program::Impl::place_constants() {
  const std::uint64_t section = section_bytes();
  constant_offset.assign(source.graph.nodes.size(), 0);
  std::uint64_t end = 0;
  std::vector<std::uint64_t> section_ends;
  for (NodeIndex n = 0; n < source.graph.size(); ++n) {
    const GraphNode& node = source.graph[n];
    if (!has_constant(node)) continue;
    const std::uint64_t bytes = constant_bytes(node).size();
    end = within_section(end, aligned(bytes), section);
    constant_offset[static_cast<std::size_t>(n)] = end;
    const std::uint64_t taken =
        aligned(std::max<std::uint64_t>(bytes, 1));  // an empty one needs a buffer too
    occupy_sections(section_ends, end, taken, section);
    end += taken;
  }
  for (const std::uint64_t bytes : section_ends) {
    IMPRINT_ASSIGN(const vk::Allocation allocation,
                   runtime.device().memory().allocate(bytes, kAlignment, vk::MemoryUse::device));
    constants.push_back(allocation);
  }
  return upload_constants();
}

// Neighbouring small constants become one upload.
Result<> Program::Impl::upload_constants() {
  const std::uint64_t section = section_bytes();
  std::vector<std::byte> run;
  std::uint64_t begin = 0;
  const auto upload = [&](std::uint64_t offset, const SharedBytes& bytes) -> Result<> {
    for (std::uint64_t done = 0; done < bytes.size(); done += section) {
      vk::Allocation target = constants[static_cast<std::size_t>((offset + done) / section)];
      target.offset += (offset + done) % section;
      target.size = std::min<std::uint64_t>(section, bytes.size() - done);
      IMPRINT_CHECK(runtime.upload(target, bytes.part(done, target.size)));
    }
    return {};
  };
  for (NodeIndex n = 0; n < source.graph.size(); ++n) {
    const GraphNode& node = source.graph[n];
    if (!has_constant(node)) continue;
    const SharedBytes bytes = constant_bytes(node);
    const std::uint64_t offset = constant_offset[static_cast<std::size_t>(n)];
    const bool small = bytes.size() <= kSmallConstant;
    if (!small || offset / section != begin / section || offset != begin + run.size()) {
      IMPRINT_CHECK(upload(begin, SharedBytes(std::exchange(run, {}))));
      begin = offset;
    }
    if (!small) {
      IMPRINT_CHECK(upload(offset, bytes));
      begin = offset + aligned(bytes.size());
      continue;
    }
    run.insert(run.end(), bytes.begin(), bytes.end());
    run.resize(aligned(run.size() + (bytes.empty() ? 1 : 0)));
  }
  return upload(begin, SharedBytes(std::move(run)));
}

// ---- the arena: inputs, outputs, intermediates ----

Result<> Program::Impl::plan() {
  const std::uint64_t section = section_bytes();
  std::uint64_t end = 0;
  const auto place_ports_of = [&](const std::vector<Port>& ports, std::uint64_t& bytes,
                                  std::vector<std::uint64_t>& offsets) {
    for (const Port& port : ports) {
      bytes = std::max(bytes, port.offset + aligned(port.bytes));
      offsets.push_back(within_section(end, aligned(port.bytes), section));
      end = offsets.back() + aligned(port.bytes);
    }
  };
  place_ports_of(source.inputs, input_bytes, input_offsets);
  place_ports_of(source.outputs, output_bytes, output_offsets);

  std::unordered_map<NodeIndex, std::size_t> index_of;
  std::vector<Lifetime> lifetimes;
  std::vector<NodeIndex> nodes;
  for (const Task& task : schedule.tasks)
    for (const Store& store : task.stores)
      if (store.place.kind == PlaceKind::temporary) {
        index_of.emplace(store.place.index, lifetimes.size());
        const GraphNode& node = source.graph[store.node];
        const std::uint64_t bytes = tensor_bytes(node.shape, node.dtype);
        lifetimes.push_back({bytes, task.level, task.level});
        nodes.push_back(store.place.index);
      }
  for (const Task& task : schedule.tasks)
    for (const Read& read : task.reads)
      if (const Place& place = schedule.place[static_cast<std::size_t>(read.node)];
          place.kind == PlaceKind::temporary) {
        Lifetime& life = lifetimes[index_of.at(place.index)];
        life.last = std::max(life.last, task.level);
      }
  const MemoryPlan plan = plan_memory(lifetimes, kAlignment, {end, section});
  temporary_offset.assign(source.graph.nodes.size(), 0);
  arena_bytes.assign(1, kAlignment);  // a program always has buffer 0
  const auto occupy = [&](std::uint64_t offset, std::uint64_t bytes) {
    if (bytes > 0) occupy_sections(arena_bytes, offset, aligned(bytes), section);
  };
  for (std::size_t i = 0; i < source.inputs.size(); ++i) occupy(input_offsets[i], source.inputs[i].bytes);
  for (std::size_t i = 0; i < source.outputs.size(); ++i) occupy(output_offsets[i], source.outputs[i].bytes);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    temporary_offset[static_cast<std::size_t>(nodes[i])] = plan.offsets[i];
    occupy(plan.offsets[i], lifetimes[i].bytes);
  }
  stats.arena_bytes = plan.total_bytes;
  stats.unplanned_bytes = plan.unplanned_bytes;
  return {};
}

std::uint64_t Program::Impl::arena_offset(const Place& place) const {
  const auto index = static_cast<std::size_t>(place.index);
  if (place.kind == PlaceKind::input) return input_offsets[index];
  return place.kind == PlaceKind::output ? output_offsets[index] : temporary_offset[index];
}

vk::Allocation Program::Impl::allocation_of(const Place& place) const {
  const auto index = static_cast<std::size_t>(place.index);
  switch (place.kind) {
    case PlaceKind::variable: {
      vk::Allocation found =
          static_cast<const DeviceVariable*>(schedule.variables[index]->storage.get())->allocation();
      if (part_count(place) == 1) return found;
      found.offset = found.bound_offset + at(place.part) * section_bytes();  // a buffer of its own
      found.size = std::min(section_bytes(), found.bound_offset + found.bound_size - found.offset);
      found.bound_offset = found.offset;
      found.bound_size = found.size;
      return found;
    }
    case PlaceKind::constant:
      return constants[static_cast<std::size_t>(constant_offset[index] / section_bytes()) + at(place.part)];
    default:
      // Where a value of no elements lies does not matter.
      return arena[std::min(
          arena.size() - 1,
          static_cast<std::size_t>(arena_offset(place) / section_bytes()) + at(place.part))];
  }
}

// Buffers that the value lies in. A value that is longer than a section begins with one.
std::int32_t Program::Impl::part_count(const Place& place) const {
  const auto index = static_cast<std::size_t>(place.index);
  std::uint64_t bytes = 0;
  switch (place.kind) {
    case PlaceKind::input:
      bytes = source.inputs[index].bytes;
      break;
    case PlaceKind::output:
      bytes = source.outputs[index].bytes;
      break;
    case PlaceKind::constant:
      if (source.graph[place.index].op == Op::page) break;  // marks
      [[fallthrough]];
    case PlaceKind::temporary:
      bytes = tensor_bytes(source.graph[place.index].shape, source.graph[place.index].dtype);
      break;
    case PlaceKind::variable:
      bytes = schedule.variables[index]->bytes();
      break;
    default:
      break;
  }
  return static_cast<std::int32_t>(bytes <= section_bytes() ? 1 : (bytes - 1) / section_bytes() + 1);
}

// Buffer 0 is the arena's first section, even where constants or variables share its memory block. So a
// kernel's text does not depend on that. Values of one block share a buffer otherwise.
std::int32_t Program::Impl::buffer_of(const Place& place) {
  const auto buffer_over = [](const vk::Allocation& a) {
    return Buffer{a.buffer, a.bound_offset, a.bound_size};
  };
  const vk::Allocation allocation = allocation_of(place);
  const bool in_arena = place.kind != PlaceKind::variable && place.kind != PlaceKind::constant;
  if (buffers.empty()) buffers.push_back(buffer_over(arena.front()));
  if (in_arena && place.part == 0 && arena_offset(place) < section_bytes()) return 0;
  for (std::size_t i = 1; i < buffers.size(); ++i)
    if (buffers[i].buffer == allocation.buffer && buffers[i].offset == allocation.bound_offset &&
        buffers[i].size == allocation.bound_size)
      return static_cast<std::int32_t>(i);
  buffers.push_back(buffer_over(allocation));
  return static_cast<std::int32_t>(buffers.size()) - 1;
}

std::uint64_t Program::Impl::byte_offset(const Place& place) const {
  const vk::Allocation allocation = allocation_of(place);
  const std::uint64_t base = allocation.offset - allocation.bound_offset;
  if (place.kind == PlaceKind::variable || place.part > 0) return base;
  if (place.kind == PlaceKind::constant)
    return base + constant_offset[static_cast<std::size_t>(place.index)] % section_bytes();
  return base + arena_offset(place) % section_bytes();
}

Result<> Program::Impl::make_arena() {
  vk::MemoryPool& pool = runtime.device().memory();
  for (const std::uint64_t bytes : arena_bytes) {
    auto allocated = pool.allocate(bytes, kAlignment, vk::MemoryUse::device, source.yields);
    if (!allocated) {
      Error error = std::move(allocated).error();
      error.message = text("program '", source.name, "' needs an arena of ", bytes,
                           " bytes in one piece, for inputs (", input_bytes, "), outputs (", output_bytes,
                           ") and intermediates (", stats.arena_bytes, "): ", error.message);
      return error;
    }
    arena.push_back(*allocated);
  }
  stats.io_bytes = (input_bytes + output_bytes) * (source.slot_count + 1);
  return {};
}

Result<> Program::Impl::make_slots() {
  vk::MemoryPool& pool = runtime.device().memory();
  for (std::uint32_t slot = 0; slot < source.slot_count; ++slot) {
    if (input_bytes > 0) {
      IMPRINT_ASSIGN(const vk::Allocation allocation,
                     pool.allocate(input_bytes, kAlignment, vk::MemoryUse::upload));
      upload_slots.push_back(allocation);
      std::memset(allocation.mapped, 0, input_bytes);
    }
    if (output_bytes > 0) {
      IMPRINT_ASSIGN(const vk::Allocation allocation,
                     pool.allocate(output_bytes, kAlignment, vk::MemoryUse::readback));
      readback_slots.push_back(allocation);
    }
  }
  if (source.slot_count > 0) reset_extents();
  return {};
}

// Calls use(buffer of the arena, region) for each part of an input or output. The region is from the value's
// own bytes to the arena.
void Program::Impl::each_part(Place place, std::uint64_t bytes,
                              const std::function<void(VkBuffer, const VkBufferCopy&)>& use) const {
  for (const std::int32_t count = part_count(place); place.part < count; ++place.part) {
    const vk::Allocation section = allocation_of(place);
    const std::uint64_t before = at(place.part) * section_bytes(),
                        within = place.part > 0 ? 0 : arena_offset(place) % section_bytes();
    use(section.buffer, {before, section.offset + within, std::min(section_bytes(), bytes - before)});
  }
}

// Calls use(buffer of the arena, region): copies between ports in a slot, which begins at `slot`, and in the
// arena. Ports that are neighbours in both share a region.
void Program::Impl::each_port_copy(PlaceKind kind, std::uint64_t slot,
                                   const std::function<void(VkBuffer, const VkBufferCopy&)>& use) const {
  const bool in = kind == PlaceKind::input;
  const std::vector<Port>& ports = in ? source.inputs : source.outputs;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkBufferCopy region{};  // from the slot to the arena
  const auto flush = [&] {
    if (region.size == 0) return;
    if (!in) std::swap(region.srcOffset, region.dstOffset);
    use(buffer, region);
  };
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].bytes == 0) continue;
    each_part({kind, static_cast<std::int32_t>(i)}, aligned(ports[i].bytes),
              [&](VkBuffer section, const VkBufferCopy& part) {
                const VkBufferCopy port{slot + ports[i].offset + part.srcOffset, part.dstOffset, part.size};
                if (section == buffer && port.srcOffset == region.srcOffset + region.size &&
                    port.dstOffset == region.dstOffset + region.size) {
                  region.size += port.size;
                  return;
                }
                flush();
                buffer = section;
                region = port;
              });
  }
  flush();
}

}  // namespace imprint
