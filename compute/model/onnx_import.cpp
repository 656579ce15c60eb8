#include "compute/model/onnx_import.h"

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <queue>
#include <set>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx_op.h"

namespace imprint {
namespace {

using onnx::ElementType;
using onnx::Value;

// Constants that one import may compute: kFoldBytes, and each weight rearranged kFoldsPerWeight times.
constexpr std::uint64_t kFoldBytes = 48 << 20;
constexpr std::uint64_t kFoldsPerWeight = 4;
constexpr std::int64_t kOperations = 1 << 16;   // of the graph, beyond a few per node
constexpr std::size_t kMaxNodeNames = 1 << 14;  // inputs of one node, and outputs
constexpr std::size_t kMaxListed = 64;

onnx::ImportBudget budget_of(const onnx::Graph& graph, const ImportOptions& options) {
  onnx::ImportBudget budget{kFoldBytes, options.constant_limit_bytes, kOperations};
  for (const onnx::TensorData& tensor : graph.initializers)
    budget.folded_bytes += kFoldsPerWeight * onnx::held_bytes(tensor.type, onnx::stored_elements(tensor));
  return budget;
}

class Importer {
 public:
  Importer(const onnx::Model& model, const std::map<std::string, Shape>& input_shapes,
           const ImportOptions& options)
      : model_(model),
        graph_(model.graph),
        given_(input_shapes),
        options_(options),
        mover_(budget_of(model.graph, options)) {}

  Result<ImportedModel> run() {
    if (graph_.sparse_initializer_count > 0) unsupported_.push_back("sparse initializers");
    if (model_.opset() == 0 && !graph_.nodes.empty())
      return make_error(ErrorCode::corrupt_file,
                        "onnx: the model declares no version of ONNX's own operators");
    IMPRINT_CHECK(check_names());
    IMPRINT_CHECK(add_initializers());
    IMPRINT_CHECK(add_inputs());
    IMPRINT_ASSIGN(const std::vector<std::size_t> order, ordered_nodes());
    for (const std::size_t index : order) IMPRINT_CHECK(import_node(graph_.nodes[index]));
    if (wrong_) return wrong_error();
    if (!unsupported_.empty()) return unsupported_error();
    IMPRINT_CHECK(add_outputs());
    return std::move(result_);
  }

 private:
  Error damaged(const std::string& reason) const {
    return make_error(ErrorCode::corrupt_file, text("onnx: ", reason));
  }

  // Each name is made once, and each name that is used is made.
  Result<> check_names() {
    std::set<std::string_view> made;
    for (const onnx::TensorData& tensor : graph_.initializers) {
      if (!made.insert(tensor.name).second)
        return damaged("two initializers are named " + quote(tensor.name));
      initializers_.emplace(tensor.name, &tensor);
    }
    std::set<std::string_view> inputs;
    for (const onnx::ValueInfo& input : graph_.inputs) {
      if (input.name.empty()) return damaged("an input has no name");
      if (!inputs.insert(input.name).second) return damaged("two inputs are named " + quote(input.name));
      made.insert(input.name);
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const onnx::Node& node = graph_.nodes[i];
      if (std::max(node.inputs.size(), node.outputs.size()) > kMaxNodeNames)
        return make_error(
            ErrorCode::unsupported,
            text("onnx: ", node.text(), ": found ", node.inputs.size(), " inputs and ", node.outputs.size(),
                 " outputs, expected at most ", kMaxNodeNames, " of each"));
      for (const std::string& output : node.outputs) {
        if (output.empty()) continue;
        if (!made.insert(output).second)
          return damaged(text(quote(output), " is made twice, the second time by ", node.text()));
        maker_.emplace(output, i);
      }
    }
    std::string missing;
    std::size_t count = 0;
    const auto use = [&](const std::string& name, const auto& user) {
      if (name.empty() || made.contains(name)) return;
      if (++count <= kMaxListed) missing += text(missing.empty() ? "" : ", ", quote(name), " (", user(), ")");
    };
    for (const onnx::Node& node : graph_.nodes)
      for (const std::string& input : node.inputs) use(input, [&] { return node.text(); });
    for (const onnx::ValueInfo& output : graph_.outputs)
      use(output.name, [] { return "an output of the graph"; });
    if (count > 0) return damaged("nothing makes " + missing + (count > kMaxListed ? " and more" : ""));
    for (const auto& entry : given_)
      if (!inputs.contains(entry.first))
        return make_error(ErrorCode::not_found,
                          text("a shape is given for ", quote(entry.first), ": ", known_inputs()));
    return {};
  }

