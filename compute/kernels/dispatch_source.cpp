#include "compute/kernels/dispatch_source.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "compute/base/text.h"
#include "compute/graph/plan/fusion.h"
#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/product.h"
#include "compute/kernels/custom_emitter.h"
#include "compute/kernels/embedded_shaders.h"
#include "compute/kernels/emitter.h"
#include "compute/kernels/glsl_extensions.h"
#include "compute/kernels/page_emitter.h"
#include "compute/kernels/product_emitter.h"
#include "compute/kernels/region_emitter.h"
#include "compute/kernels/region_matrix.h"
#include "compute/kernels/row_emitter.h"
#include "compute/kernels/task_calls.h"
#include "compute/tensor/pages/library_page.h"
#include "compute/vk/pipelines/pipeline_store.h"

namespace imprint::kernels {

using namespace graph;

namespace {

constexpr int kWorkgroupSize = 64;
constexpr std::size_t kMaxTasks = 32;             // functions in one shader
constexpr std::int64_t kMaxPackedGroups = 16384;  // a task with more workgroups fills a device alone

// Names buffers and offsets in order of first use. beside_others: the dispatch contains the caller's GLSL, so
// that all names begin with imp_.
class DispatchNames : public MemoryNames {
 public:
  DispatchNames(DispatchSource& source, const std::function<std::int32_t(const Place&)>& buffer_of,
                bool beside_others, const DispatchLimits& limits)
      : source_(source), buffer_of_(buffer_of), prefix_(beside_others ? "imp_" : ""), limits_(limits) {}

  bool packs(DType dtype) const override {
    return dtype_size(dtype) < 4 && !(limits_.storage_16bit && dtype_is_narrow_float(dtype));
  }
  std::string array(const Place& place, DType dtype) override { return named(place, array_kind(dtype)); }
  std::string vectors(const Place& place, DType dtype) override { return named(place, vectors_kind(dtype)); }
  std::string quads(const Place& place) override { return named(place, 'e'); }
  std::string marks(const Place& place) override { return named(place, 'm'); }

  std::string offset(const Place& place) override {
    auto found = std::ranges::find(source_.table, place);
    if (found == source_.table.end()) found = source_.table.insert(found, place);
    return text(prefix_, "o", found - source_.table.begin());
  }

  bool is_long(const Place& place) const override { return limits_.parts_of(place) > 1; }

  std::string long_function(const Place& place, DType dtype, LongAccess access) override {
    const auto [entry, fresh] = long_functions_.try_emplace({place.kind, place.index, dtype, access},
                                                            text("imp_long_", long_functions_.size()));
    const std::string name = entry->second;
    if (fresh) long_text_ += text_of_long(name, place, dtype, access);
    return name;
  }
  const std::string& long_functions() const { return long_text_; }

  std::string declarations() const {
    std::string out = source_.pushes_table
                          ? "layout(push_constant)"
                          : text("layout(std140, set = 0, binding = ", vk::kTableBinding, ")");
    const std::string offsets = prefix_ + "offsets";
    out += text(" uniform Offsets { ivec4 ", offsets, "[", (source_.table.size() + 3) / 4, "]; };\n");
    for (const std::string& name : arrays_) {
      const std::size_t digits = prefix_.size() + 1;
      out += "layout(std430, set = 0, binding = " + name.substr(digits, name.size() - digits - 1) +
             (name.back() == 'm' ? ") coherent volatile buffer B_" : ") buffer B_") + name + " { " +
             type_of(name) + " " + name + "[]; };\n";
    }
    for (std::size_t entry = 0; entry < source_.table.size(); ++entry)
      out +=
          text("#define ", prefix_, "o", entry, " ", offsets, "[", entry / 4, "].", "xyzw"[entry % 4], "\n");
    return out;
  }

  bool has_narrow_floats() const {
    return std::ranges::any_of(arrays_, [](const std::string& name) {
      return std::string_view("hdbc").find(name.back()) != std::string_view::npos;
    });
  }

