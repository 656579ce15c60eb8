#pragma once
// Writes the body of one kernel: what a task computes at one linear index, as GLSL statements. Views become
// index arithmetic. Values without memory are computed where they are used, once per scope. Folds become
// loops.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compute/base/at.h"
#include "compute/base/text.h"
#include "compute/graph/graph.h"
#include "compute/graph/schedule/schedule.h"
#include "compute/kernels/index_expression.h"

namespace imprint::kernels {

inline IndexExpression named(const std::string& name) { return IndexExpression(name); }
inline constexpr char kComponents[] = "xyzw";  // of a vec4

// Whether a fold keeps the position of its best term as well.
inline bool finds_position(tensor::Op op) {
  const tensor::Fold* fold = tensor::fold_of(op);
  return fold && fold->finds_position;
}

// The value of a fold's accumulator before the first term, as a literal.
std::string fold_start(tensor::Op op, DType dtype);

// The position of an element: its row-major linear index, its index along each axis, or both.
struct ElementIndex {
  std::optional<IndexExpression> linear;
  std::vector<IndexExpression> axes;  // empty when only the linear index is known, or the rank is 0
};

// GLSL of the caller's between marks, so that errors name its lines. name: for messages.
std::string callers_text(std::string_view name, std::string_view glsl);

enum class LongAccess : std::uint8_t { load, load_four, load_quad, store, store_four, put };

// How a kernel names memory. Shared by the tasks of one dispatch.
class MemoryNames {
 public:
  virtual ~MemoryNames() = default;
  // Whether elements of the type share words of int[], rather than have an array of their own: those of less
  // than four bytes, except floats on a device with 16-bit storage.
  virtual bool packs(DType dtype) const = 0;
  // The GLSL array of the value's buffer, float[] or int[] ("b0f"), and the value's offset in it, in words of
  // four bytes ("o3").
  virtual std::string array(const graph::Place& place, DType dtype) = 0;
  virtual std::string offset(const graph::Place& place) = 0;
  // The same buffer as vec4[] or ivec4[] ("b0q", "b0p"). Values start at a multiple of such an element.
  virtual std::string vectors(const graph::Place& place, DType dtype) = 0;
  std::string vectors(const graph::Place& place) { return vectors(place, DType::float32); }
  // The same buffer as uvec4[]: eight float16 or bfloat16 elements each, or sixteen of one byte.
  virtual std::string quads(const graph::Place& place) = 0;
  // As uint[], coherent and volatile.
  virtual std::string marks(const graph::Place& place) = 0;
  // Whether the value lies in several buffers. Then it has functions instead of an array: they load or store
  // an element of what `array` or `vectors` would be, or put one that shares its word. Their index counts
  // from the first buffer's start.
  virtual bool is_long(const graph::Place& place) const = 0;
  virtual std::string long_function(const graph::Place& place, DType dtype, LongAccess access) = 0;
};

// Elements of a wide value: neighbours that one invocation computes together, and loads and stores together
// where they are contiguous.
inline constexpr int kWide = 4;

class Emitter {
 public:
  virtual ~Emitter() = default;
  Emitter(const graph::Graph& graph, const graph::Schedule& schedule, const graph::Task& task,
          MemoryNames& memory, std::set<std::string>& includes, int fold_terms);

  // The function `void <name>(int group)`, for workgroups of `workgroup_size` invocations. wide: invocations
  // take kWide elements at a time; the result is empty where the task's index arithmetic does not allow it.
  std::string function(const std::string& name, int workgroup_size, bool wide = false);

  // Workgroups of the function that function() wrote.
  std::int64_t group_count() const { return group_count_; }
  int fold_slots() const { return fold_slots_; }  // floats of the array in which folds meet

  // Whether workgroups take the elements in their order.
  bool groups_in_order() const { return !crosses_; }

  // Workgroups of the task when it is not wide: about the most that it ever needs.
  static std::int64_t group_count(const graph::Graph& graph, const graph::Task& task, int workgroup_size);

 protected:
  // ---- statements and scopes ----
  void line(const std::string& text);
  void open(const std::string& head);  // "head {"
  void close();
  std::string fresh(char prefix) { return text(prefix, ++last_name_); }
  const std::string* known(const std::string& key) const;
  void remember(const std::string& key, const std::string& name) { scopes_.back()[key] = name; }
  std::string qualifier(DType dtype) const;  // of a register of the value that is being computed
  std::string declare(DType dtype, const std::string& expression);
  IndexExpression bind(const IndexExpression& index);  // names a compound expression

  // ---- indices ----
  std::vector<IndexExpression> axes_of(const ElementIndex& index, const Shape& shape);
  IndexExpression linear_of(const ElementIndex& index, const Shape& shape);
  std::vector<IndexExpression> delinearize(const IndexExpression& linear, const Shape& shape);
  ElementIndex reshaped(const ElementIndex& index, const Shape& from, const Shape& to);
  std::string key_of(graph::NodeIndex node, const ElementIndex& index);

