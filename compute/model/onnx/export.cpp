#include "compute/model/onnx/export.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "compute/base/at.h"
#include "compute/base/quote.h"
#include "compute/base/saturated.h"
#include "compute/base/text.h"
#include "compute/model/onnx/format/write.h"
#include "compute/program/run.h"
#include "compute/tensor/node.h"
#include "compute/tensor/pages/library_page.h"
#include "compute/tensor/walk.h"

namespace imprint {

using namespace tensor;

namespace {

using onnx::Attribute;
using onnx::ElementType;
using onnx::GraphWriter;
using tensor::Node;  // onnx has one too
using Names = std::vector<std::string>;
using Extents = std::vector<std::int64_t>;

constexpr std::int64_t kExportOpset = 18, kIrVersion = 8;

ElementType type_of(DType dtype) {
  switch (dtype) {
    case DType::int32:
      return ElementType::int32;
    case DType::boolean:
      return ElementType::boolean;
    case DType::float16:
      return ElementType::float16;
    case DType::bfloat16:
      return ElementType::bfloat16;
    case DType::uint8:
      return ElementType::uint8;
    case DType::int8:
      return ElementType::int8;
    case DType::int16:
      return ElementType::int16;
    case DType::uint16:
      return ElementType::uint16;
    case DType::uint32:
      return ElementType::uint32;
    case DType::int64:
      return ElementType::int64;
    default:
      return ElementType::float32;
  }
}

Extents extents_of(const Shape& shape) { return {shape.extents().begin(), shape.extents().end()}; }

// Operations that are one operator of the same operands.
const std::unordered_map<Op, const char*>& same_operators() {
  static const std::unordered_map<Op, const char*> all{
      {Op::abs, "Abs"},          {Op::neg, "Neg"},
      {Op::sign, "Sign"},        {Op::ceil, "Ceil"},
      {Op::floor, "Floor"},      {Op::round, "Round"},
      {Op::sqrt, "Sqrt"},        {Op::recip, "Reciprocal"},
      {Op::exp, "Exp"},          {Op::log, "Log"},
      {Op::sin, "Sin"},          {Op::cos, "Cos"},
      {Op::tan, "Tan"},          {Op::asin, "Asin"},
      {Op::acos, "Acos"},        {Op::atan, "Atan"},
      {Op::sinh, "Sinh"},        {Op::cosh, "Cosh"},
      {Op::tanh, "Tanh"},        {Op::asinh, "Asinh"},
      {Op::acosh, "Acosh"},      {Op::atanh, "Atanh"},
      {Op::erf, "Erf"},          {Op::sigmoid, "Sigmoid"},
      {Op::is_nan, "IsNaN"},     {Op::is_inf, "IsInf"},
      {Op::logical_not, "Not"},  {Op::bit_not, "BitwiseNot"},
      {Op::add, "Add"},          {Op::sub, "Sub"},
      {Op::mul, "Mul"},          {Op::div, "Div"},
      {Op::pow, "Pow"},          {Op::minimum, "Min"},
      {Op::maximum, "Max"},      {Op::equal, "Equal"},
      {Op::less, "Less"},        {Op::less_equal, "LessOrEqual"},
      {Op::greater, "Greater"},  {Op::greater_equal, "GreaterOrEqual"},
      {Op::logical_and, "And"},  {Op::logical_or, "Or"},
      {Op::logical_xor, "Xor"},  {Op::bit_and, "BitwiseAnd"},
      {Op::bit_or, "BitwiseOr"}, {Op::bit_xor, "BitwiseXor"},
      {Op::where, "Where"},      {Op::stop_gradient, "Identity"},
  };
  return all;
}

class Exporter {
 public:
  explicit Exporter(const OnnxExport& what) : what_(what), bytes_left_(what.constant_limit_bytes) {}