 private:
  char array_kind(DType dtype) const {
    return packs(dtype)               ? 'i'
           : dtype == DType::float32  ? 'f'
           : dtype == DType::float16  ? 'h'
           : dtype == DType::bfloat16 ? 'b'
                                      : 'i';
  }
  static char vectors_kind(DType dtype) {
    return dtype == DType::float32    ? 'q'
           : dtype == DType::float16  ? 'd'
           : dtype == DType::bfloat16 ? 'c'
                                      : 'p';
  }

  // One branch per part: the buffer that holds the element.
  std::string text_of_long(const std::string& name, const Place& place, DType dtype, LongAccess access) {
    const bool is_four = access == LongAccess::load_four || access == LongAccess::store_four,
               is_quad = access == LongAccess::load_quad,
               is_load = access == LongAccess::load || access == LongAccess::load_four || is_quad;
    const char kind = is_quad ? 'e' : is_four ? vectors_kind(dtype) : array_kind(dtype);
    const std::uint64_t array_bits = is_quad                    ? 128
                                     : packs(dtype) && !is_four ? 32
                                                                : 8 * dtype_size(dtype) * (is_four ? 4 : 1),
                        bits = access == LongAccess::put ? 8 * dtype_size(dtype) : array_bits,
                        length = limits_.part_bytes * 8 / bits;
    const auto start = [&](std::int32_t part) {
      const std::string words = offset({place.kind, place.index, part});
      return bits > 32 ? text(words, " / ", bits / 32) : text(words, " * ", 32 / bits);
    };
    const std::string type = access == LongAccess::put ? "int" : register_of(kind),
                      stored = type_of(std::string(1, kind)), from = stored == type ? "" : stored;
    std::string out =
        is_load ? text(type, " ", name, "(int i) {\n") : text("void ", name, "(int i, ", type, " value) {\n");
    out += text("  i -= ", start(0), ";\n");
    for (std::int32_t part = 0, count = limits_.parts_of(place); part < count; ++part) {
      const std::string array = named({place.kind, place.index, part}, kind),
                        at = text(start(part), " + i - ", static_cast<std::uint64_t>(part) * length);
      if (part + 1 < count) out += text("  if (i < ", static_cast<std::uint64_t>(part + 1) * length, ") ");
      if (is_load)
        out += text("  return ", from.empty() ? "" : type, "(", array, "[", at, "]);\n");
      else if (access == LongAccess::put)
        out += text("{ imp_put_", bits, "(", array, ", ", at, ", value) return; }\n");
      else
        out += text("{ ", array, "[", at, "] = ", from, "(value); return; }\n");
    }
    return out + "}\n";
  }

  // Memory's 16-bit types have no registers on every device.
  static std::string register_of(char kind) {
    return kind == 'h'   ? "float"
           : kind == 'b' ? "uint"
           : kind == 'd' ? "vec4"
           : kind == 'c' ? "uvec4"
                         : type_of(std::string(1, kind));
  }

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
      case 'm':
        return "uint";
      default:
        return "int";
    }
  }

  std::string named(const Place& place, char kind) {
    const std::int32_t buffer = buffer_of_(place);
    auto found = std::ranges::find(source_.buffers, buffer);
    if (found == source_.buffers.end()) found = source_.buffers.insert(found, buffer);
    const std::string name = text(prefix_, "b", found - source_.buffers.begin(), kind);
    arrays_.insert(name);
    return name;
  }

  DispatchSource& source_;
  const std::function<std::int32_t(const Place&)>& buffer_of_;
  const std::string prefix_;
  const DispatchLimits& limits_;
  std::set<std::string> arrays_;
  std::map<std::tuple<PlaceKind, std::int32_t, DType, LongAccess>, std::string> long_functions_;
  std::string long_text_;
};

bool is_large_map(const Task& task) { return task.kind == TaskKind::map && task.element_count >= kLargeMap; }