  std::string known_inputs() const {
    std::string names;
    std::size_t count = 0;
    for (const onnx::ValueInfo& input : model_inputs(model_))
      if (++count <= kMaxListed) names += (names.empty() ? "" : ", ") + quote(input.name);
    if (count > kMaxListed) names += " and more";
    return names.empty() ? "the model has no inputs" : "the inputs are " + names;
  }

  Result<> add_initializers() {
    for (const onnx::TensorData& data : graph_.initializers) {
      if (given_.contains(data.name)) continue;
      if (!mover_.may_hold(data.type, onnx::stored_elements(data))) return beyond_limit(data.name);
      auto array = onnx::host_array(data);
      if (!array) {
        if (array.error().code != ErrorCode::unsupported) return std::move(array).error();
        unsupported_.push_back(array.error().message);
        continue;
      }
      note_type(data.name, data.type);
      const bool is_float = onnx::is_float(array->type);
      if (is_float) result_.parameter_count += static_cast<std::uint64_t>(array->shape.element_count());
      if (options_.parameters_as_variables && is_float && array->shape.rank() > 0) {
        Variable variable(data.name, array->shape, array->floats);
        result_.parameters.push_back(variable);
        values_.emplace(data.name, Value::parameter(std::move(*array), variable.value()));
      } else {
        values_.emplace(data.name, Value::known(std::move(*array)));
      }
    }
    return {};
  }

  Error beyond_limit(const std::string& name) const {
    return make_error(ErrorCode::out_of_host_memory,
                      text("onnx: tensor ", quote(name), ": found constants of more than ",
                           options_.constant_limit_bytes, " bytes in all, which is the limit of the import"));
  }

  void note_type(const std::string& name, ElementType type) {
    if (type == ElementType::float32 || type == ElementType::int32 || type == ElementType::int64 ||
        type == ElementType::boolean)
      return;
    if (result_.notes.size() < kMaxListed)
      result_.notes.push_back(text(quote(name), " is ", element_type_name(type),
                                   " in the file and computed as ", dtype_name(onnx::run_time_dtype(type))));
  }

  // The importer checks each int64 constant. It cannot check what a caller feeds.
  void note_wide_input(const onnx::ValueInfo& input) {
    if (input.type == ElementType::int64 && result_.notes.size() < kMaxListed)
      result_.notes.push_back(text(
          quote(input.name), " is int64 in the file and computed as int32: arithmetic wraps at 32 bits"));
  }

  bool is_constant_input(const onnx::ValueInfo& input) const {
    return initializers_.contains(input.name) && !given_.contains(input.name);
  }

  Result<> add_inputs() {
    // Symbols first: an input that is not listed may share one with an input that is.
    for (const onnx::ValueInfo& input : graph_.inputs) IMPRINT_CHECK(bind_symbols(input));
    for (const onnx::ValueInfo& input : graph_.inputs) {
      if (is_constant_input(input)) continue;
      if (!input.is_tensor || (!onnx::is_float(input.type) && !onnx::is_integer(input.type) &&
                               input.type != ElementType::boolean)) {
        unsupported_.push_back(
            text("input ", quote(input.name), " is ",
                 input.is_tensor ? element_type_name(input.type) : std::string("not a tensor")));
        continue;
      }
      IMPRINT_ASSIGN(const Shape shape, input_shape(input));
      note_type(input.name, input.type);
      note_wide_input(input);
      const Tensor tensor = imprint::input(input.name, shape, onnx::run_time_dtype(input.type));
      if (!tensor.ok()) return tensor.error();
      values_.emplace(input.name, Value::run_time(tensor, input.type));
      result_.inputs.push_back({input.name, tensor, input.type});
    }
    return {};
  }

