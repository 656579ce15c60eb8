#include "compute/model/onnx_import.h"

#include <algorithm>
#include <exception>
#include <new>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "compute/model/onnx_op.h"

namespace imprint {
namespace {

using onnx::ElementType;
using onnx::Value;

// Elements that constant folding may make in one import: enough for any weight rearrangement, too few to be
// an attack.
constexpr std::int64_t kFoldBudget = std::int64_t{1} << 24;
constexpr std::size_t kMaxListed = 64;

class Importer {
 public:
  Importer(const onnx::Model& model, const std::map<std::string, Shape>& input_shapes,
           const ImportOptions& options)
      : model_(model), graph_(model.graph), given_(input_shapes), options_(options) {}

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
    return make_error(ErrorCode::corrupt_file, "onnx: " + reason);
  }

  // Each name is given once, and each name used is given.
  Status check_names() {
    std::unordered_set<std::string_view> made;
    for (const onnx::TensorData& tensor : graph_.initializers) {
      if (!made.insert(tensor.name).second)
        return damaged("two initializers are named '" + tensor.name + "'");
      initializers_.emplace(tensor.name, &tensor);
    }
    std::unordered_set<std::string_view> inputs;
    for (const onnx::ValueInfo& input : graph_.inputs) {
      if (input.name.empty()) return damaged("an input has no name");
      if (!inputs.insert(input.name).second) return damaged("two inputs are named '" + input.name + "'");
      made.insert(input.name);
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      for (const std::string& output : graph_.nodes[i].outputs) {
        if (output.empty()) continue;
        if (!made.insert(output).second)
          return damaged("'" + output + "' is made twice, the second time by " + graph_.nodes[i].text());
        maker_.emplace(output, i);
      }
    std::string missing;
    std::size_t count = 0;
    const auto use = [&](const std::string& name, const std::string& user) {
      if (name.empty() || made.contains(name)) return;
      if (++count <= kMaxListed) missing += (missing.empty() ? "'" : ", '") + name + "' (" + user + ")";
    };
    for (const onnx::Node& node : graph_.nodes)
      for (const std::string& input : node.inputs) use(input, node.text());
    for (const onnx::ValueInfo& output : graph_.outputs) use(output.name, "an output of the graph");
    if (count > 0) return damaged("nothing makes " + missing + (count > kMaxListed ? " and more" : ""));
    for (const auto& entry : given_)
      if (!inputs.contains(entry.first))
        return make_error(ErrorCode::not_found,
                          "a shape is given for '" + entry.first + "': " + known_inputs());
    return {};
  }

  std::string known_inputs() const {
    std::string names;
    for (const onnx::ValueInfo& input : model_inputs(model_))
      names += (names.empty() ? "'" : ", '") + input.name + "'";
    return names.empty() ? "the model has no inputs" : "the inputs are " + names;
  }

  Status add_initializers() {
    for (const onnx::TensorData& data : graph_.initializers) {
      if (given_.contains(data.name)) continue;
      auto array = onnx::host_array(data);
      if (!array) {
        if (array.error().code != ErrorCode::unsupported) return std::move(array).error();
        unsupported_.push_back(array.error().message);
        refused_.insert(data.name);
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

  void note_type(const std::string& name, ElementType type) {
    if (type == ElementType::float32 || type == ElementType::int32 || type == ElementType::int64 ||
        type == ElementType::boolean)
      return;
    if (result_.notes.size() < kMaxListed)
      result_.notes.push_back("'" + name + "' is " + element_type_name(type) +
                              " in the file and computed as " +
                              std::string(dtype_name(onnx::run_time_dtype(type))));
  }

  // Constants of int64 are looked at one by one, and mostly are shapes; what comes in at run time cannot be.
  void note_wide_input(const onnx::ValueInfo& input) {
    if (input.type == ElementType::int64 && result_.notes.size() < kMaxListed)
      result_.notes.push_back("'" + input.name +
                              "' is int64 in the file and computed as int32: arithmetic wraps at 32 bits");
  }

  bool is_constant_input(const onnx::ValueInfo& input) const {
    return initializers_.contains(input.name) && !given_.contains(input.name);
  }

  Status add_inputs() {
    // Symbols first: an input that is not listed may share one with an input that is.
    for (const onnx::ValueInfo& input : graph_.inputs) IMPRINT_CHECK(bind_symbols(input));
    for (const onnx::ValueInfo& input : graph_.inputs) {
      if (is_constant_input(input)) continue;
      if (!input.is_tensor || (!onnx::is_float(input.type) && !onnx::is_integer(input.type) &&
                               input.type != ElementType::boolean)) {
        unsupported_.push_back(
            "input '" + input.name + "' is " +
            (input.is_tensor ? element_type_name(input.type) : std::string("not a tensor")));
        refused_.insert(input.name);
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

  Status bind_symbols(const onnx::ValueInfo& input) {
    const auto given = given_.find(input.name);
    if (given == given_.end()) return {};
    const Shape& shape = given->second;
    if (auto checked = onnx::checked_shape(shape.extents()); !checked)
      return make_error(checked.error().code, "input '" + input.name + "' of shape " + shape.text() + ": " +
                                                  checked.error().message);
    if (!input.shape) return {};
    const auto mismatch = [&](const std::string& more) {
      return make_error(ErrorCode::shape_mismatch, "input '" + input.name + "' is declared as " +
                                                       input.shape_text() + ": shape " + shape.text() +
                                                       " does not fit" + more);
    };
    if (static_cast<int>(input.shape->size()) != shape.rank()) return mismatch("");
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const onnx::Dimension& dimension = (*input.shape)[static_cast<std::size_t>(axis)];
      if (dimension.value && *dimension.value != shape[axis]) return mismatch("");
      if (dimension.value || dimension.symbol.empty()) continue;
      const auto [bound, fresh] = symbols_.emplace(dimension.symbol, shape[axis]);
      if (!fresh && bound->second != shape[axis])
        return mismatch(": '" + dimension.symbol + "' is " + std::to_string(bound->second) + " elsewhere");
    }
    return {};
  }

  Result<Shape> input_shape(const onnx::ValueInfo& input) const {
    if (const auto given = given_.find(input.name); given != given_.end()) return given->second;
    if (!input.shape)
      return make_error(ErrorCode::invalid_argument,
                        "input '" + input.name + "' has no declared shape: give one");
    std::vector<std::int64_t> extents;
    for (const onnx::Dimension& dimension : *input.shape) {
      const auto bound = symbols_.find(dimension.symbol);
      if (!dimension.value && (dimension.symbol.empty() || bound == symbols_.end()))
        return make_error(ErrorCode::invalid_argument, "input '" + input.name + "' has the shape " +
                                                           input.shape_text() +
                                                           " with a free dimension: give its shape");
      extents.push_back(dimension.value ? *dimension.value : bound->second);
    }
    auto shape = onnx::checked_shape(extents);
    if (!shape) return make_error(shape.error().code, "input '" + input.name + "': " + shape.error().message);
    return shape;
  }

  // The nodes that outputs depend on, each behind those it reads from; otherwise in the file's order. (A
  // sorted file is the rule, not certain.)
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

  Status import_node(const onnx::Node& node) {
    const onnx::OpHandler* handler = onnx::find_handler(node.domain, node.op_type);
    bool computable = handler != nullptr;
    if (!handler) {
      const auto [entry, fresh] =
          lacking_.emplace(node.domain.empty() ? node.op_type : node.domain + "." + node.op_type, 0);
      if (++entry->second <= 4) unsupported_.push_back("operator " + node.text());
    }
    std::vector<std::optional<Value>> inputs;
    for (const std::string& name : node.inputs) {
      if (name.empty()) {
        inputs.emplace_back();
      } else if (const auto value = values_.find(name); value != values_.end()) {
        inputs.emplace_back(value->second);
      } else {
        computable = false;  // what it depends on was refused already
      }
    }
    if (!computable) return {};

    onnx::OpContext context(node, model_.opset(), std::move(inputs), mover_);
    // With no input there is nothing to fold; operators such as Constant say themselves that their result is
    // known.
    const bool folded =
        handler->fold && context.input_count() > 0 && context.all_foldable() && handler->fold(context);
    if (!folded && !context.failure()) handler->import(context);
    if (context.failure()) return refuse(*context.failure());
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      const Value& value = context.outputs()[i];
      if (value.type() == ElementType::undefined)
        return refuse(make_error(ErrorCode::unsupported,
                                 node.text() + ": output " + std::to_string(i) + " is not supported"));
      if (!value.host()) {
        const Tensor tensor = value.tensor();
        if (!tensor.ok())
          return refuse(make_error(tensor.error().code, node.text() + ": " + tensor.error().message));
      }
      if (auto shape = onnx::checked_shape(value.shape().extents()); !shape)
        return refuse(make_error(shape.error().code, node.text() + ": output " + value.shape().text() + ": " +
                                                         shape.error().message));
      values_.emplace(node.outputs[i], value);
    }
    return {};
  }

  // What is merely unsupported is collected, so that one message tells all of it, behind the first thing that
  // is wrong.
  Status refuse(const Error& error) {
    if (error.code == ErrorCode::unsupported)
      unsupported_.push_back(error.message);
    else if (!wrong_)
      wrong_ = make_error(error.code, "onnx: " + error.message);
    return {};
  }

  Error wrong_error() const {
    return unsupported_.empty()
               ? *wrong_
               : make_error(wrong_->code, wrong_->message + "; besides, " + unsupported_error().message);
  }

  Error unsupported_error() const {
    std::string text = "onnx: not supported: ";
    for (std::size_t i = 0; i < std::min(unsupported_.size(), kMaxListed); ++i)
      text += (i == 0 ? "" : "; ") + unsupported_[i];
    if (unsupported_.size() > kMaxListed)
      text += "; and " + std::to_string(unsupported_.size() - kMaxListed) + " more";
    std::string counts;
    for (const auto& [name, count] : lacking_)
      if (count > 4) counts += (counts.empty() ? " (in all " : ", ") + std::to_string(count) + " " + name;
    return make_error(ErrorCode::unsupported, text + (counts.empty() ? "" : counts + ")"));
  }

  Status add_outputs() {
    std::unordered_set<std::string_view> seen;
    for (const onnx::ValueInfo& output : graph_.outputs) {
      if (!seen.insert(output.name).second) return damaged("two outputs are named '" + output.name + "'");
      const auto value = values_.find(output.name);
      if (value == values_.end()) return damaged("nothing makes output '" + output.name + "'");
      const Tensor tensor = value->second.tensor();
      if (!tensor.ok())
        return make_error(tensor.error().code,
                          "onnx: output '" + output.name + "': " + tensor.error().message);
      if (output.is_tensor && output.type != ElementType::undefined &&
          onnx::run_time_dtype(output.type) != tensor.dtype())
        return make_error(ErrorCode::dtype_mismatch, "onnx: output '" + output.name + "' is declared as " +
                                                         element_type_name(output.type) +
                                                         " and computed as " +
                                                         std::string(dtype_name(tensor.dtype())));
      result_.outputs.push_back({output.name, tensor, output.is_tensor ? output.type : value->second.type()});
    }
    if (result_.outputs.empty()) return damaged("the graph has no outputs");
    return {};
  }

  const onnx::Model& model_;
  const onnx::Graph& graph_;
  const std::map<std::string, Shape>& given_;
  const ImportOptions& options_;
  onnx::Mover mover_{kFoldBudget};
  std::unordered_map<std::string_view, const onnx::TensorData*> initializers_;
  std::unordered_map<std::string_view, std::size_t> maker_;  // value -> node
  std::unordered_map<std::string, Value> values_;
  std::map<std::string, std::int64_t> symbols_;
  std::set<std::string> refused_;
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
    return make_error(ErrorCode::internal, std::string("onnx: ") + exception.what());
  }
}

std::vector<onnx::ValueInfo> model_inputs(const onnx::Model& model) {
  std::unordered_set<std::string_view> initializers;
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
      return make_error(
          ErrorCode::unsupported,
          "onnx: input '" + input.name + (input.is_tensor ? "' has no declared shape" : "' is not a tensor"));
    std::vector<std::int64_t> extents;
    for (const onnx::Dimension& dimension : *input.shape) extents.push_back(dimension.value.value_or(extent));
    auto shape = onnx::checked_shape(extents);
    if (!shape)
      return make_error(shape.error().code, "onnx: input '" + input.name + "': " + shape.error().message);
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
