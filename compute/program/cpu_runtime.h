#pragma once
// Implementation of the CPU's Runtime. Variables lie in the process's memory.

#include <cstddef>
#include <memory>

#include "compute/base/thread_pool.h"
#include "compute/base/zeroed_bytes.h"
#include "compute/program/cpu_memory.h"
#include "compute/program/runtime.h"

namespace imprint::program {

// A variable's memory. A program holds the variable's state, which keeps this alive.
class CpuVariable : public tensor::VariableStorage {
 public:
  CpuVariable(std::size_t bytes, CpuReservation reservation)
      : bytes_(make_zeroed_bytes(bytes)), reservation_(std::move(reservation)) {}
  std::byte* bytes() const { return bytes_.get(); }

 private:
  ZeroedBytes bytes_;
  CpuReservation reservation_;
};

class CpuRuntime : public Runtime {
 public:
  CpuRuntime(LogSink log, std::uint64_t memory_cap, const CpuThreads& threads)
      : log_(log), memory_(std::make_shared<CpuMemory>(memory_cap)) {
    if (threads.count > 1) pool_ = ThreadPool::create({threads.count, threads.host, log});
  }

  bool on_cpu() const override { return true; }
  const Commands& barrier() const override { return nothing_; }
  Result<> place(const Variable& variable, bool yields) override;
  Result<> place_together(std::span<const Variable> variables) override;
  Result<> displace(const Variable& variable) override;
  Result<> place_in(const Variable& variable, const BufferRange& range) override;
  Result<> write(const Variable& variable, std::span<const std::byte> bytes) override;
  Result<> write(const Variable& variable, SharedBytes bytes) override {
    return write(variable, std::span<const std::byte>(bytes));
  }
  Result<> write_zeros(const Variable& variable) override;
  Result<Commands> take_uploads(std::uint64_t) override { return nothing_; }
  void put_back_uploads(const Commands&) override {}
  bool has_uploads() const override { return false; }
  Result<std::unique_ptr<StateReadback>> read(std::span<const Variable> variables, bool yields) override;
  Result<std::unique_ptr<StateCopy>> copy(std::span<const Variable> variables) override;
  void set_variants(std::shared_ptr<const VariantTable> table) override { variants_ = std::move(table); }
  std::shared_ptr<const VariantTable> variants() const override { return variants_; }
  void set_tuner(std::shared_ptr<VariantTuner>) override {}
  void set_cpu_memory_cap(std::uint64_t bytes) override { memory_->set_cap(bytes); }

  // ---- for programs ----
  Result<> place(tensor::VariableState& variable) const;
  const std::shared_ptr<CpuMemory>& memory() const { return memory_; }
  const LogSink& log() const { return log_; }
  const std::shared_ptr<ThreadPool>& pool() const { return pool_; }  // null: the calling thread alone

 private:
  LogSink log_;
  std::shared_ptr<CpuMemory> memory_;
  std::shared_ptr<ThreadPool> pool_;
  Commands nothing_;
  std::shared_ptr<const VariantTable> variants_;
};

}  // namespace imprint::program