// Adds the task's function, wide where possible, and returns its workgroups.
template <class E>
std::int64_t write_wide_or_not(const E& emitter, const std::string& name, int workgroup_size,
                               bool may_be_wide, std::string& functions, bool& in_order, int& fold_slots) {
  E wide = emitter, narrow = emitter;
  std::string function = may_be_wide ? wide.function(name, workgroup_size, true) : std::string();
  const bool is_wide = !function.empty();
  if (!is_wide) function = narrow.function(name, workgroup_size, false);
  functions += function + "\n";
  in_order = (is_wide ? wide : narrow).groups_in_order();
  fold_slots = std::max(fold_slots, (is_wide ? wide : narrow).fold_slots());
  return (is_wide ? wide : narrow).group_count();
}

// Asks drivers not to unroll any loop that has no attribute of its own.
std::string with_kept_loops(const std::string& functions) {
  constexpr std::string_view kLoop = "for (";
  std::string marked;
  std::size_t from = 0;
  for (std::size_t loop = functions.find(kLoop); loop != std::string::npos;
       loop = functions.find(kLoop, loop + kLoop.size())) {
    const std::size_t before = functions.find_last_not_of(' ', loop == 0 ? 0 : loop - 1);
    if (loop != 0 && functions[before] != '\n') continue;  // it has an attribute already
    marked.append(functions, from, loop - from).append("[[dont_unroll]] ");
    from = loop;
  }
  return marked.append(functions, from);
}

// Invocations of a workgroup of the dispatch: those of its product, region or fold, else kWorkgroupSize.
int workgroup_size_of(const Graph& graph, const Schedule& schedule, std::span<const std::int32_t> tasks) {
  const auto task_of = [&](std::int32_t t) -> const Task& { return schedule.tasks[at(t)]; };
  for (const std::int32_t t : tasks)
    if (task_of(t).kind == TaskKind::region) return schedule.regions[at(task_of(t).region)].invocations;
  for (const std::int32_t t : tasks)
    if (task_of(t).kind == TaskKind::product) return task_of(t).tile.invocations();
  for (const std::int32_t t : tasks)
    if (shares_folds(task_of(t).kind)) return task_of(t).invocations;
  for (const std::int32_t t : tasks)
    if (task_of(t).kind == TaskKind::page) return graph[task_of(t).anchor].source->page->group_size;
  const Task& first = task_of(tasks[0]);
  return tasks.size() == 1 && is_large_map(first) ? first.invocations : kWorkgroupSize;
}

RegionArrays arrays_of(const Region& region) {
  return {region.shared_floats, region.shared_ints, region.vectors};
}

// Whether two regions may share their arrays, and with them a shader: those of the one have room for the
// other, or both fit into what every device has.
bool regions_go_together(const Region& a, const Region& b) {
  constexpr std::int64_t kEveryDevice = 16384;  // bytes, maxComputeSharedMemorySize at least
  const RegionArrays both = arrays_of(a).with(arrays_of(b));
  return a.invocations == b.invocations && a.vectors == b.vectors && a.matrix_groups == 0 &&
         b.matrix_groups == 0 &&
         (both == arrays_of(a) || both == arrays_of(b) || both.bytes() <= kEveryDevice);
}

// Writes the functions of a dispatch's tasks, and notes what the text around them must declare.
class FunctionWriter {
 public:
  FunctionWriter(const Graph& graph, const Schedule& schedule, const DispatchLimits& limits,
                 DispatchNames& names, int workgroup_size)
      : graph_(graph), schedule_(schedule), limits_(limits), names_(names), workgroup_size_(workgroup_size) {}

  // Returns the task's workgroups.
  std::int64_t add(const Task& task, const std::string& name) {
    in_order = task.kind == TaskKind::region;
    used_groups.clear();
    switch (task.kind) {
      case TaskKind::region:
        return add_region(task, name);
      case TaskKind::custom:
        in_order = true;
        functions += emitter<CustomEmitter>(task).function(name, workgroup_size_) + "\n";
        return Emitter::group_count(graph_, task, workgroup_size_);
      case TaskKind::page:
        functions += emitter<PageEmitter>(task).function(name) + "\n";
        page_on_matrix_units = graph_[task.anchor].source->page->on_matrix_units;
        return Emitter::group_count(graph_, task, workgroup_size_);
      case TaskKind::product: {
        ProductEmitter product = emitter<ProductEmitter>(task);
        functions += product.function(name) + "\n";
        used_groups = product.used_groups();
        in_order = product_shape(graph_, task.anchor).batch > 1;  // matrix by matrix
        return Emitter::group_count(graph_, task, workgroup_size_);
      }
      case TaskKind::row_fold:
        return write_wide_or_not(emitter<RowEmitter>(task), name, workgroup_size_, true, functions, in_order,
                                 fold_slots);
      default: {
        const bool may_be_wide = is_large_map(task) || task.kind == TaskKind::group_fold;
        return write_wide_or_not(emitter<Emitter>(task), name, workgroup_size_, may_be_wide, functions,
                                 in_order, fold_slots);
      }
    }
  }

