#include "tools/imprint/graph_picture.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "compute/base/text.h"
#include "compute/base/utf8.h"

namespace imprint::tools {
namespace {

constexpr int kBoxWidth = 150, kBoxHeight = 34, kGapX = 20, kGapY = 36;

struct Box {
  std::string label, note;
  std::vector<std::size_t> from;  // boxes before it
  std::size_t row = 0, column = 0;
  double wish = 0;  // the mean column of the boxes before it
  bool is_end = false;
};

std::string escaped(const std::string& name) {
  std::string out;
  for (const char c : is_utf8(name) ? name : std::string("?")) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

std::string clipped_label(const std::string& name) {
  return escaped(name.size() > 22 && is_utf8(name.substr(0, 20)) ? name.substr(0, 20) + ".." : name);
}

// Inputs, then nodes in the file's order, which is one of dependence, then outputs.
std::vector<Box> boxes_of(const onnx::Graph& graph) {
  std::vector<Box> boxes;
  std::map<std::string, std::size_t> maker;
  std::set<std::string> weights;
  for (const onnx::TensorData& weight : graph.initializers) weights.insert(weight.name);
  const auto add = [&](Box box, const std::vector<std::string>& uses) {
    for (const std::string& use : uses)
      if (const auto found = maker.find(use); found != maker.end()) box.from.push_back(found->second);
    for (const std::size_t before : box.from) {
      box.row = std::max(box.row, boxes[before].row + 1);
    }
    boxes.push_back(std::move(box));
    return boxes.size() - 1;
  };
  for (const onnx::ValueInfo& input : graph.inputs)
    if (!weights.contains(input.name))
      maker[input.name] =
          add({.label = input.name, .note = input.is_tensor ? input.shape_text() : "", .is_end = true}, {});
  for (const onnx::Node& node : graph.nodes) {
    if (node.op_type == "Constant") continue;
    const std::size_t made = add({.label = node.op_type, .note = node.name}, node.inputs);
    for (const std::string& output : node.outputs) maker.try_emplace(output, made);
  }
  for (const onnx::ValueInfo& output : graph.outputs)
    add({.label = output.name, .note = output.is_tensor ? output.shape_text() : "", .is_end = true},
        {output.name});
  return boxes;
}

// In each row the boxes are sorted by the columns of those before them, so that lines cross less.
std::vector<std::vector<std::size_t>> rows_of(std::vector<Box>& boxes) {
  std::vector<std::vector<std::size_t>> rows;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    rows.resize(std::max(rows.size(), boxes[i].row + 1));
    rows[boxes[i].row].push_back(i);
  }
  for (std::vector<std::size_t>& row : rows) {
    for (const std::size_t i : row) {
      for (const std::size_t before : boxes[i].from)
        boxes[i].wish +=
            static_cast<double>(boxes[before].column) / static_cast<double>(boxes[i].from.size());
    }
    std::ranges::stable_sort(row, {}, [&](std::size_t i) { return boxes[i].wish; });
    for (std::size_t column = 0; column < row.size(); ++column) boxes[row[column]].column = column;
  }
  return rows;
}

}  // namespace

std::string graph_picture(const onnx::Graph& graph) {
  std::vector<Box> boxes = boxes_of(graph);
  const std::vector<std::vector<std::size_t>> rows = rows_of(boxes);
  std::size_t widest = 1;
  for (const std::vector<std::size_t>& row : rows) widest = std::max(widest, row.size());
  const std::size_t width = widest * (kBoxWidth + kGapX) + kGapX,
                    height = rows.size() * (kBoxHeight + kGapY) + kGapY;
  const auto left = [&](const Box& box) {
    const std::size_t used = rows[box.row].size() * (kBoxWidth + kGapX) - kGapX;
    return (width - used) / 2 + box.column * (kBoxWidth + kGapX);
  };
  const auto top = [](const Box& box) { return kGapY + box.row * (kBoxHeight + kGapY); };
  std::string svg =
      text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"", height,
           "\" font-family=\"sans-serif\" text-anchor=\"middle\">\n<title>", escaped(graph.name),
           "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<g fill=\"none\" "
           "stroke=\"#888\">\n");
  for (const Box& box : boxes)
    for (const std::size_t before : box.from) {
      const std::size_t x0 = left(boxes[before]) + kBoxWidth / 2, y0 = top(boxes[before]) + kBoxHeight,
                        x1 = left(box) + kBoxWidth / 2, y1 = top(box);
      svg += text("<path d=\"M", x0, " ", y0, "C", x0, " ", y0 + kGapY, " ", x1, " ", y1 - kGapY, " ", x1,
                  " ", y1, "\"/>\n");
    }
  svg += "</g>\n";
  for (const Box& box : boxes) {
    const std::size_t x = left(box), y = top(box);
    svg +=
        text("<g><title>", escaped(box.note), "</title><rect x=\"", x, "\" y=\"", y, "\" width=\"", kBoxWidth,
             "\" height=\"", kBoxHeight, "\" rx=\"5\" fill=\"", box.is_end ? "#dde8f5" : "#f4f0e4",
             "\" stroke=\"#666\"/><text x=\"", x + kBoxWidth / 2, "\" y=\"", y + 15, "\" font-size=\"12\">",
             clipped_label(box.label), "</text><text x=\"", x + kBoxWidth / 2, "\" y=\"", y + 28,
             "\" font-size=\"9\" fill=\"#555\">", clipped_label(box.note), "</text></g>\n");
  }
  return svg + "</svg>\n";
}

}  // namespace imprint::tools