  Result<std::vector<std::byte>> run() {
    for (const OnnxValue& input : what_.inputs) graph_.reserve(input.name);
    for (const OnnxValue& output : what_.outputs) graph_.reserve(output.name);
    IMPRINT_CHECK(take_inputs());
    for (const OnnxValue& output : what_.outputs) IMPRINT_CHECK(write_up_to(output.tensor));
    if (!missing_.empty()) {
      std::string list;
      for (const auto& [name, count] : missing_)
        list += text(list.empty() ? "" : ", ", name, " (", count, ")");
      return make_error(ErrorCode::unsupported,
                        text("outputs: found operations without an operator of ONNX: ", list,
                             ", expected none. Compute these parts outside of the model."));
    }
    for (const OnnxValue& output : what_.outputs) {
      if (!used_.insert(output.name).second) return twice(output.name);
      graph_.output(output.name, name_of(*output.tensor.node()), type_of(output.tensor.dtype()),
                    axes_of(output.tensor.shape()));
    }
    onnx::Model model;
    model.ir_version = kIrVersion;
    model.producer = "imprint";
    model.opsets[""] = kExportOpset;
    model.graph = std::move(graph_).graph();
    model.graph.name = "imprint";
    return serialize(model);
  }

 private:
  static Error twice(const std::string& name) {
    return make_error(
        ErrorCode::invalid_argument,
        text("name: found ", quote(name), " twice, expected names of one input or output each"));
  }
  // Reshapes and expansions are written with numbers, which would hold for the bound alone.
  static Result<> check_fixed(const OnnxValue& input) {
    const Shape& shape = input.tensor.shape();
    if (!shape.is_named()) return {};
    return make_error(ErrorCode::unsupported,
                      text("input ", quote(input.name), ": found a named extent in ", shape.text(),
                           ", expected fixed extents. Compute the outputs again from an input of the extents "
                           "that the file is for."));
  }
  static std::vector<GraphWriter::Axis> axes_of(const Shape& shape) {
    std::vector<GraphWriter::Axis> axes;
    for (const std::int64_t extent : shape.extents()) axes.push_back({extent});
    return axes;
  }

  Result<> take_inputs() {
    for (const OnnxValue& input : what_.inputs) {
      if (!input.tensor.ok()) return input.tensor.error();
      if (input.tensor.node()->op != Op::input)
        return make_error(ErrorCode::invalid_argument,
                          text("input ", quote(input.name), ": found ", op_info(input.tensor.node()->op).name,
                               ", expected a tensor made by input()"));
      IMPRINT_CHECK(check_fixed(input));
      if (!used_.insert(input.name).second) return twice(input.name);
      names_[input.tensor.node().get()] =
          graph_.input(input.name, axes_of(input.tensor.shape()), type_of(input.tensor.dtype()));
    }
    for (const OnnxValue& output : what_.outputs)
      if (!output.tensor.ok()) return output.tensor.error();
    return {};
  }

  // The nodes that the value needs, each after its inputs, whose numbers are smaller.
  Result<> write_up_to(const Tensor& value) {
    std::vector<const Node*> all, open;
    const auto visit = [&](const NodeRef& node) {
      if (visited_.insert(node.get()).second) open.push_back(node.get());
    };
    visit(value.node());
    while (!open.empty()) {
      all.push_back(open.back());
      open.pop_back();
      for (const NodeRef& input : all.back()->inputs) visit(input);
    }
    std::ranges::sort(all, {}, &Node::id);
    for (const Node* node : all) IMPRINT_CHECK(write(*node));
    return {};
  }

  // A page that is also a composition of other operations, as these. output: of the page.
  Result<> write_composed(const Node& page, std::size_t output, const Node& as) {
    std::vector<Tensor>& parts = composed_[&page];
    if (parts.empty()) {
      std::vector<Tensor> inputs;
      for (const NodeRef& input : page.inputs) inputs.emplace_back(input);
      parts = page.page->compose(inputs);
    }
    IMPRINT_CHECK(write_up_to(parts[output]));
    names_[&as] = name_of(*parts[output].node());
    return {};
  }

