#include "compute/tensor/pages/library_page.h"

#include <memory>

#include "compute/base/text.h"
#include "compute/tensor/build.h"
#include "compute/tensor/named_axes.h"

namespace imprint {

using namespace tensor;

namespace {

// Empty if the page is sound.
Tensor refused(const LibraryPage& page) {
  const std::string name = "page '" + page.name + "'";
  if (page.outputs.empty())
    return failure(ErrorCode::invalid_argument, name, "found no outputs, expected at least one");
  if (!page.expand && (page.groups < 1 || page.group_size < 1))
    return failure(ErrorCode::invalid_argument, name,
                   text("found ", page.groups, " groups of ", page.group_size, ", expected at least 1 of 1"));
  if (!page.has_kernel() && !page.expand && !page.cpu)
    return failure(ErrorCode::invalid_argument, name, "found neither glsl nor cpu, expected one");
  for (const PageOutput& output : page.outputs)
    if (output.dtype == DType::int64)
      return failure(ErrorCode::dtype_mismatch, name,
                     "found an output of int64, expected another type. Kernels have no int64.");
    else if (!dtype_has_tensors(output.dtype))
      return failure(
          ErrorCode::dtype_mismatch, name,
          text("found an output of ", dtype_name(output.dtype), ", which is a type in files only"));
  return Tensor();
}

// Gives the outputs the names of the inputs' axes. Empty if the page takes them.
Tensor name_outputs(LibraryPage& page, std::span<const Tensor> inputs) {
  if (page.keeps_names) return Tensor();
  for (const Tensor& input : inputs)
    for (int axis = 0; axis < input.rank(); ++axis) {
      const AxisName name = input.shape().name(axis);
      if (!name) continue;
      if (!page.by_rows || axis > 0)
        return failure(
            ErrorCode::unsupported, text("page '", page.name, "'"),
            text("found ", describe(input), " with axis ", axis, " named '", named_axis(name).text(),
                 "', expected ", page.by_rows ? "a name only for the first axis" : "fixed extents",
                 ". Give the axis a number instead of an Extent."));
      for (PageOutput& output : page.outputs)
        if (output.shape.rank() > 0 && output.shape[0] == input.extent(0)) output.shape.set_name(0, name);
    }
  return Tensor();
}

}  // namespace

Tensor tensor::page_output(const NodeRef& page, std::size_t output) {
  if (output == 0) return Tensor(page);
  const PageOutput& entry = page->page->outputs[output];
  return make(Op::page_output, {Tensor(page)},
              {.ints = {static_cast<std::int64_t>(output)}, .shape = entry.shape, .dtype = entry.dtype});
}

std::vector<Tensor> run_page(Page page, std::span<const Tensor> inputs) {
  return tensor::run_page(LibraryPage(std::move(page)), inputs);
}

std::vector<Tensor> tensor::run_page(LibraryPage page, std::span<const Tensor> inputs) {
  std::vector<Tensor> outputs;
  const std::size_t count = std::max<std::size_t>(1, page.outputs.size());
  if (const Tensor* failed = first_error(inputs)) return std::vector<Tensor>(count, *failed);
  if (Tensor error = refused(page); !is_empty(error)) return std::vector<Tensor>(count, error);
  if (Tensor error = name_outputs(page, inputs); !is_empty(error)) return std::vector<Tensor>(count, error);
  const Tensor made =
      make(Op::page, inputs, {.shape = page.outputs[0].shape, .dtype = page.outputs[0].dtype});
  if (!made.ok()) return std::vector<Tensor>(count, made);
  Node& node = const_cast<Node&>(*made.node());  // not shared yet
  node.label = page.name;
  node.page = std::make_shared<const LibraryPage>(std::move(page));
  for (std::size_t i = 0; i < count; ++i) outputs.push_back(page_output(made.node(), i));
  return outputs;
}

}  // namespace imprint
