#include "compute/model/state_dict.h"

#include <utility>

#include "compute/base/text.h"

namespace imprint::nn {
namespace {

// The shape with its last two extents exchanged.
Shape turned(Shape shape) {
  std::swap(shape[shape.rank() - 2], shape[shape.rank() - 1]);
  return shape;
}

// The transposes of the matrices of `shape`.
std::vector<float> turned(const std::vector<float>& values, const Shape& shape) {
  const auto rows = static_cast<std::size_t>(shape[shape.rank() - 2]),
             columns = static_cast<std::size_t>(shape[shape.rank() - 1]);
  std::vector<float> out(values.size());
  for (std::size_t begin = 0; begin < values.size(); begin += rows * columns)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t k = 0; k < columns; ++k) out[begin + k * rows + i] = values[begin + i * columns + k];
  return out;
}

}  // namespace

Result<safetensors::File> save_state(Session& session, const Parameters& parameters,
                                     std::string_view prefix) {
  IMPRINT_ASSIGN(const std::vector<HostTensor> values, session.read(parameters.variables()));
  safetensors::File file;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const HostTensor& value = values[i];
    safetensors::Array& array = file.arrays[std::string(prefix) + parameters[i].name];
    if (value.dtype == DType::int32) {
      const std::vector<std::int64_t> wide(value.ints.begin(), value.ints.end());
      array = safetensors::Array::of(std::span<const std::int64_t>(wide), value.shape);
    } else if (parameters[i].transposed) {
      array = safetensors::Array::of(turned(value.floats, value.shape), turned(value.shape));
    } else {
      array = safetensors::Array::of(std::span<const float>(value.floats), value.shape);
    }
  }
  return file;
}

Result<> load_state(Session& session, const Parameters& parameters, const safetensors::File& file,
                    std::string_view prefix) {
  const auto has_type_of = [](const safetensors::Array& array, DType dtype) {
    return (dtype == DType::float32 && array.type == safetensors::Type::float32) ||
           (dtype == DType::int32 && array.type == safetensors::Type::int32);
  };
  std::vector<const safetensors::Array*> arrays;
  for (const Parameter& parameter : parameters) {
    const std::string name = std::string(prefix) + parameter.name;
    IMPRINT_ASSIGN(const safetensors::Array* array, file.find(name));
    const Shape& shape = parameter.variable.shape();
    const Shape expected = parameter.transposed ? turned(shape) : shape;
    if (array->shape != expected)
      return make_error(ErrorCode::shape_mismatch, text("load_state: found ", name, " ", array->shape.text(),
                                                        ", expected ", expected.text()));
    // Nothing is written when one of them does not fit.
    if (parameter.variable.dtype() == DType::int32) IMPRINT_CHECK(array->ints());
    arrays.push_back(array);
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Parameter& parameter = parameters[i];
    const safetensors::Array& array = *arrays[i];
    if (!parameter.transposed && has_type_of(array, parameter.variable.dtype())) {
      IMPRINT_CHECK(session.runtime().write(parameter.variable, array.bytes));
      continue;
    }
    HostTensor value = HostTensor::from({}, parameter.variable.shape());
    if (parameter.variable.dtype() == DType::int32) {
      IMPRINT_ASSIGN(value.ints, array.ints());
      value.dtype = DType::int32;
    } else {
      value.floats = parameter.transposed ? turned(array.floats(), array.shape) : array.floats();
    }
    IMPRINT_CHECK(session.write(parameter.variable, value));
  }
  return {};
}

}  // namespace imprint::nn