  const std::string& name_of(const Node& node) const { return names_.at(&node); }
  const std::string& operand(const Node& node, std::size_t slot) const { return name_of(*node.inputs[slot]); }
  Names operands(const Node& node) const {
    Names names;
    for (const NodeRef& input : node.inputs) names.push_back(name_of(*input));
    return names;
  }
  std::string op(const std::string& type, const Names& inputs, std::vector<Attribute> attributes = {}) {
    return graph_.node(type, inputs, std::move(attributes));
  }
  std::string cast(const std::string& x, ElementType to) {
    return op("Cast", {x}, {GraphWriter::attribute("to", static_cast<std::int64_t>(to))});
  }
  // False: the file has more constants than may be, which write() tells.
  bool may_make(std::uint64_t bytes) {
    is_too_large_ = is_too_large_ || bytes > bytes_left_;
    if (!is_too_large_) bytes_left_ -= bytes;
    return !is_too_large_;
  }
  std::string constant(ElementType type, const Extents& extents, std::span<const std::byte> bytes) {
    return may_make(bytes.size()) ? graph_.constant(type, extents, bytes) : "";
  }
  std::string constant(const Shape& shape, DType dtype, std::span<const std::byte> bytes) {
    return constant(type_of(dtype), extents_of(shape), bytes);
  }
  std::string int_constant(const Extents& extents, const std::vector<std::int32_t>& values) {
    return constant(ElementType::int32, extents, std::as_bytes(std::span(values)));
  }
  std::string scalar(double value, DType dtype) {
    const auto number = static_cast<float>(value);
    const bool is_key = number == number && (number != 0 || !std::signbit(number));  // -0 equals 0
    if (dtype == DType::float32)
      return is_key ? graph_.number(number)
                    : constant(ElementType::float32, {}, std::as_bytes(std::span(&number, 1)));
    const std::string whole = graph_.whole(static_cast<std::int32_t>(value));
    return dtype == DType::int32 ? whole : cast(whole, type_of(dtype));
  }
  std::string expanded(const std::string& x, const Shape& shape) {
    return shape.rank() == 0 ? x : op("Expand", {x, graph_.longs(extents_of(shape))});
  }

  Result<> write(const Node& node) {
    if (names_.contains(&node)) return {};
    if (node.op == Op::input)
      return make_error(ErrorCode::not_found,
                        text("input ", quote(node.label), ": found it in an output, expected it in inputs"));
    if (node.op == Op::variable) {
      IMPRINT_ASSIGN(names_[&node], variable(*node.variable));
      return {};
    }
    const bool is_output = node.op == Op::page_output;
    if (const Node& page = is_output ? *node.inputs[0] : node; page.op == Op::page && page.page->compose)
      return write_composed(page, is_output ? at(node.ints[0]) : 0, node);
    names_[&node] = written(node);
    if (is_too_large_)
      return make_error(
          ErrorCode::out_of_host_memory,
          text("outputs: found constants of more than ", what_.constant_limit_bytes,
               " bytes, expected at most these, which is constant_limit_bytes. Use smaller shapes, or "
               "raise the limit if you trust the model"));
    if (names_[&node].empty()) {
      ++missing_[std::string(op_info(node.op).name)];
      names_[&node] = "missing";
    }
    return {};
  }

  Result<std::string> variable(const VariableState& state) {
    if (what_.read_variable) {
      IMPRINT_ASSIGN(const std::vector<std::byte> bytes, what_.read_variable(state));
      return constant(state.shape, state.dtype, bytes);
    }
    if (state.initial.size() != state.bytes())
      return make_error(ErrorCode::invalid_argument,
                        text("variable ", quote(state.name), ": found no content on the host, expected ",
                             state.bytes(), " bytes. Give read_variable."));
    return constant(state.shape, state.dtype, state.initial);
  }

  // Empty: there is no such operator.
  std::string written(const Node& node) {
    if (const auto same = same_operators().find(node.op); same != same_operators().end())
      return op(same->second, operands(node));
    switch (op_info(node.op).kind) {
      case OpKind::leaf:
        return node.op == Op::constant ? constant(node.shape, node.dtype, node.constant->bytes) : "";
      case OpKind::generate:
        return generated(node);
      case OpKind::elementwise:
        return elementwise(node);
      case OpKind::view:
        return view(node);
      case OpKind::select:
        return selected(node);
      case OpKind::reduce:
        return reduced(node);
      case OpKind::contract:
        return product(node);
      case OpKind::scan:
        return scanned(node);
      case OpKind::scatter:
        return node.op == Op::unwindow ? unwindowed(node) : scattered(node);
      default:
        return "";
    }
  }