  std::set<std::string> includes;
  std::string functions, shared_arrays;
  RegionArrays region_arrays;  // of all regions
  int fold_slots = 0;          // the most that a task's folds need
  bool region_on_matrix_units = false, page_on_matrix_units = false;
  // The last task's: whether workgroups take its elements in order, and how many a run needs if not all.
  bool in_order = false;
  std::string used_groups;

 private:
  template <class E>
  E emitter(const Task& task) {
    return E(graph_, schedule_, task, names_, includes, limits_.fold_terms);
  }

  std::int64_t add_region(const Task& task, const std::string& name) {
    std::int64_t groups = 0;
    if (std::string function;
        RegionMatrixEmitter::write(graph_, schedule_, task, names_, includes, limits_.fold_terms, name,
                                   function, shared_arrays, groups)) {
      functions += function + "\n";
      region_on_matrix_units = true;
      in_order = false;
      return groups;
    }
    RegionEmitter region = emitter<RegionEmitter>(task);
    functions += region.function(name) + "\n";
    region_arrays = region_arrays.with(arrays_of(schedule_.regions[at(task.region)]));
    return Emitter::group_count(graph_, task, workgroup_size_);
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const DispatchLimits& limits_;
  DispatchNames& names_;
  int workgroup_size_;
};

// Arrays in which workgroups fold together, where the functions use them.
std::string fold_arrays(const std::string& functions, int workgroup_size, int slots) {
  std::string arrays;
  for (const auto& [type, name] :
       {std::pair{"float", "fold_floats"}, {"int", "fold_ints"}, {"int", "fold_positions"}})
    if (functions.find(name) != std::string::npos)
      arrays += text("shared ", type, " ", name, "[", std::max(workgroup_size, slots), "];\n");
  return arrays.empty() ? arrays : arrays + "\n";
}

// Functions of shaders/include and shaders/both, those that others call first.
std::string included_functions(std::set<std::string> includes) {
  const std::string first = "special_values";
  for (const char* caller :
       {"atan2", "division", "extremes", "hyperbolic", "log1p", "narrow_floats", "to_int"})
    if (includes.contains(caller)) includes.insert(first);
  std::string functions;
  if (includes.erase(first) > 0) functions = text(embedded_shader(first), "\n");
  for (const std::string& include : includes) functions += text(embedded_shader(include), "\n");
  return functions;
}

// Whether a run uses elements of the workgroup. The first axis has `bound` steps, in `groups` workgroups: a
// workgroup has several steps, or a step several workgroups.
std::string used_condition(const Graph& graph, const Schedule& schedule, const Task& task,
                           DispatchNames& names, std::int64_t groups, const std::string& group) {
  const RunExtent* extent = leading_task_extent(graph, schedule, task);
  if (!extent || groups < 2) return {};
  const Place place{PlaceKind::input, extent->input};
  const std::string used = text(names.array(place, DType::int32), "[", names.offset(place), "]");
  if (groups >= extent->bound)
    return text("if (", group, " < ", used, " * ", (groups + extent->bound - 1) / extent->bound, ") ");
  return text("if ((", group, ") * ", extent->bound / groups, " < ", used, ") ");
}

void write_glsl(const Graph& graph, const Schedule& schedule, const DispatchLimits& limits,
                const std::function<std::int32_t(const Place&)>& buffer_of, DispatchSource& source) {
  const auto kind_of = [&](std::int32_t t) { return schedule.tasks[at(t)].kind; };
  const auto is_custom = [&](std::int32_t t) {  // the caller's text
    return kind_of(t) == TaskKind::custom || kind_of(t) == TaskKind::page;
  };
  const auto is_product = [&](std::int32_t t) { return kind_of(t) == TaskKind::product; };
  DispatchNames names(source, buffer_of, std::ranges::any_of(source.tasks, is_custom), limits);
  const int workgroup_size = workgroup_size_of(graph, schedule, source.tasks);
  FunctionWriter writer(graph, schedule, limits, names, workgroup_size);
  MatrixUnits units = MatrixUnits::none;
  const auto product = std::ranges::find_if(source.tasks, is_product);
  const bool has_product = product != source.tasks.end();
  if (has_product) {
    const ProductTile& tile = schedule.tasks[at(*product)].tile;
    writer.shared_arrays += ProductEmitter::declarations(tile);
    units = tile.units;
  }
  std::vector<TaskCall> calls;
  std::int64_t groups = 0;
  for (std::size_t i = 0; i < source.tasks.size(); ++i) {
    const std::string name = text("task_", i);
    const std::int64_t task_groups = writer.add(schedule.tasks[at(source.tasks[i])], name);
    const std::string group = groups == 0 ? "group" : text("group - ", groups);
    const std::string used =
        writer.used_groups.empty() && writer.in_order
            ? used_condition(graph, schedule, schedule.tasks[at(source.tasks[i])], names, task_groups, group)
        : writer.used_groups.empty() ? std::string()
                                     : text("if (", group, " < ", writer.used_groups, ") ");
    const double work =
        source.tasks.size() > 1 ? task_work(graph, schedule, schedule.tasks[at(source.tasks[i])]) : 0;
    calls.push_back({text(used, name, "(", group, ");\n"), groups,
                     work / static_cast<double>(std::max<std::int64_t>(task_groups, 1))});
    groups += task_groups;
  }
  if (writer.region_on_matrix_units || writer.page_on_matrix_units) units = MatrixUnits::subgroup;
  source.region_on_matrix_units = writer.region_on_matrix_units;
  source.groups_x = static_cast<std::uint32_t>(std::min<std::int64_t>(groups, limits.workgroup_count_x));
  source.groups_y = static_cast<std::uint32_t>((groups + source.groups_x - 1) / source.groups_x);
  source.pushes_table = source.table.size() <= limits.push_entries;
  source.invocations = static_cast<std::uint32_t>(workgroup_size);

  const std::string functions = limits.keep_loops ? with_kept_loops(writer.functions) : writer.functions;
  if (units == MatrixUnits::subgroup) {
    source.subgroup_size = 32;
    writer.includes.insert(limits.matrix_dialect == MatrixDialect::khr ? "matrices_khr" : "matrices_nv");
  }
  const ShaderNeeds needs{
      .loops = has_product || functions.find("unroll]]") != std::string::npos,
      .narrow_floats = names.has_narrow_floats(),
      .rounded_halves = limits.rounds_to_float16 && writer.includes.contains("stored_halves"),
      .units = units,
      .dialect = limits.matrix_dialect};
  std::string& glsl = source.glsl = text("#version 450\n", extension_lines(needs));
  glsl += text("layout(local_size_x = ", workgroup_size, ") in;\n\n", names.declarations(), "\n",
               writer.shared_arrays, writer.region_arrays.declarations(),
               fold_arrays(functions, workgroup_size, writer.fold_slots));
  glsl += execution_modes(needs) + included_functions(writer.includes) + names.long_functions() + functions;
  const std::string_view rows = source.groups_y > 1 ? " + gl_WorkGroupID.y * gl_NumWorkGroups.x" : "";
  glsl += text("void main() {\n  int group = int(gl_WorkGroupID.x", rows, ");\n");
  if (source.groups_y > 1) glsl += text("  if (group >= ", groups, ") return;\n");
  glsl += calls_by_group(calls, "  ") + "}\n";
}

// Whether two tasks may be functions of one shader. A page is alone, and the GLSL of two callers may use the
// same names. The products of a dispatch share one tile, its shared folds one number of invocations.
bool go_together(const Graph& graph, const Schedule& schedule, const DispatchLimits& limits, const Task& a,
                 const Task& b) {
  const auto goes_beside = [&](const Task& region, const Task& other) {
    // Positions need an array of their own.
    if (other.kind != TaskKind::map && other.anchor >= 0 && finds_position(graph[other.anchor].op))
      return false;
    const Region& own = schedule.regions[at(region.region)];
    return goes_beside_region(own, other, other.invocations, limits.shared_bytes) ||
           joins_region(graph, own, other, limits.shared_bytes);
  };
  if (a.kind == TaskKind::page || b.kind == TaskKind::page) return false;
  if (a.kind == TaskKind::region && b.kind == TaskKind::region)
    return regions_go_together(schedule.regions[at(a.region)], schedule.regions[at(b.region)]);
  if (a.kind == TaskKind::region) return goes_beside(a, b);
  if (b.kind == TaskKind::region) return goes_beside(b, a);
  if (a.kind == TaskKind::product && b.kind == TaskKind::product) return a.tile == b.tile;
  if (shares_folds(a.kind) && shares_folds(b.kind) && a.invocations != b.invocations) return false;
  return a.kind != TaskKind::custom || b.kind != TaskKind::custom;
}

// Workgroups start in order: the products with the most terms go first, so that they do not finish last.
void put_deepest_first(const Graph& graph, const Schedule& schedule, std::vector<std::int32_t>& tasks) {
  std::ranges::stable_sort(tasks, std::ranges::greater(), [&](std::int32_t t) {
    const Task& task = schedule.tasks[at(t)];
    return task.kind == TaskKind::product ? product_shape(graph, task.anchor).depth : 0;
  });
}

// Kernels count in 32 bits. More elements are possible only where they are numbered axis by axis.
Result<> check_counts(const Graph& graph, const Schedule& schedule, const DispatchLimits& limits) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto refuse = [&](NodeIndex n, std::int64_t count, const std::string& of) {
    return make_error(ErrorCode::unsupported, text(node_text(graph, n), ": found ", count, " ", of,
                                                   "; kernels count to ", kMost, ". Split it."));
  };
  for (NodeIndex n = 0; n < graph.size(); ++n) {
    const GraphNode& node = graph[n];
    const bool is_numbered = node.op == Op::reshape ||
                             (node.kind() == OpKind::generate && node.op != Op::full && node.op != Op::iota);
    if (is_numbered && node.shape.element_count() > kMost)
      return refuse(n, node.shape.element_count(), "numbered elements");
    if (const std::int64_t terms = fold_length(graph, n); terms > kMost)
      return refuse(n, terms, "terms of one fold");
  }
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::page) continue;
    const tensor::LibraryPage& page = *graph[task.anchor].source->page;
    if (!page.has_kernel())
      return make_error(
          ErrorCode::unsupported,
          text("page '", page.name, "': found a Vulkan device and no glsl, expected some. Set Page::glsl."));
    if (page.group_size > static_cast<std::int64_t>(limits.invocations))
      return make_error(ErrorCode::unsupported,
                        text("page '", page.name, "': group_size: found ", page.group_size,
                             ", expected at most the device's ", limits.invocations));
    if (page.groups > kMost)
      return make_error(ErrorCode::unsupported, text("page '", page.name, "': groups: found ", page.groups,
                                                     ", expected at most ", kMost));
  }
  for (const Task& task : schedule.tasks)
    if (task.element_count > kMost && !task.stores.empty())
      return refuse(task.stores[0].node, task.element_count, "elements");
  return {};
}

