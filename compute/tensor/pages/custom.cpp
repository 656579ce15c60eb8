#include "compute/tensor/build.h"

namespace imprint {

using namespace tensor;

Tensor custom_rows(std::string name, std::string_view glsl, std::span<const Tensor> inputs,
                   std::int64_t width) {
  const std::int64_t rows = inputs.empty() || inputs[0].rank() == 0 ? 0 : inputs[0].extent(0);
  const Tensor made =
      make(Op::custom, inputs, {.ints = {1, 0, 0}, .shape = {rows, width}, .dtype = DType::float32});
  if (!made.ok()) return made;
  auto text = std::make_shared<ConstantData>();
  const auto bytes = std::as_bytes(std::span(glsl));
  text->bytes = SharedBytes(std::vector(bytes.begin(), bytes.end()));
  Node& node = const_cast<Node&>(*made.node());  // not shared yet
  node.constant = std::move(text);
  node.label = std::move(name);
  return made;
}

}  // namespace imprint
