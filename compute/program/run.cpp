#include "compute/program/run.h"

#include <algorithm>
#include <cstring>

#include "compute/base/host_memory.h"
#include "compute/program/program_extents.h"
#include "compute/program/session_impl.h"

namespace imprint {

using namespace program;

namespace {

constexpr std::uint64_t kTimeout = 120'000'000'000;  // nanoseconds; software devices are slow

// The elements in memory, as the dtype has them.
std::vector<std::byte> packed(const HostTensor& value, DType dtype) {
  const bool is_float = dtype_is_float(dtype);
  const std::size_t count = is_float ? value.floats.size() : value.ints.size();
  std::vector<std::byte> bytes(count * dtype_size(dtype));
  pack_elements(is_float ? static_cast<const void*>(value.floats.data()) : value.ints.data(), count, dtype,
                bytes.data());
  return bytes;
}

bool is_same_kind(DType a, DType b) { return dtype_registers(a) == dtype_registers(b); }

// Fills the elements of input `index` that runs of slot 0 use.
Result<> copy_in(Program& of, const HostTensor& value, std::size_t index, const Port& port) {
  const std::string& program = of.name();
  const Shape used = of.used_shape(0, port.shape);
  const std::span<std::byte> target = of.input_bytes(0, index);
  const std::size_t count = dtype_is_float(port.dtype) ? value.floats.size() : value.ints.size();
  if (!is_same_kind(value.dtype, port.dtype))
    return make_error(ErrorCode::dtype_mismatch, "run '" + program + "': input " + std::to_string(index) +
                                                     " '" + port.name + "': found " +
                                                     std::string(dtype_name(value.dtype)) + ", expected " +
                                                     std::string(dtype_name(port.dtype)));
  if (!(value.shape == used) || static_cast<std::int64_t>(count) != used.element_count())
    return make_error(ErrorCode::shape_mismatch,
                      "run '" + program + "': input " + std::to_string(index) + " '" + port.name +
                          "': found shape " + value.shape.text() + " with " + std::to_string(count) +
                          " elements, expected " + used.text() +
                          (port.shape.is_named() ? " of " + port.shape.text() : ""));
  if (count == 0) return {};
  const std::vector<std::byte> bytes = packed(value, port.dtype);
  each_used_run(of, 0, port.shape, dtype_size(port.dtype),
                [&](std::size_t from, std::size_t to, std::size_t size) {
                  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(from), size,
                              target.begin() + static_cast<std::ptrdiff_t>(to));
                });
  return {};
}

}  // namespace

HostTensor HostTensor::from(std::vector<float> values, Shape shape) {
  return {DType::float32, shape, std::move(values), {}};
}
HostTensor HostTensor::from_ints(std::vector<std::int32_t> values, Shape shape) {
  return {DType::int32, shape, {}, std::move(values)};
}

HostTensor program::host_tensor(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  HostTensor result{dtype, shape, {}, {}};
  const std::size_t count = bytes.size() / dtype_size(dtype);
  if (dtype_is_float(dtype)) {
    result.floats.resize(count);
    unpack_elements(bytes.data(), count, dtype, result.floats.data());
  } else {
    result.ints.resize(count);
    unpack_elements(bytes.data(), count, dtype, result.ints.data());
  }
  return result;
}

Session::Session(Runtime& runtime, vk::Queue& queue) : impl_(std::make_unique<Impl>(runtime, &queue)) {}
Session::Session(Runtime& cpu) : impl_(std::make_unique<Impl>(cpu, nullptr)) {}
Session::~Session() = default;

Runtime& Session::runtime() { return impl_->runtime; }

Result<> Session::Impl::submit_and_wait(VkCommandBuffer commands) {
  IMPRINT_ASSIGN(const Commands uploads, stream_uploads(runtime, *queue));
  const VkCommandBuffer buffers[] = {uploads.primary, commands};
  const auto first = uploads.primary ? 0u : 1u;
  const auto count = (commands ? 2u : 1u) - first;
  if (count == 0) return {};
  const Result<vk::Ticket> ticket = queue->submit(std::span<const VkCommandBuffer>(buffers + first, count));
  if (!ticket) {
    runtime.put_back_uploads(uploads);
    return ticket.error();
  }
  IMPRINT_CHECK(queue->wait(*ticket, kTimeout));
  static_cast<RuntimeImpl&>(runtime).device().collect();
  return {};
}

