#include "compute/model/state_dict.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "compute/base/number_format.h"
#include "compute/base/text.h"
#include "compute/model/onnx/import.h"

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

bool has_type_of(const safetensors::Array& array, DType dtype) {
  return (dtype == DType::float32 && array.type == safetensors::Type::float32) ||
         (dtype == DType::int32 && array.type == safetensors::Type::int32) ||
         (dtype == DType::int64 && array.type == safetensors::Type::int64) ||
         (dtype == DType::int8 && array.type == safetensors::Type::int8) ||
         (dtype == DType::uint8 && array.type == safetensors::Type::uint8);
}

// Codes of one byte stay bytes; other integers become int64.
safetensors::Array array_of_ints(const HostTensor& value) {
  if (value.dtype == DType::int64)
    return safetensors::Array::of(std::span<const std::int64_t>(value.int64s), value.shape);
  const bool is_signed = value.dtype == DType::int8;
  if (!is_signed && value.dtype != DType::uint8) {
    const std::vector<std::int64_t> wide(value.ints.begin(), value.ints.end());
    return safetensors::Array::of(std::span<const std::int64_t>(wide), value.shape);
  }
  std::vector<std::byte> bytes;
  for (const std::int32_t each : value.ints) bytes.push_back(static_cast<std::byte>(each & 0xff));
  return {is_signed ? safetensors::Type::int8 : safetensors::Type::uint8, value.shape,
          SharedBytes(std::move(bytes))};
}

// The values of a variable of this type; those of 16 bits round back to the bits that it has.
safetensors::Array array_of_floats(const std::vector<float>& values, const Shape& shape, DType dtype) {
  if (!dtype_is_narrow_float(dtype)) return safetensors::Array::of(std::span<const float>(values), shape);
  const bool is_half = dtype == DType::float16;
  std::vector<std::byte> bytes;
  bytes.reserve(2 * values.size());
  for (const float value : values) {
    const std::uint16_t bits = is_half ? half_from_float(value) : bfloat16_from_float(value);
    bytes.push_back(static_cast<std::byte>(bits & 0xff));
    bytes.push_back(static_cast<std::byte>(bits >> 8));
  }
  return {is_half ? safetensors::Type::float16 : safetensors::Type::bfloat16, shape,
          SharedBytes(std::move(bytes))};
}

// Whether the variable takes the array's numbers, where it holds integers.
Result<> check_integers(const Parameter& parameter, const safetensors::Array& array) {
  const DType dtype = parameter.variable.dtype();
  if (dtype == DType::int64) IMPRINT_CHECK(array.long_ints());
  if (!dtype_is_float(dtype) && dtype != DType::int64) IMPRINT_CHECK(array.ints());
  return {};
}

// Writes an array whose shape fits.
Result<> write_content(Session& session, const Parameter& parameter, const safetensors::Array& array) {
  if (!parameter.transposed && has_type_of(array, parameter.variable.dtype()))
    return session.runtime().write(parameter.variable, array.bytes);
  HostTensor value = HostTensor::from({}, parameter.variable.shape());
  if (parameter.variable.dtype() == DType::int64) {
    IMPRINT_ASSIGN(value.int64s, array.long_ints());
    value.dtype = DType::int64;
  } else if (!dtype_is_float(parameter.variable.dtype())) {
    IMPRINT_ASSIGN(value.ints, array.ints());
    value.dtype = parameter.variable.dtype();
  } else {
    value.floats = parameter.transposed ? turned(array.floats(), array.shape) : array.floats();
  }
  return session.write(parameter.variable, value);
}

Shape stored_shape(const Parameter& parameter) {
  const Shape& shape = parameter.variable.shape();
  return parameter.transposed ? turned(shape) : shape;
}

// The texts that the stars of the pattern stand for, or nothing. Each takes as few characters as it can.
std::optional<std::vector<std::string>> stars_of(std::string_view pattern, std::string_view name) {
  std::vector<std::string> out;
  std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern ? std::optional(out) : std::nullopt;
  if (!name.starts_with(pattern.substr(0, star))) return std::nullopt;
  name.remove_prefix(star);
  while (star != std::string_view::npos) {
    pattern.remove_prefix(star + 1);
    star = pattern.find('*');
    const std::string_view literal = pattern.substr(0, star);
    const bool last = star == std::string_view::npos;
    if (last && !name.ends_with(literal)) return std::nullopt;
    const std::size_t at = last ? name.size() - literal.size() : name.find(literal);
    if (at == std::string_view::npos) return std::nullopt;
    out.emplace_back(name.substr(0, at));
    name.remove_prefix(at + literal.size());
  }
  return out;
}

