#include "compute/kernels/region_emitter.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "compute/kernels/elementwise_glsl.h"

namespace imprint::kernels {

using namespace graph;

namespace {

bool is_vector(const RegionValue& weights, bool vectors) { return vectors && weights.width % 4 == 0; }

}  // namespace

RegionEmitter::RegionEmitter(const Graph& graph, const Schedule& schedule, const Task& task,
                             MemoryNames& memory, std::set<std::string>& includes, int fold_terms)
    : Emitter(graph, schedule, task, memory, includes, fold_terms),
      region_(schedule.regions[at(task.region)]),
      ragged_(region_.rows % region_.row_block != 0) {}

std::string RegionArrays::declarations() const {
  std::string lines;
  if (floats > 0)
    lines += vectors ? text("shared vec4 rows_f[", floats / 4, "];\n")
                     : text("shared float rows_f[", floats, "];\n");
  if (ints > 0) lines += text("shared int rows_i[", ints, "];\n");
  return lines.empty() ? lines : lines + "\n";
}

std::string RegionEmitter::function(const std::string& name) {
  line("int lane = int(gl_LocalInvocationID.x);");
  if (region_.groups > 1) line("int network = group / " + text(region_.blocks) + ";");
  line("int block = " + std::string(region_.groups > 1 ? "group % " + text(region_.blocks) : "group") + ";");
  const std::string before = std::exchange(body_, {});
  if (region_.turns > 1) {
    write_turns();
  } else {
    line("int row_0 = block * " + text(region_.row_block) + ";");
    write_rows_here();
    stages_from(0);
  }
  add_rows_beside();
  body_ = before + sums_ + body_;
  return "// " + task_text(graph_, task_) + "\nvoid " + name + "(int group) {\n" + body_ + "}\n";
}

void RegionEmitter::write_rows_here() {
  if (ragged_)
    line("int rows_here = min(" + text(region_.row_block) + ", " + text(region_.rows) + " - row_0);");
}

// Weights are loaded before the first turn. Sums over the rows are declared before it and stored after the
// last.
void RegionEmitter::write_turns() {
  stage(region_.stages[0]);
  const std::string before = std::exchange(body_, {});
  open("for (int turn = 0; turn < " + text(region_.turns) + "; turn++)");
  line("int row_0 = (block * " + text(region_.turns) + " + turn) * " + text(region_.row_block) + ";");
  if (region_.rows % (region_.row_block * region_.turns) != 0)
    line("if (row_0 >= " + text(region_.rows) + ") break;");
  write_rows_here();
  stages_from(1);
  barrier();  // the next turn writes where this one reads
  close();
  const std::string turns = std::exchange(body_, {});
  for (const auto& store : partial_stores_) store();
  body_ = before + turns + body_;
}

// A register that is initialised once and lasts through all turns.
std::string RegionEmitter::declare_sum(DType dtype, const std::string& start) {
  return region_.turns == 1 ? declare(dtype, start) : declare_lasting(dtype, start);
}

std::string RegionEmitter::declare_lasting(DType dtype, const std::string& start) {
  const std::string name = fresh('s');
  sums_ += "  " + std::string(glsl_type(dtype)) + " " + name + " = " + start + ";\n";
  return name;
}

// Stages that join others wait at one barrier together with them.
void RegionEmitter::stages_from(std::size_t first) {
  const std::vector<RegionStage>& stages = region_.stages;
  for (std::size_t s = first, end = first; s < stages.size(); s = end) {
    for (end = s + 1; end < stages.size() && stages[end].joins_before;) ++end;
    for (std::size_t own = s; own < end; ++own) stage(stages[own]);
    if (stages[s].kind != RegionStage::Kind::product || stages[s].parts == 1) continue;
    barrier();
    for (std::size_t own = s; own < end; ++own) {
      add_parts(stages[own]);
      members_.clear();
    }
  }
}

void RegionEmitter::stage(const RegionStage& stage) {
  if (stage.members.empty()) return;
  if (stage.barrier_before) barrier();
  std::string title = "//";
  for (NodeIndex member : stage.members) title += " " + node_text(graph_, member) + ",";
  title.pop_back();
  line(title);
  switch (stage.kind) {
    case RegionStage::Kind::load:
      load_weights(stage);
      break;
    case RegionStage::Kind::spread:
      spread(stage);
      break;
    case RegionStage::Kind::product:
      product(stage);
      break;
    case RegionStage::Kind::outer_product:
      outer_product(stage);
      break;
    case RegionStage::Kind::row_fold:
      row_fold(stage);
      break;
  }
  members_.clear();
}

void RegionEmitter::barrier() {
  line("barrier();");
  taken_ = 0;
}

// ---- rows and elements ----

// Stages without a barrier between them go to different subgroups while there are free ones.
void RegionEmitter::invocations_take(std::int64_t count, const std::string& name) {
  constexpr std::int64_t kSubgroup = 32;  // on most devices; elsewhere stages may share a subgroup
  first_ = taken_ + count <= region_.invocations ? taken_ : 0;
  taken_ = (first_ + count + kSubgroup - 1) / kSubgroup * kSubgroup;
  take_from(first_, count, name);
}

void RegionEmitter::take_from(std::int64_t first, std::int64_t count, const std::string& name) {
  if (first > 0) {
    open("if (lane >= " + text(first) +
         (first + count == region_.invocations ? "" : " && lane < " + text(first + count)) + ")");
    line("int " + name + " = lane - " + text(first) + ";");
  } else if (count <= region_.invocations) {
    open(count == region_.invocations ? "" : "if (lane < " + text(count) + ")");
    line("int " + name + " = lane;");
  } else {
    open("for (int " + name + " = lane; " + name + " < " + text(count) + "; " + name +
         " += " + text(region_.invocations) + ")");
  }
}

RegionEmitter::Row RegionEmitter::row(const IndexExpression& local) {
  IndexExpression global = bind(IndexExpression("row_0", region_.row_block) + local);
  if (ragged_) {
    const std::string inside = fresh('r');
    line("int " + inside + " = min(" + global.str() + ", " + text(region_.rows - 1) + ");");
    global = named(inside);
  }
  local_row_[global.str()] = local;
  return {local, global};
}

// The rows of one turn of the loop: `most` of them where their number is known, so that their loads overlap.
// The order of the sums stays.
std::vector<RegionEmitter::Row> RegionEmitter::open_rows_loop(const std::string& name, std::int64_t most) {
  const std::int64_t step =
      ragged_ || !region_.vectors
          ? 1
          : std::min<std::int64_t>(
                static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most))),
                region_.row_block);
  open("for (int " + name + " = 0; " + name + " < " + (ragged_ ? "rows_here" : text(region_.row_block)) +
       "; " + name + (step == 1 ? std::string("++") : " += " + text(step)) + ")");
  std::vector<Row> rows;
  for (std::int64_t next = 0; next < step; ++next)
    rows.push_back(row(next == 0 ? named(name) : bind(named(name) + next)));
  return rows;
}

