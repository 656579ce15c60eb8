// Convolutions in patches (compute/graph/schedule/winograd.h): what the page of shaders/products/patches.glsl
// needs.

#include <algorithm>
#include <utility>

#include "compute/graph/schedule/winograd.h"
#include "compute/kernels/embedded_shaders.h"
#include "compute/kernels/product_emitter.h"

namespace imprint::kernels {

using namespace graph;

std::string ProductEmitter::patches_function(const std::string& name) {
  const WindowsOfThree windows = *windows_of_three(graph_, task_.anchor);
  std::string out = kernel_macro(name + "_kernel", windows) + patch_macro(name + "_patch", windows) +
                    patch_store(name + "_store", windows);
  const std::vector<std::pair<std::string, std::string>> defines{
      {"PRODUCT", name},
      {"ROW_TILES", text(row_tiles(product_shape(graph_, task_.anchor), task_.tile))},
      {"CHANNELS", text(windows.channels)},
      {"PATCHES_PER_ROW", text(windows.patches_per_row())},
      {"PATCHES_PER_IMAGE", text(windows.patches() / windows.images)},
      {"PATCHES", text(windows.patches())},
      {"KERNEL", name + "_kernel"},
      {"PATCH", name + "_patch"},
      {"STORE", name + "_store"}};
  for (const auto& [key, value] : defines) out += text("#define ", key, " ", value, "\n");
  out += "// " + task_text(graph_, task_) + "\n" + std::string(embedded_shader("products/patches"));
  for (const auto& [key, value] : defines) out += "#undef " + key + "\n";
  return out;
}

// The nine weights of a channel for one row of the product.
std::string ProductEmitter::kernel_macro(const std::string& name, const WindowsOfThree& windows) {
  const ProductShape shape = product_shape(graph_, task_.anchor);
  const NodeIndex operand = graph_[task_.anchor].inputs[0];
  const bool ragged = shape.rows % task_.tile.rows != 0;
  line("int row = int(row_at), channel = int(channel_at);");
  if (ragged) line("[[unroll]] for (int i = 0; i < 9; i++) loaded[i] = 0.0;");
  open(ragged ? text("if (row < ", shape.rows, ")") : "");
  for (std::int64_t i = 0; i < 9; ++i) {
    ElementIndex index{std::nullopt, std::vector<IndexExpression>(at(graph_[operand].shape.rank() - 2), 0)};
    index.axes.push_back(named("row"));
    index.axes.push_back(named("channel") + i * windows.channels);
    line(text("loaded[", i, "] = ", value(operand, index), ";"));
  }
  close();
  return parameterised(name, "row_at, channel_at, loaded");
}

// The elements of a patch in one channel, each as an element of the window of one of the patch's places.
std::string ProductEmitter::patch_macro(const std::string& name, const WindowsOfThree& windows) {
  const Shape& shape = graph_[windows.windows].shape;
  const std::vector<IndexExpression> leading =
      delinearize(named("image"), Shape(shape.extents().first(at(shape.rank() - 5))));
  const std::int64_t per_row = windows.patches_per_row(), per_image = windows.patches() / windows.images;
  const bool ragged_rows = windows.height % 2 != 0, ragged_columns = windows.width % 4 != 0,
             ragged = windows.patches() % (task_.tile.columns / 4) != 0 || ragged_rows || ragged_columns;
  line("int number = int(patch_at), channel = int(channel_at);");
  line(text("int image = number / ", per_image, ", top = number % ", per_image, " / ", per_row,
            " * 2, left = number % ", per_row, " * 2;"));
  if (ragged) line("[[unroll]] for (int i = 0; i < 16; i++) loaded[i] = 0.0;");
  open(ragged ? text("if (image < ", windows.images, ")") : "");
  for (std::int64_t i = 0; i < 16; ++i) {
    const std::int64_t row = i / 4, column = i % 4, of_row = row / 3, of_column = column / 3;
    std::string inside = ragged_rows && of_row > 0 ? text("top + 1 < ", windows.height) : "";
    if (ragged_columns)
      inside += text(inside.empty() ? "" : " && ", "left + ", of_column, " < ", windows.width);
    if (!inside.empty()) open("if (" + inside + ")");
    ElementIndex index{std::nullopt, leading};
    index.axes.emplace_back(row - of_row);
    index.axes.emplace_back(column - of_column);
    index.axes.push_back(named("channel"));
    index.axes.push_back(IndexExpression("top", 2) + of_row);
    index.axes.push_back(IndexExpression("left", 2) + of_column);
    line(text("loaded[", i, "] = ", value(windows.windows, index), ";"));
    if (!inside.empty()) close();
  }
  close();
  return parameterised(name, "patch_at, channel_at, loaded");
}

// Stores outputs of four neighbouring places of an image, at once where rows are whole fours.
std::string ProductEmitter::patch_store(const std::string& name, const WindowsOfThree& windows) {
  const ProductShape shape = product_shape(graph_, task_.anchor);
  const std::string head = text("void ", name, "(int image, int row, int y, int x, vec4 found) {\n");
  std::string outside = shape.rows % task_.tile.rows != 0 ? text("row >= ", shape.rows) : "";
  if (windows.height % 2 != 0) outside += text(outside.empty() ? "" : " || ", "y >= ", windows.height);
  if (windows.width % 4 == 0) {
    const std::string of_four = store_function(name + "_four");
    if (!outside.empty()) line("if (" + outside + ") return;");
    line("vec4 sums[1];");
    line("sums[0] = found;");
    const std::string place = text("y * ", windows.width, " + x");
    line(name + "_four(" +
         (joins_columns(graph_, task_.anchor) ? text("0, row, image * ", own_columns(), " + ", place)
                                              : "image, row, " + place) +
         ", sums);");
    return of_four + head + take_body() + "}\n";
  }
  line(text("int element = (image * ", shape.rows, " + row) * ", own_columns(), " + column;"));
  const Shape& whole = graph_[task_.anchor].shape;
  ElementIndex index{named("element"),
                     delinearize(named("image"), Shape(whole.extents().first(at(whole.rank() - 2))))};
  index.axes.emplace_back("row");
  index.axes.emplace_back("column");
  members_ = {{task_.anchor, "sum"}};
  evaluate_members(index);
  const std::string one =
      text("void ", name, "_one(int image, int row, int column, float sum) {\n", take_body(), "}\n");
  if (!outside.empty()) line("if (" + outside + ") return;");
  for (std::int64_t i = 0; i < 4; ++i)
    line(text("if (x + ", i, " < ", windows.width, ") ", name, "_one(image, row, y * ", windows.width,
              " + x + ", i, ", found[", i, "]);"));
  return one + head + take_body() + "}\n";
}

}  // namespace imprint::kernels
