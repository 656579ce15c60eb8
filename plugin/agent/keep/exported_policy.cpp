#include "plugin/agent/keep/exported_policy.h"

#include <cmath>
#include <cstring>
#include <numbers>
#include <string>
#include <utility>

#include "compute/base/text.h"
#include "compute/model/onnx/format/write.h"
#include "plugin/agent/keep/schema.h"
#include "plugin/agent/spec/encoder.h"
#include "plugin/agent/spec/learner_traits.h"

namespace imprint::agent {
namespace {

using onnx::GraphWriter;
using OnnxExtents = GraphWriter::Extents;

constexpr std::int64_t kIrVersion = 8, kOperators = 17;

// Writes the nodes of one brain's network. Each function takes and returns names of values; the batch is
// the first axis.
class PolicyWriter {
 public:
  PolicyWriter(const BrainSpec& spec, std::span<const StateVariable> variables,
               std::span<const std::vector<std::byte>> contents, std::uint32_t brain)
      : spec_(spec), variables_(variables), contents_(contents), brain_(brain) {}

  Result<onnx::Model> model();

 private:
  // A parameter of the network. Notes one that is missing.
  std::string parameter(const std::string& name, const OnnxExtents& extents);
  std::string times(const std::string& a, const std::string& b) { return out_.node("Mul", {a, b}); }
  std::string plus(const std::string& a, const std::string& b) { return out_.node("Add", {a, b}); }
  std::string minus(const std::string& a, const std::string& b) { return out_.node("Sub", {a, b}); }
  std::string linear(const std::string& x, const std::string& name, std::int64_t in, std::int64_t out);
  std::string normalised(const std::string& x, const std::string& name, std::int64_t extent);
  std::string activated(const std::string& x);

  std::string encoded(const std::string& x);
  std::string picture(std::size_t stream, const std::string& x);
  std::string entities(std::size_t stream, const std::string& x);
  std::string ids(std::size_t stream, const std::string& x);
  std::string only_there(const std::string& there, const std::string& scores) {
    return out_.node("Where", {there, scores, out_.number(static_cast<float>(kUnseenEntity))});
  }
  // The cell's state after this step; its outputs are the first cell_size numbers.
  std::string advanced(const std::string& x, std::int64_t inputs, const std::string& state);
  std::string of_goal(const std::string& heads);
  void act(const std::string& values);

