#include <algorithm>
#include <utility>

#include "compute/base/host_memory.h"
#include "compute/program/loop_parts.h"
#include "compute/program/session_impl.h"
#include "compute/tensor/int64_words.h"

namespace imprint {

using namespace graph;
using namespace program;
using namespace tensor;

namespace {

constexpr std::size_t kMaxCached = 256;  // most cached structures; beyond that the cache starts empty

}  // namespace

Result<std::vector<HostTensor>> Session::evaluate(std::span<const Tensor> tensors) {
  return within_host_memory("evaluate", [&] { return impl_->evaluate(*this, tensors); });
}

Result<std::vector<HostTensor>> Session::Impl::evaluate(Session& session, std::span<const Tensor> tensors) {
  ProgramDescription whole{.name = "evaluate", .slot_count = 1};
  whole.outputs.assign(tensors.begin(), tensors.end());
  if (has_loops(whole)) {
    IMPRINT_ASSIGN(Program program, Program::compile(runtime, whole));
    return session.run(program, {});
  }
  // Constants become inputs: the key is then the structure alone, and new numbers run the cached program.
  ProgramGraph source;
  source.name = "evaluate";
  source.slot_count = 1;
  std::vector<NodeRef> constants;
  IMPRINT_ASSIGN(source.graph, build_graph(tensors, &constants));
  std::vector<HostTensor> values;
  for (const NodeRef& constant : constants) {
    const bool is_wide = constant->dtype == DType::int64;
    values.push_back(host_tensor(is_wide ? DType::int32 : constant->dtype,
                                 is_wide ? shape_of_words(constant->shape) : constant->shape,
                                 constant->constant->bytes));
  }

  Hash128 key = source.graph.hash();
  for (std::size_t i = 0; i < tensors.size(); ++i)  // int64 and its words have one graph
    if (tensors[i].dtype() == DType::int64)
      key = Hasher().number(key.low).number(key.high).number(i).digest();
  auto found = evaluated.find(key);
  if (found == evaluated.end()) {
    std::uint64_t offset = 0;
    const auto port = [&](const std::string& name, DType dtype, const Shape& shape) {
      const std::uint64_t bytes = tensor_bytes(shape, dtype);
      Port result{name, dtype, shape, offset, bytes};
      offset += (bytes + 255) / 256 * 256;
      return result;
    };
    for (NodeIndex n = 0; n < source.graph.size(); ++n) {
      const GraphNode& node = source.graph[n];
      if (node.op == Op::variable) source.request.variables.push_back(node.source->variable);
      if (node.op == Op::input && !node.source->constant)
        return make_error(ErrorCode::invalid_argument, "evaluate: found input '" + node.source->label +
                                                           "', expected none. Compile a program and run it.");
      if (node.op == Op::input) {
        source.request.inputs.push_back(n);
        source.inputs.push_back(
            port("constant " + std::to_string(source.inputs.size()), node.dtype, node.shape));
      }
    }
    offset = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      source.request.outputs.push_back({source.graph.roots[i]});
      source.outputs.push_back(port(tensors[i].node()->label, tensors[i].dtype(), tensors[i].shape()));
    }
    std::ranges::sort(source.request.variables);
    source.request.variables.erase(
        std::unique(source.request.variables.begin(), source.request.variables.end()),
        source.request.variables.end());
    if (evaluated.size() >= kMaxCached) evaluated.clear();
    IMPRINT_ASSIGN(Program compiled, compile_graph(runtime, std::move(source)));
    found = evaluated.emplace(key, std::move(compiled)).first;
  }
  return session.run(found->second, values);
}

Result<HostTensor> Session::evaluate(const Tensor& tensor) {
  IMPRINT_ASSIGN(std::vector<HostTensor> values, evaluate(std::span<const Tensor>(&tensor, 1)));
  return std::move(values[0]);
}

}  // namespace imprint
