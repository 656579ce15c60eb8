#include "compute/program/run.h"

#include <algorithm>
#include <cstring>

#include "compute/base/host_memory.h"
#include "compute/base/number_format.h"
#include "compute/program/session_impl.h"

namespace imprint {

using namespace program;

namespace {

constexpr std::uint64_t kTimeout = 120'000'000'000;  // nanoseconds; software devices are slow

// The device's representation of float values.
std::vector<std::byte> float_bytes(std::span<const float> values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * dtype_size(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t narrow =
        dtype == DType::float16 ? half_from_float(values[i]) : bfloat16_from_float(values[i]);
    if (dtype_is_narrow_float(dtype))
      std::memcpy(bytes.data() + 2 * i, &narrow, 2);
    else
      std::memcpy(bytes.data() + 4 * i, &values[i], 4);
  }
  return bytes;
}

Result<> copy_in(const HostTensor& value, std::span<std::byte> target, const std::string& program,
                 std::size_t index, const Port& port) {
  const bool is_float = dtype_is_float(port.dtype);
  const std::size_t count = is_float ? value.floats.size() : value.ints.size();
  const bool same_kind = is_float ? dtype_is_float(value.dtype) : value.dtype == port.dtype;
  if (!same_kind)
    return make_error(ErrorCode::dtype_mismatch, "run '" + program + "': input " + std::to_string(index) +
                                                     " '" + port.name + "': found " +
                                                     std::string(dtype_name(value.dtype)) + ", expected " +
                                                     std::string(dtype_name(port.dtype)));
  if (!(value.shape == port.shape) || count * dtype_size(port.dtype) != target.size())
    return make_error(ErrorCode::shape_mismatch, "run '" + program + "': input " + std::to_string(index) +
                                                     " '" + port.name + "': found shape " +
                                                     value.shape.text() + " with " + std::to_string(count) +
                                                     " elements, expected " + port.shape.text());
  if (count == 0) return {};
  if (dtype_is_narrow_float(port.dtype))
    std::ranges::copy(float_bytes(value.floats, port.dtype), target.begin());
  else
    std::memcpy(target.data(), is_float ? static_cast<const void*>(value.floats.data()) : value.ints.data(),
                target.size());
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
  if (dtype_is_narrow_float(dtype)) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto narrow = load_element<std::uint16_t>(bytes.data(), i);
      result.floats.push_back(dtype == DType::float16 ? float_from_half(narrow)
                                                      : float_from_bfloat16(narrow));
    }
    return result;
  }
  if (dtype == DType::float32)
    result.floats.resize(count);
  else
    result.ints.resize(count);
  if (count > 0)
    std::memcpy(dtype == DType::float32 ? static_cast<void*>(result.floats.data()) : result.ints.data(),
                bytes.data(), bytes.size());
  return result;
}

Session::Session(Runtime& runtime, vk::Queue& queue) : impl_(std::make_unique<Impl>(runtime, &queue)) {}
Session::Session(Runtime& cpu) : impl_(std::make_unique<Impl>(cpu, nullptr)) {}
Session::~Session() = default;

Runtime& Session::runtime() { return impl_->runtime; }

Result<> Session::Impl::submit_and_wait(VkCommandBuffer commands) {
  IMPRINT_ASSIGN(const Commands uploads, runtime.take_uploads());
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
  return submit_and_wait(program.whole(0, VK_COMMAND_BUFFER_LEVEL_PRIMARY));
}

Result<std::vector<HostTensor>> Session::Impl::run(Program& program, std::span<const HostTensor> inputs,
                                                   const std::vector<Port>& input_ports,
                                                   const std::vector<Port>& output_ports) {
  if (inputs.size() != input_ports.size())
    return make_error(ErrorCode::invalid_argument, "run '" + program.name() + "': found " +
                                                       std::to_string(inputs.size()) + " inputs, expected " +
                                                       std::to_string(input_ports.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    IMPRINT_CHECK(copy_in(inputs[i], program.input_bytes(0, i), program.name(), i, input_ports[i]));
  IMPRINT_CHECK(run_whole(program));
  std::vector<HostTensor> outputs;
  for (std::size_t i = 0; i < output_ports.size(); ++i)
    outputs.push_back(host_tensor(output_ports[i].dtype, output_ports[i].shape, program.output_bytes(0, i)));
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
  if (!(value.shape == variable.shape()) || dtype_is_float(value.dtype) != dtype_is_float(variable.dtype()))
    return make_error(ErrorCode::shape_mismatch,
                      "write to variable '" + variable.name() + "' " + variable.shape().text() + ": found " +
                          std::string(dtype_name(value.dtype)) + value.shape.text() +
                          ", expected the variable's shape and dtype");
  if (dtype_is_narrow_float(variable.dtype()))
    return impl_->runtime.write(variable, float_bytes(value.floats, variable.dtype()));
  const auto bytes = value.dtype == DType::float32 ? std::as_bytes(std::span(value.floats))
                                                   : std::as_bytes(std::span(value.ints));
  return impl_->runtime.write(variable, bytes);
}

}  // namespace imprint
