#pragma once
// Independent tasks packed into one dispatch: each gets a range of workgroups and a function, and offsets
// come from a table, so that equal work anywhere is equal text and compiles once.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/graph/graph.h"
#include "compute/graph/schedule.h"

namespace imprint::kernels {

// By which extension of GLSL kernels on matrix units are written: GL_NV_cooperative_matrix or
// GL_KHR_cooperative_matrix.
enum class MatrixDialect : std::uint8_t { nv, khr };

struct DispatchLimits {
  std::uint32_t storage_buffers = 4;  // a stage
  std::uint32_t workgroup_count_x = 65535;
  std::uint32_t table_entries = 1024;
  std::uint32_t push_entries = 32;  // tables up to so many entries are push constants: a kernel's first
                                    // instructions then wait for no memory
  // Most terms of a fold or a product that one turn of its loop loads together, a power of two. Hides memory
  // latency on a GPU; on a processor it only makes longer code.
  int fold_terms = 8;
  // Drivers are asked to leave loops as they are. Those for processors unroll short ones, and compile what
  // comes of it for several times as long.
  bool keep_loops = false;
  MatrixDialect matrix_dialect = MatrixDialect::nv;
};

struct DispatchSource {
  std::vector<std::int32_t> tasks;  // positions in Schedule::tasks
  std::string glsl;
  std::vector<std::int32_t> buffers;  // program buffer of each binding
  std::vector<graph::Place> table;    // the place whose element offset each table entry holds
  bool pushes_table = false;
  std::uint32_t groups_x = 0, groups_y = 1;
  std::uint32_t invocations = 0;        // of a workgroup
  std::uint32_t subgroup_size = 0;      // that the kernel is written for; 0 = any
  bool region_on_matrix_units = false;  // the one region among its tasks
};

// Packs the tasks of each level into as few dispatches as the limits allow; dispatches are in order of level.
// buffer_of names the program's buffer that holds a place. Errors: unsupported when one task needs more
// buffers than a stage has.
Result<std::vector<DispatchSource>> build_dispatches(
    const graph::Graph& graph, const graph::Schedule& schedule, const DispatchLimits& limits,
    const std::function<std::int32_t(const graph::Place&)>& buffer_of);

}  // namespace imprint::kernels
