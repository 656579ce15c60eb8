#include "compute/graph/gradients/checkpoint.h"

#include <algorithm>
#include <unordered_set>

#include "compute/base/text.h"
#include "compute/graph/gradients/autodiff.h"
#include "compute/graph/passes/recompute.h"
#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint {

using namespace tensor;

namespace {

// The operations that f recorded. outside: other tensors that it read and that may have gradients.
struct Recorded {
  std::vector<Tensor> placeholders, outputs, outside;
};

Result<std::vector<Tensor>> read_from_outside(std::span<const Tensor> outputs, std::uint64_t first) {
  std::vector<Tensor> found;
  std::unordered_set<const Node*> seen;
  std::vector<NodeRef> stack;
  for (const Tensor& output : outputs) stack.push_back(output.node());
  while (!stack.empty()) {
    const NodeRef node = std::move(stack.back());
    stack.pop_back();
    if (!seen.insert(node.get()).second) continue;
    if (node->op == Op::loop)
      return make_error(ErrorCode::unsupported, "checkpoint: found a loop in the function, expected none");
    if (node->id < first || node->op == Op::variable) {
      if (node->dtype == DType::float32) found.emplace_back(node);
      continue;
    }
    for (const NodeRef& input : node->inputs) stack.push_back(input);
  }
  std::ranges::sort(found, {}, [](const Tensor& tensor) { return tensor.node()->id; });
  return found;
}

std::vector<Tensor> slopes_of(const Recorded& recorded, std::span<const Tensor> in,
                              std::span<const Tensor> gradients) {
  // The derivative is recorded between placeholders: the gradients that arrive depend on the same weights,
  // and no derivative passes through them here.
  std::vector<Tensor> ends = recorded.placeholders, values;
  for (const Tensor& tensor : recorded.outside)
    ends.push_back(input(text("checkpoint ", ends.size()), tensor.shape(), tensor.dtype()));
  for (std::size_t i = 0; i < in.size(); ++i)
    values.push_back(i < recorded.placeholders.size() ? graph::wait_for(in[i], gradients[0]) : in[i]);
  const std::vector<Tensor> again =
      substitute(recorded.outputs, recorded.outside, std::span(ends).subspan(recorded.placeholders.size()));
  std::vector<Tensor> outputs, cotangents, by;
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < in.size(); ++i)
    if (ends[i].dtype() == DType::float32) {
      by.push_back(ends[i]);
      of.push_back(i);
    }
  for (std::size_t k = 0; k < again.size(); ++k) {
    if (again[k].dtype() != DType::float32) continue;
    outputs.push_back(again[k]);
    cotangents.push_back(input(text("gradient ", k), again[k].shape()));
    ends.push_back(cotangents.back());
    values.push_back(gradients[k]);
  }
  const Result<std::vector<Tensor>> found = vjp(outputs, by, cotangents);
  if (!found) return std::vector<Tensor>(in.size(), Tensor(found.error()));
  const std::vector<Tensor> slopes = substitute(*found, ends, values);
  std::vector<Tensor> given(in.size());
  for (std::size_t i = 0; i < of.size(); ++i) given[of[i]] = slopes[i];
  return given;
}

LibraryPage checkpoint_page(std::span<const Tensor> outputs, const Recorded& recorded) {
  LibraryPage page = gradient_page(
      outputs, [recorded](std::span<const Tensor> in, std::span<const Tensor>,
                          std::span<const Tensor> gradients) { return slopes_of(recorded, in, gradients); });
  page.rewritten =
      [recorded, held = std::vector<Tensor>(outputs.begin(), outputs.end())](const TensorFunction& rewrite) {
        Recorded next = recorded;
        next.outputs = rewrite(recorded.outputs);
        next.outside = rewrite(recorded.outside);
        return std::make_shared<const LibraryPage>(checkpoint_page(held, next));
      };
  return page;
}

std::vector<Tensor> failed(std::size_t count, const Error& error) {
  return std::vector<Tensor>(std::max<std::size_t>(count, 1), Tensor(error));
}

}  // namespace

std::vector<Tensor> checkpoint(const TensorFunction& f, std::span<const Tensor> inputs) {
  if (inputs.empty())
    return {failure(ErrorCode::invalid_argument, "checkpoint", "found no inputs, expected at least one")};
  if (const Tensor* error = first_error(inputs)) return {*error};
  Recorded recorded;
  for (const Tensor& value : inputs)
    recorded.placeholders.push_back(
        input(text("checkpoint ", recorded.placeholders.size()), value.shape(), value.dtype()));
  recorded.outputs = f(recorded.placeholders);
  if (recorded.outputs.empty() || first_error(recorded.outputs)) return recorded.outputs;
  auto outside = read_from_outside(recorded.outputs, recorded.placeholders[0].node()->id);
  if (!outside) return failed(recorded.outputs.size(), outside.error());
  recorded.outside = std::move(*outside);

  std::vector<Tensor> operands(inputs.begin(), inputs.end());
  operands.insert(operands.end(), recorded.outside.begin(), recorded.outside.end());
  std::vector<Tensor> results = held_outputs(
      [&](std::span<const Tensor> held) {
        std::vector<Tensor> from = recorded.placeholders;
        from.insert(from.end(), recorded.outside.begin(), recorded.outside.end());
        return substitute(recorded.outputs, from, held);
      },
      operands);
  if (first_error(results)) return results;
  LibraryPage page = checkpoint_page(results, recorded);
  results.insert(results.end(), operands.begin(), operands.end());
  return run_page(std::move(page), results);
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& f, const Tensor& value) {
  return checkpoint([&](std::span<const Tensor> in) { return std::vector{f(in[0])}; },
                    std::span(&value, 1))[0];
}

}  // namespace imprint
