#include "compute/kernels/region_matrix.h"

#include <algorithm>
#include <utility>

#include "compute/graph/plan/fusion.h"
#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/memory_plan.h"

namespace imprint::kernels {

using namespace graph;

namespace {

constexpr std::int64_t kSubgroup = 32;
constexpr std::int64_t kRows = kMatrixExtent;  // that a subgroup takes at a time
// Stride of a line of 16 floats, in elements of four: one more than needed, to avoid bank conflicts.
constexpr std::int64_t kScratchStride = 5;

std::int64_t padded(std::int64_t extent) {
  return (extent + kMatrixExtent - 1) / kMatrixExtent * kMatrixExtent;
}
// Odd, so that neighbouring rows lie in different banks.
std::int64_t stride_of(std::int64_t width) { return padded(width) / 8 | 1; }

// The result is rounded to float16: a less precise tanh suffices.
std::string in_half_precision(std::string body) {
  const std::string whole = "imp_tanh(", half = "imp_tanh_half(";
  for (std::size_t found = body.find(whole); found != std::string::npos;
       found = body.find(whole, found + half.size()))
    body.replace(found, whole.size(), half);
  return body;
}

}  // namespace

// The invocations take the eights of a block's rows in turns. The row and the eight of one turn, as text.
struct RegionMatrixEmitter::Turn {
  std::string row, eight, ahead;
  Turn(const Rows& rows, std::int64_t turn) : ahead("ahead_" + text(rows.node) + "_" + text(turn)) {
    const std::int64_t eights = padded(rows.width) / 8;
    const IndexExpression e = named("own") + turn * kSubgroup;
    row = (e / eights).str();
    eight = (e % eights).str();
  }
};

bool RegionMatrixEmitter::write(const Graph& graph, const Schedule& schedule, const Task& task,
                                MemoryNames& memory, std::set<std::string>& includes, int fold_terms,
                                const std::string& name, std::string& function, std::string& shared_arrays,
                                std::int64_t& groups) {
  const Region& region = schedule.regions[at(task.region)];
  if (region.matrix_groups == 0 || region.groups > 1 || region.invocations % kSubgroup != 0) return false;
  for (const bool keeps_scratch : {false, true}) {  // first try to leave all sums on the matrices
    RegionMatrixEmitter emitter(graph, schedule, task, memory, includes, fold_terms);
    if (!emitter.plan(keeps_scratch)) return false;
    const std::string body = emitter.function(name);
    if (emitter.is_refused_) continue;
    function = body;
    shared_arrays += emitter.arrays();
    groups = emitter.group_count_;
    return true;
  }
  return false;
}

// ---- layout of shared memory ----

bool RegionMatrixEmitter::plan(bool keeps_scratch) {
  for (const RegionStage& stage : region_.stages) {
    if (stage.members.empty() || stage.kind == RegionStage::Kind::load) continue;
    if (stage.kind != RegionStage::Kind::spread && stage.kind != RegionStage::Kind::product) return false;
    for (NodeIndex member : stage.members)
      if (region_.find(member)->row_axis != 0 || graph_[member].shape.rank() != 2) return false;
    if (stage.kind != RegionStage::Kind::product) continue;
    const std::int64_t depth = fold_length(graph_, stage.anchor), columns = graph_[stage.anchor].shape[1],
                       stride = padded(columns) / 8 + 1;
    weights_.push_back({stage.anchor, depth, columns, stride, weight_eights_});
    weight_eights_ += padded(depth) * stride;
  }
  return !weights_.empty() && plan_rows(keeps_scratch);
}

// Two moments per stage: it reads its inputs before it writes its outputs. Outputs may therefore reuse the
// memory of its inputs.
bool RegionMatrixEmitter::plan_rows(bool keeps_scratch) {
  scratch_.assign(region_.stages.size(), -1);
  std::vector<Lifetime> lifetimes;
  std::vector<std::int64_t*> targets;
  for (std::size_t s = 0; s < region_.stages.size(); ++s) {
    const RegionStage& stage = region_.stages[s];
    if (stage.kind == RegionStage::Kind::load) continue;
    for (NodeIndex member : stage.members) {
      if (region_.find(member)->offset < 0) continue;  // no other stage reads it
      Rows rows{member,
                graph_[member].shape[1],
                stride_of(graph_[member].shape[1]),
                -1,
                2 * static_cast<std::int32_t>(s) + 1,
                -1};
      for (std::size_t reader = s + 1; reader < region_.stages.size(); ++reader)
        if (const NodeIndex anchor = region_.stages[reader].anchor;
            anchor >= 0 && graph_[anchor].inputs[0] == member)
          rows.last = 2 * static_cast<std::int32_t>(reader);
      if (graph_[member].dtype != DType::float16 || rows.last < 0) return false;
      rows_.push_back(rows);
    }
  }
  for (const Weights& weights : weights_)
    if (!rows_of(graph_[weights.product].inputs[0])) return false;
  for (Rows& rows : rows_) {
    lifetimes.push_back({static_cast<std::uint64_t>(kRows * rows.stride), rows.first, rows.last});
    targets.push_back(&rows.offset);
  }
  for (std::size_t s = 0; s < region_.stages.size(); ++s) {
    if (region_.stages[s].kind != RegionStage::Kind::product ||
        (!keeps_scratch && only_feeds_products(region_.stages[s])))
      continue;
    lifetimes.push_back(
        {kRows * kScratchStride, 2 * static_cast<std::int32_t>(s) + 1, 2 * static_cast<std::int32_t>(s) + 1});
    targets.push_back(&scratch_[s]);
  }
  const MemoryPlan plan = plan_memory(lifetimes, 1);
  for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = static_cast<std::int64_t>(plan.offsets[i]);
  row_eights_ = static_cast<std::int64_t>(plan.total_bytes);
  std::int64_t columns = 0;  // the most there can be
  for (const Weights& weights : weights_) columns += 2 * padded(weights.columns);
  return 16 * (weight_eights_ + region_.invocations / kSubgroup * row_eights_) + 4 * columns <=
         kMatrixSharedBytes;
}

const RegionMatrixEmitter::Rows* RegionMatrixEmitter::rows_of(NodeIndex node) const {
  const auto found = std::ranges::find(rows_, node, &Rows::node);
  return found == rows_.end() ? nullptr : &*found;
}

std::string RegionMatrixEmitter::arrays() const {
  const auto array = [](const char* type, const char* name, std::int64_t elements) {
    return "shared " + std::string(type) + " " + name + "[" + text(std::max<std::int64_t>(elements, 1)) +
           "];\n";
  };
  return array("uvec4", "matrix_weights", weight_eights_) +
         array("uvec4", "matrix_rows", region_.invocations / kSubgroup * row_eights_) +
         array("float", "matrix_columns", column_floats_) +
         "void matrix_fence() { controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, "
         "gl_StorageSemanticsShared, gl_SemanticsAcquireRelease); }\n\n";
}

// ---- the kernel ----

std::string RegionMatrixEmitter::function(const std::string& name) {
  const std::int64_t subgroups = region_.invocations / kSubgroup, blocks = (region_.rows + kRows - 1) / kRows;
  group_count_ = std::min(region_.matrix_groups, (blocks + subgroups - 1) / subgroups);
  rows_ahead_ = group_count_ * subgroups * kRows;
  line("uint mine = gl_SubgroupID * " + text(row_eights_) + "u;   // in matrix_rows");
  line("int own = int(gl_SubgroupInvocationID);");
  for (const RegionStage& stage : region_.stages) {
    if (stage.members.empty() || stage.kind != RegionStage::Kind::spread || !copies_rows(stage)) continue;
    const Rows& rows = *rows_of(stage.members[0]);
    for (std::int64_t t = 0; t * kSubgroup < kRows * padded(rows.width) / 8; ++t)
      line("vec4 " + Turn(rows, t).ahead + "[2] = vec4[2](vec4(0.0), vec4(0.0));");
    fetch_rows(stage, "(group * " + text(subgroups) + " + int(gl_SubgroupID)) * " + text(kRows));
  }
  open("for (int block = group * " + text(subgroups) + " + int(gl_SubgroupID); block < " + text(blocks) +
       "; block += " + text(group_count_ * subgroups) + ")");
  line("int row_0 = block * " + text(kRows) + ";");
  for (std::size_t s = 0; s < region_.stages.size(); ++s) stage(region_.stages[s], s);
  close();
  const std::string rows = std::exchange(body_, {});
  line("int lane = int(gl_LocalInvocationID.x);");
  load_weights();
  load_columns();
  line("barrier();");
  return "// " + task_text(graph_, task_) + "\nvoid " + name + "(int group) {\n" + body_ + rows + "}\n";
}

// ---- weights ----

// An invocation issues all loads before its first store.
void RegionMatrixEmitter::load_weights() {
  std::vector<std::pair<std::string, std::string>> loaded;  // place, name
  for (const Weights& weights : weights_) {
    const std::int64_t eights = padded(weights.columns) / 8, count = padded(weights.depth) * eights;
    for (std::int64_t first = 0; first < count; first += region_.invocations) {
      const std::string e = fresh('e'), w = fresh('w'), k = fresh('k'), n = fresh('n');
      line("int " + e + " = lane + " + text(first) + ", " + k + " = " + (named(e) / eights).str() + ", " + n +
           " = " + (named(e) % eights).str() + " * 8;");
      line("uvec4 " + w + " = uvec4(0);");
      std::string inside = first + region_.invocations > count ? e + " < " + text(count) : "";
      if (padded(weights.depth) > weights.depth)
        inside += (inside.empty() ? "" : " && ") + k + " < " + text(weights.depth);
      if (!inside.empty()) open("if (" + inside + ")");
      line(w + " = " + eight_of(weights, k, n) + ";");
      if (!inside.empty()) close();
      const std::string place = "matrix_weights[" + k + " * " + text(weights.stride) + " + (" + n +
                                " >> 3) + " + text(weights.offset) + "]";
      loaded.emplace_back(
          first + region_.invocations > count ? "if (" + e + " < " + text(count) + ") " + place : place, w);
    }
  }
  for (const auto& [place, w] : loaded) line(place + " = " + w + ";");
}

// Eight neighbours of a row of weights, packed; zeros after the last column.
std::string RegionMatrixEmitter::eight_of(const Weights& weights, const std::string& k,
                                          const std::string& n) {
  const NodeIndex operand = graph_[weights.product].inputs[1],
                  source = graph_[operand].inputs.empty() ? operand : graph_[operand].inputs[0];
  const bool cut = padded(weights.columns) > weights.columns;
  std::vector<std::string> halves;  // of four floats
  const bool in_fours = graph_[operand].op == Op::cast && !schedule_.materialized[at(operand)] &&
                        graph_[source].dtype == DType::float32 && schedule_.materialized[at(source)] &&
                        weights.columns % 4 == 0;
  for (std::int64_t four = 0; four < 8; four += 4) {
    const std::string values = fresh('v');
    line("vec4 " + values + " = vec4(0.0);");
    if (in_fours) {
      const Place& place = schedule_.place[at(source)];
      const IndexExpression first =
          start_of(place, DType::float32) + named(k) * weights.columns + IndexExpression(n, 8) + four;
      line((cut ? "if (" + n + " < " + text(weights.columns - four) + ") " : "") + values + " = " +
           memory_.vectors(place) + "[" + (first / 4).str() + "];");
    } else {
      for (std::int64_t j = four; j < four + 4; ++j) {
        open(cut ? "if (" + n + " < " + text(weights.columns - j) + ")" : "");
        line(values + "." + kComponents[j % 4] + " = " +
             value(operand, {std::nullopt, {named(k), bind(named(n) + j)}}) + ";");
        close();
      }
    }
    halves.push_back("packHalf2x16(" + values + ".xy), packHalf2x16(" + values + ".zw)");
  }
  return "uvec4(" + halves[0] + ", " + halves[1] + ")";
}

void RegionMatrixEmitter::load_columns() {
  for (const Column& column : columns_) {
    open("for (int f = lane; f < " + text(padded(column.width)) + "; f += " + text(region_.invocations) +
         ")");
    line("float feature = 0.0;");
    open(padded(column.width) > column.width ? "if (f < " + text(column.width) + ")" : "");
    line("feature = " + Emitter::load(column.node, {named("f"), {}}) + ";");
    close();
    line("matrix_columns[f + " + text(column.offset) + "] = feature;");
    close();
  }
}

// On matrices a value belongs to any row and feature: one number, or one per feature.
std::string RegionMatrixEmitter::load(NodeIndex node, const ElementIndex& index) {
  const RegionValue* shared = region_.find(node);
  if (shared && shared->offset >= 0) return refuse();
  if (!matrices_) return Emitter::load(node, index);
  const IndexExpression linear = linear_of(index, graph_[node].shape);
  if (linear.is_constant()) return Emitter::load(node, index);
  if (linear.text != "feature_number" || linear.constant != 0 || graph_[node].dtype != DType::float32)
    return "feature_number";  // features have no number
  auto found = std::ranges::find(columns_, node, &Column::node);
  if (found == columns_.end()) {
    found = columns_.insert(found, {node, graph_[node].element_count(), column_floats_});
    column_floats_ += padded(found->width);
  }
  return "column_" + text(found - columns_.begin()) + "[i]";
}

// ---- stages ----

void RegionMatrixEmitter::stage(const RegionStage& stage, std::size_t number) {
  if (stage.members.empty() || stage.kind == RegionStage::Kind::load) return;
  std::string title = "//";
  for (NodeIndex member : stage.members) title += " " + node_text(graph_, member) + ",";
  title.pop_back();
  line(title);
  if (stage.kind == RegionStage::Kind::product)
    product(stage, number);
  else if (copies_rows(stage))
    copy_rows(stage);
  else
    element_by_element(stage, {}, 0, graph_[stage.members[0]].shape[1]);
  line("matrix_fence();");
  members_.clear();
}

// Rows that are only rounded: loaded as vectors while the rows before them are being processed.
bool RegionMatrixEmitter::copies_rows(const RegionStage& stage) const {
  const NodeIndex member = stage.members[0],
                  source = graph_[member].inputs.empty() ? -1 : graph_[member].inputs[0];
  const Rows* rows = rows_of(member);
  return stage.members.size() == 1 && rows && rows->width % 8 == 0 && graph_[member].op == Op::cast &&
         graph_[source].dtype == DType::float32 && schedule_.materialized[at(source)] &&
         !region_.find(source) && std::ranges::find(task_.stores, member, &Store::node) == task_.stores.end();
}

void RegionMatrixEmitter::fetch_rows(const RegionStage& stage, const std::string& first_row) {
  const Rows& rows = *rows_of(stage.members[0]);
  const Place& place = schedule_.place[at(graph_[rows.node].inputs[0])];
  const std::string vectors = memory_.vectors(place);
  for (std::int64_t t = 0; t * kSubgroup < kRows * padded(rows.width) / 8; ++t) {
    const Turn turn(rows, t);
    const IndexExpression element =
        start_of(place, DType::float32) +
        named("min(" + first_row + " + " + turn.row + ", " + text(region_.rows - 1) + ")") * rows.width +
        named(turn.eight) * 8;
    if (padded(rows.width) > rows.width) open("if (" + turn.eight + " < " + text(rows.width / 8) + ")");
    line(turn.ahead + "[0] = " + vectors + "[" + (element / 4).str() + "];");
    line(turn.ahead + "[1] = " + vectors + "[" + ((element + 4) / 4).str() + "];");
    if (padded(rows.width) > rows.width) close();
  }
}

void RegionMatrixEmitter::copy_rows(const RegionStage& stage) {
  const Rows& rows = *rows_of(stage.members[0]);
  for (std::int64_t t = 0; t * kSubgroup < kRows * padded(rows.width) / 8; ++t) {
    const Turn turn(rows, t);
    const auto pair = [&](int vector, const char* components) {
      return "packHalf2x16(" + turn.ahead + "[" + text(vector) + "]." + components + ")";
    };
    line("matrix_rows[mine + " + text(rows.offset) + " + " + turn.row + " * " + text(rows.stride) + " + " +
         turn.eight + "] = uvec4(" + pair(0, "xy") + ", " + pair(0, "zw") + ", " + pair(1, "xy") + ", " +
         pair(1, "zw") + ");");
  }
  fetch_rows(stage, "row_0 + " + text(rows_ahead_));
}

void RegionMatrixEmitter::product(const RegionStage& stage, std::size_t number) {
  const Rows& left = *rows_of(graph_[stage.anchor].inputs[0]);
  const Weights& right = *std::ranges::find(weights_, stage.anchor, &Weights::product);
  const std::string matrices = text(padded(right.columns) / kMatrixExtent),
                    turns = text(padded(right.depth) / kMatrixExtent);
  open("");
  line("MATRIX_SUMS sums[" + matrices + "];");
  line("[[unroll]] for (int c = 0; c < " + matrices + "; c++) sums[c] = MATRIX_SUMS(0.0);");
  open("[[unroll]] for (uint k = 0; k < " + turns + "; k++)");
  line("MATRIX_LEFT left;");
  line("MATRIX_RIGHT right;");
  line("MATRIX_LOAD(left, matrix_rows, mine + " + text(left.offset) + "u + k * 2u, " + text(left.stride) +
       "u, 0);");
  open("[[unroll]] for (uint c = 0; c < " + matrices + "; c++)");
  line("MATRIX_LOAD(right, matrix_weights, " + text(right.offset) + "u + k * " + text(16 * right.stride) +
       "u + c * 2u, " + text(right.stride) + "u, 0);");
  line("sums[c] = MATRIX_MULTIPLY_ADD(left, right, sums[c]);");
  close();
  close();
  line("matrix_fence();   // all reads are done");
  if (std::string body; on_matrices(stage, body)) {
    body_ += body;
  } else if (scratch_[number] < 0) {
    refuse();
  } else {
    const std::string scratch = "mine + " + text(scratch_[number]);
    for (std::int64_t c = 0; c * kMatrixExtent < right.columns; ++c) {
      line("MATRIX_STORE(sums[" + text(c) + "], matrix_rows, " + scratch + "u, " + text(kScratchStride) +
           "u);");
      line("matrix_fence();");
      members_ = {};
      element_by_element(stage, scratch, c * kMatrixExtent,
                         std::min(kMatrixExtent, right.columns - c * kMatrixExtent));
      line("matrix_fence();");
    }
  }
  close();
}

// Whether the sums become one rounded operand without padding columns. Values computed from padding may be
// NaN.
bool RegionMatrixEmitter::only_feeds_products(const RegionStage& stage) const {
  const auto is_stored = [&](NodeIndex member) {
    return std::ranges::find(task_.stores, member, &Store::node) != task_.stores.end();
  };
  const NodeIndex result = stage.members.back();
  return stage.members.size() == 2 && rows_of(result) && rows_of(result)->width % kMatrixExtent == 0 &&
         graph_[result].op == Op::cast && std::ranges::none_of(stage.members, is_stored);
}

// Processes the sums on the matrices. Only where the result is one operand of further products, computed from
// features alone.
bool RegionMatrixEmitter::on_matrices(const RegionStage& stage, std::string& body) {
  if (!only_feeds_products(stage)) return false;
  const NodeIndex result = stage.members.back();
  const Rows* rows = rows_of(result);
  const std::string before = std::exchange(body_, {});
  const std::vector<Column> columns_before = columns_;
  matrices_ = true;
  open("[[unroll]] for (int i = 0; i < all.length(); i++)");
  members_ = {{stage.anchor, "all[i]"}};
  line("rounded[i] = float16_t(" +
       value(graph_[result].inputs[0], {std::nullopt, {named("row_number"), named("feature_number")}}) +
       ");");
  close();
  matrices_ = false;
  members_.clear();
  const std::string inner = in_half_precision(std::exchange(body_, before));
  if (inner.find("row_number") != std::string::npos || inner.find("feature_number") != std::string::npos) {
    columns_ = columns_before;
    return false;
  }
  if (inner.find("imp_tanh_half(") != std::string::npos) includes_.insert("tanh_half");

  const std::string outer = std::exchange(body_, {});
  open("[[unroll]] for (uint c = 0; c < " + text(padded(rows->width) / kMatrixExtent) + "; c++)");
  line("MATRIX_SUMS all = sums[c];");
  line("MATRIX_ROUNDED rounded;");
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const std::string name = "column_" + text(static_cast<std::int64_t>(c));
    if (inner.find(name + "[") == std::string::npos) continue;
    line("MATRIX_SUMS " + name + ";");
    line("MATRIX_LOAD(" + name + ", matrix_columns, " + text(columns_[c].offset) +
         "u + c * 16u, 0u, 0);   // equal for all rows");
  }
  body_ += inner;
  line("MATRIX_STORE(rounded, matrix_rows, mine + " + text(rows->offset) + "u + c * 2u, " +
       text(rows->stride) + "u);");
  close();
  body = std::exchange(body_, outer);
  return true;
}