  std::string generated(const Node& node) {
    if (node.op == Op::full) return expanded(scalar(node.floats[0], node.dtype), node.shape);
    if (node.op != Op::iota) return "";
    constexpr std::int64_t kLongestList = 1024;  // a file may ask for billions of indices
    const auto axis = static_cast<int>(node.ints[0]);
    const std::int64_t count = node.shape[axis];
    Extents extents(at(node.shape.rank()), 1);
    extents[at(axis)] = count;
    if (count > kLongestList) {
      const auto whole = [&](std::int64_t value) { return scalar(static_cast<double>(value), DType::int32); };
      const std::string range = op("Range", {whole(0), whole(count), whole(1)});
      return expanded(op("Reshape", {range, graph_.longs(extents)}), node.shape);
    }
    std::vector<std::int32_t> indices(at(count));
    std::iota(indices.begin(), indices.end(), 0);
    return expanded(int_constant(extents, indices), node.shape);
  }

  std::string elementwise(const Node& node) {
    const std::string& x = operand(node, 0);
    const bool floats = node.inputs[0]->dtype == DType::float32;
    const auto y = [&] { return operand(node, 1); };
    switch (node.op) {
      case Op::cast:
        return cast(x, type_of(node.dtype));
      case Op::not_equal:
        return op("Not", {op("Equal", {x, y()})});
      case Op::trunc:
        return op("Mul", {op("Sign", {x}), op("Floor", {op("Abs", {x})})});
      case Op::expm1:
        return op("Sub", {op("Exp", {x}), graph_.number(1)});
      case Op::log1p:
        return op("Log", {op("Add", {x, graph_.number(1)})});
      case Op::remainder:
        return floats ? op("Sub", {x, op("Mul", {op("Floor", {op("Div", {x, y()})}), y()})})
                      : op("Mod", {x, y()});
      case Op::fmod:
        return op("Mod", {x, y()}, {GraphWriter::attribute("fmod", std::int64_t{1})});
      case Op::logaddexp: {
        const std::string apart = op("Neg", {op("Abs", {op("Sub", {x, y()})})});
        return op("Add",
                  {op("Max", {x, y()}), op("Log", {op("Add", {op("Exp", {apart}), graph_.number(1)})})});
      }
      case Op::shift_left:
        return cast(op("BitShift", {cast(x, ElementType::uint32), cast(y(), ElementType::uint32)},
                       {GraphWriter::attribute("direction", "LEFT")}),
                    ElementType::int32);
      case Op::shift_right: {
        // A negative number is shifted as its complement, which is not negative.
        const std::string negative = op("Less", {x, scalar(0, DType::int32)});
        const std::string positive = op("Where", {negative, op("BitwiseNot", {x}), x});
        const std::string shifted =
            cast(op("BitShift", {cast(positive, ElementType::uint32), cast(y(), ElementType::uint32)},
                    {GraphWriter::attribute("direction", "RIGHT")}),
                 ElementType::int32);
        return op("Where", {negative, op("BitwiseNot", {shifted}), shifted});
      }
      default:
        return "";
    }
  }

  std::string view(const Node& node) {
    const std::string& x = operand(node, 0);
    switch (node.op) {
      case Op::reshape:
        return op("Reshape", {x, graph_.longs(extents_of(node.shape))},
                  {GraphWriter::attribute("allowzero", std::int64_t{1})});
      case Op::permute:
        return op("Transpose", {x}, {GraphWriter::attribute("perm", node.ints)});
      case Op::expand:
        return expanded(x, node.shape);
      case Op::slice:
        return sliced(node);
      default:
        return windows(node);
    }
  }

  std::string sliced(const Node& node) {
    Extents starts, ends, axes, steps;
    for (int axis = 0; axis < node.shape.rank(); ++axis) {
      const std::int64_t start = node.ints[2 * at(axis)], step = node.ints[2 * at(axis) + 1];
      if (start == 0 && step == 1 && node.shape[axis] == node.inputs[0]->shape[axis]) continue;
      if (step == 0) return "";
      const std::int64_t end = start + node.shape[axis] * step;
      starts.push_back(start);
      ends.push_back(end < 0 ? INT64_MIN + 1 : end);  // below the first element
      axes.push_back(axis);
      steps.push_back(step);
    }
    if (axes.empty()) return op("Identity", {operand(node, 0)});
    return op("Slice", {operand(node, 0), graph_.longs(starts), graph_.longs(ends), graph_.longs(axes),
                        graph_.longs(steps)});
  }