std::string renamed(const std::string& name, std::span<const Rename> renames) {
  for (const Rename& rule : renames) {
    const auto stars = stars_of(rule.from, name);
    if (!stars) continue;
    std::string out;
    std::size_t next = 0;
    for (const char letter : rule.to) {
      if (letter != '*')
        out += letter;
      else if (next < stars->size())
        out += (*stars)[next++];
    }
    return out;
  }
  return name;
}

std::string listed(std::string_view what, std::span<const std::string> names) {
  constexpr std::size_t kMost = 16;
  if (names.empty()) return {};
  std::string out = text(names.size(), " ", what, ": ");
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i) out += (i == 0 ? "" : ", ") + names[i];
  return out + (names.size() > kMost ? " and more\n" : "\n");
}

}  // namespace

Parameters parameters_of(const ImportedModel& model) {
  Parameters parameters;
  for (const Variable& variable : model.parameters) parameters.add(variable.name(), variable);
  return parameters;
}

Result<safetensors::File> save_state(Session& session, const Parameters& parameters,
                                     std::string_view prefix) {
  IMPRINT_ASSIGN(const std::vector<HostTensor> values, session.read(parameters.variables()));
  safetensors::File file;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const HostTensor& value = values[i];
    safetensors::Array& array = file.arrays[std::string(prefix) + parameters[i].name];
    const DType dtype = parameters[i].variable.dtype();
    if (!dtype_is_float(dtype)) {
      array = array_of_ints(value);
    } else if (parameters[i].transposed) {
      array = array_of_floats(turned(value.floats, value.shape), turned(value.shape), dtype);
    } else {
      array = array_of_floats(value.floats, value.shape, dtype);
    }
  }
  return file;
}

Result<> load_state(Session& session, const Parameters& parameters, const safetensors::File& file,
                    std::string_view prefix) {
  std::vector<const safetensors::Array*> arrays;
  for (const Parameter& parameter : parameters) {
    const std::string name = std::string(prefix) + parameter.name;
    IMPRINT_ASSIGN(const safetensors::Array* array, file.find(name));
    const Shape expected = stored_shape(parameter);
    if (array->shape != expected)
      return make_error(ErrorCode::shape_mismatch, text("load_state: found ", name, " ", array->shape.text(),
                                                        ", expected ", expected.text()));
    // Nothing is written when one of them does not fit.
    IMPRINT_CHECK(check_integers(parameter, *array));
    arrays.push_back(array);
  }
  for (std::size_t i = 0; i < arrays.size(); ++i)
    IMPRINT_CHECK(write_content(session, parameters[i], *arrays[i]));
  return {};
}

std::string LoadReport::text() const {
  return listed("loaded", loaded) + listed("missing", missing) + listed("of another shape", misfits) +
         listed("not used", unused);
}

Result<LoadReport> load_tensors(Session& session, const Parameters& parameters, const safetensors::File& file,
                                const LoadOptions& options) {
  std::map<std::string, const safetensors::Array*> tensors;
  for (const auto& [name, array] : file.arrays) {
    const std::string fresh = renamed(name, options.renames);
    if (!tensors.emplace(fresh, &array).second)
      return make_error(ErrorCode::invalid_argument, imprint::text("load_tensors: found two tensors for ",
                                                                   fresh, ", the second is ", name));
  }
  LoadReport report;
  std::vector<std::pair<const Parameter*, const safetensors::Array*>> fits;
  for (const Parameter& parameter : parameters) {
    const auto found = tensors.find(parameter.name);
    if (found == tensors.end()) {
      report.missing.push_back(parameter.name);
      continue;
    }
    const safetensors::Array& array = *found->second;
    const Shape expected = stored_shape(parameter);
    if (array.shape == expected) {
      IMPRINT_CHECK(check_integers(parameter, array));
      fits.emplace_back(&parameter, &array);
      report.loaded.push_back(parameter.name);
    } else {
      report.misfits.push_back(
          imprint::text(parameter.name, ": found ", array.shape.text(), ", expected ", expected.text()));
    }
    tensors.erase(found);
  }
  for (const auto& entry : tensors) report.unused.push_back(entry.first);
  if (!report.complete() && !options.partial)
    return make_error(ErrorCode::not_found, "load_tensors: " + report.text());
  for (const auto& [parameter, array] : fits) IMPRINT_CHECK(write_content(session, *parameter, *array));
  return report;
}

}  // namespace imprint::nn