// The members of a stage at each row and feature; an invocation takes two neighbouring features. scratch:
// offset of the sums of 16 features.
void RegionMatrixEmitter::element_by_element(const RegionStage& stage, const std::string& scratch,
                                             const IndexExpression& first_column, std::int64_t columns) {
  const bool is_kept =
      std::ranges::any_of(stage.members, [&](NodeIndex member) { return rows_of(member) != nullptr; });
  const std::int64_t pairs = (is_kept ? padded(columns) : columns + 1) / 2;
  const std::string p = fresh('p'), r = fresh('r'), f = fresh('f');
  open("for (int " + p + " = own; " + p + " < " + text(kRows * pairs) + "; " + p + " += " + text(kSubgroup) +
       ")");
  line("int " + r + " = " + (named(p) / pairs).str() + ", " + f + " = " + (named(p) % pairs).str() + " * 2;");
  line("int row = min(row_0 + " + r + ", " + text(region_.rows - 1) + ");");
  const bool ragged = region_.rows % kRows != 0;
  std::vector<std::pair<NodeIndex, std::string>> kept;
  for (NodeIndex member : stage.members)
    if (rows_of(member)) {
      kept.emplace_back(member, fresh('h'));
      line("vec2 " + kept.back().second + " = vec2(0.0);");
    }
  for (std::int64_t component = 0; component < 2; ++component) {
    const bool cut = 2 * pairs > columns;
    open(cut ? "if (" + f + " < " + text(columns - component) + ")" : "");
    members_.clear();
    if (!scratch.empty())
      members_[stage.anchor] =
          declare(DType::float32, "uintBitsToFloat(matrix_rows[" + scratch + " + " + r + " * " +
                                      text(kScratchStride) + " + (" + f + " >> 2)][(" + f + " & 3) + " +
                                      text(component) + "])");
    const ElementIndex index{std::nullopt, {named("row"), bind(named(f) + component + first_column)}};
    for (NodeIndex member : stage.members) {
      if (!members_.contains(member)) members_[member] = compute(member, index);
      for (const Store& store : task_.stores) {
        if (store.node != member) continue;
        if (ragged) open("if (row_0 + " + r + " < " + text(region_.rows) + ")");
        Emitter::write(store, linear_of(index, graph_[member].shape));
        if (ragged) close();
      }
      for (const auto& [node, name] : kept)
        if (node == member) line(name + "." + kComponents[component] + " = " + members_[member] + ";");
    }
    close();
  }
  for (const auto& [member, name] : kept) {
    const Rows& rows = *rows_of(member);
    const std::string column = bind(named(f) + first_column).str();
    line("matrix_rows[mine + " + text(rows.offset) + " + " + r + " * " + text(rows.stride) + " + (" + column +
         " >> 3)][(" + column + " & 7) >> 1] = packHalf2x16(" + name + ");");
  }
  close();
}

}  // namespace imprint::kernels
