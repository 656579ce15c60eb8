// A device's sequence with sums over processes: its run is cut into stretches. Events tell the host which
// numbers of a stretch are computed, so it adds them up while the stretch goes on. The next stretch starts
// from the sums.

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>

#include "compute/program/program_impl.h"

namespace imprint {

using namespace graph;
using namespace program;

namespace {

// Smaller sums are made together: two submissions of copies, an event and a meeting of all processes cost
// more than their bytes. No kernel runs any more when the last ones are added up, so these are short: an
// eighth of the bytes that are left, within these limits.
constexpr std::uint64_t kLeastSumBytes = 256 << 10, kEnoughSumBytes = 1 << 20, kSumsLeft = 8;

// A short copy by commands of the main queue leaves kernels waiting for the copy engine. By timestamps 26 KiB
// took 39 us to the host and 23 us back on an H200; a kernel that copies starts like any other. 310 KiB by
// kernels instead of commands saved 70 us.
constexpr std::uint64_t kMostBytesByKernel = 512 << 10;

// The part's last sum, which no kernel runs beside: the main queue copies it. On a queue of its own the copy
// would wait for the kernels, and the next kernels for it, by semaphores that cost more than a short copy.
bool is_last(const std::vector<Program::Impl::Sum>& sums, std::size_t sum) { return sum + 1 == sums.size(); }

// Commands of a stretch, in order.
struct Action {
  enum class Kind : std::uint8_t { copy_in, dispatches, copy_out, sums_out, sums_in };
  Kind kind = Kind::dispatches;
  std::size_t part = 0, first = 0, end = 0;  // dispatches of the part; sums_out: its sum `first`
  auto operator<=>(const Action&) const = default;
};
using Kind = Action::Kind;

struct PlannedStretch {
  std::vector<Action> actions;
  bool needs_sums = false;
  std::vector<const Program::Impl::Sum*> sums;
};

std::vector<PlannedStretch> plan_stretches(const Program::Impl& program) {
  std::vector<PlannedStretch> planned(1);
  planned.back().actions = {{Kind::copy_in, 0, 0, 0}};
  for (const PartRun& run : program.runs) {
    const std::size_t count = program.parts[run.part].impl->dispatches.size();
    for (std::uint32_t turn = 0; turn < run.turns; ++turn) {
      std::size_t first = 0;
      for (std::size_t s = 0; s < program.sums[run.part].size(); ++s) {
        const std::vector<Program::Impl::Sum>& sums = program.sums[run.part];
        const std::size_t end = is_last(sums, s) ? count : sums[s].dispatch + 1;
        planned.back().actions.push_back({Kind::dispatches, run.part, first, end});
        planned.back().actions.push_back({Kind::sums_out, run.part, s, 0});
        planned.back().sums.push_back(&sums[s]);
        first = end;
      }
      if (!program.sums[run.part].empty()) {
        planned.emplace_back();
        planned.back().needs_sums = true;
        planned.back().actions.push_back({Kind::sums_in, run.part, 0, 0});
      } else {
        planned.back().actions.push_back({Kind::dispatches, run.part, 0, count});
      }
    }
  }
  planned.back().actions.push_back({Kind::copy_out, 0, 0, 0});
  return planned;
}

}  // namespace

// Host memory from `offset` on has the gaps of device memory, so that variables that follow each other have
// one copy: a GPU takes as long for a small copy as for a kernel. Imprint's allocations begin at multiples of
// kAlignment, so a shorter gap belongs to nothing else; one between external variables may belong to the
// host.
void Program::Impl::Sum::add(const Variable& added, std::uint64_t& offset) {
  const auto& storage = static_cast<const DeviceVariable&>(*added.state()->storage);
  const vk::Allocation variable = storage.allocation();
  const std::uint64_t bytes = added.bytes(), most = added.state()->external ? 0 : kAlignment;
  if (bytes == 0) return;
  VkBufferCopy* last = copies.empty() ? nullptr : &copies.back().region;
  const std::uint64_t end = last ? last->srcOffset + last->size : 0;
  std::uint64_t gap = 0;
  if (last && copies.back().buffer == variable.buffer && variable.offset >= end &&
      variable.offset - end < most) {
    gap = variable.offset - end;
    last->size += gap + bytes;
  } else {
    gap = aligned(offset) - offset;
    copies.push_back({variable.buffer, {variable.offset, offset + gap, bytes}});
  }
  for (std::size_t i = 0; i < gap / sizeof(float); ++i)
    padding.push_back(numbers.data() + numbers.size() + i);
  numbers = {numbers.data(), numbers.size() + (gap + bytes) / sizeof(float)};
  offset += gap + bytes;
}

// False in all processes if one of them cannot use the memory.
Result<bool> Program::Impl::import_sum_memory(SharedSums& shared, std::uint64_t bytes) {
  if (!shared.all(ImportedMemory::is_usable(runtime.device()))) return false;
  const SharedSums::Memory memory = shared.allocate(bytes);
  if (!memory.own) return false;
  auto numbers = ImportedMemory::import(runtime.device(), {memory.own, memory.bytes});
  auto totals = ImportedMemory::import(runtime.device(), {memory.sums, memory.bytes});
  for (const auto* imported : {&numbers, &totals})
    if (!*imported)
      runtime.device().options().log(
          LogLevel::info, "program '" + source.name + "': shared sums: " + imported->error().message);
  if (!shared.all(numbers && totals)) return false;
  own_numbers = std::move(*numbers);
  shared_totals = std::move(*totals);
  shared_memory = memory;
  return true;
}

Result<> Program::Impl::make_sum_memory(const ProgramSequence& sequence, std::uint64_t bytes) {
  if (sequence.shared_sums) {
    IMPRINT_ASSIGN(const bool shared, import_sum_memory(*sequence.shared_sums, bytes));
    if (shared) {
      shared_sums = sequence.shared_sums;
      numbers_buffer = own_numbers->buffer();
      totals_buffer = shared_totals->buffer();
      return {};
    }
  }
  // Both directions: readback memory is cached, and the host reads and writes each number.
  IMPRINT_ASSIGN(const vk::Allocation memory,
                 runtime.device().memory().allocate(bytes, kAlignment, vk::MemoryUse::readback));
  sum_memory = {memory};
  numbers_buffer = totals_buffer = memory.buffer;
  return {};
}

// The last dispatch of the part that writes the variable.
std::size_t Program::Impl::last_write(const Variable& variable) const {
  std::size_t last = 0;
  for (std::size_t d = 0; d < dispatches.size(); ++d)
    for (const std::int32_t t : dispatches[d].tasks)
      for (const Store& store : schedule.tasks[static_cast<std::size_t>(t)].stores)
        if (store.place.kind == PlaceKind::variable &&
            schedule.variables[static_cast<std::size_t>(store.place.index)] == variable.state())
          last = d;
  return last;
}

// Its last dispatch that writes or reads the variable: what comes after may go on beside the copy of the sum.
std::size_t Program::Impl::last_use(const Variable& variable) const {
  std::size_t last = last_write(variable);
  for (std::size_t d = last + 1; d < dispatches.size(); ++d)
    for (const std::int32_t t : dispatches[d].tasks)
      for (const Read& read : schedule.tasks[static_cast<std::size_t>(t)].reads) {
        const Place place = schedule.place[static_cast<std::size_t>(read.node)];
        if (place.kind == PlaceKind::variable &&
            schedule.variables[static_cast<std::size_t>(place.index)] == variable.state())
          last = d;
      }
  return last;
}

// The summed variables of a part in the order in which they are computed: the mean over all processes, since
// they must add up in one order, and schedules of other devices differ.
std::vector<Variable> Program::Impl::in_order_of_writes(const Impl& part,
                                                        std::vector<Variable> summed) const {
  if (!shared_sums || summed.empty()) return summed;
  auto* written = reinterpret_cast<float*>(shared_memory.own);
  for (std::size_t i = 0; i < summed.size(); ++i) written[i] = static_cast<float>(part.last_write(summed[i]));
  shared_sums->add(shared_memory, 0, summed.size());
  const auto* total = reinterpret_cast<const float*>(shared_memory.sums);
  const std::vector<float> writes(total, total + summed.size());
  (void)shared_sums->all(true);  // all have read them
  std::vector<std::size_t> order(summed.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return writes[i]; });
  std::vector<Variable> sorted;
  for (const std::size_t i : order) sorted.push_back(summed[i]);
  return sorted;
}