// The element of a row's features, numbered over all axes except those of rows and networks; for a partial
// result, over all except the networks'.
ElementIndex RegionEmitter::element(NodeIndex node, const IndexExpression& row,
                                    const IndexExpression& feature) {
  const RegionValue& value = *region_.find(node);
  const Shape& shape = graph_[node].shape;
  Shape features;
  for (int axis = 0; axis < shape.rank(); ++axis)
    features.append(axis == value.row_axis || axis == value.group_axis ? 1 : shape[axis]);
  ElementIndex index{std::nullopt, delinearize(feature, features)};
  if (value.row_axis >= 0) index.axes[at(value.row_axis)] = row;
  if (value.group_axis >= 0)
    index.axes[at(value.group_axis)] = region_.groups > 1 ? named("network") : IndexExpression(0);
  if (shape.rank() == 0) index.linear = 0;
  return index;
}

IndexExpression RegionEmitter::feature_of(const RegionValue& value, const ElementIndex& index) {
  const Shape& shape = graph_[value.node].shape;
  IndexExpression linear = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (axis != value.row_axis && axis != value.group_axis && shape[axis] > 1)
      linear = linear * shape[axis] + index.axes[at(axis)];
  return linear;
}

IndexExpression RegionEmitter::shared_position(const RegionValue& value, const ElementIndex& index,
                                               const IndexExpression& local_row) {
  return local_row * value.stride + value.offset + feature_of(value, index);
}

