#include "compute/kernels/page_emitter.h"

#include <algorithm>
#include <utility>

#include "compute/base/text.h"
#include "compute/graph/strides.h"
#include "compute/kernels/embedded_shaders.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::kernels {

using namespace graph;

namespace {

constexpr std::int64_t kQuad = 16;      // elements of one byte that are loaded together
constexpr std::int64_t kPageEight = 8;  // of two bytes

// Where row `r` of all but the last axis begins, in vectors of `width` elements.
std::string place_of_row(const Shape& shape, const Strides& strides, const IndexExpression& start,
                         std::int64_t width) {
  IndexExpression rest(std::string("r")), place = (start + strides.start) / width;
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    place = place + (axis == 0 ? rest : rest % shape[axis]) * (strides.axis[at(axis)] / width);
    rest = rest / shape[axis];
  }
  return place.str();
}

}  // namespace

std::string PageEmitter::function(const std::string& name) {
  const tensor::LibraryPage& page = *anchor_.source->page;
  includes_.insert(page.includes.begin(), page.includes.end());
  std::string out = text("#define imp_group_size ", page.group_size, "\n");
  for (const auto& [constant, value] : page.constants) out += text("#define ", constant, " ", value, "\n");
  for (std::size_t k = 0; k < anchor_.inputs.size(); ++k) out += load_function(k);
  for (const std::size_t k : page.quads) out += quad_function(k);
  for (const std::size_t k : page.fours) out += four_functions(k);
  for (const std::size_t k : page.eights) out += eight_functions(k);
  for (std::size_t k = 0; k < page.outputs.size(); ++k)
    out += std::ranges::find(page.kept, k) == page.kept.end() ? store_function(k) : kept_functions(k);
  if (page.marks > 0) {
    const Place marks{PlaceKind::constant, task_.anchor};
    out += text("#define imp_mark(i) ", memory_.marks(marks), "[", memory_.offset(marks), " + (i)]\n");
  }
  if (!page.prelude.empty()) out += text(embedded_shader(page.prelude), "\n");
  out += callers_text(text("page '", page.name, "'"), page.glsl);
  if (!page.shader.empty()) out += text(embedded_shader(page.shader), "\n");
  return out + "// " + task_text(graph_, task_) + "\nvoid " + name + "(int group) { imp_page(group); }\n";
}

std::string PageEmitter::take_body() {
  scopes_.assign(1, {});
  return std::exchange(body_, {});
}

std::string PageEmitter::load_function(std::size_t input) {
  const GraphNode& node = graph_[anchor_.inputs[input]];
  const std::string name = text("imp_load_", input, "(int i)");
  if (node.element_count() == 0)
    return text(dtype_is_float(node.dtype) ? "float " : "int ", name, " { return 0; }\n");
  const std::string result = value(anchor_.inputs[input], {IndexExpression(std::string("i")), {}});
  line("return " + (node.dtype == DType::boolean ? "int(" + result + ")" : result) + ";");
  return (dtype_is_float(node.dtype) ? "float " : "int ") + name + " {\n" + take_body() + "}\n";
}

// Elements that views have moved are packed one by one.
std::string PageEmitter::quad_function(std::size_t input) {
  const NodeIndex index = anchor_.inputs[input];
  const std::string head = text("uvec4 imp_quad_", input, "(int i) {\n");
  const std::optional<Strides> strides = strides_of(graph_, schedule_.materialized, index);
  if (strides && strides->start % kQuad == 0 && strides->axis == row_major_strides(graph_[index].shape)) {
    const Place& place = schedule_.place[at(strides->memory)];
    const DType dtype = graph_[strides->memory].dtype;
    const IndexExpression quad = (start_of(place, dtype) + strides->start) / kQuad + named("i");
    return head + "  return " + loaded(place, dtype, LongAccess::load_quad, quad.str()) + ";\n}\n";
  }
  includes_.insert("packed");
  std::string words;
  for (std::int64_t i = 0; i < kQuad; ++i)
    words += text(i == 0           ? "imp_pack_8(ivec4("
                  : i % kWide == 0 ? ")), imp_pack_8(ivec4("
                                   : ", ",
                  "imp_load_", input, "(i * ", kQuad, " + ", i, ")");
  return head + "  return uvec4(" + words + ")));\n}\n";
}

// As eight_functions().
std::string PageEmitter::four_functions(std::size_t input) {
  const NodeIndex index = anchor_.inputs[input];
  const Shape& shape = graph_[index].shape;
  const int last = shape.rank() - 1;
  const std::optional<Strides> strides = strides_of(graph_, schedule_.materialized, index);
  const auto is_whole = [](std::int64_t stride) { return stride % kWide == 0; };
  const bool in_fours = strides && dtype_is_float(graph_[strides->memory].dtype) &&
                        is_whole(strides->start) && strides->axis[at(last)] == 1 &&
                        std::all_of(strides->axis.begin(), strides->axis.begin() + last, is_whole);
  std::string row, four;
  if (in_fours) {
    const Place& memory = schedule_.place[at(strides->memory)];
    const DType dtype = graph_[strides->memory].dtype;
    row = place_of_row(shape, *strides, start_of(memory, dtype), kWide);
    four = load_four(memory, dtype, named("i"));
  } else {
    row = text("r * ", shape[last] / kWide);
    for (std::int64_t i = 0; i < kWide; ++i)
      four += text(i == 0 ? "vec4(" : ", ", "imp_load_", input, "(i * ", kWide, " + ", i, ")");
    four += ")";
  }
  return text("int imp_row_", input, "(int r) { return ", row, "; }\nvec4 imp_four_", input,
              "(int i) { return ", four, "; }\n");
}