  Result<> bind_symbols(const onnx::ValueInfo& input) {
    const auto given = given_.find(input.name);
    if (given == given_.end()) return {};
    const Shape& shape = given->second;
    if (auto checked = onnx::checked_shape(shape.extents()); !checked)
      return make_error(checked.error().code, text("input ", quote(input.name), " of shape ", shape.text(),
                                                   ": ", checked.error().message));
    if (!input.shape) return {};
    const auto mismatch = [&](const std::string& more) {
      return make_error(ErrorCode::shape_mismatch,
                        text("input ", quote(input.name), " is declared as ", input.shape_text(), ": shape ",
                             shape.text(), " does not fit", more));
    };
    if (static_cast<int>(input.shape->size()) != shape.rank()) return mismatch("");
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const onnx::Dimension& dimension = (*input.shape)[static_cast<std::size_t>(axis)];
      if (dimension.value && *dimension.value != shape[axis]) return mismatch("");
      if (dimension.value || dimension.symbol.empty()) continue;
      const auto [bound, fresh] = symbols_.emplace(dimension.symbol, shape[axis]);
      if (!fresh && bound->second != shape[axis])
        return mismatch(text(": ", quote(dimension.symbol), " is ", bound->second, " elsewhere"));
    }
    return {};
  }

  Result<Shape> input_shape(const onnx::ValueInfo& input) const {
    if (const auto given = given_.find(input.name); given != given_.end()) return given->second;
    if (!input.shape)
      return make_error(ErrorCode::invalid_argument,
                        text("input ", quote(input.name), " has no declared shape: give one"));
    std::vector<std::int64_t> extents;
    for (const onnx::Dimension& dimension : *input.shape) {
      const auto bound = symbols_.find(dimension.symbol);
      if (!dimension.value && (dimension.symbol.empty() || bound == symbols_.end()))
        return make_error(ErrorCode::invalid_argument,
                          text("input ", quote(input.name), " has the shape ", input.shape_text(),
                               " with a free dimension: give its shape"));
      extents.push_back(dimension.value ? *dimension.value : bound->second);
    }
    auto shape = onnx::checked_shape(extents);
    if (!shape)
      return make_error(shape.error().code, text("input ", quote(input.name), ": ", shape.error().message));
    return shape;
  }