// ---- memory ----

std::string RegionEmitter::cell(const std::string& array, const IndexExpression& position) {
  if (!region_.vectors) return array + "[" + position.str() + "]";
  const IndexExpression component = position % 4;
  if (component.is_constant())
    return array + "[" + (position / 4).str() + "]." + kComponents[component.constant];
  const IndexExpression own = bind(position);
  return array + "[" + (own / 4).str() + "][" + (own % 4).str() + "]";
}

std::string RegionEmitter::load_float(const std::string& array, const IndexExpression& position) {
  const IndexExpression component = position % 4;
  if (!region_.vectors || !component.is_constant()) return declare(DType::float32, cell(array, position));
  const std::string vector = array + "[" + (position / 4).str() + "]";
  const std::string* name = known(vector);
  if (!name) {
    const std::string own = fresh('q');
    line("vec4 " + own + " = " + vector + ";");
    remember(vector, own);
    name = known(vector);
  }
  return *name + "." + kComponents[component.constant];
}

void RegionEmitter::store_float(const std::string& array, const IndexExpression& position,
                                const std::string& value) {
  const IndexExpression component = position % 4;
  if (!region_.vectors || !component.is_constant()) {
    line(cell(array, position) + " = " + value + ";");
    return;
  }
  Vector& vector = vectors_[array + "[" + (position / 4).str() + "]"];
  vector[at(component.constant)] = value;
}

void RegionEmitter::store_vectors() {
  for (const auto& [place, values] : vectors_) {
    if (std::ranges::none_of(values, &std::string::empty)) {
      line(place + " = vec4(" + values[0] + ", " + values[1] + ", " + values[2] + ", " + values[3] + ");");
      continue;
    }
    for (std::size_t component = 0; component < values.size(); ++component)
      if (!values[component].empty())
        line(place + "." + kComponents[component] + " = " + values[component] + ";");
  }
  vectors_.clear();
}

// The last vector may be incomplete and reach beyond the end of the host's buffer.
bool RegionEmitter::has_vectors(NodeIndex node) const {
  return region_.vectors && graph_[node].dtype == DType::float32 && graph_[node].element_count() % 4 == 0;
}

std::string RegionEmitter::load(NodeIndex node, const ElementIndex& index) {
  const DType dtype = graph_[node].dtype;
  const RegionValue* value = region_.find(node);
  if (!is_shared(node)) {
    if (!has_vectors(node)) return Emitter::load(node, index);
    const Place& place = schedule_.place[at(node)];
    const IndexExpression position =
        IndexExpression(memory_.offset(place), kPlaceAlignment) + linear_of(index, graph_[node].shape);
    return (position % 4).is_constant() ? load_float(memory_.vectors(place), position)
                                        : Emitter::load(node, index);
  }
  if (value->row_axis < 0) {  // weights
    const std::vector<IndexExpression> axes = axes_of(index, graph_[node].shape);
    return load_float("rows_f", bind(axes[axes.size() - 2] * value->stride + axes.back()) + value->offset);
  }
  const IndexExpression& global = index.axes[at(value->row_axis)];
  const auto local = local_row_.find(global.str());
  const IndexExpression position = bind(
      shared_position(*value, index, local != local_row_.end() ? local->second : global - named("row_0")));
  if (dtype_is_float(dtype)) return load_float("rows_f", position);
  const std::string element = "rows_i[" + position.str() + "]";
  return declare(dtype, dtype == DType::boolean ? element + " != 0" : element);
}

bool RegionEmitter::is_shared(NodeIndex node) const {
  const RegionValue* value = region_.find(node);
  return value && value->offset >= 0;
}

bool RegionEmitter::in_memory(NodeIndex node) const { return !is_shared(node) && Emitter::in_memory(node); }

void RegionEmitter::write(const Store& store, const IndexExpression& linear) {
  if (!has_vectors(store.node) || store.row_indices >= 0) return Emitter::write(store, linear);
  const IndexExpression position = IndexExpression(memory_.offset(store.place), kPlaceAlignment) + linear;
  if ((position % 4).is_constant())
    store_float(memory_.vectors(store.place), position, members_.at(store.node));
  else
    Emitter::write(store, linear);
}

