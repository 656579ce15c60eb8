#include "compute/model/onnx/import.h"

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <set>
#include <span>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/graph.h"
#include "compute/tensor/made_nodes.h"

namespace imprint {
namespace {

using onnx::ElementType;
using onnx::Value;

// Constants that one import may compute: kFoldBytes, and each weight rearranged kFoldsPerWeight times. A
// number of 4 or 8 bits takes many times its bytes, so that these weights are rearranged less often.
constexpr std::uint64_t kFoldBytes = 32 << 20;
constexpr std::uint64_t kFoldsPerWeight = 4, kFoldsPerPackedWeight = 1;
constexpr std::uint64_t kMostHeldPerByte = 8;
constexpr std::int64_t kOperations = 1 << 16;  // of the graph, beyond a few per node
constexpr std::uint64_t kFreeOperations = 1 << 15;
constexpr std::uint64_t kBytesPerOperation = 32;
constexpr std::size_t kMaxInputParts = 1 << 12;  // tensors of a sequence
constexpr std::size_t kMaxOutputs = 1 << 14;  // each costs memory and time in every room, also if it is equal

onnx::ImportBudget budget_of(const onnx::Graph& graph, const ImportOptions& options) {
  onnx::ImportBudget budget{kFoldBytes, options.constant_limit_bytes, kOperations};
  for (const onnx::TensorData& tensor : graph.initializers) {
    const std::int64_t elements = onnx::stored_elements(tensor);
    const bool is_packed = tensor.type == ElementType::int4 || tensor.type == ElementType::uint4;
    const std::uint64_t stored = is_packed ? (tensor.bytes.size() + 1) / 2 : tensor.bytes.size();
    budget.folded_bytes += (is_packed ? kFoldsPerPackedWeight : kFoldsPerWeight) *
                           std::min(onnx::held_bytes(tensor.type, elements), kMostHeldPerByte * stored);
  }
  return budget;
}

std::uint64_t nodes_of(const onnx::Graph& graph) {
  std::uint64_t count = graph.nodes.size();
  for (const onnx::Node& node : graph.nodes)
    for (const onnx::Attribute& attribute : node.attributes)
      for (const onnx::Graph& body : attribute.graphs) count += nodes_of(body);
  return count;
}

// Operations of the graph: some for any file, and one for each node or kBytesPerOperation of its tensors.
std::uint64_t most_operations(const onnx::Model& model) {
  std::uint64_t bytes = 0, nodes = nodes_of(model.graph);
  for (const onnx::TensorData& data : model.graph.initializers) bytes += data.bytes.size();
  for (const onnx::Function& function : model.functions) nodes += nodes_of(function.graph);
  return kFreeOperations + nodes + bytes / kBytesPerOperation;
}

class Importer {
 public:
  Importer(const onnx::Model& model, const std::map<std::string, Shape>& input_shapes,
           const ImportOptions& options)
      : model_(model),
        graph_(model.graph),
        given_(input_shapes),
        options_(options),
        state_{model,
               onnx::Mover(budget_of(model.graph, options)),
               {},
               {},
               {},
               {},
               0,
               most_operations(model),
               tensor::made_nodes(),
               tensor::made_axis_names()},
        importer_(state_, model.graph, model.opset(), nullptr, nullptr) {}

  Result<ImportedModel> run() {
    if (graph_.outputs.size() > kMaxOutputs)
      return make_error(ErrorCode::unsupported, text("onnx: found ", graph_.outputs.size(),
                                                     " outputs, expected at most ", kMaxOutputs));
    const bool own = std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                                 [](const onnx::Node& node) { return node.domain.empty(); });
    if (model_.opset() == 0 && own) return damaged("the model declares no version of ONNX's own operators");
    for (const onnx::Function& function : model_.functions)
      if (!state_.functions
               .emplace(std::pair<std::string_view, std::string_view>(function.domain, function.name),
                        &function)
               .second)
        return damaged("two functions are named " + quote(function.name));
    for (const onnx::TensorData& tensor : graph_.initializers) initializers_.insert(tensor.name);
    if (auto checked = importer_.check_names(); !checked) {
      if (auto refused = state_.refusals.error())
        return *refused;  // they may have the names that nothing makes
      return prefixed(checked.error());
    }
    IMPRINT_CHECK(check_given());
    IMPRINT_CHECK(add_initializers());
    IMPRINT_CHECK(add_inputs());
    if (auto imported = importer_.import_nodes(); !imported) return prefixed(imported.error());
    if (auto refused = state_.refusals.error()) return *refused;
    if (!state_.may_grow())
      return make_error(ErrorCode::unsupported,
                        text("onnx: found more operations than the ", state_.most_nodes,
                             " that a file of this size may have"));
    IMPRINT_CHECK(add_outputs());
    result_.quantised = std::move(state_.quantised);
    return std::move(result_);
  }

