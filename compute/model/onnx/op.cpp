#include "compute/model/onnx/op.h"

#include <algorithm>
#include <array>

#include "compute/base/quote.h"
#include "compute/base/text.h"

namespace imprint::onnx {

namespace {

constexpr const char* kGiveNumbers = "Give these extents numbers instead of bounds.";

std::string text_of(const std::vector<SymbolicInt>& symbols) {
  std::string out;
  for (const SymbolicInt& symbol : symbols) out += (out.empty() ? "[" : ", ") + symbol.text();
  return out + "]";
}

}  // namespace

OpContext::OpContext(const Node& node, std::int64_t opset, std::vector<std::optional<Value>> inputs,
                     Mover& mover, Bodies& bodies, const Bindings* bindings)
    : node_(node),
      opset_(opset),
      inputs_(std::move(inputs)),
      mover_(mover),
      bodies_(bodies),
      bindings_(bindings),
      outputs_(node.outputs.size()) {}

const Attribute* resolved(const Attribute* attribute, const Bindings* bindings) {
  if (!attribute || attribute->reference.empty()) return attribute;
  if (!bindings) return nullptr;
  for (const AttributeMap* attributes : std::array{&bindings->given, &bindings->defaults})
    if (const auto bound = attributes->find(attribute->reference); bound != attributes->end())
      return bound->second;
  return nullptr;
}

void OpContext::fail(ErrorCode code, const std::string& reason) {
  if (!failure_) failure_ = make_error(code, text(node_.text(), ": ", reason));
}

void OpContext::unsupported(const std::string& reason) { fail(ErrorCode::unsupported, reason); }

bool OpContext::require(bool condition, std::string reason) {
  if (!condition) fail(ErrorCode::shape_mismatch, reason);
  return condition && !failure_;
}

bool OpContext::has(int input) const {
  return input >= 0 && input < input_count() && inputs_[static_cast<std::size_t>(input)].has_value();
}

const Value& OpContext::value(int input) {
  if (has(input)) return *inputs_[static_cast<std::size_t>(input)];
  fail(ErrorCode::corrupt_file, text("input ", input, " is missing"));
  if (missing_.type() == ElementType::undefined)
    missing_ = Value::run_time(Tensor(0.0f), ElementType::float32);
  return missing_;
}

bool OpContext::all_foldable() const {
  return std::all_of(inputs_.begin(), inputs_.end(),
                     [](const auto& input) { return !input || input->foldable(); });
}

std::vector<std::int64_t> OpContext::known_ints(int input, const char* what, std::size_t most) {
  const Value& from = value(input);
  if (from.symbols())
    unsupported(text(what, ": found ", text_of(*from.symbols()), ", expected numbers. ", kGiveNumbers));
  else if (!from.host())
    unsupported(text(what, " is computed at run time: shapes must follow from the input shapes alone"));
  else if (is_float(from.type()) || from.type() == ElementType::string)
    fail(ErrorCode::dtype_mismatch,
         text(what, ": found ", element_type_name(from.type()), ", expected whole numbers"));
  else if (from.rank() > 1)
    fail(ErrorCode::shape_mismatch, text(what, ": found shape ", from.shape().text(), ", expected a list"));
  else if (from.host()->ints.size() > most)
    fail(ErrorCode::shape_mismatch,
         text(what, ": found ", from.host()->ints.size(), " numbers, expected at most ", most));
  else
    return from.host()->ints;
  return {};
}

std::vector<float> OpContext::known_floats(int input, const char* what, std::size_t most) {
  const Value& from = value(input);
  if (!from.host())
    unsupported(text(what, " is computed at run time: shapes must follow from the input shapes alone"));
  else if (!is_float(from.type()) || from.rank() > 1 || from.host()->floats.size() > most)
    fail(ErrorCode::shape_mismatch, text(what, ": found ", element_type_name(from.type()),
                                         from.shape().text(), ", expected at most ", most, " numbers"));
  else
    return {from.host()->floats.begin(), from.host()->floats.end()};
  return {};
}

double OpContext::known_number(int input, const char* what) {
  const Value& from = value(input);
  const HostArray* host = from.host();
  if (from.symbols()) {
    unsupported(text(what, ": found ", text_of(*from.symbols()), ", expected a number. ", kGiveNumbers));
    return 0;
  }
  if (!host) {
    unsupported(text(what, " is computed at run time: it must be a constant"));
    return 0;
  }
  if (host->shape.element_count() != 1 || host->type == ElementType::string) {
    fail(ErrorCode::shape_mismatch, text(what, ": found ", from.text(), ", expected one number"));
    return 0;
  }
  return is_float(host->type) ? static_cast<double>(host->floats[0]) : static_cast<double>(host->ints[0]);
}

std::int64_t OpContext::known_int(int input, const char* what) {
  const double number = known_number(input, what);
  if (number > -0x1p53 && number < 0x1p53) return static_cast<std::int64_t>(number);
  fail(ErrorCode::invalid_argument, text(what, " is out of range"));
  return 0;
}

const Attribute* OpContext::attribute(std::string_view name, AttributeKind kind) {
  const Attribute* found = find_attribute(name);
  if (found && found->kind != kind) {
    fail(ErrorCode::corrupt_file,
         text("attribute ", quote(name), " is of another kind than the operator takes"));
    return nullptr;
  }
  return found;
}

// Lists of the usual length are free.
bool OpContext::may_copy(const Attribute& attribute) {
  std::size_t units = attribute.ints.size() + attribute.floats.size();
  for (const std::string& words : attribute.strings) units += 4 + words.size() / 8;
  const auto operations = static_cast<std::int64_t>(units / 64);
  if (operations > 0 && !failure_ && !mover_.may_make(operations))
    unsupported(text("attribute ", quote(attribute.name), ": longer lists than one model may have"));
  return !failure_;
}

std::optional<Value> OpContext::constant_attribute() {
  constexpr std::pair<const char*, AttributeKind> kForms[] = {
      {"value", AttributeKind::tensor},         {"value_float", AttributeKind::float_value},
      {"value_int", AttributeKind::int_value},  {"value_ints", AttributeKind::ints},
      {"value_floats", AttributeKind::floats},  {"value_string", AttributeKind::string_value},
      {"value_strings", AttributeKind::strings}};
  for (const auto& [name, kind] : kForms) {
    const Attribute* found = attribute(name, kind);
    if (failure_) return std::nullopt;
    if (!found) continue;
    auto value = mover_.held(*found);
    if (value) return std::move(*value);
    fail(value.error().code, value.error().message);
    return std::nullopt;
  }
  unsupported("a constant that is neither a tensor nor numbers");
  return std::nullopt;
}

std::int64_t OpContext::int_attribute(std::string_view name, std::int64_t otherwise) {
  const Attribute* found = attribute(name, AttributeKind::int_value);
  return found && !found->ints.empty() ? found->ints[0] : otherwise;
}

double OpContext::float_attribute(std::string_view name, double otherwise) {
  const Attribute* found = attribute(name, AttributeKind::float_value);
  return found && !found->floats.empty() ? static_cast<double>(found->floats[0]) : otherwise;
}

std::string OpContext::string_attribute(std::string_view name, std::string otherwise) {
  const Attribute* found = attribute(name, AttributeKind::string_value);
  return found && !found->strings.empty() && may_copy(*found) ? found->strings[0] : otherwise;
}

std::vector<std::int64_t> OpContext::ints_attribute(std::string_view name,
                                                    std::vector<std::int64_t> otherwise) {
  const Attribute* found = attribute(name, AttributeKind::ints);
  return found && may_copy(*found) ? found->ints : otherwise;
}

const TensorData* OpContext::tensor_attribute(std::string_view name) {
  const Attribute* found = attribute(name, AttributeKind::tensor);
  return found && !found->tensors.empty() ? &found->tensors[0] : nullptr;
}

std::vector<float> OpContext::floats_attribute(std::string_view name) {
  const Attribute* found = attribute(name, AttributeKind::floats);
  return found && may_copy(*found) ? found->floats : std::vector<float>();
}

std::vector<std::string> OpContext::strings_attribute(std::string_view name) {
  const Attribute* found = attribute(name, AttributeKind::strings);
  return found && may_copy(*found) ? found->strings : std::vector<std::string>();
}

const Graph* OpContext::graph_attribute(std::string_view name) {
  const Attribute* found = attribute(name, AttributeKind::graph);
  if (found && !found->graphs.empty()) return &found->graphs[0];
  fail(ErrorCode::corrupt_file, text("attribute ", quote(name), " is missing"));
  return nullptr;
}

bool OpContext::may_make(std::int64_t operations) {
  if (!failure_ && !mover_.may_make(operations))
    unsupported(text("more ", node_.op_type, " nodes than one model may have"));
  return !failure_;
}

int OpContext::axis(std::int64_t raw, int rank) {
  if (raw >= -rank && raw < rank) return static_cast<int>(raw < 0 ? raw + rank : raw);
  fail(ErrorCode::shape_mismatch, text("axis ", raw, " is outside a tensor of rank ", rank));
  return 0;
}

std::vector<int> OpContext::axes(const std::vector<std::int64_t>& raw, int rank) {
  std::vector<int> out;
  for (const std::int64_t one : raw) {
    const int normal = axis(one, rank);
    if (failure_) return {};
    if (std::find(out.begin(), out.end(), normal) != out.end()) {
      fail(ErrorCode::shape_mismatch, text("axis ", one, " is given twice"));
      return {};
    }
    out.push_back(normal);
  }
  return out;
}

Shape OpContext::checked(std::span<const std::int64_t> extents) {
  auto shape = checked_shape(extents);
  if (shape) return *shape;
  fail(shape.error().code, shape.error().message);
  return {};
}

std::optional<std::vector<Value>> OpContext::imported_as(std::string_view op, std::int64_t opset,
                                                         std::vector<std::optional<Value>> inputs) {
  const OpHandler* const handler = find_handler("", op);
  if (!handler) unsupported(text("operator ", op));
  if (failure_) return std::nullopt;
  OpContext inner(node_, opset, std::move(inputs), mover_, bodies_, bindings_);
  handler->import(inner);
  failure_ = inner.failure_;
  stopped_ = inner.stopped_;
  if (!failure_ && !stopped_ &&
      (inner.outputs_.empty() || inner.outputs_[0].type() == ElementType::undefined))
    unsupported(text("output 0 of ", op));
  if (failure_ || stopped_) return std::nullopt;
  return std::move(inner.outputs_);
}

void OpContext::become(const OpHandler& handler, std::vector<std::optional<Value>> inputs) {
  OpContext inner(node_, opset_, std::move(inputs), mover_, bodies_, bindings_);
  handler.import(inner);
  failure_ = inner.failure_;
  stopped_ = inner.stopped_;
  why_float_ = inner.why_float_;
  outputs_ = std::move(inner.outputs_);
}

bool OpContext::wants(int output) const {
  return output < static_cast<int>(node_.outputs.size()) &&
         !node_.outputs[static_cast<std::size_t>(output)].empty();
}

void OpContext::set(int output, Value value) {
  if (output < static_cast<int>(outputs_.size()))
    outputs_[static_cast<std::size_t>(output)] = std::move(value);
}

void OpContext::set(int output, Tensor tensor, ElementType type) {
  set(output, Value::run_time(std::move(tensor), type));
}

void OpContext::set(int output, Tensor tensor) {
  const DType dtype = tensor.dtype();
  ElementType type = dtype == DType::float32   ? ElementType::float32
                     : dtype == DType::boolean ? ElementType::boolean
                                               : ElementType::int64;
  for (const auto& input : inputs_)
    if (input && run_time_dtype(input->type()) == dtype) {
      type = input->type();
      break;
    }
  set(output, std::move(tensor), type);
}

std::vector<std::span<const OpHandler>> all_ops() {
  return {elementwise_ops(),
          activation_ops(),
          reduce_ops(),
          linear_ops(),
          shape_ops(),
          index_ops(),
          image_ops(),
          norm_ops(),
          control_ops(),
          resize_ops(),
          scatter_ops(),
          recurrent_ops(),
          attention_ops(),
          quantised_ops(),
          various_ops(),
          sequence_ops(),
          random_ops(),
          detection_ops(),
          text_ops(),
          training_ops(),
          microsoft_ops(),
          microsoft_further_ops(),
          microsoft_quantised_ops(),
          packed_weights_ops()};
}

const OpHandler* find_handler(std::string_view domain, std::string_view op_type) {
  static const auto by_name = [] {
    std::map<std::string_view, const OpHandler*> handlers;
    for (const auto family : all_ops())
      for (const OpHandler& handler : family) handlers.emplace(handler.name, &handler);
    return handlers;
  }();
  const auto found = by_name.find(domain.empty() ? std::string(op_type) : text(domain, ".", op_type));
  return found == by_name.end() ? nullptr : found->second;
}

Value known_vector(std::vector<std::int64_t> values) {
  HostArray array;
  array.type = ElementType::int64;
  array.shape = {static_cast<std::int64_t>(values.size())};
  array.ints = std::move(values);
  return Value::known(std::move(array));
}

}  // namespace imprint::onnx
