#include "compute/tensor/functions.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint {

using namespace tensor;

namespace {

constexpr std::int64_t kMostUnrolled = 1024;

Shape with_elements(std::int64_t count, const Shape& shape) {
  Shape out{count};
  for (const std::int64_t extent : shape.extents()) out.append(extent);
  return out;
}

// A node of the function, for all elements: its value has their axis first, if it depends on the inputs.
struct Mapped {
  Tensor value;
  std::vector<Tensor> each;  // of a page or loop: the node of each element
};

class Mapping {
 public:
  explicit Mapping(std::int64_t count) : count_(count) {}

  void bind(const Tensor& placeholder, Tensor value) { mapped_[placeholder.node().get()].value = value; }

  // Inputs before what uses them: ids ascend.
  void add(const NodeRef& node) {
    if (mapped_.contains(node.get()) ||
        std::ranges::none_of(node->inputs, [&](const NodeRef& input) { return is_mapped(input); }))
      return;
    Mapped& entry = mapped_[node.get()];
    if (node->shape.rank() >= Shape::kMaxRank)
      entry.value = failure(ErrorCode::shape_mismatch, "vmap",
                            text("found ", describe(*node), " in the function, expected at most ",
                                 Shape::kMaxRank - 1, " axes"));
    else
      entry.value = of_node(*node, entry);
  }

  // The value for all elements.
  Tensor all(const NodeRef& node) const {
    if (is_mapped(node)) return mapped_.at(node.get()).value;
    return expand(unsqueeze(Tensor(node), 0), with_elements(count_, node->shape));
  }

 private:
  bool is_mapped(const NodeRef& node) const { return mapped_.contains(node.get()); }

  Tensor of_node(const Node& node, Mapped& entry) {
    std::vector<Tensor> inputs;
    for (const NodeRef& input : node.inputs) {
      inputs.push_back(all(input));
      if (!inputs.back().ok()) return inputs.back();
    }
    Attributes with{node.ints, node.floats, with_elements(count_, node.shape), node.dtype};
    switch (node.op) {
      case Op::reshape:
      case Op::expand:
        return make(node.op, inputs, with);
      case Op::permute:
        for (std::int64_t& axis : with.ints) ++axis;
        with.ints.insert(with.ints.begin(), 0);
        return make(node.op, inputs, with);
      case Op::slice:
        with.ints.insert(with.ints.begin(), {0, 1});
        return make(node.op, inputs, with);
      case Op::pad:
        with.ints.insert(with.ints.begin(), {0, 0});
        return make(node.op, inputs, with);
      case Op::window:
      case Op::unwindow:
      case Op::concat:
      case Op::gather:
      case Op::scatter_add:
      case Op::cumsum:
      case Op::linear_recurrence:
        ++with.ints[0];
        return make(node.op, inputs, with);
      case Op::take:
        return taken(node);
      case Op::matmul:  // broadcasts the operand that all elements share
        return matmul(is_mapped(node.inputs[0]) ? inputs[0] : Tensor(node.inputs[0]),
                      is_mapped(node.inputs[1]) ? inputs[1] : Tensor(node.inputs[1]));
      case Op::page_output:
      case Op::loop_output:
        return of_output(node);
      default:
        break;
    }
    if (op_info(node.op).kind == OpKind::elementwise) return make(node.op, inputs, with);
    if (op_info(node.op).kind != OpKind::reduce) return unrolled(node, inputs, entry);
    for (std::int64_t& axis : with.ints) ++axis;
    return make(node.op, inputs, with);
  }

  Tensor taken(const Node& node) {
    const int axis = static_cast<int>(node.ints[0]);
    const Tensor data = Tensor(node.inputs[0]), indices = Tensor(node.inputs[1]);
    if (!is_mapped(node.inputs[1])) return take(all(node.inputs[0]), axis + 1, indices);
    if (!is_mapped(node.inputs[0])) return movedim(take(data, axis, all(node.inputs[1])), axis, 0);
    // The elements' axes one after the other.
    const std::int64_t extent = data.extent(axis);
    const Tensor lines = movedim(all(node.inputs[0]), axis + 1, 1), wanted = all(node.inputs[1]);
    Shape joined{count_ * extent};
    for (int k = 2; k < lines.rank(); ++k) joined.append(lines.extent(k));
    const Tensor inside = logical_and(wanted >= 0, wanted < static_cast<int>(extent));
    const Tensor at = where(inside, wanted + iota(wanted.shape(), 0) * static_cast<int>(extent), -1);
    Tensor out = take(reshape(lines, joined), 0, at);  // [elements, indices..., before..., after...]
    for (int k = 0; k < axis; ++k) out = movedim(out, wanted.rank() + k, 1 + k);
    return out;
  }

