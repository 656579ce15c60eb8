#include "compute/kernels/dispatch_source.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "compute/graph/fusion.h"
#include "compute/graph/product.h"
#include "compute/kernels/custom_emitter.h"
#include "compute/kernels/embedded_shaders.h"
#include "compute/kernels/emitter.h"
#include "compute/kernels/product_emitter.h"
#include "compute/kernels/region_emitter.h"
#include "compute/kernels/region_matrix.h"
#include "compute/kernels/row_emitter.h"
#include "compute/vk/pipeline_store.h"

namespace imprint::kernels {

using namespace graph;

namespace {

constexpr int kWorkgroupSize = 64;
constexpr std::size_t kMaxTasks = 32;             // functions in one shader
constexpr std::int64_t kMaxPackedGroups = 16384;  // a task with more workgroups fills a device alone
constexpr std::int64_t kBesideRegion =
    16384;  // elements of a map that may run in the larger workgroups of a region

// Names buffers and offsets in order of first use. beside_others: the dispatch has text of a caller's, to
// whom all names are left but those with imp_.
class DispatchNames : public MemoryNames {
 public:
  DispatchNames(DispatchSource& source, const std::function<std::int32_t(const Place&)>& buffer_of,
                bool beside_others)
      : source_(source), buffer_of_(buffer_of), prefix_(beside_others ? "imp_" : "") {}

  std::string array(const Place& place, DType dtype) override {
    return named(place, dtype == DType::float32    ? 'f'
                        : dtype == DType::float16  ? 'h'
                        : dtype == DType::bfloat16 ? 'b'
                                                   : 'i');
  }
  std::string vectors(const Place& place, DType dtype) override {
    return named(place, dtype == DType::float32    ? 'q'
                        : dtype == DType::float16  ? 'd'
                        : dtype == DType::bfloat16 ? 'c'
                                                   : 'p');
  }
  std::string eights(const Place& place) override { return named(place, 'e'); }

  std::string offset(const Place& place) override {
    auto found = std::ranges::find(source_.table, place);
    if (found == source_.table.end()) found = source_.table.insert(found, place);
    return prefix_ + "o" + std::to_string(found - source_.table.begin());
  }

  std::string declarations() const {
    std::string text = source_.pushes_table
                           ? "layout(push_constant)"
                           : "layout(std140, set = 0, binding = " + std::to_string(vk::kTableBinding) + ")";
    const std::string offsets = prefix_ + "offsets";
    text += " uniform Offsets { ivec4 " + offsets + "[" + std::to_string((source_.table.size() + 3) / 4) +
            "]; };\n";
    for (const std::string& name : arrays_) {
      const std::size_t digits = prefix_.size() + 1;
      text += "layout(std430, set = 0, binding = " + name.substr(digits, name.size() - digits - 1) +
              ") buffer B_" + name + " { " + type_of(name) + " " + name + "[]; };\n";
    }
    for (std::size_t entry = 0; entry < source_.table.size(); ++entry)
      text += "#define " + prefix_ + "o" + std::to_string(entry) + " " + offsets + "[" +
              std::to_string(entry / 4) + "]." + "xyzw"[entry % 4] + "\n";
    return text;
  }

  bool has_narrow_floats() const {
    return std::ranges::any_of(arrays_, [](const std::string& name) {
      return std::string_view("hdbc").find(name.back()) != std::string_view::npos;
    });
  }

 private:
  static std::string type_of(const std::string& array) {
    switch (array.back()) {
      case 'f':
        return "float";
      case 'q':
        return "vec4";
      case 'p':
        return "ivec4";
      case 'h':
        return "float16_t";
      case 'd':
        return "f16vec4";
      case 'b':
        return "uint16_t";
      case 'c':
        return "u16vec4";
      case 'e':
        return "uvec4";
      default:
        return "int";
    }
  }

  std::string named(const Place& place, char kind) {
    const std::int32_t buffer = buffer_of_(place);
    auto found = std::ranges::find(source_.buffers, buffer);
    if (found == source_.buffers.end()) found = source_.buffers.insert(found, buffer);
    const std::string name = prefix_ + "b" + std::to_string(found - source_.buffers.begin()) + kind;
    arrays_.insert(name);
    return name;
  }