Result<> Program::Impl::make_sums(const ProgramSequence& sequence) {
  copies = runtime.copy_queue();
  waits_by_polling = runtime.device().capabilities().device_type != VK_PHYSICAL_DEVICE_TYPE_CPU;
  sums.resize(parts.size());
  std::uint64_t bytes = 0;
  for (const ProgramPart& part : sequence.parts)
    for (const Variable& variable : part.summed) bytes += variable.bytes() + kAlignment;
  if (bytes == 0) return {};
  IMPRINT_CHECK(make_sum_memory(sequence, bytes));
  const std::uint64_t start = sum_memory.empty() ? 0 : sum_memory[0].offset;
  auto* host = reinterpret_cast<float*>(sum_memory.empty() ? shared_memory.own : sum_memory[0].mapped);
  std::uint64_t offset = start;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Impl& part = *parts[p].impl;
    std::size_t ready = 0;
    const std::vector<Variable> ordered = in_order_of_writes(part, sequence.parts[p].summed);
    std::uint64_t left = 0, least = 0;  // bytes: of all that are left, and of the sum
    for (const Variable& variable : ordered) left += variable.bytes();
    for (const Variable& variable : ordered) {
      if (sums[p].empty() || sums[p].back().numbers.size_bytes() >= least) {
        sums[p].push_back({ready, {host + (offset - start) / sizeof(float), 0}, {}, {}});
        least = std::clamp(left / kSumsLeft, kLeastSumBytes, kEnoughSumBytes);
      }
      left -= variable.bytes();
      Sum& sum = sums[p].back();
      ready = std::max(ready, part.last_use(variable));
      sum.dispatch = ready;
      sum.add(variable, offset);
    }
    if (!sums[p].empty()) IMPRINT_CHECK(make_copy_kernels(sums[p].back()));
    for (Sum& sum : sums[p]) {
      IMPRINT_ASSIGN(vk::Event there, vk::Event::create(runtime.device()));
      sum.there = std::make_unique<vk::Event>(std::move(there));
    }
  }
  return {};
}

