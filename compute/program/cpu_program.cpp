#include "compute/program/cpu_program.h"

#include <algorithm>
#include <cstdio>

#include "compute/base/amount.h"
#include "compute/base/saturated.h"
#include "compute/base/text.h"
#include "compute/graph/passes/page_expand.h"
#include "compute/program/memory_attempts.h"
#include "compute/program/task_work.h"

namespace imprint {

using namespace graph;
using namespace program;

namespace {

std::uint64_t end_of(const std::vector<Port>& ports) {
  std::uint64_t end = 0;
  for (const Port& port : ports) end = std::max(end, aligned(port.offset + port.bytes));
  return end;
}

}  // namespace

Result<std::unique_ptr<Program::Body>> CpuProgram::compile(const Runtime& runtime, ProgramGraph source) {
  auto program = std::make_unique<CpuProgram>(static_cast<const CpuRuntime&>(runtime));
  program->source.name = source.name;
  program->source.slot_count = source.slot_count;
  program->source.inputs = source.inputs;
  program->source.outputs = source.outputs;
  program->source.keep = source.keep;
  IMPRINT_CHECK(program->add_part(std::move(source), 1));
  program->runs_ = {{0, 1}};
  IMPRINT_CHECK(program->make_slots());
  return std::unique_ptr<Program::Body>(std::move(program));
}

Result<std::unique_ptr<Program::Body>> CpuProgram::compile(const Runtime& runtime,
                                                           const ProgramSequence& sequence) {
  auto program = std::make_unique<CpuProgram>(static_cast<const CpuRuntime&>(runtime));
  program->source.name = sequence.name;
  program->source.slot_count = std::max(1u, sequence.slot_count);
  program->own = sequence.own;
  program->runs_ = runs_of(sequence);
  program->all_reduce_ = sequence.all_reduce;
  const bool adds =
      std::ranges::any_of(sequence.parts, [](const auto& part) { return !part.summed.empty(); });
  if (adds && sequence.shared_sums) (void)sequence.shared_sums->all(false);  // no process uses them then
  std::uint64_t input_end = 0, kernels = 0;
  for (std::size_t i = 0; i < sequence.parts.size(); ++i) {
    IMPRINT_ASSIGN(ProgramGraph source, build_part_graph(sequence, i));
    const std::uint32_t turns = turns_of(i, program->runs_);
    if (Result<> added = program->add_part(std::move(source), turns); !added)
      return in_sequence(sequence, i, added.error());
    Part& part = program->parts_.back();
    for (const Variable& summed : sequence.parts[i].summed) {
      IMPRINT_CHECK(program->runtime_.place(*summed.state()));
      std::byte* bytes = static_cast<const CpuVariable*>(summed.state()->storage.get())->bytes();
      part.summed.emplace_back(reinterpret_cast<float*>(bytes), summed.bytes() / sizeof(float));
    }
    if (Result<> counted = add_turns(turns, part.kernel_count(), kernels); !counted)
      return in_sequence(sequence, i, counted.error());
    for (Port& port : part.inputs) {
      const auto offset = input_offset(program->source.inputs, port, input_end);
      if (!offset) return in_sequence(sequence, i, offset.error());
      port.offset = *offset;
    }
    for (Port& port : part.outputs) {
      port.offset = end_of(program->source.outputs);
      program->source.outputs.push_back(port);
    }
  }
  list_extents_last(program->source.inputs);
  IMPRINT_CHECK(program->make_slots());
  return std::unique_ptr<Program::Body>(std::move(program));
}

// given: its pages are expanded.
Result<> CpuProgram::plan_part(ProgramGraph given, Part& part) {
  FusionOptions options = cpu::fusion_options(given.fuse);
  options.expand = Expand::none;
  options.writes_late = given.writes_late;
  IMPRINT_ASSIGN(part.schedule, graph::fuse(given.graph, given.request, options));
  part.graph = std::move(given.graph);
  part.schedule.extents = given.extents();
  part.variable_memory.clear();
  for (const auto& variable : part.schedule.variables) {
    IMPRINT_CHECK(runtime_.place(*variable));
    part.variable_memory.push_back(static_cast<const CpuVariable*>(variable->storage.get())->bytes());
  }
  // Slots are made last.
  const std::uint64_t slots =
                          saturated_product(end_of(given.inputs) + end_of(given.outputs), source.slot_count),
                      left = runtime_.memory()->free_bytes();
  if (slots > left)
    return make_error(ErrorCode::out_of_device_memory,
                      text("program '", part.name, "': found ", end_of(given.inputs), " bytes of inputs and ",
                           end_of(given.outputs), " bytes of outputs in ", amount(source.slot_count, "slot"),
                           ", expected at most ", left,
                           " bytes, which the memory cap leaves. Use smaller shapes, or raise the cap"));
  auto made = cpu::Executable::compile(part.graph, part.schedule, left - slots, runtime_.pool());
  if (!made) return make_error(made.error().code, "program '" + part.name + "': " + made.error().message);
  part.executable = std::move(*made);
  IMPRINT_ASSIGN(part.intermediates, CpuReservation::make(runtime_.memory(), part.executable->memory_bytes(),
                                                          "program '" + part.name + "'"));
  return {};
}

Result<> CpuProgram::add_part(ProgramGraph part_source, std::uint32_t repeat) {
  if (part_source.precision != Precision::float32)
    runtime_.log()(LogLevel::warning,
                   "program '" + part_source.name + "' stays in float32: the CPU computes in 32 bits");
  Part part;
  part.name = part_source.name;
  part.repeat = repeat;
  IMPRINT_CHECK(expand_pages(part_source.graph, part_source.request, cpu::fusion_options(part_source.fuse)));
  IMPRINT_CHECK(build_within_memory(part_source,
                                    {[&](const ProgramGraph& graph) { return plan_part(graph, part); },
                                     [&] {
                                       return Planned{part.graph, part.schedule};
                                     },
                                     [&](const std::string& how) { runtime_.log()(LogLevel::info, how); }}));
  part.inputs = std::move(part_source.inputs);
  part.outputs = std::move(part_source.outputs);
  part.input_memory.resize(part.inputs.size());
  part.output_memory.resize(part.outputs.size());

  ProgramStats one;
  for (const Task& task : part.schedule.tasks) add_work(part.graph, part.schedule, task, one);
  stats.dispatches += one.kernels * repeat;
  stats.kernels += one.kernels * repeat;
  program::add_repeated(one, repeat, stats);
  stats.arena_bytes += part.executable->arena_bytes();
  stats.unplanned_bytes += part.executable->unplanned_bytes();
  parts_.push_back(std::move(part));
  return {};
}

Result<> CpuProgram::make_slots() {
  input_bytes_ = end_of(source.inputs);
  output_bytes_ = end_of(source.outputs);
  IMPRINT_ASSIGN(slot_reservation_,
                 CpuReservation::make(runtime_.memory(), (input_bytes_ + output_bytes_) * source.slot_count,
                                      "program '" + source.name + "': inputs and outputs"));
  for (std::uint32_t slot = 0; slot < source.slot_count; ++slot)
    slots_.push_back(make_zeroed_bytes(input_bytes_ + output_bytes_));
  reset_extents();
  stats.io_bytes = (input_bytes_ + output_bytes_) * source.slot_count;
  return {};
}

// Once per slot, not per piece: there may be as many pieces as outputs. Named extents are read again.
void CpuProgram::bind(Part& part, std::uint32_t slot) {
  if (part.bound_slot == slot && part.schedule.extents.empty()) return;
  part.bound_slot = slot;
  for (std::size_t i = 0; i < part.inputs.size(); ++i)
    part.input_memory[i] = slots_[slot].get() + part.inputs[i].offset;
  for (std::size_t i = 0; i < part.outputs.size(); ++i)
    part.output_memory[i] = slots_[slot].get() + input_bytes_ + part.outputs[i].offset;
  part.executable->bind({part.input_memory, part.output_memory, part.variable_memory});
}

// One call for all: a call costs a latency.
void CpuProgram::all_reduce(const Part& part) {
  if (part.summed.empty()) return;
  if (part.summed.size() == 1) return all_reduce_(part.summed.front());
  gathered_.clear();
  for (const std::span<float> summed : part.summed)
    gathered_.insert(gathered_.end(), summed.begin(), summed.end());
  all_reduce_(gathered_);
  std::span<const float> sums(gathered_);
  for (const std::span<float> summed : part.summed) {
    std::ranges::copy(sums.first(summed.size()), summed.begin());
    sums = sums.subspan(summed.size());
  }
}

Result<> CpuProgram::run_pieces(std::uint32_t slot, std::uint32_t first, std::uint32_t count) {
  // Kernels of all turns, without the first piece and the last.
  const std::uint32_t begin = first == 0 ? 0 : first - 1;
  const std::uint32_t end = std::min(first + count == 0 ? 0 : first + count - 1, stats.dispatches);
  std::uint32_t before = 0;
  for (const PartRun& run : runs_) {
    Part& part = parts_[run.part];
    const std::uint32_t kernels = part.kernel_count(), total = kernels * run.turns;
    if (begin < before + total && end > before) {
      bind(part, slot);
      for (std::uint32_t k = std::max(begin, before); k < std::min(end, before + total); ++k) {
        part.executable->run((k - before) % kernels);
        const bool ends_turn = (k - before + 1) % kernels == 0;
        if (ends_turn && all_reduce_) all_reduce(part);
      }
    }
    before += total;
  }
  return {};
}

std::uint32_t CpuProgram::first_write(std::span<const Variable> except) const {
  std::uint32_t before = 0;
  for (const PartRun& run : runs_) {
    const Part& part = parts_[run.part];
    for (std::uint32_t k = 0; k < part.kernel_count(); ++k)
      if (writes_state(part.schedule, part.schedule.tasks[k], except)) return before + k;
    before += part.kernel_count() * run.turns;
  }
  return stats.dispatches + 1;
}

std::vector<ScheduleFigures> CpuProgram::schedule_figures() const {
  std::vector<ScheduleFigures> figures;
  for (const Part& part : parts_) {
    figures.push_back({part.name, part.repeat, {}, part.schedule.notes});
    for (const Task& task : part.schedule.tasks)
      figures.back().dispatches.push_back({.kernels = {kernel_figures(part.graph, part.schedule, task)}});
  }
  return figures;
}

std::string CpuProgram::explain() const {
  std::string text;
  for (const Part& part : parts_) {
    char line[320];
    std::snprintf(line, sizeof line,
                  "%u x program %s on the CPU (%s, %u threads): %u kernels of %zu steps, %zu of them and "
                  "%.1f %% of the work divided among threads, arena %llu bytes (%llu without reuse)\n",
                  part.repeat, part.name.c_str(), cpu::kernels().name,
                  runtime_.pool() ? runtime_.pool()->threads() : 1, part.kernel_count(),
                  part.executable->step_count(), part.executable->division().steps,
                  100 * part.executable->division().work,
                  static_cast<unsigned long long>(part.executable->arena_bytes()),
                  static_cast<unsigned long long>(part.executable->unplanned_bytes()));
    text += line;
    for (const Task& task : part.schedule.tasks) text += explain_task(part.graph, part.schedule, task);
  }
  return text;
}

}  // namespace imprint