  DispatchSource& source_;
  const std::function<std::int32_t(const Place&)>& buffer_of_;
  const std::string prefix_;
  std::set<std::string> arrays_;
};

bool is_large_map(const Task& task) { return task.kind == TaskKind::map && task.element_count >= kLargeMap; }

// Adds the function's text, wide where it can be; gives its workgroups.
template <class E>
std::int64_t write_wide_or_not(const E& emitter, const std::string& name, int workgroup_size,
                               bool may_be_wide, std::string& functions) {
  E wide = emitter, narrow = emitter;
  std::string text = may_be_wide ? wide.function(name, workgroup_size, true) : std::string();
  const bool is_wide = !text.empty();
  if (!is_wide) text = narrow.function(name, workgroup_size, false);
  functions += text + "\n";
  return (is_wide ? wide : narrow).group_count();
}

// The same text with every loop marked that its emitter does not want unrolled.
std::string with_kept_loops(const std::string& functions) {
  constexpr std::string_view kLoop = "for (";
  std::string text;
  std::size_t from = 0;
  for (std::size_t at = functions.find(kLoop); at != std::string::npos;
       at = functions.find(kLoop, at + kLoop.size())) {
    const std::size_t before = functions.find_last_not_of(' ', at == 0 ? 0 : at - 1);
    if (at != 0 && functions[before] != '\n') continue;  // it stands behind something: an attribute
    text.append(functions, from, at - from).append("[[dont_unroll]] ");
    from = at;
  }
  return text.append(functions, from);
}

// Of GLSL, for kernels on matrix units.
std::vector<std::string> extensions(MatrixUnits units, MatrixDialect dialect) {
  if (units == MatrixUnits::none) return {};
  std::vector<std::string> names{"GL_EXT_shader_explicit_arithmetic_types_float16",
                                 "GL_KHR_memory_scope_semantics"};
  if (units == MatrixUnits::workgroup)
    names.insert(names.end(), {"GL_KHR_cooperative_matrix", "GL_NV_cooperative_matrix2"});
  else
    names.insert(names.end(),
                 {"GL_KHR_shader_subgroup_basic",
                  dialect == MatrixDialect::khr ? "GL_KHR_cooperative_matrix" : "GL_NV_cooperative_matrix"});
  return names;
}

void write_glsl(const Graph& graph, const Schedule& schedule, const DispatchLimits& limits,
                const std::function<std::int32_t(const Place&)>& buffer_of, DispatchSource& source) {
  const auto kind_of = [&](std::int32_t t) { return schedule.tasks[static_cast<std::size_t>(t)].kind; };
  DispatchNames names(source, buffer_of, std::ranges::any_of(source.tasks, [&](std::int32_t t) {
                        return kind_of(t) == TaskKind::custom;
                      }));
  std::set<std::string> includes;
  std::string functions, calls, shared_arrays;
  int workgroup_size = kWorkgroupSize;
  const auto has_shared_folds = [&](std::int32_t t) { return shares_folds(kind_of(t)); };
  const auto is_product = [&](std::int32_t t) { return kind_of(t) == TaskKind::product; };
  const auto product = std::ranges::find_if(source.tasks, is_product);
  const bool tiles = product != source.tasks.end();
  if (tiles) {
    const ProductTile& tile = schedule.tasks[static_cast<std::size_t>(*product)].tile;
    workgroup_size = tile.invocations();
    shared_arrays += ProductEmitter::declarations(tile);
  } else if (const auto fold = std::ranges::find_if(source.tasks, has_shared_folds);
             fold != source.tasks.end()) {
    workgroup_size = schedule.tasks[static_cast<std::size_t>(*fold)].invocations;
  } else if (const Task& first = schedule.tasks[static_cast<std::size_t>(source.tasks[0])];
             source.tasks.size() == 1 && is_large_map(first)) {
    workgroup_size = first.invocations;
  }
  for (std::int32_t t : source.tasks)
    if (kind_of(t) == TaskKind::region)
      workgroup_size =
          schedule.regions[static_cast<std::size_t>(schedule.tasks[static_cast<std::size_t>(t)].region)]
              .invocations;
  MatrixUnits units =
      tiles ? schedule.tasks[static_cast<std::size_t>(*product)].tile.units : MatrixUnits::none;
  std::int64_t groups = 0;
  for (std::size_t i = 0; i < source.tasks.size(); ++i) {
    const Task& task = schedule.tasks[static_cast<std::size_t>(source.tasks[i])];
    const std::string name = "task_" + std::to_string(i);
    std::int64_t task_groups = 0;
    if (std::string text;
        task.kind == TaskKind::region &&
        RegionMatrixEmitter::write(graph, schedule, task, names, includes, limits.fold_terms, name, text,
                                   shared_arrays, task_groups)) {
      functions += text + "\n";
      units = MatrixUnits::subgroup;
      source.region_on_matrix_units = true;
    } else if (task.kind == TaskKind::region) {
      RegionEmitter emitter(graph, schedule, task, names, includes, limits.fold_terms);
      functions += emitter.function(name) + "\n";
      shared_arrays += emitter.shared_arrays();
      task_groups = Emitter::group_count(graph, task, workgroup_size);
    } else if (task.kind == TaskKind::custom) {
      functions += CustomEmitter(graph, schedule, task, names, includes, limits.fold_terms)
                       .function(name, workgroup_size) +
                   "\n";
      task_groups = Emitter::group_count(graph, task, workgroup_size);
    } else if (task.kind == TaskKind::product) {
      functions +=
          ProductEmitter(graph, schedule, task, names, includes, limits.fold_terms).function(name) + "\n";
      task_groups = Emitter::group_count(graph, task, workgroup_size);
    } else if (task.kind == TaskKind::row_fold) {
      task_groups = write_wide_or_not(RowEmitter(graph, schedule, task, names, includes, limits.fold_terms),
                                      name, workgroup_size, true, functions);
    } else {
      const bool may_be_wide = is_large_map(task) || task.kind == TaskKind::group_fold;
      task_groups = write_wide_or_not(Emitter(graph, schedule, task, names, includes, limits.fold_terms),
                                      name, workgroup_size, may_be_wide, functions);
    }
    const std::string first = groups == 0 ? "group" : "group - " + std::to_string(groups);
    groups += task_groups;
    calls += "  if (group < " + std::to_string(groups) + ") { " + name + "(" + first + "); return; }\n";
  }
  source.groups_x = static_cast<std::uint32_t>(std::min<std::int64_t>(groups, limits.workgroup_count_x));
  source.groups_y = static_cast<std::uint32_t>((groups + source.groups_x - 1) / source.groups_x);

  source.pushes_table = source.table.size() <= limits.push_entries;
  source.invocations = static_cast<std::uint32_t>(workgroup_size);
  std::string& text = source.glsl;
  text = "#version 450\n";
  if (limits.keep_loops) functions = with_kept_loops(functions);
  if (tiles || functions.find("unroll]]") != std::string::npos)
    text += "#extension GL_EXT_control_flow_attributes : require\n";
  if (units == MatrixUnits::subgroup) {
    source.subgroup_size = 32;
    includes.insert(limits.matrix_dialect == MatrixDialect::khr ? "matrices_khr" : "matrices_nv");
  }
  for (const std::string& extension : extensions(units, limits.matrix_dialect))
    text += "#extension " + extension + " : require\n";
  if (names.has_narrow_floats()) text += "#extension GL_EXT_shader_16bit_storage : require\n";
  text += "layout(local_size_x = " + std::to_string(workgroup_size) + ") in;\n\n" + names.declarations() +
          "\n" + shared_arrays;
  if (functions.find("fold_floats") != std::string::npos ||
      functions.find("fold_ints") != std::string::npos) {
    const std::string size = "[" + std::to_string(workgroup_size) + "];\n";
    text += "shared float fold_floats" + size + "shared int fold_ints" + size + "shared int fold_positions" +
            size + "\n";
  }
  for (const std::string& include : includes) text += std::string(embedded_shader(include)) + "\n";
  text += functions;
  const bool two_rows = source.groups_y > 1;
  text += "void main() {\n  int group = int(gl_WorkGroupID.x" +
          std::string(two_rows ? " + gl_WorkGroupID.y * gl_NumWorkGroups.x" : "") + ");\n" + calls + "}\n";
}

// Whether the tasks may be functions of one shader. A region has its own number of invocations, for which
// only small maps may be cut; the texts of two callers may use one name; products of one dispatch have one
// tile, and its shared folds one number of invocations.
bool go_together(const Task& a, const Task& b) {
  const auto is_small = [](const Task& task) {
    return task.kind == TaskKind::map && task.element_count <= kBesideRegion;
  };
  if (a.kind == TaskKind::region) return is_small(b);
  if (b.kind == TaskKind::region) return is_small(a);
  if (a.kind == TaskKind::product && b.kind == TaskKind::product) return a.tile == b.tile;
  if (shares_folds(a.kind) && shares_folds(b.kind) && a.invocations != b.invocations) return false;
  return a.kind != TaskKind::custom || b.kind != TaskKind::custom;
}

// Workgroups start in their order: those of products that have the most to do must not be the last ones to.
void put_deepest_first(const Graph& graph, const Schedule& schedule, std::vector<std::int32_t>& tasks) {
  std::ranges::stable_sort(tasks, std::ranges::greater(), [&](std::int32_t t) {
    const Task& task = schedule.tasks[static_cast<std::size_t>(t)];
    return task.kind == TaskKind::product ? product_shape(graph, task.anchor).depth : 0;
  });
}

// Kernels count in 32 bits. More elements than that may be computed where nobody numbers them, axis by axis.
Status check_counts(const Graph& graph, const Schedule& schedule) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto refuse = [&](NodeIndex n, std::int64_t count, const std::string& of) {
    return make_error(ErrorCode::unsupported, node_text(graph, n) + ": " + std::to_string(count) + " " + of +
                                                  "; kernels count to " + std::to_string(kMost) +
                                                  ": take it in parts");
  };
  for (NodeIndex n = 0; n < graph.size(); ++n) {
    const GraphNode& node = graph[n];
    const bool is_numbered = node.op == Op::reshape ||
                             (node.kind() == OpKind::generate && node.op != Op::full && node.op != Op::iota);
    if (is_numbered && node.shape.element_count() > kMost)
      return refuse(n, node.shape.element_count(), "elements are numbered");
    if (const std::int64_t terms = fold_length(graph, n); terms > kMost)
      return refuse(n, terms, "terms are folded into one");
  }
  for (const Task& task : schedule.tasks)
    if (task.element_count > kMost && !task.stores.empty())
      return refuse(task.stores[0].node, task.element_count, "elements are computed");
  return {};
}

}  // namespace