// Kernels that copy a short sum on the main queue. None: its copy commands stay.
Result<> Program::Impl::make_copy_kernels(Sum& sum) {
  if (sum.numbers.size_bytes() > kMostBytesByKernel) return {};
  ProgramDescription out{.name = source.name + ": numbers to the host"},
      in{.name = source.name + ": sums to the device"};
  for (const Copy& copy : sum.copies) {
    const std::uint64_t bytes = copy.region.size;
    const auto range = [&](VkBuffer buffer, std::uint64_t offset) -> Result<Variable> {
      Variable made = Variable::external("range", {static_cast<std::int64_t>(bytes / sizeof(float))});
      IMPRINT_CHECK(runtime.place_in(made, {buffer, offset, bytes, false, false, {}}));
      return made;
    };
    const Result<Variable> device = range(copy.buffer, copy.region.srcOffset),
                           numbers = range(numbers_buffer, copy.region.dstOffset),
                           totals = range(totals_buffer, copy.region.dstOffset);
    if (!device || !numbers || !totals) return {};
    out.updates.push_back(Update::assign(*numbers, device->value()));
    in.updates.push_back(Update::assign(*device, totals->value()));
  }
  const auto made = [&](const ProgramDescription& description) -> Result<std::unique_ptr<Impl>> {
    IMPRINT_ASSIGN(ProgramGraph graph, build_program_graph(description));
    return compile(runtime, std::move(graph));
  };
  Result<std::unique_ptr<Impl>> to_host = made(out), to_device = made(in);
  if (!to_host || !to_device) return {};  // without a compiler: archives hold the kernels of the parts alone
  sum.out = std::move(*to_host);
  sum.in = std::move(*to_device);
  return {};
}

Result<> Program::Impl::record_stretch_copies() {
  const vk::Functions& functions = runtime.device().functions();
  for (std::vector<Sum>& list : sums)
    for (std::size_t s = 0; s < list.size() && !is_last(list, s); ++s) {
      Sum& sum = list[s];
      IMPRINT_ASSIGN(sum.to_host, copies->record([&](VkCommandBuffer commands) {
        // No semaphore stands between the kernels and this copy: the host saw their event.
        memory_barrier(functions, commands, {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_MEMORY_WRITE_BIT},
                       {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT});
        for (const Copy& copy : sum.copies)
          functions.vkCmdCopyBuffer(commands, copy.buffer, numbers_buffer, 1, &copy.region);
        global_barrier(functions, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT);
      }));
      IMPRINT_ASSIGN(sum.to_device,
                     copies->record([&](VkCommandBuffer commands) { record_sum_in(commands, sum); }));
    }
  return {};
}

// The barrier before the event makes the numbers available to the device, and serves the dispatch after it
// too. The commands of the copy queue, which are submitted once the host has seen the event, make the numbers
// visible there. Stages of copies only where commands copy: with them, an event took an H200 7 us more.
void Program::Impl::record_sum_out(VkCommandBuffer commands, const Sum& sum) const {
  const vk::Functions& functions = runtime.device().functions();
  constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  const VkPipelineStageFlags used = sum.to_host || sum.out ? kCompute : kWorkStages;
  global_barrier(functions, commands, kCompute, used);
  if (!sum.to_host) {
    if (sum.out) {
      sum.out->record_dispatches(commands);
    } else {
      for (const Copy& copy : sum.copies)
        functions.vkCmdCopyBuffer(commands, copy.buffer, numbers_buffer, 1, &copy.region);
    }
    global_barrier(functions, commands, used, VK_PIPELINE_STAGE_HOST_BIT);
  }
  sum.there->record_set(commands, used);
}