  // ---- named extents (emitter_extents.cpp): what a run uses ----
  // The extent, in GLSL.
  std::string extent_of_run(const graph::RunExtent& extent);
  // How many places of an axis a run uses, times `inner`, where it uses the first ones; empty: all.
  std::string used_places(const Shape& shape, int axis, std::int64_t inner = 1);
  // How many terms of a fold come before the first that is its start value; empty: all.
  std::string used_terms(graph::NodeIndex fold);
  // Leaves an invocation of a map whose elements a run does not use.
  void leave_unused(const IndexExpression& linear, std::int64_t neighbours);

  // ---- values ----
  std::string value(graph::NodeIndex node,
                    const ElementIndex& index);  // from a register, from memory, or computed
  std::string compute(graph::NodeIndex node, const ElementIndex& index);
  std::string computed(graph::NodeIndex node, const ElementIndex& index);  // what compute() qualifies
  // The first element of a value's memory, counted in elements of the dtype.
  IndexExpression start_of(const graph::Place& place, DType dtype) {
    return IndexExpression(memory_.offset(place), kWide) * static_cast<std::int64_t>(4 / dtype_size(dtype));
  }
  // at: an index of the place's array, or of its vectors.
  std::string loaded(const graph::Place& place, DType dtype, LongAccess access, const std::string& at);
  void store(const graph::Place& place, DType dtype, LongAccess access, const std::string& at,
             const std::string& value);
  // Memory of any dtype (emitter_memory.cpp). element: counted from the buffer's start. A load is an
  // expression of the register type. Of four: the first element is a multiple of kWide.
  std::string load_element(const graph::Place& place, DType dtype, const std::string& element);
  std::string load_four(const graph::Place& place, DType dtype, const IndexExpression& four);  // element / 4
  // The value as float16_t, or f16vec4, from the number that it was rounded from where that is known: a
  // device rounds it faster than imp_to_half does.
  std::string stored_half(const std::string& value, bool four);
  void store_element(const graph::Place& place, DType dtype, const std::string& element,
                     const std::string& value);
  void store_four(const graph::Place& place, DType dtype, const IndexExpression& four,
                  const std::string& value);
  virtual std::string load(graph::NodeIndex node, const ElementIndex& index);  // of a value in memory
  // Whether a load of the value reads device memory.
  virtual bool in_memory(graph::NodeIndex node) const {
    return schedule_.materialized[at(node)] && !members_.contains(node) && !uniforms_.contains(node);
  }
  // The array that holds all values; empty where they lie in different arrays or not in memory.
  std::string array_of_all(const std::vector<graph::NodeIndex>& nodes);
  ElementIndex through_view(graph::NodeIndex node, const ElementIndex& index);
  std::string pad(graph::NodeIndex node, const ElementIndex& index);
  std::string pad_of_memory(graph::NodeIndex node, const ElementIndex& inner, const std::string& inside);
  std::string concat(graph::NodeIndex node, const ElementIndex& index);
  std::string gather(graph::NodeIndex node, const ElementIndex& index);
  std::string random_uniform(graph::NodeIndex node, const ElementIndex& index);
  std::string random_permutation(graph::NodeIndex node, const ElementIndex& index);
  std::string scatter_add(graph::NodeIndex node, const ElementIndex& index);
  std::string unwindow(graph::NodeIndex node, const ElementIndex& index);

  // ---- wide values (emitter_wide.cpp) ----
  std::string declare_wide(DType dtype, const std::string& expression);
  // Wide where the index is.
  std::string declare_like(const ElementIndex& index, DType dtype, const std::string& expression);
  void assign(const std::string& name, const std::string& value, DType dtype);
  bool is_wide(const std::string& name) const { return wide_names_.contains(name); }
  std::string component(const std::string& name, int element) const;
  std::string widened(const std::string& name, DType dtype) const;  // as a vector, whether wide or not
  std::string componentwise(DType dtype, std::span<const std::string> operands,
                            const std::function<std::string(std::span<const std::string>)>& expression) const;
  std::string elementwise(graph::NodeIndex node, std::span<const std::string> operands);
  std::optional<float> literal_bound(graph::NodeIndex node) const;
  std::string position(const IndexExpression& index);  // the index as a value
  std::string folded(graph::NodeIndex fold,
                     const std::string& sums);  // reduces a wide accumulator to one element
  std::string load_wide(graph::NodeIndex node, const IndexExpression& linear);
  void write_wide(const graph::Store& store, const IndexExpression& element, const std::string& value);
  std::string refuse();                           // marks the task as not wide; returns a placeholder
  bool is_uniform(const IndexExpression& index);  // whether all elements have this index; else refuses
  // Whether all elements of the index are on one side of the bound; else refuses.
  bool divides(const IndexExpression& index, std::int64_t bound);
  int crossing_axis() const;
  void wide_map_body(int workgroup_size);
  void crossing_map_body(int axis, int workgroup_size);
  std::int64_t neighbouring_places();
  int last_axis() const;
  bool folds_only_windows();
  void neighbours_map_body(std::int64_t places, int workgroup_size);

