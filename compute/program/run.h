#pragma once
// Synchronous use of programs, for callers that own a queue and may wait for it. Never on a frame thread.

#include <memory>
#include <span>
#include <vector>

#include "compute/program/program.h"
#include "compute/program/runtime.h"
#include "compute/vk/queue.h"

namespace imprint {

// Elements on the host, row-major. int64 is in `int64s`, other integers and bool (0 or 1) in `ints`, floats
// of any width in `floats`. A program packs them as its inputs' types say: dtype.h.
struct HostTensor {
  DType dtype = DType::float32;
  Shape shape;
  std::vector<float> floats;
  std::vector<std::int32_t> ints;
  std::vector<std::int64_t> int64s = {};

  static HostTensor from(std::vector<float> values, Shape shape);
  static HostTensor from_ints(std::vector<std::int32_t> values, Shape shape);
  static HostTensor from_int64s(std::vector<std::int64_t> values, Shape shape);

  // The number of elements that `dtype` stands for.
  std::size_t value_count() const;
  // The elements as `in` has them in memory. Both types are floats, or both are integers (or bool).
  std::vector<std::byte> packed(DType in) const;
};

// Runs a program for which Program::adds_up(), and waits for its sums. Sums are made while the
// device computes the rest of their part. The caller submits pending uploads first. The ticket is the run's
// end. An error leaves the other processes waiting: end the job.
Result<vk::Ticket> run_adding_up(Program& program, std::uint32_t slot, vk::Queue& queue);

// later: the run is submitted together with the next one, or with whatever the session does next. Several
// short runs in one submission cost the caller and the device less.
enum class Submit : std::uint8_t { now, later };

// A runtime with its queue; the CPU's needs none. One thread at a time.
class Session {
 public:
  Session(Runtime& runtime, vk::Queue& queue);
  explicit Session(Runtime& cpu);  // cpu: from Runtime::create_on_cpu
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Runtime& runtime();

  // Runs once and waits. Inputs are in the order of the description; counts, shapes and dtypes are checked.
  // Pending writes to variables survive a failed submit: the next one carries them.
  Result<std::vector<HostTensor>> run(Program& program, std::span<const HostTensor> inputs = {});

  // The same in two steps, so that the caller prepares the next run while the device computes this one. Up to
  // slot_count() runs of a program may be started, each in a slot of its own (0 .. slot_count() - 1); they
  // compute in the order in which they were started. finish() waits and returns the slot's outputs. Finish
  // all runs of a program before it is destroyed. On the CPU start() computes; where processes add up, it
  // returns when the sums are there.
  // Errors of start(): those of run(), and invalid_argument (a slot that there is not, or whose run is not
  // finished). Errors of finish(): invalid_argument (nothing was started in the slot), not_ready (two minutes
  // are over), device_lost.
  Result<> start(Program& program, std::uint32_t slot, std::span<const HostTensor> inputs = {},
                 Submit when = Submit::now);
  Result<std::vector<HostTensor>> finish(Program& program, std::uint32_t slot);

  // Computes tensors that depend on no input. Caches programs by graph structure: evaluating the same
  // structure again compiles nothing.
  Result<std::vector<HostTensor>> evaluate(std::span<const Tensor> tensors);
  Result<HostTensor> evaluate(const Tensor& tensor);

  Result<std::vector<HostTensor>> read(std::span<const Variable> variables);
  Result<> write(const Variable& variable, const HostTensor& value);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace imprint
