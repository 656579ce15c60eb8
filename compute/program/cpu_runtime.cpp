#include "compute/program/cpu_runtime.h"

#include <cstring>
#include <vector>

#include "compute/tensor/known_zeros.h"

namespace imprint {

using namespace program;
using namespace tensor;

namespace {

std::byte* memory_of(const VariableState& variable) {
  return static_cast<const CpuVariable*>(variable.storage.get())->bytes();
}

class CpuReadback : public StateReadback, CpuWork {
 public:
  CpuReadback(std::span<const Variable> variables, CpuReservation reservation)
      : variables_(variables.begin(), variables.end()), reservation_(std::move(reservation)) {
    commands_.work = this;
    for (const Variable& variable : variables_) copies_.emplace_back(variable.bytes());
  }
  const Commands& commands() const override { return commands_; }
  std::span<const std::byte> bytes(std::size_t index) const override { return copies_[index]; }
  void run() override {
    for (std::size_t i = 0; i < copies_.size(); ++i)
      if (!copies_[i].empty())
        std::memcpy(copies_[i].data(), memory_of(*variables_[i].state()), copies_[i].size());
  }

 private:
  std::vector<Variable> variables_;
  CpuReservation reservation_;
  std::vector<std::vector<std::byte>> copies_;
  Commands commands_;
};

}  // namespace

std::unique_ptr<Runtime> Runtime::create_on_cpu(LogSink log, std::uint64_t memory_cap,
                                                const CpuThreads& threads) {
  return std::make_unique<CpuRuntime>(log, memory_cap, threads);
}

Result<> CpuRuntime::displace(const Variable& variable) {
  return make_error(ErrorCode::unsupported, "displace: variable '" + variable.name() +
                                                "': found it in host memory, expected device memory");
}

Result<> CpuRuntime::place(const Variable& variable, bool) {
  if (!variable.state())
    return make_error(ErrorCode::invalid_argument,
                      "place: variable: found an empty one, expected a valid one");
  return place(*variable.state());
}

Result<> CpuRuntime::place_together(std::span<const Variable> variables) {
  for (const Variable& variable : variables) IMPRINT_CHECK(place(variable, false));
  return {};
}

Result<> CpuRuntime::place(VariableState& variable) const {
  if (variable.storage) {
    if (dynamic_cast<const CpuVariable*>(variable.storage.get())) return {};
    return make_error(ErrorCode::invalid_argument,
                      "variable '" + variable.name +
                          "': found it on a Vulkan device, expected the CPU. Make one for each.");
  }
  if (variable.external)
    return make_error(
        ErrorCode::unsupported,
        "variable '" + variable.name + "': found an external one on the CPU, expected a Vulkan device");
  const std::size_t size = variable.bytes();
  IMPRINT_ASSIGN(CpuReservation reservation,
                 CpuReservation::make(memory_, size, "variable '" + variable.name + "'"));
  auto storage = std::make_shared<CpuVariable>(size == 0 ? 4 : size, std::move(reservation));
  if (size > 0 && !are_known_zeros(variable.initial))
    std::memcpy(storage->bytes(), variable.initial.data(), size);
  variable.storage = std::move(storage);
  variable.initial = {};
  return {};
}

Result<> CpuRuntime::place_in(const Variable& variable, const BufferRange&) {
  return make_error(ErrorCode::unsupported,
                    "place_in: variable '" + variable.name() + "': found the CPU, expected a Vulkan device");
}

Result<> CpuRuntime::write(const Variable& variable, std::span<const std::byte> bytes) {
  IMPRINT_CHECK(place(variable, false));
  const std::size_t size = variable.bytes();
  if (bytes.size() != size)
    return make_error(ErrorCode::shape_mismatch,
                      "write to variable '" + variable.name() + "' " + variable.shape().text() + ": found " +
                          std::to_string(bytes.size()) + " bytes, expected " + std::to_string(size));
  if (size > 0) std::memcpy(memory_of(*variable.state()), bytes.data(), size);
  return {};
}

Result<> CpuRuntime::write_zeros(const Variable& variable) {
  IMPRINT_CHECK(place(variable, false));
  if (const std::size_t size = variable.bytes(); size > 0) std::memset(memory_of(*variable.state()), 0, size);
  return {};
}

Result<std::unique_ptr<StateReadback>> CpuRuntime::read(std::span<const Variable> variables, bool) {
  std::uint64_t bytes = 0;
  for (const Variable& variable : variables) {
    IMPRINT_CHECK(place(variable, false));
    bytes += variable.bytes();
  }
  IMPRINT_ASSIGN(CpuReservation reservation, CpuReservation::make(memory_, bytes, "read"));
  return std::unique_ptr<StateReadback>(std::make_unique<CpuReadback>(variables, std::move(reservation)));
}

Result<std::unique_ptr<StateCopy>> CpuRuntime::copy(std::span<const Variable>) {
  return make_error(ErrorCode::unsupported, "copy: found a runtime of the CPU, expected a device's");
}

}  // namespace imprint