  // A fold over k = first, first + step, ...: declares accumulators, writes the loop, and returns the
  // accumulators' names.
  struct Accumulator {
    std::string value, index;
  };
  // along: the folded axes are the innermost; terms are taken kWide at a time.
  Accumulator fold(graph::NodeIndex node, const ElementIndex& index, const std::string& first,
                   const std::string& step, bool along = false) {
    return fold(std::span(&node, 1), index, first, step, along)[0];
  }
  // Several of equal terms, in one loop: what they share is read once.
  std::vector<Accumulator> fold(std::span<const graph::NodeIndex> nodes, const ElementIndex& index,
                                const std::string& first, const std::string& step, bool along = false);
  void fold_term(graph::NodeIndex node, const std::vector<IndexExpression>& own, const Accumulator& into,
                 const IndexExpression& k);
  std::string reduced_term(graph::NodeIndex node, const std::vector<IndexExpression>& own,
                           const IndexExpression& k);  // of a reduction, at position k
  bool writes_terms_out(graph::NodeIndex node);        // of a fold, one by one: no loop, all indices known
  bool reads_windows(graph::NodeIndex node) const;     // within its own evaluation
  bool computes_folds(graph::NodeIndex node) const;    // within its own evaluation
  bool reads_members(graph::NodeIndex node) const;     // within its own evaluation
  bool folds_alike(graph::NodeIndex one, graph::NodeIndex other) const;
  void fold_alike_members(const ElementIndex& index);
  ElementIndex own_index(graph::NodeIndex member, const ElementIndex& index) const;
  std::string combine(graph::NodeIndex node, const Accumulator& into, const std::string& value,
                      const std::string& index);

  // ---- kinds of tasks ----
  void map_body(int workgroup_size);
  void first_of_map(const std::string& first, std::int64_t end, const ElementIndex& index,
                    int workgroup_size);
  std::vector<graph::NodeIndex> uniform_folds(bool others = false) const;
  void fold_uniforms(const std::vector<graph::NodeIndex>& folds, int workgroup_size);
  struct SlotFold {
    graph::NodeIndex node;
    int slots, first = 0, left = 0;  // of the shared array; how many of them still have a part of the sum
  };
  void fold_together(std::vector<SlotFold> folds, int workgroup_size);
  std::string sum_of_lane(graph::NodeIndex node, int workgroup_size);
  void add_slots(std::span<SlotFold> folds);
  std::string folded_ways(graph::NodeIndex node, const std::string& array, const std::string& first, int ways,
                          int apart);
  int fold_lanes(graph::NodeIndex node, const std::string& array, int lanes, int stride,
                 const std::string& lane, bool whole = true);
  void group_fold_body(int workgroup_size, bool wide);
  void column_fold_body(int workgroup_size);
  void scan_body(int workgroup_size);
  void evaluate_members(const ElementIndex& index);  // axes, if given, are the anchor's
  void compute_members(const ElementIndex& index);   // the first half of it
  void store_members(const IndexExpression& linear);
  virtual void write(const graph::Store& store, const IndexExpression& linear);

  const graph::Graph& graph_;
  const graph::Schedule& schedule_;
  const graph::Task& task_;
  MemoryNames& memory_;
  std::set<std::string>& includes_;
  int fold_terms_;
  std::string body_;
  int indent_ = 1;
  int last_name_ = 0;
  std::vector<std::unordered_map<std::string, std::string>> scopes_{1};
  std::unordered_map<graph::NodeIndex, std::string>
      uniforms_;  // folds that the workgroup has computed once for all
  std::unordered_map<graph::NodeIndex, std::string> members_;  // values of this task already in registers
  std::set<std::string> wide_names_;                           // of registers with kWide elements
  // What a register was made from: a cast to float16, or a maximum or minimum with a literal.
  struct Origin {
    tensor::Op op;
    std::string of;
    std::string literal;  // and its value, of a maximum or minimum
    float bound = 0;
  };
  std::unordered_map<std::string, Origin> origins_;  // by names of registers
  std::int64_t group_count_ = 0;
  int fold_slots_ = 0;
  bool is_refused_ = false;
  bool is_exact_ = false;  // the value that is being computed needs equal bits in every kernel
  bool crosses_ = false;   // wide reads step along an axis other than the last
};

}  // namespace imprint::kernels