Result<> Session::Impl::run_whole(Program& program) {
  if (runtime.on_cpu()) return program.run_pieces(0, 0, program.piece_count());
  if (program.adds_up()) {
    IMPRINT_CHECK(submit_and_wait(VK_NULL_HANDLE));
    return run_adding_up(program, 0, *queue);
  }
  return submit_and_wait(program.whole(0, VK_COMMAND_BUFFER_LEVEL_PRIMARY));
}

Result<> run_adding_up(Program& program, std::uint32_t slot, vk::Queue& queue) {
  const Program::Body& body = program.body();
  struct Pending {
    vk::Ticket ticket;
    const Stretch* stretch = nullptr;
  };
  std::vector<Pending> pending;
  const auto finish = [&]() -> Result<> {
    for (const Pending& each : pending) {
      IMPRINT_CHECK(queue.wait(each.ticket, kTimeout));
      for (float* number : each.stretch->padding) *number = 0;
      if (!each.stretch->sums.empty()) body.add_up(each.stretch->sums);
    }
    pending.clear();
    return {};
  };
  for (const Stretch& stretch : body.stretches(slot)) {
    if (stretch.needs_sums) IMPRINT_CHECK(finish());
    IMPRINT_ASSIGN(const vk::Ticket ticket, queue.submit(std::span(&stretch.commands, 1)));
    pending.push_back({ticket, &stretch});
  }
  return finish();
}

Result<std::vector<HostTensor>> Session::Impl::run(Program& program, std::span<const HostTensor> inputs,
                                                   const std::vector<Port>& input_ports,
                                                   const std::vector<Port>& output_ports) {
  const std::size_t listed = program.body().source.listed_inputs();
  if (inputs.size() != listed)
    return make_error(ErrorCode::invalid_argument, "run '" + program.name() + "': found " +
                                                       std::to_string(inputs.size()) + " inputs, expected " +
                                                       std::to_string(listed));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    IMPRINT_CHECK(take_extents(program, inputs[i].shape, input_ports[i].shape));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    IMPRINT_CHECK(copy_in(program, inputs[i], i, input_ports[i]));
  IMPRINT_CHECK(run_whole(program));
  std::vector<HostTensor> outputs;
  for (std::size_t i = 0; i < output_ports.size(); ++i) {
    const Port& port = output_ports[i];
    const Shape used = program.used_shape(0, port.shape);
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor_bytes(used, port.dtype)));
    const std::span<const std::byte> all = program.output_bytes(0, i);
    each_used_run(program, 0, port.shape, dtype_size(port.dtype),
                  [&](std::size_t to, std::size_t from, std::size_t size) {
                    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(from), size,
                                bytes.begin() + static_cast<std::ptrdiff_t>(to));
                  });
    outputs.push_back(host_tensor(port.dtype, used, bytes));
  }
  return outputs;
}

Result<std::vector<HostTensor>> Session::run(Program& program, std::span<const HostTensor> inputs) {
  if (&program.body().owner() != &impl_->runtime)
    return make_error(ErrorCode::invalid_argument,
                      "run '" + program.name() +
                          "': found a program of another runtime. Compile it for this session's runtime.");
  return within_host_memory("run '" + program.name() + "'", [&] {
    return impl_->run(program, inputs, program.body().source.inputs, program.body().source.outputs);
  });
}

Result<std::vector<HostTensor>> Session::read(std::span<const Variable> variables) {
  IMPRINT_ASSIGN(const std::unique_ptr<StateReadback> readback, impl_->runtime.read(variables));
  if (CpuWork* work = readback->commands().work)
    work->run();
  else
    IMPRINT_CHECK(impl_->submit_and_wait(readback->commands().primary));
  std::vector<HostTensor> values;
  for (std::size_t i = 0; i < variables.size(); ++i)
    values.push_back(host_tensor(variables[i].dtype(), variables[i].shape(), readback->bytes(i)));
  return values;
}

Result<> Session::write(const Variable& variable, const HostTensor& value) {
  if (!(value.shape == variable.shape()) || !is_same_kind(value.dtype, variable.dtype()))
    return make_error(ErrorCode::shape_mismatch,
                      "write to variable '" + variable.name() + "' " + variable.shape().text() + ": found " +
                          std::string(dtype_name(value.dtype)) + value.shape.text() +
                          ", expected the variable's shape and dtype");
  IMPRINT_CHECK(impl_->runtime.write(variable, SharedBytes(packed(value, variable.dtype()))));
  impl_->written += variable.bytes();
  if (impl_->written <= kUploadRing) return {};
  impl_->written = 0;
  return impl_->runtime.on_cpu() ? Result<>() : impl_->submit_and_wait(VK_NULL_HANDLE);
}

}  // namespace imprint