 private:
  static Error prefixed(const Error& error) { return make_error(error.code, text("onnx: ", error.message)); }
  Error damaged(const std::string& reason) const {
    return make_error(ErrorCode::corrupt_file, text("onnx: ", reason));
  }

  Result<> check_given() const {
    NameSet inputs;
    for (const onnx::ValueInfo& input : graph_.inputs) inputs.insert(input.name);
    const auto check = [&](const std::string& name, const char* what) -> Result<> {
      if (inputs.contains(name)) return {};
      return make_error(ErrorCode::not_found,
                        text(what, " is given for ", quote(name), ": ", known_inputs()));
    };
    for (const auto& entry : given_) IMPRINT_CHECK(check(entry.first, "a shape"));
    for (const auto& entry : options_.sequence_inputs) IMPRINT_CHECK(check(entry.first, "a sequence"));
    for (const auto& entry : options_.known_inputs)
      IMPRINT_CHECK(check(entry.first.substr(0, entry.first.find('[')), "a value"));
    return {};
  }

  std::string known_inputs() const {
    std::string names;
    std::size_t count = 0;
    for (const onnx::ValueInfo& input : model_inputs(model_))
      if (++count <= onnx::kMaxListed) names += (names.empty() ? "" : ", ") + quote(input.name);
    if (count > onnx::kMaxListed) names += " and more";
    return names.empty() ? "the model has no inputs" : "the inputs are " + names;
  }

  Result<> add_initializers() {
    for (const onnx::TensorData& data : graph_.initializers) {
      if (given_.contains(data.name) || options_.known_inputs.contains(data.name)) continue;
      auto held = state_.mover.held(data);
      if (!held) {
        if (held.error().code != ErrorCode::unsupported) return prefixed(held.error());
        state_.refusals.unsupported(held.error().message);
        continue;
      }
      note_type(data.name, data.type);
      const onnx::HostArray& array = *held->host();
      const bool is_float = onnx::is_float(array.type);
      if (is_float) result_.parameter_count += static_cast<std::uint64_t>(array.shape.element_count());
      if (options_.parameters_as_variables && is_float && array.shape.rank() > 0) {
        Variable variable(data.name, array.shape, std::span(array.floats));
        result_.parameters.push_back(variable);
        importer_.give(data.name, Value::parameter(*held, variable.value()));
      } else {
        importer_.give(data.name, std::move(*held));
      }
    }
    return {};
  }

  void note_type(const std::string& name, ElementType type) {
    if (type == ElementType::float32 || type == ElementType::int32 || type == ElementType::int64 ||
        type == ElementType::boolean)
      return;
    if (result_.notes.size() < onnx::kMaxListed)
      result_.notes.push_back(text(quote(name), " is ", element_type_name(type),
                                   " in the file and computed as ", dtype_name(onnx::run_time_dtype(type))));
  }

  // The importer checks each int64 constant. It cannot check what a caller feeds.
  void note_wide_input(const onnx::ValueInfo& input) {
    if (input.type == ElementType::int64 && result_.notes.size() < onnx::kMaxListed)
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
      if (options_.absent_inputs.contains(input.name) && input.optional) {
        importer_.give(input.name, Value::nothing());
        continue;
      }
      if (input.sequence) {
        IMPRINT_CHECK(add_sequence(input));
        continue;
      }
      IMPRINT_ASSIGN(const std::optional<Value> value, input_tensor(input));
      if (value) importer_.give(input.name, *value);
    }
    return {};
  }

  Result<> add_sequence(const onnx::ValueInfo& input) {
    const auto shapes = options_.sequence_inputs.find(input.name);
    if (shapes == options_.sequence_inputs.end()) {
      state_.refusals.unsupported(
          text("input ", quote(input.name), " is a sequence of a length that is not given"));
      return {};
    }
    if (shapes->second.size() > kMaxInputParts)
      return make_error(ErrorCode::unsupported,
                        text("input ", quote(input.name), ": found ", shapes->second.size(),
                             " tensors, expected at most ", kMaxInputParts));
    std::vector<Value> parts;
    for (std::size_t i = 0; i < shapes->second.size(); ++i) {
      onnx::ValueInfo part;
      part.name = text(input.name, "[", i, "]");
      part.is_tensor = true;
      part.type = input.type;
      part.shape.emplace();
      for (const std::int64_t extent : shapes->second[i].extents())
        part.shape->push_back({.value = extent, .symbol = {}});
      IMPRINT_ASSIGN(const std::optional<Value> value, input_tensor(part));
      if (value) parts.push_back(*value);
    }
    importer_.give(input.name, Value::sequence(std::move(parts)));
    return {};
  }