using BufferOf = std::function<std::int32_t(const Place&)>;

// Memory that a task's kernel binds, and how many offsets it needs.
struct Bindings {
  std::set<std::int32_t> buffers;
  std::size_t entries = 0;
};

Bindings bindings_of(const Graph& graph, const Schedule& schedule, const Task& task,
                     const DispatchLimits& limits, const BufferOf& buffer_of) {
  Bindings bindings;
  const auto add = [&](Place place) {
    const std::int32_t parts = limits.parts_of(place);
    for (place.part = 0; place.part < parts; ++place.part) bindings.buffers.insert(buffer_of(place));
    bindings.entries += static_cast<std::size_t>(parts);
  };
  for (const Read& read : task.reads) add(schedule.place[at(read.node)]);
  for (const Store& store : task.stores) add(store.place);
  if (task.kind == TaskKind::page && graph[task.anchor].source->page->marks > 0)
    add({PlaceKind::constant, task.anchor});
  for (const RunExtent& extent : schedule.extents)
    bindings.buffers.insert(buffer_of({PlaceKind::input, extent.input}));
  return bindings;
}

// The error of the first task that binds too much. too_wide: receives all such tasks.
Result<> check_bindings(const Graph& graph, const Schedule& schedule, const DispatchLimits& limits,
                        const BufferOf& buffer_of, std::vector<std::int32_t>& too_wide) {
  Result<> first;
  for (std::size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    if (Emitter::group_count(graph, task, kWorkgroupSize) == 0) continue;
    const Bindings own = bindings_of(graph, schedule, task, limits, buffer_of);
    const std::size_t buffers = own.buffers.size(), tensors = own.entries;
    if (buffers <= limits.storage_buffers && tensors <= limits.table_entries) continue;
    too_wide.push_back(static_cast<std::int32_t>(t));
    if (!first.ok()) continue;
    const std::string what = text(task_kind_name(task.kind), " of ", task.element_count, " for ",
                                  node_text(graph, task.stores.front().node));
    first =
        make_error(ErrorCode::unsupported,
                   buffers > limits.storage_buffers
                       ? text(what, ": found ", buffers, " memory blocks in one kernel, expected at most ",
                              limits.storage_buffers, ". Raise the memory pool's block size.")
                       : text(what, ": found ", tensors, " tensors in one kernel, expected at most ",
                              limits.table_entries, ". Join them in steps."));
  }
  return first;
}

}  // namespace