  // The indices [positions, size] of all windows.
  std::string window_indices(std::int64_t positions, const Node& node, const Extents& extents) {
    if (!may_make(saturated_product(saturated_product(static_cast<std::uint64_t>(positions),
                                                      static_cast<std::uint64_t>(node.ints[1])),
                                    sizeof(std::int32_t))))
      return "";
    std::vector<std::int32_t> indices;
    for (std::int64_t position = 0; position < positions; ++position)
      for (std::int64_t i = 0; i < node.ints[1]; ++i)
        indices.push_back(static_cast<std::int32_t>(position * node.ints[2] + i * node.ints[3]));
    return graph_.constant(ElementType::int32, extents, std::as_bytes(std::span(indices)));
  }

  std::string windows(const Node& node) {
    const std::int64_t axis = node.ints[0], positions = node.shape[static_cast<int>(axis)];
    const std::string gathered =
        op("Gather", {operand(node, 0), window_indices(positions, node, {positions, node.ints[1]})},
           {GraphWriter::attribute("axis", axis)});
    // [.., positions, size, ..] -> [.., positions, .., size]
    Extents order;
    for (std::int64_t a = 0; a < node.shape.rank(); ++a)
      if (a != axis + 1) order.push_back(a);
    order.push_back(axis + 1);
    return op("Transpose", {gathered}, {GraphWriter::attribute("perm", order)});
  }

  // Windows are added where they came from.
  std::string unwindowed(const Node& node) {
    const Shape& from = node.inputs[0]->shape;
    const std::int64_t axis = node.ints[0], positions = from[static_cast<int>(axis)], size = node.ints[1],
                       last = from.rank() - 1;
    Extents order, flat;
    for (std::int64_t a = 0; a < last; ++a) {
      order.push_back(a);
      if (a == axis) order.push_back(last);
      flat.push_back(a == axis ? positions * size : from[static_cast<int>(a)]);
    }
    const std::string updates =
        graph_.reshape(op("Transpose", {operand(node, 0)}, {GraphWriter::attribute("perm", order)}), flat);
    Extents thin(flat.size(), 1);
    thin[at(axis)] = positions * size;
    const std::string indices = op("Expand", {window_indices(positions, node, thin), graph_.longs(flat)});
    return op("ScatterElements", {expanded(scalar(0, node.dtype), node.shape), indices, updates},
              {GraphWriter::attribute("axis", axis), GraphWriter::attribute("reduction", "add")});
  }

  // Indices outside of an axis, and indices with those at 0. Constant indices inside need neither.
  struct Indices {
    std::string inside, safe;
  };
  Indices checked(const Node& indices, std::int64_t extent) {
    const std::string& given = name_of(indices);
    if (indices.op == Op::constant && indices.dtype == DType::int32) {
      const auto bytes = std::span<const std::byte>(indices.constant->bytes);
      const std::span<const std::int32_t> values(reinterpret_cast<const std::int32_t*>(bytes.data()),
                                                 bytes.size() / sizeof(std::int32_t));
      if (std::ranges::all_of(values, [&](std::int32_t i) { return i >= 0 && i < extent; }))
        return {"", given};
    }
    const std::string whole = indices.dtype == DType::int32 ? given : cast(given, ElementType::int32);
    const std::string zero = scalar(0, DType::int32);
    const std::string inside =
        op("And", {op("GreaterOrEqual", {whole, zero}),
                   op("Less", {whole, scalar(static_cast<double>(extent), DType::int32)})});
    return {inside, op("Where", {inside, whole, zero})};
  }

  std::string selected(const Node& node) {
    const std::int64_t axis = node.ints.empty() ? 0 : node.ints[0];
    if (node.op == Op::concat) return op("Concat", operands(node), {GraphWriter::attribute("axis", axis)});
    if (node.op == Op::pad) {
      Extents pads;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        for (std::size_t a = 0; a < at(node.shape.rank()); ++a) pads.push_back(node.ints[2 * a + side]);
      return op("Pad", {operand(node, 0), graph_.longs(pads), scalar(node.floats[0], node.dtype)});
    }
    const Node& data = *node.inputs[0];
    if (data.shape[static_cast<int>(axis)] == 0) return expanded(scalar(0, node.dtype), node.shape);
    const Indices indices = checked(*node.inputs[1], data.shape[static_cast<int>(axis)]);
    const std::string found = op(node.op == Op::take ? "Gather" : "GatherElements",
                                 {name_of(data), indices.safe}, {GraphWriter::attribute("axis", axis)});
    if (indices.inside.empty()) return found;
    std::string inside = indices.inside;
    if (node.op == Op::take) {  // axes of 1 for those of the data after the axis
      Extents extents = extents_of(node.inputs[1]->shape);
      extents.resize(extents.size() + at(data.shape.rank() - 1 - axis), 1);
      inside = graph_.reshape(inside, extents);
    }
    return op("Where", {inside, found, scalar(0, node.dtype)});
  }