  // The nodes that outputs depend on, each after those it reads from, otherwise in the file's order. Not
  // every file is sorted.
  Result<std::vector<std::size_t>> ordered_nodes() const {
    const std::size_t count = graph_.nodes.size();
    std::vector<bool> needed(count, false);
    std::vector<std::size_t> stack;
    const auto need = [&](const std::string& name) {
      const auto maker = maker_.find(name);
      if (maker == maker_.end() || needed[maker->second]) return;
      needed[maker->second] = true;
      stack.push_back(maker->second);
    };
    for (const onnx::ValueInfo& output : graph_.outputs) need(output.name);
    while (!stack.empty()) {
      const std::size_t index = stack.back();
      stack.pop_back();
      for (const std::string& input : graph_.nodes[index].inputs) need(input);
    }

    std::vector<std::size_t> waits(count, 0);
    std::vector<std::vector<std::size_t>> readers(count);
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < count; ++i) {
      if (!needed[i]) continue;
      for (const std::string& input : graph_.nodes[i].inputs)
        if (const auto maker = maker_.find(input); maker != maker_.end()) {
          ++waits[i];
          readers[maker->second].push_back(i);
        }
      if (waits[i] == 0) ready.push(i);
    }
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t index = ready.top();
      ready.pop();
      order.push_back(index);
      for (const std::size_t reader : readers[index])
        if (--waits[reader] == 0) ready.push(reader);
    }
    for (std::size_t i = 0; i < count; ++i)
      if (waits[i] != 0) return damaged("the graph has a cycle through " + graph_.nodes[i].text());
    return order;
  }

  // Nodes are imported until one is wrong, or too many are unsupported for a message. From then on only
  // missing operators are listed, so that refused nodes cost nothing.
  bool goes_on() const { return !wrong_ && unsupported_.size() < kMaxListed; }

  Result<> import_node(const onnx::Node& node) {
    const onnx::OpHandler* handler = onnx::find_handler(node.domain, node.op_type);
    if (!handler) {
      const auto [entry, fresh] =
          lacking_.emplace(clipped(node.domain.empty() ? node.op_type : node.domain + "." + node.op_type), 0);
      if (++entry->second <= 4) unsupported_.push_back("operator " + node.text());
    }
    if (!handler || !goes_on()) return {};
    std::vector<std::optional<Value>> inputs;
    inputs.reserve(node.inputs.size());
    for (const std::string& name : node.inputs) {
      if (name.empty()) {
        inputs.emplace_back();
      } else if (const auto value = values_.find(name); value != values_.end()) {
        inputs.emplace_back(value->second);
      } else {
        return {};  // refused already
      }
    }

    onnx::OpContext context(node, model_.opset(), std::move(inputs), mover_);
    // Operators without inputs, such as Constant, say themselves that their result is known.
    const bool folded = handler->fold && context.has(0) && context.all_foldable() && handler->fold(context);
    if (!folded && !context.failure()) handler->import(context);
    if (context.failure()) return refuse(*context.failure());
    return keep_outputs(node, context);
  }

  Result<> keep_outputs(const onnx::Node& node, const onnx::OpContext& context) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      const Value& value = context.outputs()[i];
      if (value.type() == ElementType::undefined)
        return refuse(
            make_error(ErrorCode::unsupported, text(node.text(), ": output ", i, " is not supported")));
      if (!value.host()) {
        const Tensor tensor = value.tensor();
        if (!tensor.ok())
          return refuse(make_error(tensor.error().code, text(node.text(), ": ", tensor.error().message)));
      }
      if (auto shape = onnx::checked_shape(value.shape().extents()); !shape)
        return refuse(make_error(shape.error().code, text(node.text(), ": output ", value.shape().text(),
                                                          ": ", shape.error().message)));
      values_.emplace(node.outputs[i], value);
    }
    return {};
  }

  // One message lists all that is unsupported, after the first thing that is wrong.
  Result<> refuse(const Error& error) {
    if (error.code == ErrorCode::unsupported)
      unsupported_.push_back(error.message);
    else if (!wrong_)
      wrong_ = make_error(error.code, text("onnx: ", error.message));
    return {};
  }

  Error wrong_error() const {
    return unsupported_.empty()
               ? *wrong_
               : make_error(wrong_->code, text(wrong_->message, "; besides, ", unsupported_error().message));
  }

  Error unsupported_error() const {
    std::string list = "onnx: not supported: ";
    for (std::size_t i = 0; i < std::min(unsupported_.size(), kMaxListed); ++i)
      list += (i == 0 ? "" : "; ") + unsupported_[i];
    if (unsupported_.size() >= kMaxListed) list += "; and more";
    std::string counts;
    std::size_t kinds = 0;
    for (const auto& [name, count] : lacking_)
      if (count > 4 && ++kinds <= kMaxListed)
        counts += text(counts.empty() ? " (in all " : ", ", count, " ", name);
    return make_error(ErrorCode::unsupported, list + (counts.empty() ? "" : counts + ")"));
  }

  Result<> add_outputs() {
    std::set<std::string_view> seen;
    for (const onnx::ValueInfo& output : graph_.outputs) {
      if (!seen.insert(output.name).second) return damaged("two outputs are named " + quote(output.name));
      const auto value = values_.find(output.name);
      if (value == values_.end()) return damaged("nothing makes output " + quote(output.name));
      const Tensor tensor = value->second.tensor();
      if (!tensor.ok())
        return make_error(tensor.error().code,
                          text("onnx: output ", quote(output.name), ": ", tensor.error().message));
      if (output.is_tensor && output.type != ElementType::undefined &&
          onnx::run_time_dtype(output.type) != tensor.dtype())
        return make_error(ErrorCode::dtype_mismatch, text("onnx: output ", quote(output.name),
                                                          " is declared as ", element_type_name(output.type),
                                                          " and computed as ", dtype_name(tensor.dtype())));
      result_.outputs.push_back({output.name, tensor, output.is_tensor ? output.type : value->second.type()});
    }
    if (result_.outputs.empty()) return damaged("the graph has no outputs");
    return {};
  }

  const onnx::Model& model_;
  const onnx::Graph& graph_;
  const std::map<std::string, Shape>& given_;
  const ImportOptions& options_;
  onnx::Mover mover_;
  std::map<std::string_view, const onnx::TensorData*> initializers_;
  std::map<std::string_view, std::size_t> maker_;  // value -> node
  std::map<std::string_view, Value> values_;
  std::map<std::string, std::int64_t> symbols_;
  std::vector<std::string> unsupported_;
  std::optional<Error> wrong_;
  std::map<std::string, std::uint64_t> lacking_;
  ImportedModel result_;
};

