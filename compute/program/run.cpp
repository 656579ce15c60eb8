#include "compute/program/run.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "compute/base/host_memory.h"
#include "compute/program/copy_queue.h"
#include "compute/program/program_extents.h"
#include "compute/program/session_impl.h"

namespace imprint {

using namespace program;

namespace {

constexpr std::uint64_t kTimeout = 120'000'000'000;  // nanoseconds; software devices are slow

// Integers in the type's memory, of low bits.
template <class Number>
void pack_integers(const std::vector<Number>& values, DType dtype, std::byte* to) {
  if (dtype != DType::int64) {
    if constexpr (std::is_same_v<Number, std::int32_t>) {
      pack_elements(values.data(), values.size(), dtype, to);
    } else {
      std::vector<std::int32_t> low(values.size());
      std::ranges::transform(values, low.begin(),
                             [](Number value) { return static_cast<std::int32_t>(value); });
      pack_elements(low.data(), low.size(), dtype, to);
    }
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t value = values[i];
    std::memcpy(to + i * sizeof value, &value, sizeof value);
  }
}

// The elements in memory, as the dtype has them.
void pack(const HostTensor& value, DType dtype, std::byte* to) {
  if (dtype_is_float(dtype))
    pack_elements(value.floats.data(), value.floats.size(), dtype, to);
  else if (value.dtype == DType::int64)
    pack_integers(value.int64s, dtype, to);
  else
    pack_integers(value.ints, dtype, to);
}

bool is_same_kind(DType a, DType b) { return dtype_registers(a) == dtype_registers(b); }

// Fills the elements of input `index` that runs of the slot use.
Result<> copy_in(Program& of, std::uint32_t slot, const HostTensor& value, std::size_t index,
                 const Port& port) {
  const std::string& program = of.name();
  const Shape used = of.used_shape(slot, port.shape);
  const std::span<std::byte> target = of.input_bytes(slot, index);
  const std::size_t count = value.value_count();
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
  if (!port.shape.is_named()) {
    pack(value, port.dtype, target.data());
    return {};
  }
  const std::vector<std::byte> bytes = value.packed(port.dtype);
  each_used_run(of, slot, port.shape, dtype_size(port.dtype),
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

HostTensor HostTensor::from_int64s(std::vector<std::int64_t> values, Shape shape) {
  return {DType::int64, shape, {}, {}, std::move(values)};
}

std::size_t HostTensor::value_count() const {
  return dtype_is_float(dtype) ? floats.size() : dtype == DType::int64 ? int64s.size() : ints.size();
}

std::vector<std::byte> HostTensor::packed(DType in) const {
  std::vector<std::byte> bytes(value_count() * dtype_size(in));
  pack(*this, in, bytes.data());
  return bytes;
}

HostTensor program::host_tensor(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  HostTensor result{dtype, shape, {}, {}};
  const std::size_t count = bytes.size() / dtype_size(dtype);
  if (dtype_is_float(dtype)) {
    result.floats.resize(count);
    unpack_elements(bytes.data(), count, dtype, result.floats.data());
  } else if (dtype == DType::int64) {
    result.int64s.resize(count);
    if (count > 0) std::memcpy(result.int64s.data(), bytes.data(), count * dtype_size(dtype));
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

// Runs of one program in neighbouring slots are one command buffer.
Result<> Session::Impl::add_waiting(std::vector<VkCommandBuffer>& buffers) {
  auto next = std::ranges::find(started, true, &Started::is_waiting);
  while (next != started.end()) {
    Program::Body& program = *next->program;
    const std::uint32_t first = next->slot, slots = program.source.slot_count;
    std::uint32_t count = 0;
    while (next != started.end() && next->program == &program && next->slot == (first + count) % slots)
      ++next, ++count;
    buffers.push_back(program.whole(first, VK_COMMAND_BUFFER_LEVEL_PRIMARY));
    if (count > 1) {
      IMPRINT_ASSIGN(buffers.back(), program.several_runs(first, count));
    }
  }
  return {};
}

Result<vk::Ticket> Session::Impl::submit(VkCommandBuffer commands) {
  const auto lose_waiting = [&](const Error& error) {
    std::erase_if(started, [](const Started& each) { return each.is_waiting; });
    return error;
  };
  std::vector<VkCommandBuffer> buffers(1);
  if (const Result<> added = add_waiting(buffers); !added) return lose_waiting(added.error());
  const Result<Commands> uploads = stream_uploads(runtime, *queue);
  if (!uploads) return lose_waiting(uploads.error());
  buffers[0] = uploads->primary;
  buffers.push_back(commands);
  std::erase(buffers, VkCommandBuffer{});
  if (buffers.empty()) return vk::Ticket{};
  const Result<vk::Ticket> ticket = queue->submit(buffers);
  if (!ticket) {
    runtime.put_back_uploads(*uploads);
    return lose_waiting(ticket.error());
  }
  for (Started& each : started)
    if (std::exchange(each.is_waiting, false)) each.ticket = *ticket;
  return ticket;
}

Result<> Session::Impl::wait(vk::Ticket ticket) {
  if (ticket.value == 0) return {};
  IMPRINT_CHECK(queue->wait(ticket, kTimeout));
  static_cast<RuntimeImpl&>(runtime).device().collect();
  return {};
}

Result<> Session::Impl::submit_and_wait(VkCommandBuffer commands) {
  IMPRINT_ASSIGN(const vk::Ticket ticket, submit(commands));
  return wait(ticket);
}

// Adds it to `started`.
Result<> Session::Impl::start_whole(Program& program, std::uint32_t slot, Submit when) {
  Started run{.program = &program.body(), .slot = slot};
  if (runtime.on_cpu()) {
    IMPRINT_CHECK(program.run_pieces(slot, 0, program.piece_count()));
  } else if (program.adds_up()) {
    IMPRINT_CHECK(submit_and_wait(VK_NULL_HANDLE));
    IMPRINT_ASSIGN(run.ticket, run_adding_up(program, slot, *queue));
  } else {
    run.is_waiting = true;
  }
  started.push_back(run);
  if (run.is_waiting && when == Submit::now) IMPRINT_CHECK(submit(VK_NULL_HANDLE));
  return {};
}

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPolled(20);  // then the thread sleeps
constexpr std::uint64_t kSlept = 200'000;         // nanoseconds at a time
constexpr std::chrono::milliseconds kLooked(100);

// A run with sums over processes, on its thread.
class AddingRun {
 public:
  AddingRun(Program::Body& body, vk::Queue& queue) : body_(body), queue_(queue) {}

  Result<vk::Ticket> operator()(std::uint32_t slot) {
    const std::span<const Stretch> stretches = body_.stretches(slot);
    IMPRINT_CHECK(clear(stretches));
    for (const Stretch& stretch : stretches) {
      if (const Result<> done = run(stretch); !done) {
        body_.unfinished = last_;
        (void)clear(stretches);
        return done.error();
      }
    }
    return last_;
  }

 private:
  Result<> run(const Stretch& stretch) {
    IMPRINT_ASSIGN(last_, stretch.needs_sums && body_.copies
                              ? body_.copies->submit_after_copies(stretch.commands)
                              : queue_.submit(std::span(&stretch.commands, 1)));
    return all_reduce(stretch.sums);
  }

  // Numbers are copied to the host as soon as they are computed, also while others are on their way.
  Result<> all_reduce(std::span<const StretchSum> sums) {
    std::vector<std::uint64_t> copied;  // points of the copy queue; 0: the main queue copies
    std::size_t added = 0;
    auto since = Clock::now();
    while (added < sums.size()) {
      if (copied.size() < sums.size()) {
        const StretchSum& next = sums[copied.size()];
        IMPRINT_ASSIGN(const bool computed, next.there->take());
        if (computed) {
          copied.push_back(0);
          if (next.to_host) {
            IMPRINT_ASSIGN(copied.back(), copy(CopyQueue::Direction::to_host, next.to_host));
          }
          continue;
        }
      }
      if (added < copied.size()) {
        IMPRINT_ASSIGN(const bool is_there, is_on_host(copied[added]));
        if (is_there) {
          IMPRINT_CHECK(add(sums[added++]));
          since = Clock::now();
          continue;
        }
      }
      IMPRINT_CHECK(rest(since, added < copied.size() ? copied[added] : 0));
    }
    return {};
  }

  Result<bool> is_on_host(std::uint64_t copied) const {
    return copied == 0 ? Result<bool>(true)
                       : body_.copies->is_complete(CopyQueue::Direction::to_host, copied);
  }

  Result<> add(const StretchSum& sum) {
    for (float* number : sum.padding) *number = 0;
    if (body_.shared_sums) {
      const auto first = sum.numbers.data() - reinterpret_cast<const float*>(body_.shared_memory.own);
      body_.shared_sums->add(body_.shared_memory, static_cast<std::size_t>(first), sum.numbers.size());
    } else {
      body_.all_reduce(sum.numbers);
    }
    if (!sum.to_device) return {};
    IMPRINT_CHECK(copy(CopyQueue::Direction::to_device, sum.to_device));
    return {};
  }

  Result<std::uint64_t> copy(CopyQueue::Direction direction, VkCommandBuffer commands) {
    IMPRINT_ASSIGN(const std::uint64_t point, body_.copies->submit(direction, commands));
    return body_.copied[static_cast<std::size_t>(direction)] = point;
  }

  // A run must not take the events of one that failed for its own, nor have its copies beside it.
  Result<> clear(std::span<const Stretch> stretches) {
    if (body_.unfinished.value == 0) return {};
    IMPRINT_CHECK(queue_.wait(body_.unfinished, kTimeout));
    for (const auto direction : {CopyQueue::Direction::to_host, CopyQueue::Direction::to_device})
      if (const std::uint64_t point = body_.copied[static_cast<std::size_t>(direction)])
        IMPRINT_CHECK(body_.copies->wait(direction, point, kTimeout));
    for (const Stretch& stretch : stretches)
      for (const StretchSum& sum : stretch.sums) (void)sum.there->take();
    body_.unfinished = {};
    return {};
  }

  // Between two looks. An event wakes no thread, so the thread sleeps a little at a time. copied: what it
  // waits for of the copy queue; 0: nothing.
  Result<> rest(Clock::time_point since, std::uint64_t copied) {
    const auto waited = Clock::now() - since;
    if (body_.waits_by_polling && waited < kPolled) {
      std::this_thread::yield();
      return {};
    }
    if (waited > std::chrono::nanoseconds(kTimeout))
      return make_error(ErrorCode::not_ready, "run: the GPU has not finished what processes add up");
    // Each wait counts in the device's counters, so they are few: they tell of a device loss.
    if (copied == 0 && Clock::now() - looked_ < kLooked) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(kSlept));
      return {};
    }
    looked_ = Clock::now();
    const Result<> slept = copied > 0 ? body_.copies->wait(CopyQueue::Direction::to_host, copied, kSlept)
                                      : queue_.wait(last_, kSlept);
    return slept || slept.error().code == ErrorCode::not_ready ? Result<>() : slept;
  }

  Program::Body& body_;
  vk::Queue& queue_;
  vk::Ticket last_;
  Clock::time_point looked_ = Clock::now();
};

}  // namespace

Result<vk::Ticket> run_adding_up(Program& program, std::uint32_t slot, vk::Queue& queue) {
  return AddingRun(program.body(), queue)(slot);
}

std::vector<Session::Impl::Started>::iterator Session::Impl::started_in(Program& program,
                                                                        std::uint32_t slot) {
  return std::ranges::find_if(
      started, [&](const Started& each) { return each.program == &program.body() && each.slot == slot; });
}

Result<> Session::Impl::start(Program& program, std::uint32_t slot, std::span<const HostTensor> inputs,
                              const std::vector<Port>& ports, Submit when) {
  const std::size_t listed = program.body().source.listed_inputs();
  if (inputs.size() != listed)
    return make_error(ErrorCode::invalid_argument, "run '" + program.name() + "': found " +
                                                       std::to_string(inputs.size()) + " inputs, expected " +
                                                       std::to_string(listed));
  if (slot >= program.slot_count() || started_in(program, slot) != started.end())
    return make_error(ErrorCode::invalid_argument, "run '" + program.name() + "': found slot " +
                                                       std::to_string(slot) + ", expected one of " +
                                                       std::to_string(program.slot_count()) +
                                                       " whose run is finished. Call finish() first.");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    IMPRINT_CHECK(take_extents(program, slot, inputs[i].shape, ports[i].shape));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    IMPRINT_CHECK(copy_in(program, slot, inputs[i], i, ports[i]));
  return start_whole(program, slot, when);
}

Result<std::vector<HostTensor>> Session::Impl::finish(Program& program, std::uint32_t slot,
                                                      const std::vector<Port>& ports) {
  const auto found = started_in(program, slot);
  if (found == started.end())
    return make_error(ErrorCode::invalid_argument, "finish '" + program.name() + "': found slot " +
                                                       std::to_string(slot) +
                                                       " without a run. Call start() first.");
  if (found->is_waiting) IMPRINT_CHECK(submit(VK_NULL_HANDLE));
  const vk::Ticket ticket = found->ticket;
  started.erase(found);
  IMPRINT_CHECK(wait(ticket));
  std::vector<HostTensor> outputs;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Port& port = ports[i];
    const Shape used = program.used_shape(slot, port.shape);
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor_bytes(used, port.dtype)));
    const std::span<const std::byte> all = program.output_bytes(slot, i);
    each_used_run(program, slot, port.shape, dtype_size(port.dtype),
                  [&](std::size_t to, std::size_t from, std::size_t size) {
                    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(from), size,
                                bytes.begin() + static_cast<std::ptrdiff_t>(to));
                  });
    outputs.push_back(host_tensor(port.dtype, used, bytes));
  }
  return outputs;
}

