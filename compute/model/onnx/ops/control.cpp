// If, Loop and Scan. A condition that is known chooses its branch during import. A loop becomes a loop of the
// graph (compute/tensor/loop.h), or is unrolled where shapes change from turn to turn or follow from the
// turn's number.

#include <algorithm>
#include <array>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "compute/model/onnx/op.h"
#include "compute/model/onnx/ops/known.h"
#include "compute/tensor/loop.h"

namespace imprint::onnx {
namespace {

using Values = std::vector<Value>;

constexpr std::int64_t kMostTurns = 1 << 19;  // of a loop of the graph: each is a dispatch or more

Value known_number(std::int64_t number) {
  HostArray array;
  array.type = ElementType::int64;
  array.ints.push_back(number);
  return Value::known(std::move(array));
}

// The value of a condition that is known. Fails for one that is not one bool.
std::optional<bool> known_condition(OpContext& context, const Value& value) {
  if (!context.require(
          value.is_tensor() && value.shape().element_count() == 1 && value.type() == ElementType::boolean,
          text("condition: found ", element_type_name(value.type()), value.shape().text(),
               ", expected one bool")) ||
      !value.foldable())
    return std::nullopt;
  return value.host()->ints[0] != 0;
}

Tensor scalar_of(const Value& value) { return reshape(value.tensor(), Shape{}); }

std::optional<Values> body_of(OpContext& context, const Graph& body, std::span<const Value> inputs) {
  auto outputs = context.bodies().import_body(context.node(), body, inputs);
  if (!outputs) context.stop();
  return outputs;
}

void set_all(OpContext& context, const Values& values) {
  for (std::size_t i = 0; i < values.size(); ++i) context.set(static_cast<int>(i), values[i]);
}

void if_branch(OpContext& context) {
  const Graph* then_branch = context.graph_attribute("then_branch");
  const Graph* else_branch = context.graph_attribute("else_branch");
  const std::size_t count = context.node().outputs.size();
  if (!context.require(context.value(0).is_tensor(), "the condition is no tensor")) return;
  const auto chosen = known_condition(context, context.value(0));
  if (context.failure()) return;
  const auto counted = [&](const Graph& branch) {
    return context.require(
        branch.outputs.size() == count,
        text("a branch has ", amount(branch.outputs.size(), "output"), ", expected ", count));
  };
  if (!counted(*then_branch) || !counted(*else_branch)) return;
  if (chosen) {
    if (const auto outputs = body_of(context, *chosen ? *then_branch : *else_branch, {}))
      set_all(context, *outputs);
    return;
  }
  const auto first = body_of(context, *then_branch, {}), second = body_of(context, *else_branch, {});
  if (!first || !second) return;
  const Tensor condition = scalar_of(context.value(0));
  for (std::size_t i = 0; i < count; ++i) {
    const Value &a = (*first)[i], &b = (*second)[i];
    if (!a.is_tensor() || !b.is_tensor())
      return context.unsupported(text("output ", i, ": found ", a.text(), " and ", b.text(),
                                      " for a condition of run time, expected tensors"));
    if (!(a.shape() == b.shape()))
      return context.unsupported(text("output ", i, ": found branches of shapes ", a.shape().text(), " and ",
                                      b.shape().text(),
                                      " for a condition of run time, expected equal shapes"));
    const auto found = cond(
        condition, [&] { return std::vector{a.tensor()}; }, [&] { return std::vector{b.tensor()}; });
    if (!found) return context.fail(found.error().code, found.error().message);
    context.set(static_cast<int>(i), found->at(0), a.type());
  }
}

// A loop's parts: what its body gets first in each turn, and the first values of what it carries.
struct Turns {
  const Graph* body = nullptr;
  Values carry;
  std::optional<std::int64_t> count;  // known
  std::optional<Tensor> limit;        // the count, if only a run knows it
  std::optional<bool> begins = true;  // the first condition, if known
  std::size_t results = 0;            // per turn, which are stacked
};

// Each value of a loop has memory, and is copied in each turn. The first few are part of the loop.
bool may_record(OpContext& context, std::size_t values) {
  constexpr std::int64_t kFreeValues = 16, kOperationsOfValue = 16;
  const std::int64_t more = std::max<std::int64_t>(0, static_cast<std::int64_t>(values) - kFreeValues);
  return context.may_make(kOperationsOfLoop + kOperationsOfValue * more);
}

Value next_value(const Tensor& tensor, const Value& like) { return Value::run_time(tensor, like.type()); }

Shape stacked(std::int64_t turns, const Shape& shape) {
  Shape out{turns};
  for (const std::int64_t extent : shape.extents()) out.append(extent);
  return out;
}

// The loop as one of the graph, for a known number of turns. Without a value when the body is refused, when
// it needs shapes that the turn decides, or when it ends by its condition although results are stacked.
std::optional<Values> recorded(OpContext& context, const Turns& turns, bool by_condition) {
  if (!may_record(context, turns.carry.size() + turns.results)) return std::nullopt;
  bool refused = false, ends_early = false;
  std::vector<ElementType> types;
  const auto body = [&](std::span<const Tensor> carry, std::span<const Tensor> rows) {
    Values inputs{Value::run_time(rows[0], ElementType::int64),
                  by_condition ? Value::run_time(carry.back(), ElementType::boolean) : known_bool(true)};
    for (std::size_t i = 0; i < turns.carry.size(); ++i)
      inputs.push_back(next_value(carry[i], turns.carry[i]));
    const auto outputs = context.bodies().import_body(context.node(), *turns.body, inputs);
    ScanStep step;
    refused = !outputs || outputs->size() != 1 + turns.carry.size() + turns.results;
    if (refused) return step;
    const Value& goes_on = outputs->front();
    ends_early = !by_condition && !(goes_on.foldable() && goes_on.type() == ElementType::boolean &&
                                    goes_on.host()->ints.size() == 1 && goes_on.host()->ints[0] != 0);
    for (std::size_t i = 1; i < outputs->size(); ++i) {
      Tensor value = (*outputs)[i].tensor();
      if (i <= turns.carry.size()) {
        if (by_condition) value = where(carry.back(), value, carry[i - 1]);
        step.carry.push_back(value);
      } else {
        step.results.push_back(value);
        types.push_back((*outputs)[i].type());
      }
    }
    if (by_condition) step.carry.push_back(logical_and(carry.back(), scalar_of(goes_on)));
    return step;
  };
  std::vector<Tensor> carry;
  for (const Value& value : turns.carry) carry.push_back(value.tensor());
  if (by_condition)
    carry.push_back(context.has(1) ? scalar_of(context.value(1)) : full({}, 1, DType::boolean));
  const Tensor numbers = arange(*turns.count);
  const auto scanned = scan(body, carry, std::span(&numbers, 1), {.label = context.node().text()});
  if (!scanned || refused || ends_early) return std::nullopt;
  Values out;
  for (std::size_t i = 0; i < turns.carry.size(); ++i)
    out.push_back(next_value(scanned->carry[i], turns.carry[i]));
  for (std::size_t i = 0; i < turns.results; ++i)
    out.push_back(Value::run_time(scanned->results[i], types[i]));
  return out;
}

// The carried value after a turn that a run may leave out, by its count. Fails if the turn changes
// shapes.
std::optional<Value> value_within(OpContext& context, const Turns& turns, std::int64_t turn,
                                  const Value& before, const Value& after) {
  if (!before.is_tensor() || !after.is_tensor() || !(before.shape() == after.shape())) {
    context.unsupported(
        text("turn ", turn, ", which only a run counts, makes ", after.text(), " of ", before.text()));
    return std::nullopt;
  }
  return next_value(
      imprint::where(*turns.limit > Tensor(static_cast<std::int32_t>(turn)), after.tensor(), before.tensor()),
      before);
}

// The turns one after the other, each condition known. Nothing when a body is refused or a condition is not
// known; `unknown` tells the latter. It also tells of a count of run time that no condition bounds.
std::optional<Values> unrolled(OpContext& context, const Turns& turns, bool& unknown) {
  constexpr std::int64_t kMostUncounted = 64;  // turns whose condition is known, but not their count
  Values carry = turns.carry;
  std::vector<Values> results(turns.results);
  bool goes_on = *turns.begins;
  for (std::int64_t turn = 0; goes_on && (!turns.count || turn < *turns.count); ++turn) {
    unknown = turns.limit && turn == kMostUncounted;
    if (unknown) return std::nullopt;
    if (!context.may_make(static_cast<std::int64_t>(turns.results))) return std::nullopt;
    Values inputs{known_number(turn), known_bool(true)};
    inputs.insert(inputs.end(), carry.begin(), carry.end());
    const auto outputs = context.bodies().import_body(context.node(), *turns.body, inputs);
    if (!outputs || outputs->size() != 1 + carry.size() + turns.results) return std::nullopt;
    const Value& condition = outputs->front();
    if (!context.require(condition.is_tensor() && condition.type() == ElementType::boolean,
                         "the body's condition: found " + condition.text() + ", expected one bool"))
      return std::nullopt;
    unknown = !condition.foldable() || condition.host()->ints.size() != 1;
    if (unknown) return std::nullopt;
    goes_on = condition.host()->ints[0] != 0;
    for (std::size_t i = 0; i < carry.size(); ++i) {
      const Value& after = (*outputs)[1 + i];
      const auto next = turns.limit ? value_within(context, turns, turn, carry[i], after) : after;
      if (!next) return std::nullopt;
      carry[i] = *next;
    }
    for (std::size_t i = 0; i < turns.results; ++i) {
      const Value& result = (*outputs)[1 + carry.size() + i];
      if (!result.is_tensor()) {
        context.unsupported("a loop that stacks " + result.text());
        return std::nullopt;
      }
      if (!context.require(result.rank() < Shape::kMaxRank, "a stacked result has too many axes"))
        return std::nullopt;
      const Shape one = stacked(1, result.shape());
      if (!results[i].empty() && !(results[i][0].shape() == one)) {
        context.fail(ErrorCode::shape_mismatch, text("results of shapes ", results[i][0].shape().text(),
                                                     " and ", one.text(), " cannot be stacked"));
        return std::nullopt;
      }
      results[i].push_back(context.mover().reshape(result, stacked(1, result.shape())));
    }
  }
  for (std::size_t i = 0; i < turns.results; ++i) {
    if (results[i].empty()) {
      context.unsupported("results of a loop without turns");
      return std::nullopt;
    }
    Shape shape = results[i][0].shape();
    shape[0] = static_cast<std::int64_t>(results[i].size());
    context.checked(shape.extents());
    if (context.failure()) return std::nullopt;
    carry.push_back(context.mover().concat(results[i], 0));
  }
  return carry;
}

// Results of no turn, each without rows. One turn, of which only the shapes count, says what a row is.
std::optional<Values> without_rows(OpContext& context, const Graph& body, std::span<const Value> inputs,
                                   std::size_t first) {
  Values found;
  if (first >= body.outputs.size()) return found;
  const auto outputs = body_of(context, body, inputs);
  if (!outputs) return std::nullopt;
  for (std::size_t i = first; i < outputs->size(); ++i) {
    const Value& row = (*outputs)[i];
    if (!row.is_tensor()) {
      context.unsupported("a loop that stacks " + row.text());
      return std::nullopt;
    }
    if (!context.require(row.rank() < Shape::kMaxRank, "a stacked result has too many axes"))
      return std::nullopt;
    if (row.shape().is_named())
      found.push_back(
          Value::run_time(imprint::narrow(imprint::unsqueeze(row.tensor(), 0), 0, 0, 0), row.type()));
    else
      found.push_back(
          Value::run_time(full(stacked(0, row.shape()), 0, run_time_dtype(row.type())), row.type()));
  }
  return found;
}

void run_no_turn(OpContext& context, const Turns& turns) {
  Values inputs{known_number(0), known_bool(true)}, found = turns.carry;
  inputs.insert(inputs.end(), turns.carry.begin(), turns.carry.end());
  const auto results = without_rows(context, *turns.body, inputs, 1 + turns.carry.size());
  if (!results) return;
  found.insert(found.end(), results->begin(), results->end());
  set_all(context, found);
}

// Tries the forms in turn. The refusals of one are forgotten when another may do.
void run_turns(OpContext& context, const Turns& turns) {
  Bodies& bodies = context.bodies();
  const Bodies::Mark mark = bodies.mark();
  const auto done = [&](const std::optional<Values>& values) {
    if (values) set_all(context, *values);
    return values.has_value();
  };
  constexpr std::int64_t kFewest = 2;  // turns that are worth a loop
  const bool countable = turns.count && *turns.count <= kMostTurns;
  const bool tensors = std::all_of(turns.carry.begin(), turns.carry.end(),
                                   [](const Value& value) { return value.is_tensor(); });
  const bool counted = countable && tensors && *turns.count >= kFewest;
  if (counted && turns.begins == true) {
    if (done(recorded(context, turns, false))) return;
    if (context.failure()) return;
    if (!bodies.forget_since(mark)) return context.stop();
  }
  bool unknown = !turns.begins;
  if (!unknown && done(unrolled(context, turns, unknown))) return;
  if (context.failure()) return;
  if (turns.limit) {
    bodies.forget_since(mark);
    return context.unsupported("a trip count that is computed at run time, and no condition that bounds it");
  }
  if (!unknown && turns.count && *turns.count > kMostTurns && bodies.forget_since(mark))
    return context.unsupported(text("a loop of ", *turns.count, " turns, expected at most ", kMostTurns,
                                    ". Compute what does not depend on the turn before at once"));
  if (!unknown || !bodies.forget_since(mark)) return context.stop();
  if (!tensors) return context.unsupported("a loop that carries sequences: its condition must be known");
  if (turns.results > 0)
    return context.unsupported("stacked results of a loop that its condition ends at run time");
  if (!countable)
    return context.unsupported(
        "a loop that only its condition ends at run time: found no trip count, expected the most turns");
  if (done(recorded(context, turns, true)) || context.failure()) return;
  if (bodies.mark().unsupported > mark.unsupported || bodies.mark().wrong) return context.stop();
  context.unsupported("a loop whose body changes the shape of what it carries, or contains a loop");
}

void loop(OpContext& context) {
  Turns turns;
  turns.body = context.graph_attribute("body");
  if (context.has(0)) {
    const Value& most = context.value(0);
    if (!context.require(most.is_tensor() && most.shape().element_count() == 1 && is_integer(most.type()),
                         "the trip count is not one whole number"))
      return;
    if (most.foldable())
      turns.count = std::max<std::int64_t>(0, most.host()->ints[0]);
    else
      turns.limit = scalar_of(most);
  }
  if (context.has(1)) turns.begins = known_condition(context, context.value(1));
  for (int i = 2; i < context.input_count(); ++i) turns.carry.push_back(context.value(i));
  if (context.failure()) return;
  const std::size_t outputs = turns.body->outputs.size();
  if (!context.require(turns.body->inputs.size() == 2 + turns.carry.size() && outputs > turns.carry.size() &&
                           context.node().outputs.size() <= outputs - 1,
                       text("found a body of ", amount(turns.body->inputs.size(), "input"), " and ",
                            amount(outputs, "output"), " for ", amount(turns.carry.size(), "value"),
                            " that the loop carries")))
    return;
  turns.results = outputs - 1 - turns.carry.size();
  if (turns.begins == false || turns.count == 0) return run_no_turn(context, turns);
  if (turns.limit && turns.results > 0)
    return context.unsupported("stacked results of a loop whose trip count is computed at run time");
  run_turns(context, turns);
}

// ---- Scan ----

struct ScanAxes {
  std::vector<int> axes;
  std::vector<bool> reverse;
};

ScanAxes scan_axes(OpContext& context, const char* axes, const char* directions, std::size_t count) {
  Extents raw = context.ints_attribute(axes), turned = context.ints_attribute(directions);
  raw.resize(std::max(raw.size(), count));
  turned.resize(std::max(turned.size(), count));
  context.require(raw.size() == count && turned.size() == count,
                  text(axes, " or ", directions, ": expected ", count, " numbers"));
  ScanAxes out;
  for (std::size_t i = 0; i < count; ++i) {
    out.axes.push_back(static_cast<int>(std::clamp<std::int64_t>(raw[i], -100, 100)));
    out.reverse.push_back(turned[i] != 0);
  }
  return out;
}

// Brings an axis to the front, in the order of the steps.
Value rows_of(OpContext& context, const Value& value, int axis, bool reverse) {
  Axes order{axis};
  for (int i = 0; i < value.rank(); ++i)
    if (i != axis) order.push_back(i);
  Value rows = axis == 0 ? value : context.mover().permute(value, order);
  const std::int64_t steps = rows.shape()[0];
  return reverse && steps > 0 ? context.mover().slice(rows, 0, steps - 1, steps, -1) : rows;
}

std::optional<Values> scanned_in_graph(OpContext& context, const Graph& body, const Values& carry,
                                       const Values& stacks) {
  if (!may_record(context, body.outputs.size())) return std::nullopt;
  bool refused = false;
  std::vector<ElementType> types;
  const auto step = [&](std::span<const Tensor> now, std::span<const Tensor> rows) {
    Values inputs;
    for (std::size_t i = 0; i < now.size(); ++i) inputs.push_back(next_value(now[i], carry[i]));
    for (std::size_t i = 0; i < rows.size(); ++i) inputs.push_back(next_value(rows[i], stacks[i]));
    const auto outputs = context.bodies().import_body(context.node(), body, inputs);
    ScanStep next;
    refused = !outputs;
    for (std::size_t i = 0; outputs && i < outputs->size(); ++i) {
      if (i < carry.size()) {
        next.carry.push_back((*outputs)[i].tensor());
      } else {
        next.results.push_back((*outputs)[i].tensor());
        types.push_back((*outputs)[i].type());
      }
    }
    return next;
  };
  std::vector<Tensor> first, rows;
  for (const Value& value : carry) first.push_back(value.tensor());
  for (const Value& value : stacks) rows.push_back(value.tensor());
  const auto found = scan(step, first, rows, {.label = context.node().text()});
  if (!found || refused) return std::nullopt;
  Values out;
  for (std::size_t i = 0; i < carry.size(); ++i) out.push_back(next_value(found->carry[i], carry[i]));
  for (std::size_t i = 0; i < types.size(); ++i) out.push_back(Value::run_time(found->results[i], types[i]));
  return out;
}

std::optional<Values> scanned_by_turns(OpContext& context, const Graph& body, Values carry,
                                       const Values& stacks) {
  const std::size_t results = body.outputs.size() - carry.size();
  std::vector<Values> rows(results);
  for (std::int64_t turn = 0; turn < stacks[0].shape()[0]; ++turn) {
    if (!context.may_make(static_cast<std::int64_t>(stacks.size() + results))) return std::nullopt;
    Values inputs = carry;
    for (const Value& stack : stacks) {
      Shape row;
      for (int axis = 1; axis < stack.rank(); ++axis) row.append(stack.shape()[axis]);
      inputs.push_back(context.mover().reshape(context.mover().slice(stack, 0, turn, 1, 1), row));
    }
    const auto outputs = context.bodies().import_body(context.node(), body, inputs);
    if (!outputs) return std::nullopt;
    for (std::size_t i = 0; i < carry.size(); ++i) carry[i] = (*outputs)[i];
    for (std::size_t i = 0; i < results; ++i) {
      const Value& row = (*outputs)[carry.size() + i];
      const bool fits = rows[i].empty() || rows[i][0].shape() == stacked(1, row.shape());
      if (!context.require(fits && row.rank() < Shape::kMaxRank, "results of several shapes"))
        return std::nullopt;
      rows[i].push_back(context.mover().reshape(row, stacked(1, row.shape())));
    }
  }
  for (const Values& parts : rows) {
    if (parts.empty()) return std::nullopt;
    Shape shape = parts[0].shape();
    shape[0] = static_cast<std::int64_t>(parts.size());
    context.checked(shape.extents());
    if (context.failure()) return std::nullopt;
    carry.push_back(context.mover().concat(parts, 0));
  }
  return carry;
}

std::optional<Values> scanned_no_row(OpContext& context, const Graph& body, const Values& carry,
                                     const Values& stacks) {
  Values inputs = carry, found = carry;
  for (const Value& stack : stacks) {
    Shape row;
    for (int axis = 1; axis < stack.rank(); ++axis) row.append(stack.shape(), axis);
    inputs.push_back(Value::run_time(full(row, 0, run_time_dtype(stack.type())), stack.type()));
  }
  const auto results = without_rows(context, body, inputs, carry.size());
  if (!results) return std::nullopt;
  found.insert(found.end(), results->begin(), results->end());
  return found;
}

// As a loop of the graph where that can be, else turn by turn. Nothing: the import has failed.
std::optional<Values> scanned(OpContext& context, const Graph& body, const Values& carry,
                              const Values& stacks) {
  if (stacks[0].shape()[0] == 0 && !stacks[0].shape().is_named(0))
    return scanned_no_row(context, body, carry, stacks);
  const Bodies::Mark mark = context.bodies().mark();
  auto found = scanned_in_graph(context, body, carry, stacks);
  if (found || context.failure() || !context.bodies().forget_since(mark)) return found;
  return scanned_by_turns(context, body, carry, stacks);
}

// Opset 8: each sequence of a batch [batch, steps, ...] by itself.
void scan_of_batch(OpContext& context) {
  const Graph* body = context.graph_attribute("body");
  const std::int64_t raw = context.int_attribute("num_scan_inputs", 0);
  const int given = context.input_count() - 1;
  if (context.has(0)) return context.unsupported("sequence_lens, as before opset 9");
  if (context.failure() ||
      !context.require(raw >= 1 && raw <= given && body->inputs.size() == static_cast<std::size_t>(given) &&
                           context.node().outputs.size() <= body->outputs.size() &&
                           body->outputs.size() + static_cast<std::size_t>(raw) >= body->inputs.size(),
                       text("num_scan_inputs: found ", raw, " of ", given, " inputs")))
    return;
  const auto carried = static_cast<std::size_t>(given - raw);
  const Extents turned = context.ints_attribute("directions");
  for (const std::int64_t direction : turned)
    if (direction != 0) return context.unsupported("directions, as before opset 9");
  const std::int64_t batch = context.value(1).rank() > 0 ? context.shape(1)[0] : 0;
  for (int i = 0; i < given; ++i) {
    const Shape& shape = context.shape(1 + i);
    const int axes = static_cast<std::size_t>(i) < carried ? 1 : 2;
    if (!context.require(batch > 0 && shape.rank() >= axes && shape[0] == batch && (axes < 2 || shape[1] > 0),
                         text("input ", 1 + i, ": found ", shape.text(), " in a batch of ", batch)))
      return;
  }
  if (!context.may_make(batch * 4 * (given + static_cast<std::int64_t>(body->outputs.size())))) return;
  std::vector<Values> results(body->outputs.size());
  for (std::int64_t at = 0; at < batch; ++at) {
    Values carry, stacks;
    for (int i = 0; i < given; ++i) {
      const Value row = context.mover().slice(context.value(1 + i), 0, at, 1, 1);
      Extents extents = extents_of(row.shape());
      extents.erase(extents.begin());
      (static_cast<std::size_t>(i) < carried ? carry : stacks)
          .push_back(context.mover().reshape(row, Shape(extents)));
    }
    const auto found = scanned(context, *body, carry, stacks);
    if (!found) return context.stop();
    for (std::size_t i = 0; i < found->size(); ++i) {
      const Value& value = (*found)[i];
      if (!context.require(value.rank() < Shape::kMaxRank, "a stacked result has too many axes")) return;
      results[i].push_back(context.mover().reshape(value, stacked(1, value.shape())));
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    context.set(static_cast<int>(i), context.mover().concat(results[i], 0));
}

void scan_node(OpContext& context) {
  if (context.opset() < 9) return scan_of_batch(context);
  const Graph* body = context.graph_attribute("body");
  const std::int64_t raw = context.int_attribute("num_scan_inputs", 0);
  if (context.failure()) return;
  if (!context.require(raw >= 1 && raw <= context.input_count() &&
                           body->inputs.size() == static_cast<std::size_t>(context.input_count()),
                       text("num_scan_inputs: found ", raw, " of ", context.input_count(), " inputs")))
    return;
  const auto stack_count = static_cast<std::size_t>(raw);
  const std::size_t carry_count = static_cast<std::size_t>(context.input_count()) - stack_count;
  if (!context.require(
          body->outputs.size() >= carry_count && context.node().outputs.size() <= body->outputs.size(),
          text("found a body of ", amount(body->outputs.size(), "output"), " for ",
               amount(static_cast<std::uint64_t>(carry_count), "value"), " that the loop carries")))
    return;
  const ScanAxes in = scan_axes(context, "scan_input_axes", "scan_input_directions", stack_count),
                 out = scan_axes(context, "scan_output_axes", "scan_output_directions",
                                 body->outputs.size() - carry_count);
  Values carry, stacks;
  for (std::size_t i = 0; i < carry_count; ++i) carry.push_back(context.value(static_cast<int>(i)));
  for (std::size_t i = 0; i < stack_count && !context.failure(); ++i) {
    const Value& value = context.value(static_cast<int>(carry_count + i));
    const int axis = context.axis(in.axes[i], value.rank());
    if (context.failure()) return;
    stacks.push_back(rows_of(context, value, axis, in.reverse[i]));
    context.require(stacks.back().shape()[0] == stacks[0].shape()[0],
                    text("stacks of ", stacks[0].shape()[0], " and ", stacks.back().shape()[0], " rows"));
  }
  if (context.failure()) return;
  const auto found = scanned(context, *body, carry, stacks);
  if (!found) return context.stop();
  for (std::size_t i = 0; i < found->size(); ++i) {
    Value value = (*found)[i];
    if (i >= carry_count) {
      const std::size_t k = i - carry_count;
      const int axis = context.axis(out.axes[k], value.rank());
      if (context.failure()) return;
      value = rows_of(context, value, 0, out.reverse[k]);
      Axes order;
      for (int a = 1; a < value.rank(); ++a) order.push_back(a);
      order.insert(order.begin() + axis, 0);
      if (axis != 0) value = context.mover().permute(value, order);
    }
    context.set(static_cast<int>(i), value);
  }
}

constexpr std::array kControlOps{
    OpHandler{"If", if_branch},
    OpHandler{"Loop", loop, nullptr, Takes::anything},
    OpHandler{"Scan", scan_node},
};

}  // namespace

std::span<const OpHandler> control_ops() { return kControlOps; }

}  // namespace imprint::onnx
