#include <utility>

#include "compute/base/text.h"
#include "compute/cpu/lowering.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::cpu {

using namespace graph;
using namespace tensor;

namespace {

// A value of a page, and where it lies during a run.
struct PageValue {
  PageArray array;
  std::int32_t buffer = -1;
  std::int64_t offset = 0;
};

class PageStep : public Step {
 public:
  PageStep(std::shared_ptr<const LibraryPage> page, std::vector<PageValue> inputs,
           std::vector<PageValue> outputs)
      : page_(std::move(page)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  void run(const Memory& memory, Parts) const override {
    page_->cpu(bound(inputs_, memory), bound(outputs_, memory));
  }

 private:
  static std::vector<PageArray> bound(const std::vector<PageValue>& values, const Memory& memory) {
    std::vector<PageArray> arrays;
    for (const PageValue& value : values) {
      arrays.push_back(value.array);
      arrays.back().data = memory.data<Word>(value.buffer, value.offset);
    }
    return arrays;
  }

  std::shared_ptr<const LibraryPage> page_;
  std::vector<PageValue> inputs_, outputs_;
};

}  // namespace

// Computes all outputs. Those that nothing reads get memory of their own for the step.
Result<> Lowering::lower_page(const Task& task) {
  const GraphNode& entry = graph_[task.anchor];
  const std::shared_ptr<const LibraryPage>& page = entry.source->page;
  if (!page->cpu)
    return make_error(ErrorCode::unsupported,
                      text("page '", page->name,
                           "': found the CPU device and no CPU function, expected one. Set Page::cpu."));
  std::vector<PageValue> inputs, outputs;
  std::vector<std::int32_t> buffers;
  for (NodeIndex input : entry.inputs) {
    IMPRINT_ASSIGN(const Strided found, find_row_major(input));
    inputs.push_back({{graph_[input].dtype, found.shape, nullptr}, found.buffer, found.offset});
    buffers.push_back(found.buffer);
  }
  std::vector<NodeIndex> node_of(page->outputs.size(), -1);
  for (NodeIndex member : task.members)
    node_of[graph_[member].op == Op::page ? 0 : at(graph_[member].ints[0])] = member;
  for (std::size_t k = 0; k < page->outputs.size(); ++k) {
    const PageOutput& output = page->outputs[k];
    const std::int32_t into = node_of[k] >= 0 ? destination(node_of[k]) : arena_buffer(output.shape);
    outputs.push_back({{output.dtype, output.shape, nullptr}, into, 0});
    buffers.push_back(into);
    if (node_of[k] >= 0) computed_.insert_or_assign(node_of[k], row_major(into, output.shape));
  }
  add(std::make_unique<PageStep>(page, std::move(inputs), outputs), buffers);
  for (const PageValue& output : outputs)
    if (const std::int64_t count = output.array.shape.element_count();
        dtype_size(output.array.dtype) < sizeof(Word) && count > 0)
      add(narrow_step(output.buffer, count, output.array.dtype, kernels_), {output.buffer});
  for (const Store& store : task.stores) {
    const Strided& result = computed_.at(store.node);
    if (is_packed(store.node, store.place))
      pack(store, result.buffer);
    else if (const std::int32_t into = buffer_of(store.place); into != result.buffer)
      IMPRINT_CHECK(compute_copy(result, into));
  }
  return {};
}

}  // namespace imprint::cpu
