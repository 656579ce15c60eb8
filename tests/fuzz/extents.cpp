// Bounds of free dimensions as texts, as a command line or a game's file gives them: "height=640/32".

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compute/model/onnx/import.h"
#include "tests/fuzz/harness.h"

namespace imprint::fuzz {
namespace {

constexpr std::size_t kMostLines = 8;
constexpr std::int64_t kLargest = std::int64_t{1} << 24;  // of an extent

// Free dimensions with names, without one, and one that is named as a sum.
imprint::onnx::Model free_model() {
  using imprint::onnx::Dimension;
  const auto input = [](const char* name, std::vector<Dimension> dimensions) {
    imprint::onnx::ValueInfo info;
    info.name = name;
    info.is_tensor = true;
    info.type = imprint::onnx::ElementType::float32;
    info.shape = std::move(dimensions);
    return info;
  };
  imprint::onnx::Model model;
  model.ir_version = 8;
  model.opsets = {{"", 17}};
  model.graph.inputs = {input("x", {{{}, "n"}, {2, {}}, {{}, "height"}, {{}, "width"}}),
                        input("y", {{{}, "n"}, {{}, "past + 1"}, {{}, "past"}, {{}, {}}})};
  for (const char* name : {"x", "y"}) {
    imprint::onnx::Node node;
    node.op_type = "Neg";
    node.inputs = {name};
    node.outputs = {std::string(name) + "_negative"};
    imprint::onnx::ValueInfo output;
    output.name = node.outputs[0];
    model.graph.nodes.push_back(std::move(node));
    model.graph.outputs.push_back(std::move(output));
  }
  return model;
}

void check_bound(const DimensionBound& bound) {
  require(!bound.name.empty(), "a bound has a name");
  require(bound.sum.empty() || (bound.most == 0 && bound.step == 1 && bound.least == 1),
          "a sum has no bound of its own");
}

}  // namespace

void extents(Bytes bytes) {
  static const imprint::onnx::Model model = free_model();
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<DimensionBound> bounds;
  while (!rest.empty() && bounds.size() < kMostLines) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    auto bound = parse_bound(std::string(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    check_error(bound);
    if (!bound) continue;
    check_bound(*bound);
    bounds.push_back(std::move(*bound));
  }
  auto shapes = shapes_with_free_dimensions(model, 2);
  require(shapes.ok(), "the model's shapes are known");
  const auto bounded = bound_dimensions(model, bounds, *shapes);
  check_error(bounded);
  if (!bounded) return;
  for (const auto& [name, shape] : *shapes)
    for (const std::int64_t extent : shape.extents())
      require(extent >= 0 && extent <= kLargest, "an extent is within its bound");
  check_error(import_onnx(model, *shapes));
}

}  // namespace imprint::fuzz
