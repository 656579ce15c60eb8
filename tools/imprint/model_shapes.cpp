#include "tools/imprint/model_shapes.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "compute/base/at.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"

namespace imprint::tools {
namespace {

Result<std::pair<std::string, Shape>> parse_shape(const std::string& given) {
  const std::size_t split = given.rfind('=');
  const auto wrong = [&] {
    return make_error(ErrorCode::invalid_argument,
                      text("--shape: found ", quote(given), ", expected NAME=1x3x48x192"));
  };
  if (split == std::string::npos) return wrong();
  Shape shape;
  for (std::size_t at = split + 1; at < given.size();) {
    const std::size_t end = std::min(given.find('x', at), given.size());
    std::int64_t extent = 0;
    const auto [stop, error] = std::from_chars(given.data() + at, given.data() + end, extent);
    const bool is_extent = error == std::errc() && stop == given.data() + end && extent >= 0 &&
                           extent <= INT32_MAX && shape.rank() < Shape::kMaxRank;
    if (!is_extent) return wrong();
    shape.append(extent);
    at = end + 1;
  }
  return std::pair(given.substr(0, split), shape);
}

}  // namespace

void add_shape_option(CLI::App& command, ModelShapes& shapes) {
  command
      .add_option(
          "--shape", shapes.given,
          "the shape of an input, NAME=1x3x48x192; may be repeated. Others have their declared shapes, "
          "with --batch for open dimensions")
      ->type_name("NAME=SHAPE");
}

void add_extent_option(CLI::App& command, ModelShapes& shapes) {
  command
      .add_option(
          "--extent", shapes.most,
          "compile for any extent of a free dimension up to MOST; may be repeated. NAME: as the file has "
          "it, or INPUT:AXIS. past=0..128 may be 0, height=640/32 goes in steps of 32. A sum, such as "
          "total=past+1, follows from others")
      ->type_name("NAME=MOST");
}

Result<std::vector<DimensionBound>> bounds_of(const ModelShapes& shapes) {
  std::vector<DimensionBound> bounds;
  for (const std::string& given : shapes.most) {
    auto bound = parse_bound(given);
    if (!bound) return make_error(bound.error().code, text("--extent: ", bound.error().message));
    bounds.push_back(std::move(*bound));
  }
  return bounds;
}

Result<std::map<std::string, Shape>> shapes_of(const onnx::Model& model, const std::string& name,
                                               const ModelShapes& shapes) {
  std::map<std::string, Shape> found;
  for (const std::string& given : shapes.given) {
    IMPRINT_ASSIGN(const auto one, parse_shape(given));
    if (!found.insert(one).second)
      return make_error(ErrorCode::invalid_argument,
                        text("--shape: found ", quote(one.first), " again, expected each input once"));
  }
  const std::vector<onnx::ValueInfo> inputs = model_inputs(model);
  std::map<std::string, std::int64_t> symbols;  // a free dimension has one extent everywhere
  for (const onnx::ValueInfo& input : inputs) {
    const auto given = found.find(input.name);
    if (given == found.end() || !input.shape || input.shape->size() != at(given->second.rank())) continue;
    for (std::size_t axis = 0; axis < input.shape->size(); ++axis)
      symbols.emplace((*input.shape)[axis].symbol, given->second[static_cast<int>(axis)]);
  }
  for (const auto& [input, shape] : found)
    if (std::ranges::find(inputs, input, &onnx::ValueInfo::name) == inputs.end())
      return make_error(ErrorCode::not_found,
                        text("--shape: '", name, "' has no input ", quote(input), ". See imprint inspect."));
  for (const onnx::ValueInfo& input : inputs) {
    if (found.contains(input.name)) continue;
    if (!input.shape || input.shape->size() > at(Shape::kMaxRank))
      return make_error(ErrorCode::unsupported,
                        text("'", name, "': input ", quote(input.name),
                             ": found no shape, expected one. Give it with --shape."));
    Shape shape;
    for (const onnx::Dimension& dimension : *input.shape) {
      const auto symbol = dimension.symbol.empty() ? symbols.end() : symbols.find(dimension.symbol);
      shape.append(dimension.value.value_or(symbol == symbols.end() ? shapes.batch : symbol->second));
    }
    found.emplace(input.name, shape);
  }
  return found;
}

}  // namespace imprint::tools
