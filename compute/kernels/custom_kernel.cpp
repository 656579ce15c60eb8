// A caller's own GLSL, once a row: its inputs are gathered into arrays, its result is taken apart.

#include "compute/kernels/emitter.h"

namespace imprint {
namespace {

constexpr std::int64_t kUnrolled = 16;  // longer arrays are filled in loops

}  // namespace

std::string Emitter::custom_text() const {
  if (task_.anchor < 0 || graph_[task_.anchor].op != Op::custom) return {};
  const std::vector<std::byte>& text = graph_[task_.anchor].source->constant->bytes;
  return std::string(reinterpret_cast<const char*>(text.data()), text.size()) + "\n";
}

void Emitter::custom_body(int workgroup_size) {
  const GraphNode& anchor = graph_[task_.anchor];
  includes_.insert("philox");
  line("int i = group * " + std::to_string(workgroup_size) + " + int(gl_LocalInvocationID.x);");
  line("if (i >= " + std::to_string(anchor.shape[0]) + ") return;");
  const IndexExpression row(std::string("i"));
  // Row by row into and out of arrays, short ones without a loop.
  const auto each = [&](std::int64_t count, const auto& body) {
    if (count <= kUnrolled) {
      for (std::int64_t j = 0; j < count; ++j) body(IndexExpression(j));
      return;
    }
    const std::string j = fresh('k');
    open("for (int " + j + " = 0; " + j + " < " + std::to_string(count) + "; " + j + "++)");
    body(IndexExpression(j));
    close();
  };

  std::string arguments = "i";
  for (std::size_t k = 0; k < anchor.inputs.size(); ++k) {
    const GraphNode& input = graph_[anchor.inputs[k]];
    const bool has_rows = input.shape.rank() == 2;
    const std::int64_t count = input.shape[input.shape.rank() - 1];
    const std::string array = "input_" + std::to_string(k);
    line((input.dtype == DType::float32 ? "float " : "int ") + array + "[" + std::to_string(count) + "];");
    each(count, [&](const IndexExpression& j) {
      const std::string element =
          value(anchor.inputs[k], {std::nullopt, has_rows ? std::vector<IndexExpression>{row, j} : std::vector<IndexExpression>{j}});
      line(array + "[" + j.str() + "] = " + (input.dtype == DType::boolean ? "int(" + element + ")" : element) + ";");
    });
    arguments += ", " + array;
  }
  line("float result[" + std::to_string(anchor.shape[1]) + "];");
  line("imp_row(" + arguments + ", result);");
  each(anchor.shape[1], [&](const IndexExpression& j) {
    members_[task_.anchor] = "result[" + j.str() + "]";
    const IndexExpression linear = bind(row * anchor.shape[1] + j);
    for (const Store& store : task_.stores) write(store, linear);
  });
}

}  // namespace imprint