Result<std::vector<DispatchSource>> build_dispatches(
    const Graph& graph, const Schedule& schedule, const DispatchLimits& limits,
    const std::function<std::int32_t(const Place&)>& buffer_of) {
  IMPRINT_CHECK(check_counts(graph, schedule));
  std::vector<DispatchSource> dispatches;
  std::set<std::int32_t> buffers;  // of the dispatch being filled
  std::size_t entries = 0;
  std::int32_t level = -1;
  bool open = false;
  for (std::size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    const std::int64_t groups = Emitter::group_count(graph, task, kWorkgroupSize);
    if (groups == 0) continue;
    std::set<std::int32_t> own;
    for (const Read& read : task.reads)
      own.insert(buffer_of(schedule.place[static_cast<std::size_t>(read.node)]));
    for (const Store& store : task.stores) own.insert(buffer_of(store.place));
    if (own.size() > limits.storage_buffers)
      return make_error(ErrorCode::unsupported,
                        "one kernel would read and write " + std::to_string(own.size()) +
                            " memory blocks, the device binds " + std::to_string(limits.storage_buffers) +
                            " a stage: raise the memory pool's block size (" + task_text(graph, task) + ")");
    const std::size_t own_entries = task.reads.size() + task.stores.size();
    if (own_entries > limits.table_entries)
      return make_error(ErrorCode::unsupported,
                        "one kernel would read and write " + std::to_string(own_entries) +
                            " tensors, its table holds " + std::to_string(limits.table_entries) +
                            ": join them in steps");
    std::set<std::int32_t> merged = buffers;
    merged.insert(own.begin(), own.end());
    const bool alone = groups > kMaxPackedGroups;
    const bool agrees = open && std::ranges::all_of(dispatches.back().tasks, [&](std::int32_t other) {
                          return go_together(task, schedule.tasks[static_cast<std::size_t>(other)]);
                        });
    const bool fits = agrees && task.level == level && !alone && merged.size() <= limits.storage_buffers &&
                      dispatches.back().tasks.size() < kMaxTasks &&
                      entries + own_entries <= limits.table_entries;
    if (!fits) {
      dispatches.emplace_back();
      merged = own;
      entries = 0;
    }
    dispatches.back().tasks.push_back(static_cast<std::int32_t>(t));
    buffers = std::move(merged);
    entries += own_entries;
    level = task.level;
    open = !alone;
  }
  for (DispatchSource& dispatch : dispatches) put_deepest_first(graph, schedule, dispatch.tasks);
  for (DispatchSource& dispatch : dispatches) write_glsl(graph, schedule, limits, buffer_of, dispatch);
  return dispatches;
}

}  // namespace imprint::kernels