  // The node once per element.
  Tensor unrolled(const Node& node, std::span<const Tensor> inputs, Mapped& entry) {
    if (count_ > kMostUnrolled)
      return failure(ErrorCode::unsupported, "vmap",
                     text("found ", describe(node), " for ", count_, " elements, expected at most ",
                          kMostUnrolled, " for an operation that runs once per element"));
    for (std::int64_t i = 0; i < count_; ++i) {
      std::vector<NodeRef> own;
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        const Tensor part =
            is_mapped(node.inputs[k]) ? squeeze(narrow(inputs[k], 0, i, 1), 0) : Tensor(node.inputs[k]);
        if (!part.ok()) return part;
        own.push_back(part.node());
      }
      entry.each.emplace_back(with_inputs(node, std::move(own)));
    }
    return stack(entry.each, 0);
  }

  Tensor of_output(const Node& node) {
    std::vector<Tensor> each;
    for (const Tensor& owner : mapped_.at(node.inputs[0].get()).each)
      each.emplace_back(with_inputs(node, {owner.node()}));
    return stack(each, 0);
  }

  std::int64_t count_;
  std::unordered_map<const Node*, Mapped> mapped_;
};

// All nodes that the outputs depend on, from the node `first` on: ids ascend from inputs to users.
std::vector<NodeRef> recorded_since(std::uint64_t first, std::span<const Tensor> outputs) {
  std::unordered_map<const Node*, bool> seen;
  std::vector<NodeRef> pending, order;
  for (const Tensor& output : outputs) pending.push_back(output.node());
  while (!pending.empty()) {
    NodeRef node = std::move(pending.back());
    pending.pop_back();
    if (node->id < first || !seen.try_emplace(node.get(), true).second) continue;
    for (const NodeRef& input : node->inputs) pending.push_back(input);
    order.push_back(std::move(node));
  }
  std::ranges::sort(order, {}, [](const NodeRef& node) { return node->id; });
  return order;
}

}  // namespace

std::vector<Tensor> tensor::held_outputs(const TensorFunction& f, std::span<const Tensor> inputs) {
  std::vector<Tensor> held;
  for (const Tensor& input : inputs)
    held.push_back(input.ok() && dtype_is_float(input.dtype()) ? stop_gradient(input) : input);
  return f(held);
}

LibraryPage tensor::gradient_page(std::span<const Tensor> outputs, TensorBackward backward) {
  const std::size_t count = outputs.size();
  LibraryPage page;
  page.name = "with_gradient";
  page.keeps_names = true;
  for (const Tensor& output : outputs) page.outputs.push_back({output.shape(), output.dtype()});
  page.cpu = [count](std::span<const PageArray> in, std::span<const PageArray> out) {
    for (std::size_t k = 0; k < count; ++k)
      if (const auto elements = static_cast<std::size_t>(in[k].shape.element_count()); elements > 0)
        std::memcpy(out[k].data, in[k].data, elements * 4);
  };
  page.compose = [count](std::span<const Tensor> in) {
    return std::vector<Tensor>(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count));
  };
  page.expand = [compose = page.compose](std::span<const Tensor> in, const PageLimits&) {
    return compose(in);
  };
  page.backward = [count, backward = std::move(backward)](std::span<const Tensor> in,
                                                          std::span<const Tensor> out,
                                                          std::span<const Tensor> gradients) {
    std::vector<Tensor> given = backward(in.subspan(count), out, gradients);
    given.insert(given.begin(), count, Tensor());
    return given;
  };
  return page;
}

std::vector<Tensor> with_gradient(const TensorFunction& f, TensorBackward backward,
                                  std::span<const Tensor> inputs) {
  std::vector<Tensor> operands = held_outputs(f, inputs);
  if (operands.empty() || first_error(operands) || first_error(inputs)) return operands;
  // The outputs as they are: only the derivative sees the page.
  LibraryPage page = gradient_page(operands, std::move(backward));
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  return run_page(std::move(page), operands);
}

std::vector<Tensor> vmap(const TensorFunction& f, std::span<const Tensor> inputs, int axis) {
  std::vector<Tensor> moved, placeholders;
  std::int64_t count = -1;
  for (const Tensor& input : inputs) {
    if (!input.ok()) return {input};
    if (axis < -input.rank() || axis >= input.rank()) return {bad_axis("vmap", axis, input)};
    moved.push_back(movedim(input, axis, 0));
    if (count >= 0 && moved.back().extent(0) != count)
      return {failure(ErrorCode::shape_mismatch, "vmap",
                      text("found ", describe(input), ", expected ", count, " elements along axis ", axis,
                           " as the other inputs"))};
    count = moved.back().extent(0);
    const Shape rest(moved.back().shape().extents().subspan(1));
    placeholders.push_back(imprint::input(text("element ", placeholders.size()), rest, input.dtype()));
  }
  if (count < 1)
    return {
        failure(ErrorCode::shape_mismatch, "vmap", "found no element, expected an input with one or more")};
  std::vector<Tensor> outputs = f(placeholders);
  if (const Tensor* failed = first_error(outputs)) return std::vector<Tensor>(outputs.size(), *failed);
  Mapping mapping(count);
  for (std::size_t i = 0; i < moved.size(); ++i) mapping.bind(placeholders[i], moved[i]);
  for (const NodeRef& node : recorded_since(placeholders[0].node()->id, outputs)) mapping.add(node);
  for (Tensor& output : outputs) output = mapping.all(output.node());
  return outputs;
}

}  // namespace imprint