  std::string reduced(const Node& node) {
    const std::string& x = operand(node, 0);
    if (node.op == Op::argmax || node.op == Op::argmin)
      return cast(op(node.op == Op::argmax ? "ArgMax" : "ArgMin", {x},
                     {GraphWriter::attribute("axis", node.ints[0])}),
                  ElementType::int32);
    const char* type = node.op == Op::reduce_sum    ? "ReduceSum"
                       : node.op == Op::reduce_prod ? "ReduceProd"
                       : node.op == Op::reduce_max  ? "ReduceMax"
                       : node.op == Op::reduce_min  ? "ReduceMin"
                                                    : "";
    return *type == 0 ? "" : op(type, {x, graph_.longs(node.ints)});
  }

  std::string product(const Node& node) {
    Names factors = operands(node);
    for (std::size_t slot = 0; slot < factors.size(); ++slot)
      if (node.inputs[slot]->dtype != DType::float32)
        factors[slot] = cast(factors[slot], ElementType::float32);
    return op("MatMul", factors);
  }

  std::string scanned(const Node& node) {
    if (node.op != Op::cumsum) return "";
    const std::string axis = graph_.whole(static_cast<std::int32_t>(node.ints[0]));
    return op(
        "CumSum", {operand(node, 0), axis},
        {GraphWriter::attribute("exclusive", node.ints[1]), GraphWriter::attribute("reverse", node.ints[2])});
  }

  // An update outside adds 0 to the first element.
  std::string scattered(const Node& node) {
    const std::int64_t axis = node.ints[0], extent = node.shape[static_cast<int>(axis)];
    if (extent == 0) return op("Identity", {operand(node, 0)});
    const Indices indices = checked(*node.inputs[1], extent);
    std::string updates = operand(node, 2);
    if (!indices.inside.empty()) updates = op("Where", {indices.inside, updates, scalar(0, node.dtype)});
    return op("ScatterElements", {operand(node, 0), indices.safe, updates},
              {GraphWriter::attribute("axis", axis), GraphWriter::attribute("reduction", "add")});
  }

  const OnnxExport& what_;
  GraphWriter graph_;
  std::unordered_map<const Node*, std::string> names_;
  std::unordered_set<const Node*> visited_;
  std::unordered_map<const Node*, std::vector<Tensor>> composed_;  // by page
  std::set<std::string> used_;                                     // of inputs and outputs
  std::map<std::string, int> missing_;
  std::uint64_t bytes_left_;
  bool is_too_large_ = false;
};

}  // namespace

Result<std::vector<std::byte>> export_onnx(const OnnxExport& what) { return Exporter(what).run(); }

Result<std::vector<std::byte>> export_onnx(Session& session, OnnxExport what) {
  std::vector<Tensor> outputs, variables;
  for (const OnnxValue& output : what.outputs) {
    if (!output.tensor.ok()) return output.tensor.error();
    outputs.push_back(output.tensor);
  }
  for (const NodeRef* node : nodes_in_order(outputs, [](const tensor::Node&) { return true; }))
    if ((*node)->op == Op::variable) variables.emplace_back(*node);
  std::unordered_map<const VariableState*, std::vector<std::byte>> content;
  if (!variables.empty()) {
    IMPRINT_ASSIGN(const std::vector<HostTensor> values, session.evaluate(variables));
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const VariableState* state = variables[i].node()->variable.get();
      content[state] = values[i].packed(state->dtype);
    }
  }
  what.read_variable = [&](const VariableState& state) -> Result<std::vector<std::byte>> {
    return content.at(&state);
  };
  return Exporter(what).run();
}

}  // namespace imprint