void Program::Impl::record_sum_in(VkCommandBuffer commands, const Sum& sum) const {
  if (sum.in) return sum.in->record_dispatches(commands);
  for (const Copy& copy : sum.copies) {
    const VkBufferCopy back{copy.region.dstOffset, copy.region.srcOffset, copy.region.size};
    runtime.device().functions().vkCmdCopyBuffer(commands, totals_buffer, copy.buffer, 1, &back);
  }
}

void Program::Impl::record_dispatches(VkCommandBuffer commands) const {
  for (std::size_t i = 0; i < dispatches.size(); ++i) record_dispatch(commands, i);
}

Result<> Program::Impl::record_stretches() {
  const vk::Functions& functions = runtime.device().functions();
  const auto act = [&](VkCommandBuffer commands, const Action& action, std::uint32_t slot) {
    switch (action.kind) {
      case Kind::copy_in:
        return record_copies_in(commands, slot);
      case Kind::copy_out:
        return record_copies_out(commands, slot);
      case Kind::dispatches:
        for (std::size_t i = action.first; i < action.end; ++i)
          parts[action.part].impl->record_dispatch(commands, i, i > 0 && i == action.first);  // after a sum
        return;
      case Kind::sums_out:
        return record_sum_out(commands, sums[action.part][action.first]);
      case Kind::sums_in:
        for (const Sum& sum : sums[action.part])
          if (!sum.to_device) record_sum_in(commands, sum);
        return global_barrier(functions, commands, kWorkStages, kWorkStages);
    }
  };

  const auto copies_of = [&](const PlannedStretch& plan) {
    std::size_t count = 0;
    for (const Action& action : plan.actions)
      for (std::size_t s = 0; s < sums[action.part].size(); ++s)
        if (action.kind == Kind::sums_in || (action.kind == Kind::sums_out && action.first == s))
          count += sums[action.part][s].copies.size();
    return static_cast<std::uint32_t>(count);
  };
  if (copies) IMPRINT_CHECK(record_stretch_copies());
  const std::vector<PlannedStretch> planned = plan_stretches(*this);
  // Turns of the same parts share their commands.
  std::map<std::pair<std::uint32_t, std::vector<Action>>, VkCommandBuffer> recorded;
  for (std::uint32_t slot = 0; slot < source.slot_count; ++slot) {
    std::vector<Stretch>& list = stretches_.emplace_back();
    for (const PlannedStretch& plan : planned) {
      const bool has_ports =
          plan.actions.front().kind == Kind::copy_in || plan.actions.back().kind == Kind::copy_out;
      VkCommandBuffer& commands = recorded[{has_ports ? slot : 0, plan.actions}];
      if (commands == VK_NULL_HANDLE) {
        IMPRINT_ASSIGN(const Commands made, runtime.record([&](VkCommandBuffer buffer) {
          const vk::CommandLabel label(functions, buffer, source.name.c_str());
          global_barrier(functions, buffer, kWorkStages, kWorkStages);
          for (const Action& action : plan.actions) act(buffer, action, slot);
        }));
        stretch_commands.push_back(made);
        commands = made.primary;
      }
      list.push_back({commands, plan.needs_sums, {}, copies_of(plan)});
      for (const Sum* sum : plan.sums)
        list.back().sums.push_back(
            {sum->numbers, sum->padding, sum->there.get(), sum->to_host, sum->to_device});
    }
  }
  return {};
}

// The main queue's newest ticket comes after all copies.
void Program::Impl::retire_sums() {
  vk::Device& device = runtime.device();
  for (const std::vector<Sum>& list : sums)
    for (const Sum& sum : list)
      for (const VkCommandBuffer commands : {sum.to_host, sum.to_device})
        if (commands)
          device.retire(device.last_ticket(), [queue = copies, commands] { queue->free(commands); });
  struct Kept {
    std::vector<std::unique_ptr<vk::Event>> events;
    std::unique_ptr<ImportedMemory> numbers, totals;
    SharedSums::Memory memory;
  };
  if (sums.empty()) return;
  auto kept = std::make_shared<Kept>();
  for (std::vector<Sum>& list : sums)
    for (Sum& sum : list) kept->events.push_back(std::move(sum.there));
  kept->numbers = std::move(own_numbers);
  kept->totals = std::move(shared_totals);
  kept->memory = shared_memory;
  device.retire(device.last_ticket(), [kept] {});
}

std::span<const Stretch> Program::Impl::stretches(std::uint32_t slot) const {
  return slot < stretches_.size() ? std::span<const Stretch>(stretches_[slot]) : std::span<const Stretch>();
}

}  // namespace imprint