void RegionEmitter::keep(NodeIndex member, const ElementIndex& index, const Row& row) {
  const RegionValue& value = *region_.find(member);
  const std::string& name = members_.at(member);
  if (value.offset >= 0) {
    const IndexExpression position = shared_position(value, index, row.local);
    if (dtype_is_float(graph_[member].dtype))
      store_float("rows_f", bind(position), name);
    else
      line("rows_i[" + position.str() +
           "] = " + (graph_[member].dtype == DType::boolean ? "int(" + name + ")" : name) + ";");
  }
  for (const Store& store : task_.stores) {
    if (store.node != member) continue;
    if (!ragged_) {
      write(store, linear_of(index, graph_[member].shape));
      continue;
    }
    store_vectors();  // vectors of the outer scope end here
    open("if (" + row.local.str() + " < rows_here)");
    write(store, linear_of(index, graph_[member].shape));
    store_vectors();
    close();
  }
}

void RegionEmitter::evaluate(const RegionStage& stage, const IndexExpression& feature, const Row& row) {
  for (NodeIndex member : stage.members) {
    const ElementIndex index = element(member, row.global, feature);
    if (!members_.contains(member)) {
      const std::string* ready = known(key_of(member, index));
      members_[member] = ready ? *ready : compute(member, index);
    }
    keep(member, index, row);
  }
  std::erase_if(members_, [&](const auto& entry) { return !stage.is_anchor(entry.first); });
}

// ---- stages ----

// An invocation issues as many loads as registers allow before its first store.
void RegionEmitter::load_weights(const RegionStage& stage) {
  constexpr std::size_t kTurn = 16;
  struct Loaded {
    std::string name;
    const RegionValue* value;
    IndexExpression element;
  };
  std::vector<Loaded> loaded;
  const auto store = [&] {
    for (const auto& [name, value, element] : loaded) {
      const IndexExpression position =
          element / value->width * value->stride + element % value->width + value->offset;
      line((is_vector(*value, region_.vectors) ? "rows_f[" + (position / 4).str() + "]"
                                               : cell("rows_f", position)) +
           " = " + name + ";");
    }
    loaded.clear();
  };
  for (NodeIndex weights : stage.members) {
    const RegionValue& value = *region_.find(weights);
    const Place& place = schedule_.place[at(weights)];
    const std::int64_t wide = is_vector(value, region_.vectors) ? 4 : 1,
                       count = value.height * value.width / wide, step = region_.invocations;
    IndexExpression source(memory_.offset(place), kPlaceAlignment);
    if (region_.groups > 1) source = source + named("network") * (count * wide);
    const std::string array = wide > 1 ? memory_.vectors(place) : memory_.array(place, DType::float32);
    for (std::int64_t first = 0; first < count; first += step) {
      IndexExpression element = named("lane") + first;
      if (first + step > count)
        element =
            bind(named("min(" + element.str() + ", " + text(count - 1) + ")"));  // reads the last one again
      const std::string name = fresh('w');
      line(std::string(wide > 1 ? "vec4 " : "float ") + name + " = " + array + "[" +
           (source / wide + element).str() + "];");
      loaded.push_back({name, &value, element * wide});
      if (loaded.size() == kTurn) store();
    }
  }
  store();
}

void RegionEmitter::spread(const RegionStage& stage) {
  const RegionValue& value = *region_.find(stage.members[0]);
  const std::string e = fresh('e'), r = fresh('l');
  // Load and store as vectors where that leaves work for every invocation.
  const std::int64_t wide = region_.vectors && value.width % kWide == 0 &&
                                    region_.row_block * value.width >= kWide * region_.invocations
                                ? kWide
                                : 1;
  invocations_take(region_.row_block * value.width / wide, e);
  line("int " + r + " = " + (named(e) / (value.width / wide)).str() + ";");
  const Row own = row(named(r));
  const IndexExpression first = bind(named(e) % (value.width / wide)) * wide;
  for (std::int64_t next = 0; next < wide; ++next) evaluate(stage, wide == 1 ? first : first + next, own);
  store_vectors();
  close();
}

}  // namespace imprint::kernels