  const BrainSpec& spec_;
  std::span<const StateVariable> variables_;
  std::span<const std::vector<std::byte>> contents_;
  std::uint32_t brain_;
  GraphWriter out_;
  std::string missing_;
};

std::string PolicyWriter::parameter(const std::string& name, const OnnxExtents& extents) {
  const std::string full = "network." + name;
  std::size_t count = 1;
  for (const std::int64_t extent : extents) count *= static_cast<std::size_t>(extent);
  std::vector<float> values(count);
  const std::size_t bytes = count * sizeof(float), first = brain_ * bytes;
  for (std::size_t i = 0; i < variables_.size(); ++i)
    if (variables_[i].name == full && contents_[i].size() == bytes * spec_.brain_count) {
      std::memcpy(values.data(), contents_[i].data() + first, bytes);
      return out_.floats(full, extents, values);
    }
  missing_ = full;
  return full;
}

std::string PolicyWriter::linear(const std::string& x, const std::string& name, std::int64_t in,
                                 std::int64_t out) {
  return plus(out_.node("MatMul", {x, parameter(name + "weight", {in, out})}),
              parameter(name + "bias", {out}));
}

std::string PolicyWriter::normalised(const std::string& x, const std::string& name, std::int64_t extent) {
  const std::vector<float> gain(static_cast<std::size_t>(extent), 1.0f);
  return out_.node("LayerNormalization", {x, out_.floats(name + "gain", {extent}, gain)},
                   {GraphWriter::attribute("axis", std::int64_t{-1})});
}

std::string PolicyWriter::activated(const std::string& x) {
  switch (spec_.activation) {
    case Activation::relu:
      return out_.node("Relu", {x});
    case Activation::tanh:
      return out_.node("Tanh", {x});
    case Activation::elu:
      return out_.node("Elu", {x});
    case Activation::silu:
      return times(x, out_.node("Sigmoid", {x}));
    case Activation::gelu:
      break;
  }
  const std::string error =
      out_.node("Erf", {times(x, out_.number(static_cast<float>(std::numbers::sqrt2 / 2)))});
  return times(times(out_.number(0.5f), x), plus(out_.number(1), error));
}

// ---- encoders: spec/encoder.cpp ----

std::string PolicyWriter::encoded(const std::string& x) {
  const ObservationSpec& seen = spec_.observation;
  if (seen.streams.empty()) return x;
  const std::string all = seen.stack > 1 ? out_.reshape(x, {0, seen.stack, seen.count}) : x;
  std::vector<std::string> parts;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < seen.streams.size(); ++i) {
    const StreamSpec& stream = seen.streams[i];
    const auto count = static_cast<std::int64_t>(stream.numbers());
    const std::string own = out_.slice(all, seen.stack > 1 ? 2 : 1, first, count);
    first += count;
    switch (stream.kind) {
      case StreamKind::vector:
        parts.push_back(seen.stack > 1 ? out_.reshape(own, {0, seen.stack * count}) : own);
        break;
      case StreamKind::picture:
        parts.push_back(picture(i, own));
        break;
      case StreamKind::entities:
        parts.push_back(entities(i, own));
        break;
      case StreamKind::ids:
        parts.push_back(ids(i, own));
        break;
    }
  }
  return out_.concat(parts, 1);
}

std::string PolicyWriter::picture(std::size_t stream, const std::string& x) {
  const StreamSpec& spec = spec_.observation.streams[stream];
  const std::string name = text("stream", stream, ".");
  std::int64_t in = std::int64_t{spec.channels} * spec_.observation.stack, height = spec.height,
               width = spec.width;
  std::string y = out_.reshape(x, {0, in, height, width});
  std::size_t i = 0;
  for (const PictureLayer& layer : picture_layers(spec)) {
    const std::string part = text(name, "conv", i++, ".");
    const std::int64_t k = layer.kernel, p = layer.padding;
    y = out_.node("Relu",
                  {out_.node("Conv",
                             {y, parameter(part + "weight", {layer.channels, in, k, k}),
                              parameter(part + "bias", {layer.channels})},
                             {GraphWriter::attribute("kernel_shape", OnnxExtents{k, k}),
                              GraphWriter::attribute("strides", OnnxExtents{layer.stride, layer.stride}),
                              GraphWriter::attribute("pads", OnnxExtents{p, p, p, p})})});
    in = layer.channels;
    height = (height + 2 * p - k) / layer.stride + 1;
    width = (width + 2 * p - k) / layer.stride + 1;
  }
  const std::int64_t flat = in * height * width;
  return out_.node("Relu", {linear(out_.reshape(y, {0, flat}), name + "linear.", flat, spec.outputs())});
}

std::string PolicyWriter::entities(std::size_t stream, const std::string& x) {
  const StreamSpec& spec = spec_.observation.streams[stream];
  const std::string name = text("stream", stream, ".");
  const std::int64_t most = spec.count, size = spec.outputs(), heads = attention_heads(size),
                     extent = size / heads;
  const auto permuted = [&](const std::string& y, const OnnxExtents& order) {
    return out_.node("Transpose", {y}, {GraphWriter::attribute("perm", order)});
  };
  const auto softmax = [&](const std::string& y, std::int64_t axis) {
    return out_.node("Softmax", {y}, {GraphWriter::attribute("axis", axis)});
  };
  const std::string count = out_.slice(x, 1, 0, 1);
  std::vector<float> middles;
  for (std::int64_t i = 0; i < most; ++i) middles.push_back(static_cast<float>(i) + 0.5f);
  const std::string there =
      out_.node("Less", {out_.floats(text(name, "middles"), {1, most}, middles), count});

  const std::string given = out_.reshape(out_.slice(x, 1, 1, most * spec.features), {0, most, spec.features});
  const std::string embedded = out_.node("Relu", {linear(given, name + "embed.", spec.features, size)});
  const auto by_head = [&](const char* part, const OnnxExtents& order) {
    const std::string all = out_.node("MatMul", {embedded, parameter(name + part, {size, size})});
    return permuted(out_.reshape(all, {0, most, heads, extent}), order);
  };
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(extent)));
  const std::string scores =
      times(out_.node("MatMul", {by_head("query", {0, 2, 1, 3}), by_head("key", {0, 2, 3, 1})}),
            out_.number(scale));
  const std::string weights = softmax(only_there(out_.reshape(there, {0, 1, 1, most}), scores), 3);
  const std::string told = out_.node("MatMul", {weights, by_head("value", {0, 2, 1, 3})});
  const std::string related =
      plus(embedded, out_.node("MatMul", {out_.reshape(permuted(told, {0, 2, 1, 3}), {0, most, size}),
                                          parameter(name + "out", {size, size})}));
  const std::string rated = out_.node("MatMul", {related, parameter(name + "pool", {size, heads})});
  const std::string shares = softmax(only_there(out_.reshape(there, {0, most, 1}), rated), 1);
  const std::string weighed =
      times(out_.reshape(shares, {0, most, heads, 1}), out_.reshape(related, {0, most, heads, extent}));
  const std::string pooled = out_.node("ReduceSum", {weighed, out_.longs({1})},
                                       {GraphWriter::attribute("keepdims", std::int64_t{0})});
  const std::string any = out_.node("Cast", {out_.node("Greater", {count, out_.number(0.5f)})},
                                    {GraphWriter::attribute("to", std::int64_t{1})});
  return times(out_.reshape(pooled, {0, size}), any);
}

