#pragma once
// Packs independent tasks into one dispatch. Each task is a function and has a range of workgroups. Offsets
// come from a table, so that equal work gives equal text and compiles once.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/graph/graph.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::kernels {

// The GLSL extension for kernels on matrix units: GL_NV_cooperative_matrix or GL_KHR_cooperative_matrix.
enum class MatrixDialect : std::uint8_t { nv, khr };

struct DispatchLimits {
  std::uint32_t storage_buffers = 4;  // per stage
  std::uint32_t workgroup_count_x = 65535;
  std::uint32_t invocations = 128;    // per workgroup
  std::int64_t shared_bytes = 16384;  // per workgroup
  std::uint32_t table_entries = 1024;
  // Tables of at most this many entries are push constants, so that a kernel's first instructions need not
  // wait for memory.
  std::uint32_t push_entries = 32;
  // Most terms of a fold or product that one turn of its loop loads together; a power of two. Hides memory
  // latency on a GPU; on a CPU driver it only makes longer code.
  int fold_terms = 8;
  // Asks drivers not to unroll loops. CPU drivers unroll short ones, which multiplies their compile time.
  bool keep_loops = false;
  MatrixDialect matrix_dialect = MatrixDialect::nv;
  bool rounds_to_float16 = false;  // with storage_16bit: where a kernel asks, as IEEE 754 does
  bool storage_16bit = false;      // float16 and bfloat16 have arrays of their own
  // A value that is longer than a descriptor binds has parts of `part_bytes`, each in a buffer of its own.
  // Null: no value has.
  std::function<std::int32_t(const graph::Place&)> part_count;
  std::uint64_t part_bytes = 0;

  std::int32_t parts_of(const graph::Place& place) const { return part_count ? part_count(place) : 1; }
};

struct DispatchSource {
  std::vector<std::int32_t> tasks;  // positions in Schedule::tasks
  std::string glsl;
  std::vector<std::int32_t> buffers;  // program buffer of each binding
  std::vector<graph::Place> table;    // the memory whose element offset each table entry holds
  bool pushes_table = false;
  std::uint32_t groups_x = 0, groups_y = 1;
  std::uint32_t invocations = 0;        // per workgroup
  std::uint32_t subgroup_size = 0;      // that the kernel requires; 0: any
  bool region_on_matrix_units = false;  // whether its region uses matrix units
};

// Packs the tasks of each level into as few dispatches as the limits allow, in order of level. buffer_of
// returns the program's buffer that holds a value. Error: unsupported when one task needs more buffers than a
// stage has, or more tensors than a table has; `too_wide` then lists all such tasks.
Result<std::vector<DispatchSource>> build_dispatches(
    const graph::Graph& graph, const graph::Schedule& schedule, const DispatchLimits& limits,
    const std::function<std::int32_t(const graph::Place&)>& buffer_of,
    std::vector<std::int32_t>* too_wide = nullptr);

}  // namespace imprint::kernels
