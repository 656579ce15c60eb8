#include "tools/imprint/model_inputs.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "compute/base/at.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/format/tensor_data.h"
#include "compute/model/onnx/value.h"
#include "tools/imprint/bench_noise.h"

namespace imprint::tools {

namespace {

using onnx::ElementType;

// Looks for the input's name, and for "in.NAME" as reference files spell it.
const safetensors::Array* find_input(const safetensors::File& file, const std::string& name) {
  for (const std::string& key : {name, "in." + name})
    if (const auto found = file.arrays.find(key); found != file.arrays.end()) return &found->second;
  return nullptr;
}

// The int32 with the same bits, as programs compute uint32.
Result<HostTensor> host_tensor_of_uint32(const safetensors::Array& array, const ImportedValue& input) {
  IMPRINT_ASSIGN(const std::vector<std::int64_t> given, array.long_ints());
  std::vector<std::int32_t> bits;
  bits.reserve(given.size());
  for (const std::int64_t number : given) {
    if (!std::in_range<std::uint32_t>(number))
      return make_error(ErrorCode::invalid_argument, text("input ", quote(input.name), ": found ", number,
                                                          ", expected 0 to ", UINT32_MAX));
    bits.push_back(static_cast<std::int32_t>(static_cast<std::uint32_t>(number)));
  }
  return HostTensor::from_ints(std::move(bits), array.shape);
}

Result<HostTensor> host_tensor(const safetensors::Array& array, const ImportedValue& input) {
  using safetensors::Type;
  const bool given_float = array.type == Type::float16 || array.type == Type::bfloat16 ||
                           array.type == Type::float32 || array.type == Type::float64;
  const DType dtype = input.tensor.dtype();
  if (given_float != (dtype == DType::float32))
    return make_error(ErrorCode::dtype_mismatch,
                      text("input ", quote(input.name), ": found ", safetensors::type_name(array.type),
                           ", expected ", onnx::element_type_name(input.type)));
  if (dtype == DType::float32) return HostTensor::from(array.floats(), array.shape);
  if (input.type == onnx::ElementType::uint32) return host_tensor_of_uint32(array, input);
  auto ints = array.ints();
  if (!ints)
    return make_error(ints.error().code, text("input ", quote(input.name), ": ", ints.error().message));
  HostTensor tensor = HostTensor::from_ints(std::move(*ints), array.shape);
  if (dtype == DType::boolean) {
    tensor.dtype = DType::boolean;
    for (std::int32_t& value : tensor.ints) value = value != 0;
  }
  return tensor;
}

// Before the first of them is made.
Result<> check_noise(const std::string& path, const std::vector<onnx::ValueInfo>& inputs,
                     const std::map<std::string, Shape>& shapes, std::uint64_t memory_limit) {
  constexpr std::uint64_t kCopies = 3, kElement = 4, kLongElement = 8;
  std::uint64_t left = memory_limit;
  for (const onnx::ValueInfo& input : inputs) {
    const Shape& shape = shapes.at(input.name);
    const bool is_short = is_float(input.type) || input.type == ElementType::boolean;
    const std::uint64_t each = kCopies * (is_short ? kElement : kLongElement);
    const bool has_size =
        std::ranges::all_of(shape.extents(), [](std::int64_t extent) { return extent >= 0; });
    if (!has_size || static_cast<std::uint64_t>(shape.element_count()) > left / each)
      return make_error(
          ErrorCode::unsupported,
          text(
              "'", path, "': input ", quote(input.name), ": found shape ", shape.text(),
              ", expected at most ", left / each, " elements, which a memory limit of ", memory_limit,
              " bytes leaves. Give smaller shapes by --shape or --batch, or the input's numbers by --input"));
    left -= static_cast<std::uint64_t>(shape.element_count()) * each;
  }
  return {};
}

}  // namespace

Result<ImportedModel> import_for(const onnx::Model& model, const std::string& path,
                                 const safetensors::File& given, std::uint64_t constant_limit_bytes,
                                 std::span<const DimensionBound> bounds) {
  std::map<std::string, Shape> shapes;
  for (const onnx::ValueInfo& input : model.graph.inputs)
    if (const safetensors::Array* array = find_input(given, input.name))
      shapes.emplace(input.name, array->shape);
  for (const onnx::ValueInfo& input : model_inputs(model)) {
    if (shapes.contains(input.name)) continue;
    return make_error(ErrorCode::not_found,
                      text("'", path, "' lacks input ", quote(input.name), " ", input.shape_text(), ": ",
                           given.find(input.name).error().message));
  }
  ImportOptions options{.constant_limit_bytes = constant_limit_bytes};
  IMPRINT_CHECK(bound_dimensions(model, bounds, shapes));
  auto imported = import_onnx(model, shapes, options);
  if (imported || !bounds.empty() || imported.error().code != ErrorCode::unsupported) return imported;
  for (const onnx::ValueInfo& input : model_inputs(model)) {
    const safetensors::Array* array = find_input(given, input.name);
    if (!array) continue;
    if (onnx::TensorData data = onnx::tensor_data(input.name, *array); data.type == input.type)
      options.known_inputs[input.name] = std::move(data);
  }
  auto known = import_onnx(model, shapes, options);
  if (!known) return imported;
  std::fprintf(stderr, "note: the inputs' values are constants of the program: shapes follow from them\n");
  return known;
}

Result<safetensors::File> noise_for(const onnx::Model& model, const std::string& path,
                                    const ModelShapes& given, std::uint64_t memory_limit) {
  IMPRINT_ASSIGN(const auto shapes, shapes_of(model, path, given));
  const std::vector<onnx::ValueInfo> inputs = model_inputs(model);
  IMPRINT_CHECK(check_noise(path, inputs, shapes, memory_limit));
  safetensors::File file;
  Noise noise;
  for (const onnx::ValueInfo& input : inputs) {
    const Shape& shape = shapes.at(input.name);
    const std::size_t count = at(shape.element_count());
    if (input.type == ElementType::boolean) {
      file.arrays.emplace(input.name, safetensors::Array::of_bools(std::vector<std::int32_t>(count), shape));
    } else if (is_float(input.type)) {
      std::vector<float> values(count);
      for (float& value : values) value = noise.next();
      file.arrays.emplace(input.name, safetensors::Array::of(values, shape));
    } else {
      file.arrays.emplace(input.name, safetensors::Array::of(std::vector<std::int64_t>(count), shape));
    }
  }
  return file;
}

Result<std::vector<HostTensor>> host_tensors(const ImportedModel& imported, const safetensors::File& given) {
  std::vector<HostTensor> inputs;
  for (const ImportedValue& input : imported.inputs) {
    IMPRINT_ASSIGN(HostTensor tensor, host_tensor(*find_input(given, input.name), input));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace imprint::tools