std::string PolicyWriter::ids(std::size_t stream, const std::string& x) {
  const StreamSpec& spec = spec_.observation.streams[stream];
  const std::int64_t count = std::int64_t{spec.count} * spec_.observation.stack, size = spec.outputs();
  const std::string numbers = spec_.observation.stack > 1 ? out_.reshape(x, {0, count}) : x;
  const std::string last = out_.number(static_cast<float>(spec.vocabulary - 1));
  const std::string wanted =
      out_.node("Cast", {out_.node("Clip", {out_.node("Round", {numbers}), out_.number(0), last})},
                {GraphWriter::attribute("to", std::int64_t{7})});
  const std::string table = parameter(text("stream", stream, ".table"), {spec.vocabulary, size});
  return out_.reshape(out_.node("Gather", {table, wanted}), {0, count * size});
}

// ---- the cell: spec/recurrent_cell.cpp ----

std::string PolicyWriter::advanced(const std::string& x, std::int64_t inputs, const std::string& state) {
  const std::int64_t size = spec_.cell_size, gates = spec_.gate_count() * size;
  const auto projected = [&](const std::string& y, const char* suffix, std::int64_t in) {
    return plus(out_.node("MatMul", {y, parameter(text("cell.weight", suffix), {in, gates})}),
                parameter(text("cell.bias", suffix), {gates}));
  };
  const auto gate = [&](const std::string& y, std::int64_t i) { return out_.slice(y, 1, i * size, size); };
  const auto sigmoid = [&](const std::string& y) { return out_.node("Sigmoid", {y}); };
  const std::string hidden = out_.slice(state, 1, 0, size);
  const std::string given = projected(x, "_ih", inputs), recurrent = projected(hidden, "_hh", size);
  if (spec_.cell == Cell::gru) {
    const std::string reset = sigmoid(plus(gate(given, 0), gate(recurrent, 0)));
    const std::string update = sigmoid(plus(gate(given, 1), gate(recurrent, 1)));
    const std::string fresh = out_.node("Tanh", {plus(gate(given, 2), times(reset, gate(recurrent, 2)))});
    return plus(fresh, times(update, minus(hidden, fresh)));
  }
  const std::string both = plus(given, recurrent);
  const std::string cells = plus(times(sigmoid(gate(both, 1)), out_.slice(state, 1, size, size)),
                                 times(sigmoid(gate(both, 0)), out_.node("Tanh", {gate(both, 2)})));
  return out_.concat({times(sigmoid(gate(both, 3)), out_.node("Tanh", {cells})), cells}, 1);
}

std::string PolicyWriter::of_goal(const std::string& heads) {
  if (spec_.goal_count == 1) return heads;
  const std::int64_t goals = spec_.goal_count;
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < goals; ++i) numbers.push_back(static_cast<float>(i));
  const std::string goal = out_.input("obs_1", {{.symbol = "batch"}, {1}});
  const std::string in_range =
      out_.node("Clip", {out_.node("Round", {goal}), out_.number(0), out_.number(numbers.back())});
  const std::string chosen =
      out_.node("Cast", {out_.node("Equal", {in_range, out_.floats("goals", {1, goals}, numbers)})},
                {GraphWriter::attribute("to", std::int64_t{1})});
  return out_.node(
      "ReduceSum",
      {times(out_.reshape(heads, {0, goals, spec_.head_count()}), out_.reshape(chosen, {0, goals, 1})),
       out_.longs({1})},
      {GraphWriter::attribute("keepdims", std::int64_t{0})});
}

