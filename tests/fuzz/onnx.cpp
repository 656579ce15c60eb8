#include <algorithm>
#include <cstring>

#include "compute/base/saturated.h"
#include "compute/model/onnx/import.h"
#include "compute/model/policy.h"
#include "compute/program/run.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/run_model.h"

namespace imprint::fuzz {
namespace {

constexpr std::uint64_t kMemoryCap = 64 << 20;
// operations and bytes of a run; larger models are only compiled
constexpr std::uint64_t kMostWork = 1 << 24;

bool equal_bits(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].ints != b[i].ints || a[i].floats.size() != b[i].floats.size()) return false;
    if (!a[i].floats.empty() &&
        std::memcmp(a[i].floats.data(), b[i].floats.data(), a[i].floats.size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

HostTensor fed(const Shape& shape, DType dtype) {
  const auto count = static_cast<std::size_t>(shape.element_count());
  if (dtype != DType::float32) return HostTensor::from_ints(std::vector<std::int32_t>(count, 1), shape);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 0.25f * static_cast<float>(i % 7) - 0.5f;
  return HostTensor::from(std::move(values), shape);
}

constexpr const char* kFree = "free";
const Extent& free_extent() {
  static const Extent extent(kFree, 3);
  return extent;
}

// An import that knows every input: a first attempt is refused where shapes follow from values.
Result<ImportedModel> import_known(const imprint::onnx::Model& model) {
  using imprint::onnx::ElementType;
  ImportOptions options;
  for (const imprint::onnx::ValueInfo& input : model_inputs(model)) {
    if (input.sequence) options.sequence_inputs[input.name] = {Shape{2}, Shape{2}};
    if (!input.is_tensor || !input.shape) continue;
    imprint::onnx::TensorData data;
    data.name = input.name;
    data.type = input.type;
    std::int64_t count = 1;
    for (const imprint::onnx::Dimension& dimension : *input.shape) {
      data.extents.push_back(std::min<std::int64_t>(dimension.value.value_or(3), 64));
      count = std::min<std::int64_t>(count * data.extents.back(), 1 << 16);
    }
    for (const std::int64_t extent : data.extents)
      if (count >= (1 << 16) || extent < 0) return make_error(ErrorCode::unsupported, "a large input");
    if (input.type == ElementType::string)
      data.strings.assign(static_cast<std::size_t>(count), "word");
    else
      data.bytes = SharedBytes(std::vector(
          static_cast<std::size_t>(count) * imprint::onnx::element_type_size(input.type), std::byte{1}));
    options.known_inputs[input.name] = std::move(data);
  }
  return import_onnx(model, {}, options);
}

// An import for any extent of the free dimensions, up to a bound.
void import_with_named_extents(const imprint::onnx::Model& model, std::map<std::string, Shape> shapes) {
  bool is_named = false;
  for (const imprint::onnx::ValueInfo& input : model_inputs(model)) {
    Shape& shape = shapes[input.name];
    if (input.shape->size() != static_cast<std::size_t>(shape.rank())) return;  // two inputs of one name
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if ((*input.shape)[static_cast<std::size_t>(axis)].value) continue;
      shape.set_name(axis, free_extent().axis_name());
      is_named = true;
    }
  }
  if (!is_named) return;
  const auto imported = import_onnx(model, shapes);
  check_error(imported);
  if (imported) compile_and_run(*imported);
}

}  // namespace

void compile_and_run(const ImportedModel& model) {
  std::int64_t elements = 0;
  for (const ImportedValue& input : model.inputs) elements += input.tensor.shape().element_count();
  if (elements > (1 << 20) || model.outputs.empty()) return;
  // One for all executions: making it costs more than a small model.
  static const std::unique_ptr<Runtime> runtime = Runtime::create_on_cpu({}, kMemoryCap);
  Session session(*runtime);
  const ProgramDescription description{
      .name = "fuzz", .inputs = model.input_tensors(), .outputs = model.output_tensors(), .slot_count = 1};
  auto program = Program::compile(*runtime, description);
  check_error(program);
  if (!program || saturated_sum(program->stats().work, program->stats().bytes_moved) > kMostWork) return;
  // Extents of a run below their bounds; few models have one.
  constexpr std::pair<const char*, std::int64_t> kUsed[] = {{kFree, 2}, {"N", 2}, {"H", 2}, {"W", 3}};
  for (const auto& [name, extent] : kUsed) (void)program->set_extent(0, name, extent);
  std::vector<HostTensor> inputs;
  for (const ImportedValue& input : model.inputs) {
    inputs.push_back(fed(program->used_shape(0, input.tensor.shape()), input.tensor.dtype()));
    inputs.back().dtype = input.tensor.dtype();
  }
  const auto first = session.run(*program, inputs), second = session.run(*program, inputs);
  check_error(first);
  require(first.ok() == second.ok() && (!first || equal_bits(*first, *second)), "two runs give equal bits");
}

void import_and_run(const imprint::onnx::Model& model, std::span<const DimensionBound> bounds) {
  auto shapes = shapes_with_free_dimensions(model, 2);
  check_error(shapes);
  if (!shapes) return;
  if (!bounds.empty() && !shapes->empty()) check_error(bound_dimensions(model, bounds, *shapes));
  const auto imported = import_onnx(model, *shapes);
  check_error(imported);
  if (imported) compile_and_run(*imported);
}

void onnx(Bytes bytes) {
  const auto model = imprint::onnx::parse(bytes);
  check_error(model);
  if (!model) return;
  operators_of(*model);
  const auto shapes = shapes_with_free_dimensions(*model, 3);
  const auto imported = import_onnx(*model, shapes ? *shapes : std::map<std::string, Shape>());
  check_error(imported);
  check_error(import_policy(*model, 2));
  if (shapes) import_with_named_extents(*model, *shapes);
  if (imported) return compile_and_run(*imported);
  const auto known = import_known(*model);
  check_error(known);
  if (known) compile_and_run(*known);
}

}  // namespace imprint::fuzz