void count_operators(const onnx::Graph& graph, std::map<std::string, OperatorUse>& uses) {
  for (const onnx::Node& node : graph.nodes) {
    const std::string name = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
    OperatorUse& use = uses[name];
    use.name = name;
    ++use.count;
    use.supported = onnx::find_handler(node.domain, node.op_type) != nullptr;
    for (const onnx::Attribute& attribute : node.attributes)
      for (const onnx::Graph& subgraph : attribute.graphs) count_operators(subgraph, uses);
  }
}

std::vector<Tensor> tensors_of(const std::vector<ImportedValue>& values) {
  std::vector<Tensor> out;
  for (const ImportedValue& value : values) out.push_back(value.tensor);
  return out;
}

}  // namespace

std::vector<Tensor> ImportedModel::input_tensors() const { return tensors_of(inputs); }
std::vector<Tensor> ImportedModel::output_tensors() const { return tensors_of(outputs); }

Result<ImportedModel> import_onnx(const onnx::Model& model, const std::map<std::string, Shape>& input_shapes,
                                  const ImportOptions& options) {
  try {
    return Importer(model, input_shapes, options).run();
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::out_of_host_memory, "onnx: out of memory");
  } catch (const std::exception& exception) {
    return make_error(ErrorCode::internal, text("onnx: ", exception.what()));
  }
}

std::vector<onnx::ValueInfo> model_inputs(const onnx::Model& model) {
  std::set<std::string_view> initializers;
  for (const onnx::TensorData& tensor : model.graph.initializers) initializers.insert(tensor.name);
  std::vector<onnx::ValueInfo> inputs;
  for (const onnx::ValueInfo& input : model.graph.inputs)
    if (!initializers.contains(input.name)) inputs.push_back(input);
  return inputs;
}

Result<std::map<std::string, Shape>> shapes_with_free_dimensions(const onnx::Model& model,
                                                                 std::int64_t extent) {
  std::map<std::string, Shape> shapes;
  for (const onnx::ValueInfo& input : model_inputs(model)) {
    if (!input.is_tensor || !input.shape)
      return make_error(ErrorCode::unsupported,
                        text("onnx: input ", quote(input.name),
                             input.is_tensor ? " has no declared shape" : " is not a tensor"));
    std::vector<std::int64_t> extents;
    for (const onnx::Dimension& dimension : *input.shape) extents.push_back(dimension.value.value_or(extent));
    auto shape = onnx::checked_shape(extents);
    if (!shape)
      return make_error(shape.error().code,
                        text("onnx: input ", quote(input.name), ": ", shape.error().message));
    shapes.emplace(input.name, *shape);
  }
  return shapes;
}

std::vector<OperatorUse> operators_of(const onnx::Model& model) {
  std::map<std::string, OperatorUse> uses;
  count_operators(model.graph, uses);
  std::vector<OperatorUse> out;
  for (auto& entry : uses) out.push_back(std::move(entry.second));
  return out;
}

}  // namespace imprint
