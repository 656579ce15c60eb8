#include "compute/kernels/custom_emitter.h"

#include <algorithm>

#include "compute/base/text.h"

namespace imprint::kernels {

using namespace graph;

namespace {

constexpr std::int64_t kUnrolled = 16;  // longer arrays are filled in loops

IndexExpression row() { return IndexExpression(std::string("i")); }

}  // namespace

std::string CustomEmitter::function(const std::string& name, int workgroup_size) {
  includes_.insert("philox");
  line(text("int i = group * ", workgroup_size, " + int(gl_LocalInvocationID.x);"));
  line(text("if (i >= ", anchor_.shape[0], ") return;"));
  call();
  store_members();
  store_result();
  const SharedBytes& text = anchor_.source->constant->bytes;
  return callers_text(imprint::text("custom_rows '", anchor_.source->label, "'"),
                      {reinterpret_cast<const char*>(text.data()), text.size()}) +
         "// " + task_text(graph_, task_) + "\nvoid " + name + "(int group) {\n" + body_ + "}\n";
}

// Copies one row into or out of an array; short ones without a loop.
void CustomEmitter::each(std::int64_t count, const std::function<void(const IndexExpression&)>& body) {
  if (count <= kUnrolled) {
    for (std::int64_t j = 0; j < count; ++j) body(IndexExpression(j));
    return;
  }
  const std::string j = fresh('k');
  open(text("for (int ", j, " = 0; ", j, " < ", count, "; ", j, "++)"));
  body(IndexExpression(j));
  close();
}

void CustomEmitter::call() {
  std::string arguments = "i";
  for (std::size_t k = 0; k < anchor_.inputs.size(); ++k) {
    const GraphNode& input = graph_[anchor_.inputs[k]];
    const bool has_rows = input.shape.rank() == 2;
    const std::int64_t count = input.shape[input.shape.rank() - 1];
    const std::string array = text("input_", k);
    line(text((input.dtype == DType::float32 ? "float " : "int "), array, "[", count, "];"));
    each(count, [&](const IndexExpression& j) {
      const std::string element =
          value(anchor_.inputs[k], {std::nullopt, has_rows ? std::vector<IndexExpression>{row(), j}
                                                           : std::vector<IndexExpression>{j}});
      line(array + "[" + j.str() +
           "] = " + (input.dtype == DType::boolean ? "int(" + element + ")" : element) + ";");
    });
    arguments += ", " + array;
  }
  line(text("float result[", anchor_.shape[1], "];"));
  line("imp_row(" + arguments + ", result);");
}

// All values are computed before any store: a store may overwrite what another value reads.
void CustomEmitter::store_members() {
  struct Element {
    NodeIndex member;
    IndexExpression linear;
    std::string name;
  };
  std::vector<Element> elements;
  for (NodeIndex member : task_.members) {
    if (member == task_.anchor) continue;
    const Shape& shape = graph_[member].shape;
    Shape features;
    for (int axis = 1; axis < shape.rank(); ++axis) features.append(shape[axis]);
    for (std::int64_t j = 0; j < features.element_count(); ++j) {
      ElementIndex index{std::nullopt, delinearize(IndexExpression(j), features)};
      index.axes.insert(index.axes.begin(), row());
      elements.push_back({member, linear_of(index, shape), value(member, index)});
    }
  }
  for (const Element& element : elements) store(element.member, element.name, element.linear);
}

void CustomEmitter::store_result() {
  if (std::ranges::find(task_.stores, task_.anchor, &Store::node) == task_.stores.end()) return;
  each(anchor_.shape[1], [&](const IndexExpression& j) {
    store(task_.anchor, "result[" + j.str() + "]", bind(row() * anchor_.shape[1] + j));
  });
}

void CustomEmitter::store(NodeIndex member, const std::string& name, const IndexExpression& linear) {
  members_ = {{member, name}};
  for (const Store& store : task_.stores)
    if (store.node == member) write(store, linear);
  members_.clear();
}

std::string CustomEmitter::load(NodeIndex node, const ElementIndex& index) {
  if (!is_member(node)) return Emitter::load(node, index);
  if (node != task_.anchor) return compute(node, index);
  return "result[" + axes_of(index, anchor_.shape)[1].str() + "]";
}

bool CustomEmitter::is_member(NodeIndex node) const {
  return std::ranges::find(task_.members, node) != task_.members.end();
}

}  // namespace imprint::kernels