  // Nothing after a refusal.
  Result<std::optional<Value>> input_tensor(const onnx::ValueInfo& input) {
    const bool numbers =
        onnx::is_float(input.type) || onnx::is_integer(input.type) || input.type == ElementType::boolean;
    const auto known = options_.known_inputs.find(input.name);
    const bool is_known = known != options_.known_inputs.end();
    if ((!input.is_tensor && !input.optional) ||
        (!numbers && !(is_known && input.type == ElementType::string))) {
      state_.refusals.unsupported(text(
          "input ", quote(input.name), " is ",
          input.is_tensor || input.optional ? element_type_name(input.type) : std::string("not a tensor"),
          input.type == ElementType::string ? ": its value must be known" : ""));
      return std::optional<Value>();
    }
    if (is_known) {
      IMPRINT_ASSIGN(Value value, known_value(input, known->second));
      return std::optional<Value>(std::move(value));
    }
    IMPRINT_ASSIGN(const Shape shape, input_shape(input));
    note_type(input.name, input.type);
    note_wide_input(input);
    const Tensor tensor = imprint::input(input.name, shape, onnx::run_time_dtype(input.type));
    if (!tensor.ok()) return tensor.error();
    result_.inputs.push_back({input.name, tensor, input.type});
    return std::optional<Value>(Value::run_time(tensor, input.type));
  }

  Result<Value> known_value(const onnx::ValueInfo& input, const onnx::TensorData& data) {
    auto held = state_.mover.held(data);
    if (!held) return prefixed(held.error());
    if (data.type != input.type)
      return make_error(ErrorCode::dtype_mismatch,
                        text("onnx: input ", quote(input.name), ": found a value of ",
                             element_type_name(data.type), ", expected ", element_type_name(input.type)));
    if (input.shape) {
      bool fits = static_cast<int>(input.shape->size()) == held->rank();
      for (int axis = 0; fits && axis < held->rank(); ++axis) {
        const auto& declared = (*input.shape)[static_cast<std::size_t>(axis)].value;
        fits = !declared || *declared == held->shape()[axis];
      }
      if (!fits)
        return make_error(ErrorCode::shape_mismatch,
                          text("onnx: input ", quote(input.name), ": found a value ", held->shape().text(),
                               ", expected ", input.shape_text()));
    }
    return std::move(*held);
  }

  Result<> bind_symbols(const onnx::ValueInfo& input) {
    const auto given = given_.find(input.name);
    if (given == given_.end()) return {};
    const Shape& shape = given->second;
    if (auto checked = checked_shape(shape.extents()); !checked)
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
      Shape own;
      own.append(shape, axis);
      const auto [bound, fresh] = symbols_.emplace(dimension.symbol, own);
      if (!fresh && (bound->second != own || bound->second.name(0) != own.name(0)))
        return mismatch(text(": ", quote(dimension.symbol), " is ",
                             onnx::SymbolicInt::of(bound->second, 0).text(), " elsewhere"));
    }
    return {};
  }

  Result<Shape> input_shape(const onnx::ValueInfo& input) const {
    if (const auto given = given_.find(input.name); given != given_.end()) return given->second;
    if (!input.shape)
      return make_error(ErrorCode::invalid_argument,
                        text("input ", quote(input.name), " has no declared shape: give one"));
    if (input.shape->size() > static_cast<std::size_t>(Shape::kMaxRank))
      return make_error(ErrorCode::unsupported,
                        text("input ", quote(input.name), ": found ", input.shape->size(),
                             " axes, expected at most ", Shape::kMaxRank));
    Shape shape;
    for (const onnx::Dimension& dimension : *input.shape) {
      const auto bound = symbols_.find(dimension.symbol);
      if (!dimension.value && (dimension.symbol.empty() || bound == symbols_.end()))
        return make_error(ErrorCode::invalid_argument,
                          text("input ", quote(input.name), " has the shape ", input.shape_text(),
                               " with a free dimension: give its shape"));
      dimension.value ? shape.append(*dimension.value) : shape.append(bound->second, 0);
    }
    if (auto checked = checked_shape(shape.extents()); !checked)
      return make_error(checked.error().code,
                        text("input ", quote(input.name), ": ", checked.error().message));
    return shape;
  }

  Result<> add_outputs() {
    NameSet seen;
    for (const onnx::ValueInfo& output : graph_.outputs) {
      if (!seen.insert(output.name).second) return damaged("two outputs are named " + quote(output.name));
      const Value* value = importer_.need(output.name);
      if (auto refused = state_.refusals.error()) return *refused;
      if (!value) return damaged("nothing makes output " + quote(output.name));
      if (value->is_nothing()) continue;
      const std::span<const Value> parts = value->is_sequence() ? value->parts() : std::span(value, 1);
      for (std::size_t i = 0; i < parts.size(); ++i)
        IMPRINT_CHECK(add_output(output, value->is_sequence() ? text(output.name, "[", i, "]") : output.name,
                                 parts[i]));
    }
    if (graph_.outputs.empty()) return damaged("the graph has no outputs");
    return {};
  }

  Result<> add_output(const onnx::ValueInfo& output, const std::string& name, const Value& value) {
    if (value.type() == ElementType::string) {
      result_.texts.push_back({name, value.shape(), value.host()->strings});
      return {};
    }
    const Tensor tensor = value.tensor();
    if (!tensor.ok())
      return make_error(tensor.error().code,
                        text("onnx: output ", quote(name), ": ", tensor.error().message));
    const bool declared = output.is_tensor || output.sequence || output.optional;
    if (declared && output.type != ElementType::undefined &&
        onnx::run_time_dtype(output.type) != tensor.dtype())
      return make_error(ErrorCode::dtype_mismatch,
                        text("onnx: output ", quote(name), " is declared as ", element_type_name(output.type),
                             " and computed as ", dtype_name(tensor.dtype())));
    result_.outputs.push_back({name, tensor, declared ? output.type : value.type()});
    return {};
  }

  const onnx::Model& model_;
  const onnx::Graph& graph_;
  const std::map<std::string, Shape>& given_;
  const ImportOptions& options_;
  onnx::ImportState state_;
  onnx::GraphImporter importer_;
  NameSet initializers_;
  std::map<std::string, Shape> symbols_;  // of one axis
  ImportedModel result_;
};