Result<> Session::start(Program& program, std::uint32_t slot, std::span<const HostTensor> inputs,
                        Submit when) {
  if (&program.body().owner() != &impl_->runtime)
    return make_error(ErrorCode::invalid_argument,
                      "run '" + program.name() +
                          "': found a program of another runtime. Compile it for this session's runtime.");
  return within_host_memory("run '" + program.name() + "'", [&] {
    return impl_->start(program, slot, inputs, program.body().source.inputs, when);
  });
}

Result<std::vector<HostTensor>> Session::finish(Program& program, std::uint32_t slot) {
  return within_host_memory("finish '" + program.name() + "'",
                            [&] { return impl_->finish(program, slot, program.body().source.outputs); });
}

Result<std::vector<HostTensor>> Session::run(Program& program, std::span<const HostTensor> inputs) {
  IMPRINT_CHECK(start(program, 0, inputs));
  return finish(program, 0);
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
  // A run that was started before sees the old content.
  if (impl_->has_waiting()) IMPRINT_CHECK(impl_->submit(VK_NULL_HANDLE));
  IMPRINT_CHECK(impl_->runtime.write(variable, SharedBytes(value.packed(variable.dtype()))));
  impl_->written += variable.bytes();
  if (impl_->written <= kUploadRing) return {};
  impl_->written = 0;
  return impl_->runtime.on_cpu() ? Result<>() : impl_->submit_and_wait(VK_NULL_HANDLE);
}

}  // namespace imprint
