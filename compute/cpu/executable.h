#pragma once
// A schedule for the processor: each of its kernels as steps over memory, in the order of the schedule, one
// after the other on the calling thread. Equal inputs and variables give equal bits, on every processor of
// one architecture (kernels.h).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/cpu/step.h"
#include "compute/graph/fusion.h"
#include "compute/graph/graph.h"
#include "compute/graph/schedule.h"

namespace imprint::cpu {

// How a graph is fused for the processor: no regions, since all of a cache is near, and nothing is computed
// twice, since a value kept costs less.
graph::FusionOptions fusion_options(bool fuse);

// Row-major elements of four bytes, aligned to 4. By position in FusionRequest's inputs, outputs and
// variables; null where a program does not use one.
struct Bindings {
  std::span<std::byte*const> inputs, outputs, variables;
};

// One thread at a time.
class Executable {
 public:
  // Keeps the graph's constants alive, nothing else of it.
  // memory_limit: bytes of memory_bytes().
  // Errors: unsupported (custom_rows: its text is GLSL); out_of_device_memory (memory_limit).
  static Result<std::unique_ptr<Executable>> compile(const graph::Graph& graph,
                                                     const graph::FusionRequest& request,
                                                     const graph::Schedule& schedule,
                                                     std::uint64_t memory_limit = UINT64_MAX);

  // For the kernels run from now on; what is bound must live until then.
  void bind(const Bindings& bindings);

  // Kernel k is schedule.tasks[k]. A run is all of them in order; other work may come in between, and the
  // result is the same to the bit.
  std::size_t kernel_count() const { return kernels_.size(); }
  void run(std::size_t kernel) const;

  std::size_t step_count() const { return steps_.size(); }
  std::uint64_t arena_bytes() const { return arena_bytes_; }          // of intermediates, after planning
  std::uint64_t memory_bytes() const { return memory_bytes_; }        // the arena and the kernels' workspace
  std::uint64_t unplanned_bytes() const { return unplanned_bytes_; }  // the same without reuse

 private:
  friend class Lowering;
  struct Steps {
    std::size_t begin = 0, end = 0;
  };
  // Where the pointers of bound memory go.
  struct Bound {
    std::int32_t buffer = -1, position = -1;
  };

  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<Steps> kernels_;
  std::vector<Bound> inputs_, outputs_, variables_;
  std::vector<tensor::NodeRef> constants_;
  std::unique_ptr<std::byte[]> arena_;  // and the workspace
  Memory memory_;
  std::uint64_t arena_bytes_ = 0, memory_bytes_ = 0, unplanned_bytes_ = 0;
};

}  // namespace imprint::cpu
