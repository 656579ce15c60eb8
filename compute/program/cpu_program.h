#pragma once
// A Program on the CPU: runs the kernels of one schedule, or of a sequence's parts turn by turn, on the
// slots' memory.

#include <memory>
#include <optional>
#include <vector>

#include "compute/cpu/executable.h"
#include "compute/program/cpu_runtime.h"
#include "compute/program/program_body.h"

namespace imprint::program {

class CpuProgram : public Program::Body {
 public:
  static Result<std::unique_ptr<Program::Body>> compile(const Runtime& runtime, ProgramGraph source);
  static Result<std::unique_ptr<Program::Body>> compile(const Runtime& runtime,
                                                        const ProgramSequence& sequence);

  explicit CpuProgram(const CpuRuntime& runtime) : runtime_(runtime) {}
  const Runtime& owner() const override { return runtime_; }
  std::string explain() const override;
  std::vector<ScheduleFigures> schedule_figures() const override;
  std::vector<std::string> glsl() const override { return {}; }
  void add_pipelines(std::vector<VkPipeline>&) const override {}
  std::byte* input_memory(std::uint32_t slot) override { return slots_[slot].get(); }
  const std::byte* output_memory(std::uint32_t slot) const override {
    return slots_[slot].get() + input_bytes_;
  }
  std::uint32_t first_write(std::span<const Variable> except) const override;
  std::span<const VkCommandBuffer> pieces(std::uint32_t, VkCommandBufferLevel) const override { return {}; }
  VkCommandBuffer head(std::uint32_t, VkCommandBufferLevel) const override { return VK_NULL_HANDLE; }
  VkCommandBuffer tail(std::uint32_t, VkCommandBufferLevel) const override { return VK_NULL_HANDLE; }
  VkCommandBuffer whole(std::uint32_t, VkCommandBufferLevel) const override { return VK_NULL_HANDLE; }
  void encode(VkCommandBuffer, std::uint32_t) const override {}
  Result<VkCommandBuffer> several_runs(std::uint32_t, std::uint32_t) override { return VkCommandBuffer{}; }
  Result<> run_pieces(std::uint32_t slot, std::uint32_t first, std::uint32_t count) override;

 private:
  struct Part {
    std::string name;
    graph::Graph graph;
    graph::Schedule schedule;
    std::unique_ptr<cpu::Executable> executable;
    CpuReservation intermediates;
    std::uint32_t repeat = 1;              // turns of all rounds
    std::vector<std::span<float>> summed;  // of the variables that all_reduce_ changes
    std::vector<Port> inputs, outputs;     // offsets within the slot's inputs and outputs
    std::vector<std::byte*> input_memory, output_memory, variable_memory;
    std::optional<std::uint32_t> bound_slot;  // that the executable's pointers lead to
    std::uint32_t kernel_count() const { return static_cast<std::uint32_t>(executable->kernel_count()); }
  };

  Result<> plan_part(ProgramGraph given, Part& part);
  Result<> add_part(ProgramGraph source, std::uint32_t repeat);
  Result<> make_slots();
  void bind(Part& part, std::uint32_t slot);
  void all_reduce(const Part& part);

  const CpuRuntime& runtime_;
  std::vector<Part> parts_;
  std::vector<PartRun> runs_;
  std::function<void(std::span<float>)> all_reduce_;
  std::vector<float> gathered_;  // summed variables, one after the other
  std::uint64_t input_bytes_ = 0, output_bytes_ = 0;
  std::vector<ZeroedBytes> slots_;  // inputs, then outputs
  CpuReservation slot_reservation_;
};

}  // namespace imprint::program