// Where eights are not contiguous in memory, places count all elements, and eights are packed one by one.
std::string PageEmitter::eight_functions(std::size_t input) {
  const NodeIndex index = anchor_.inputs[input];
  const Shape& shape = graph_[index].shape;
  const int last = shape.rank() - 1;
  const std::optional<Strides> strides = strides_of(graph_, schedule_.materialized, index);
  const auto is_whole = [](std::int64_t stride) { return stride % kPageEight == 0; };
  const bool in_eights = strides && graph_[strides->memory].dtype == DType::float16 &&
                         is_whole(strides->start) && strides->axis[at(last)] == 1 &&
                         std::all_of(strides->axis.begin(), strides->axis.begin() + last, is_whole);
  std::string row, eight;
  if (in_eights) {
    const Place& memory = schedule_.place[at(strides->memory)];
    row = place_of_row(shape, *strides, start_of(memory, DType::float16), kPageEight);
    eight = loaded(memory, DType::float16, LongAccess::load_quad, "i");
  } else {
    row = text("r * ", shape[last] / kPageEight);
    for (std::int64_t i = 0; i < kPageEight; ++i)
      eight += text(i == 0       ? "uvec4(packHalf2x16(vec2("
                    : i % 2 == 0 ? ")), packHalf2x16(vec2("
                                 : ", ",
                    "imp_load_", input, "(i * ", kPageEight, " + ", i, ")");
    eight += ")))";
  }
  return text("int imp_row_", input, "(int r) { return ", row, "; }\nuvec4 imp_eight_", input,
              "(int i) { return ", eight, "; }\n");
}

// As store_function().
std::string PageEmitter::kept_functions(std::size_t output) {
  std::string kept = "vec4(0.0)";
  for (const Store& store : task_.stores) {
    if (output_of(store) != output) continue;
    const DType dtype = graph_[store.node].dtype;  // may be rounded (narrow_products.h)
    const IndexExpression four = start_of(store.place, dtype) / kWide + named("i");
    std::string stored = "value";
    if (dtype_is_narrow_float(dtype)) {
      includes_.insert("narrow_floats");
      const std::string to = dtype == DType::float16 ? "imp_to_half(value." : "imp_to_bfloat16(value.";
      stored = fresh('v');
      line(text("vec4 ", stored, " = vec4(", to, "x), ", to, "y), ", to, "z), ", to, "w));"));
      if (dtype == DType::float16) origins_[stored] = {.op = Op::cast, .of = "value"};
    }
    store_four(store.place, dtype, four, stored);
    kept = load_four(store.place, dtype, four);
  }
  return text("void imp_keep_four_", output, "(int i, vec4 value) {\n", take_body(), "}\nvec4 imp_kept_four_",
              output, "(int i) { return ", kept, "; }\n");
}

std::size_t PageEmitter::output_of(const Store& store) const {
  const GraphNode& node = graph_[store.node];
  return node.op == Op::page_output ? static_cast<std::size_t>(node.ints[0]) : 0;
}

// The task's members are the page's output and elementwise functions of it.
std::string PageEmitter::continued_function() {
  members_ = {{task_.anchor, "value"}};
  evaluate_members({named("i"), {}});
  members_.clear();
  return text("void imp_store_0(int i, ", dtype_is_float(anchor_.dtype) ? "float" : "int", " value) {\n",
              take_body(), "}\n");
}

// An output that nothing reads is not stored.
std::string PageEmitter::store_function(std::size_t output) {
  if (anchor_.source->page->is_continued) return continued_function();
  DType dtype = anchor_.source->page->outputs[output].dtype;
  for (const Store& store : task_.stores) {
    if (output_of(store) != output) continue;
    const GraphNode& node = graph_[store.node];
    dtype = node.dtype;  // may be rounded (narrow_products.h)
    if (dtype_is_narrow_float(dtype)) includes_.insert("narrow_floats");
    origins_["imp_to_half(value)"] = {.op = Op::cast, .of = "value"};
    members_ = {{store.node, dtype == DType::boolean    ? "bool(value)"
                             : dtype == DType::float16  ? "imp_to_half(value)"
                             : dtype == DType::bfloat16 ? "imp_to_bfloat16(value)"
                                                        : "value"}};
    write(store, IndexExpression(std::string("i")));
    members_.clear();
  }
  return text("void imp_store_", output, "(int i, ", dtype_is_float(dtype) ? "float" : "int", " value) {\n",
              take_body(), "}\n");
}

}  // namespace imprint::kernels