void PolicyWriter::act(const std::string& values) {
  const ActionSpec& action = spec_.action;
  const std::int64_t choices = action.choice_count(), numbers = action.continuous_count;
  const GraphWriter::Axis batch{.symbol = "batch"};
  if (numbers > 0) {
    const std::string drawn = out_.slice(values, 1, choices, numbers);
    out_.output("continuous_actions",
                network_traits(spec_).squashed_actions
                    ? out_.node("Tanh", {drawn})
                    : out_.node("Clip", {drawn, out_.number(-1), out_.number(1)}),
                onnx::ElementType::float32, {batch, {numbers}});
  }
  if (choices > 0) {
    std::vector<std::string> best;
    for (std::size_t b = 0; b < action.branch_sizes.size(); ++b)
      best.push_back(out_.node("ArgMax",
                               {out_.slice(values, 1, action.branch_offset(b), action.branch_sizes[b])},
                               {GraphWriter::attribute("axis", std::int64_t{1})}));
    out_.output("discrete_actions", out_.concat(best, 1), onnx::ElementType::int64,
                {batch, {static_cast<std::int64_t>(best.size())}});
  }
  out_.output("values", values, onnx::ElementType::float32, {batch, {choices + numbers}});
}

Result<onnx::Model> PolicyWriter::model() {
  const ObservationSpec& seen = spec_.observation;
  const GraphWriter::Axis batch{.symbol = "batch"};
  const std::int64_t width = seen.width(), before = width - seen.count, state = before + spec_.state_count();
  std::string x = out_.input("obs_0", {batch, {seen.count}});
  std::vector<std::string> next;
  if (state > 0) out_.input("recurrent_in", {batch, {state}});
  if (before > 0) {
    x = out_.concat({out_.slice("recurrent_in", 1, 0, before), x}, 1);
    next.push_back(out_.slice(x, 1, seen.count, before));
  }
  if (!seen.scale.empty()) {
    std::vector<float> factors;
    for (std::uint32_t i = 0; i < seen.stack; ++i)
      factors.insert(factors.end(), seen.scale.begin(), seen.scale.end());
    x = times(x, out_.floats("observation_scale", {width}, factors));
  }
  x = encoded(x);
  auto last = static_cast<std::int64_t>(seen.encoded_count());
  std::size_t position = 0;
  for (const std::uint32_t size : spec_.hidden_sizes) {
    x = linear(x, text(position++, "."), last, size);
    if (network_traits(spec_).normalised_layers) x = normalised(x, text(position++, "."), size);
    x = activated(x);
    ++position;  // an activation has one of its own
    last = size;
  }
  if (spec_.has_cell()) {
    const std::string own =
        before > 0 ? out_.slice("recurrent_in", 1, before, spec_.state_count()) : "recurrent_in";
    next.push_back(advanced(x, last, own));
    x = out_.slice(next.back(), 1, 0, spec_.cell_size);
    last = spec_.cell_size;
  }
  const std::int64_t outputs = spec_.head_count(), all = spec_.goal_count * outputs;
  std::string values = of_goal(linear(x, text(position, "."), last, all));
  if (outputs > spec_.action.output_count()) values = out_.slice(values, 1, 0, spec_.action.output_count());
  act(values);
  if (state > 0)
    out_.output("recurrent_out", out_.concat(next, 1), onnx::ElementType::float32, {batch, {state}});
  if (!missing_.empty())
    return make_error(ErrorCode::internal, text("export: found no content of ", missing_));

  onnx::Model made;
  made.ir_version = kIrVersion;
  made.producer = "Imprint";
  made.opsets[""] = kOperators;
  made.graph = std::move(out_).graph();
  made.graph.name = spec_.name;
  made.metadata = {{"imprint.name", spec_.name}, {"imprint.schema", schema_text(spec_)}};
  return made;
}

}  // namespace

Result<onnx::Model> export_policy(const BrainSpec& spec, std::span<const StateVariable> variables,
                                  std::span<const std::vector<std::byte>> contents, std::uint32_t brain) {
  if (brain >= spec.brain_count)
    return make_error(ErrorCode::invalid_argument,
                      text("export: brain: found ", brain, ", expected less than ", spec.brain_count));
  return PolicyWriter(spec, variables, contents, brain).model();
}

}  // namespace imprint::agent