Result<std::vector<DispatchSource>> build_dispatches(const Graph& graph, const Schedule& schedule,
                                                     const DispatchLimits& limits, const BufferOf& buffer_of,
                                                     std::vector<std::int32_t>* too_wide) {
  std::vector<std::int32_t> unused;
  IMPRINT_CHECK(check_counts(graph, schedule, limits));
  IMPRINT_CHECK(check_bindings(graph, schedule, limits, buffer_of, too_wide ? *too_wide : unused));
  std::vector<DispatchSource> dispatches;
  std::set<std::int32_t> buffers;  // of the dispatch being filled
  std::size_t entries = 0;
  std::int32_t level = -1;
  bool open = false;
  const auto groups_of = [&](auto t) {
    return Emitter::group_count(graph, schedule.tasks[at(t)], kWorkgroupSize);
  };
  std::vector<std::int32_t> order(schedule.tasks.size());  // a lone task parts no others of its level
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int32_t t) {
    return std::pair(schedule.tasks[at(t)].level, groups_of(t) > kMaxPackedGroups);
  });
  for (const std::int32_t t : order) {
    const Task& task = schedule.tasks[at(t)];
    if (groups_of(t) == 0) continue;
    const auto [own, own_entries] = bindings_of(graph, schedule, task, limits, buffer_of);
    std::set<std::int32_t> merged = buffers;
    merged.insert(own.begin(), own.end());
    const bool alone = groups_of(t) > kMaxPackedGroups;
    const bool agrees = open && std::ranges::all_of(dispatches.back().tasks, [&](std::int32_t other) {
                          return go_together(graph, schedule, limits, task, schedule.tasks[at(other)]);
                        });
    const bool fits = agrees && task.level == level && !alone && merged.size() <= limits.storage_buffers &&
                      dispatches.back().tasks.size() < kMaxTasks &&
                      entries + own_entries <= limits.table_entries;
    if (!fits) {
      dispatches.emplace_back();
      merged = own;
      entries = 0;
    }
    dispatches.back().tasks.push_back(t);
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
