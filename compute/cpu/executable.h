#pragma once
// A schedule compiled for the CPU. Its kernels run as steps over memory, in order, each on the calling thread
// or divided among a pool's. Equal inputs and variables give equal bits on every CPU of one architecture, for
// any number of threads. Products with constants differ within rounding where a CPU has no fused
// multiply-adds.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/base/thread_pool.h"
#include "compute/base/zeroed_bytes.h"
#include "compute/cpu/step.h"
#include "compute/graph/graph.h"
#include "compute/graph/plan/fusion.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::cpu {

// How a graph is fused for the CPU: no regions, since they save launches and memory traffic only on a GPU,
// and no value is computed twice, since keeping it costs less.
graph::FusionOptions fusion_options(bool fuse);

// Memory of a program's inputs, outputs and variables, by position in FusionRequest. Row-major elements of
// their dtype's bytes, aligned to 4 bytes. Null where a program does not use one.
struct Bindings {
  std::span<std::byte*const> inputs, outputs, variables;
};

// Not synchronised: use it on one thread at a time.
class Executable {
 public:
  // Keeps the graph's constants alive, nothing else of it. memory_limit: most memory_bytes(). pool: null: the
  // calling thread alone.
  // Errors: unsupported (custom_rows, which is GLSL); out_of_device_memory (memory_limit).
  static Result<std::unique_ptr<Executable>> compile(const graph::Graph& graph,
                                                     const graph::Schedule& schedule,
                                                     std::uint64_t memory_limit = UINT64_MAX,
                                                     std::shared_ptr<ThreadPool> pool = nullptr);

  // Binds memory for the following runs. It must live until they are over.
  void bind(const Bindings& bindings);

  // Kernel k is schedule.tasks[k]. A run is all kernels in order. Other work may run in between; the bits
  // stay the same.
  std::size_t kernel_count() const { return kernels_.size(); }
  void run(std::size_t kernel) const;

  std::size_t step_count() const { return steps_.size(); }
  // Steps that threads share: each ends when all threads are done. The others run on the calling thread.
  struct Division {
    std::size_t steps = 0;
    double work = 0;  // of all, as far as steps know theirs: 0 .. 1
  };
  Division division() const;
  std::uint64_t arena_bytes() const { return arena_bytes_; }  // intermediates, with reuse
  std::uint64_t memory_bytes() const {
    return memory_bytes_;
  }  // the arena, copies of constants, a workspace per thread
  std::uint64_t unplanned_bytes() const { return unplanned_bytes_; }  // intermediates, without reuse

 private:
  friend class Lowering;
  struct Steps {
    std::size_t begin = 0, end = 0;
  };
  // The buffer that receives the pointer of a bound position.
  struct Bound {
    std::int32_t buffer = -1, position = -1;
  };

  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<Steps> kernels_;
  std::vector<Bound> inputs_, outputs_, variables_;
  std::vector<std::int32_t> extent_inputs_;  // positions, by extent
  std::vector<std::int64_t> extent_values_;  // of the runs that follow
  std::vector<tensor::NodeRef> constants_;
  std::int64_t shares_of(const Step& step) const;  // 1: the calling thread computes it alone
  void run(const Step& step) const;
  Memory memory_of(std::uint32_t thread) const {
    return {buffers_.data(), workspace_ + thread * workspace_bytes_, extent_values_.data()};
  }

  std::shared_ptr<ThreadPool> pool_;
  bool is_shared_ = false;                    // steps, among the pool's threads
  std::vector<ZeroedBytes> constant_copies_;  // in other layouts
  std::uint64_t constant_copy_bytes_ = 0;
  ZeroedBytes arena_;  // the workspaces, then intermediates
  std::vector<std::byte*> buffers_;
  std::byte* workspace_ = nullptr;
  std::uint64_t workspace_bytes_ = 0;  // of one thread
  std::uint64_t arena_bytes_ = 0, memory_bytes_ = 0, unplanned_bytes_ = 0;
};

}  // namespace imprint::cpu