using FunctionNames = std::set<std::pair<std::string_view, std::string_view>>;

bool is_supported(const onnx::Node& node, const FunctionNames& functions) {
  return functions.contains({node.domain, node.op_type}) ||
         onnx::find_handler(node.domain, node.op_type) != nullptr;
}

FunctionNames functions_of(const onnx::Model& model) {
  FunctionNames functions;
  for (const onnx::Function& function : model.functions) functions.emplace(function.domain, function.name);
  return functions;
}

void count_operators(const onnx::Graph& graph, const FunctionNames& functions,
                     std::map<std::string, OperatorUse>& uses) {
  for (const onnx::Node& node : graph.nodes) {
    const std::string name = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
    OperatorUse& use = uses[name];
    use.name = name;
    ++use.count;
    use.supported = is_supported(node, functions);
    for (const onnx::Attribute& attribute : node.attributes)
      for (const onnx::Graph& subgraph : attribute.graphs) count_operators(subgraph, functions, uses);
  }
}

onnx::BodyUse body_use(const std::string& path, const onnx::Graph& body, const FunctionNames& functions) {
  onnx::BodyUse use{path.substr(0, path.size() - std::string_view(": ").size()), body.nodes.size(), {}};
  std::set<std::string> missing;
  for (const onnx::Node& node : body.nodes)
    if (!is_supported(node, functions) && missing.size() < onnx::kMaxListed)
      missing.insert(clipped(node.domain.empty() ? node.op_type : node.domain + "." + node.op_type));
  use.missing.assign(missing.begin(), missing.end());
  return use;
}

// path: of the graph, for its bodies' own.
void add_bodies(const onnx::Graph& graph, const std::string& path, const FunctionNames& functions,
                std::size_t most, std::vector<onnx::BodyUse>& to) {
  for (const onnx::Node& node : graph.nodes)
    for (const onnx::Attribute& attribute : node.attributes)
      for (const onnx::Graph& body : attribute.graphs) {
        if (to.size() >= most) return;
        const std::string inside = path + onnx::body_text(node, body);
        to.push_back(body_use(inside, body, functions));
        add_bodies(body, inside, functions, most, to);
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
  NameSet initializers;
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
    auto shape = checked_shape(extents);
    if (!shape)
      return make_error(shape.error().code,
                        text("onnx: input ", quote(input.name), ": ", shape.error().message));
    shapes.emplace(input.name, *shape);
  }
  return shapes;
}

std::vector<onnx::BodyUse> onnx::bodies_of(const onnx::Model& model, std::size_t most) {
  const FunctionNames functions = functions_of(model);
  std::vector<onnx::BodyUse> out;
  add_bodies(model.graph, "", functions, most, out);
  for (const onnx::Function& function : model.functions)
    add_bodies(function.graph, text("function ", clipped(function.name), ": "), functions, most, out);
  return out;
}

std::vector<OperatorUse> operators_of(const onnx::Model& model) {
  std::map<std::string, OperatorUse> uses;
  const FunctionNames functions = functions_of(model);
  count_operators(model.graph, functions, uses);
  for (const onnx::Function& function : model.functions) count_operators(function.graph, functions, uses);
  std::vector<OperatorUse> out;
  for (auto& entry : uses) out.push_back(std::move(entry.second));
  return out;
}

}  // namespace imprint
