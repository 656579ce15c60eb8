// Sequences and optionals. Their lengths and what they hold are known during import: the graph has only the
// tensors inside of them.

#include <algorithm>
#include <array>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "compute/model/onnx/op.h"
#include "compute/model/onnx/ops/known.h"

namespace imprint::onnx {
namespace {

using Parts = std::vector<Value>;

// The parts of a sequence, for an operator that makes another. Each copy counts as an operation, so that long
// sequences in many nodes stay cheap.
std::optional<Parts> parts_of(OpContext& context, int input) {
  const Value value = context.value(input);
  if (context.failure()) return std::nullopt;
  if (!value.is_sequence()) {
    context.fail(ErrorCode::dtype_mismatch,
                 text("input ", input, ": found ", value.text(), ", expected a sequence"));
    return std::nullopt;
  }
  if (!context.may_make(static_cast<std::int64_t>(value.parts().size()))) return std::nullopt;
  return Parts(value.parts().begin(), value.parts().end());
}

// A tensor of numbers, for operators that take lists as well.
bool is_number_tensor(OpContext& context, const Value& value) {
  if (!value.is_tensor() || value.type() == ElementType::string)
    context.unsupported(text("found ", value.text(), ", expected a tensor of numbers"));
  return !context.failure();
}

void sequence_empty(OpContext& context) { context.set(0, Value::sequence({})); }

void sequence_construct(OpContext& context) {
  Parts parts;
  for (int i = 0; i < context.input_count() && !context.failure(); ++i) {
    parts.push_back(context.value(i));
    is_number_tensor(context, parts.back());
  }
  if (context.may_make(context.input_count())) context.set(0, Value::sequence(std::move(parts)));
}

// The place that an input names among `count`, which may count from the end.
std::optional<std::size_t> place_of(OpContext& context, int input, std::size_t count, std::size_t otherwise) {
  if (!context.has(input)) return otherwise;
  const auto extent = static_cast<std::int64_t>(count);
  const std::int64_t raw = context.known_int(input, "position");
  const std::int64_t place = raw < 0 ? raw + extent : raw;
  if (!context.require(place >= 0 && place <= extent,
                       text("position: found ", raw, " for a sequence of ", extent)))
    return std::nullopt;
  return static_cast<std::size_t>(place);
}

void sequence_insert(OpContext& context) {
  auto parts = parts_of(context, 0);
  if (!parts) return;
  const Value value = context.value(1);
  const auto place = place_of(context, 2, parts->size(), parts->size());
  if (!place || !is_number_tensor(context, value)) return;
  parts->insert(parts->begin() + static_cast<std::ptrdiff_t>(*place), value);
  context.set(0, Value::sequence(std::move(*parts)));
}

void sequence_erase(OpContext& context) {
  auto parts = parts_of(context, 0);
  if (!parts) return;
  const auto place = place_of(context, 1, parts->size(), parts->empty() ? 0 : parts->size() - 1);
  if (!place || !context.require(*place < parts->size(), "the sequence has no such part")) return;
  parts->erase(parts->begin() + static_cast<std::ptrdiff_t>(*place));
  context.set(0, Value::sequence(std::move(*parts)));
}

void sequence_at(OpContext& context) {
  const auto parts = parts_of(context, 0);
  if (!parts) return;
  const auto place = place_of(context, 1, parts->size(), 0);
  if (!place || !context.require(*place < parts->size(), "the sequence has no such part")) return;
  context.set(0, (*parts)[*place]);
}

void sequence_length(OpContext& context) {
  const auto parts = parts_of(context, 0);
  if (!parts) return;
  context.set(0, context.mover().reshape(known_vector({static_cast<std::int64_t>(parts->size())}), {}));
}

void split_to_sequence(OpContext& context) {
  const Value value = context.value(0);
  if (!is_number_tensor(context, value)) return;
  const int axis = context.axis(context.int_attribute("axis", 0), value.rank());
  if (!context.require(value.rank() > 0, "a scalar has no axis to split")) return;
  const std::int64_t extent = value.shape()[axis];
  bool keep = true;
  Extents sizes;
  if (!context.has(1)) {
    keep = context.int_attribute("keepdims", 1) != 0;
    if (!context.may_make(extent)) return;
    sizes.assign(static_cast<std::size_t>(extent), 1);
  } else if (context.shape(1).rank() == 0) {
    const std::int64_t each = context.known_int(1, "split");
    if (!context.require(each > 0, text("split: found ", each)) || !context.may_make(extent / each + 1))
      return;
    for (std::int64_t from = 0; from < extent; from += each) sizes.push_back(std::min(each, extent - from));
  } else {
    // Counted before they are copied.
    if (!context.may_make(context.shape(1).element_count())) return;
    sizes = context.known_ints(1, "split", 1 << 16);
  }
  std::int64_t from = 0;
  if (!context.may_make(2 * static_cast<std::int64_t>(sizes.size()))) return;
  Parts parts;
  for (const std::int64_t size : sizes) {
    if (!context.require(size >= 0 && size <= extent - from, text("split: found parts beyond ", extent)))
      return;
    Value part = context.mover().slice(value, axis, from, size, 1);
    from += size;
    if (!keep) {
      Extents extents = extents_of(part.shape());
      extents.erase(extents.begin() + axis);
      part = context.mover().reshape(part, Shape(extents));
    }
    parts.push_back(std::move(part));
  }
  if (context.require(from == extent, text("split: found parts of ", from, " for an axis of ", extent)))
    context.set(0, Value::sequence(std::move(parts)));
}

void concat_from_sequence(OpContext& context) {
  auto parts = parts_of(context, 0);
  if (!parts || !context.require(!parts->empty(), "an empty sequence has nothing to join") ||
      !context.may_make(static_cast<std::int64_t>(parts->size())))
    return;
  const bool fresh = context.int_attribute("new_axis", 0) != 0;
  const int rank = (*parts)[0].rank() + (fresh ? 1 : 0);
  const int axis = context.axis(context.int_attribute("axis", 0), rank);
  if (!context.require(rank > 0 && rank <= Shape::kMaxRank, text("rank: found ", rank))) return;
  Extents extents;
  for (Value& part : *parts) {
    const bool alike = part.rank() == (*parts)[0].rank() &&
                       run_time_dtype(part.type()) == run_time_dtype((*parts)[0].type());
    if (!context.require(alike, "the parts differ in rank or type")) return;
  }
  for (Value& part : *parts) {
    Extents own = extents_of(part.shape());
    if (fresh) own.insert(own.begin() + axis, 1);
    if (fresh) part = context.mover().reshape(part, Shape(own));
    if (extents.empty()) {
      extents = own;
      continue;
    }
    for (int i = 0; i < rank; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (i != axis && !context.require(own[at] == extents[at], "the parts differ in shape")) return;
    }
    extents[static_cast<std::size_t>(axis)] += own[static_cast<std::size_t>(axis)];
    context.checked(extents);
    if (context.failure()) return;
  }
  context.set(0, context.mover().concat(*parts, axis));
}

// The body once for each part of the first sequence. Other sequences give a part each, tensors are the same.
void sequence_map(OpContext& context) {
  const Graph* body = context.graph_attribute("body");
  const auto first = parts_of(context, 0);
  if (!body || !first || context.failure()) return;
  const std::size_t outputs = context.node().outputs.size();
  if (!context.require(
          body->outputs.size() == outputs,
          text("found a body of ", amount(body->outputs.size(), "output"), ", expected ", outputs)) ||
      !context.may_make(static_cast<std::int64_t>(first->size()) * (context.input_count() + 1)))
    return;
  std::vector<Parts> results(outputs);
  for (std::size_t turn = 0; turn < first->size(); ++turn) {
    Parts inputs;
    for (int i = 0; i < context.input_count(); ++i) {
      const Value value = context.value(i);
      if (value.is_sequence() &&
          !context.require(value.parts().size() == first->size(),
                           text("found sequences of ", first->size(), " and ", value.parts().size())))
        return;
      if (context.failure()) return;
      inputs.push_back(value.is_sequence() ? value.parts()[turn] : value);
    }
    auto made = context.bodies().import_body(context.node(), *body, inputs);
    if (!made) return context.stop();
    for (std::size_t i = 0; i < outputs; ++i) results[i].push_back(std::move((*made)[i]));
  }
  for (std::size_t i = 0; i < outputs; ++i)
    context.set(static_cast<int>(i), Value::sequence(std::move(results[i])));
}

void optional(OpContext& context) { context.set(0, context.has(0) ? context.value(0) : Value::nothing()); }

void optional_has_element(OpContext& context) {
  context.set(0, known_bool(context.has(0) && !context.value(0).is_nothing()));
}

void optional_get_element(OpContext& context) {
  const Value value = context.value(0);
  if (context.require(!value.is_nothing(), "the optional holds nothing")) context.set(0, value);
}

constexpr std::array kSequenceOps{
    OpHandler{"SequenceEmpty", sequence_empty},
    OpHandler{"SequenceConstruct", sequence_construct, nullptr, Takes::anything},
    OpHandler{"SequenceInsert", sequence_insert, nullptr, Takes::anything},
    OpHandler{"SequenceErase", sequence_erase, nullptr, Takes::anything},
    OpHandler{"SequenceAt", sequence_at, nullptr, Takes::anything},
    OpHandler{"SequenceLength", sequence_length, nullptr, Takes::anything},
    OpHandler{"SequenceMap", sequence_map, nullptr, Takes::anything},
    OpHandler{"SplitToSequence", split_to_sequence, nullptr, Takes::anything},
    OpHandler{"ConcatFromSequence", concat_from_sequence, nullptr, Takes::anything},
    OpHandler{"Optional", optional, nullptr, Takes::anything},
    OpHandler{"OptionalHasElement", optional_has_element, nullptr, Takes::anything},
    OpHandler{"OptionalGetElement", optional_get_element, nullptr, Takes::anything},
};

}  // namespace

std::span<const OpHandler> sequence_ops() { return kSequenceOps; }

}  // namespace imprint::onnx
