#include "compute/model/onnx_tensor_data.h"

#include <cstring>
#include <filesystem>
#include <limits>
#include <span>

#include "compute/model/file.h"

namespace imprint::onnx {
namespace {

namespace fs = std::filesystem;

Error damaged(const TensorData& tensor, const std::string& reason) {
  return make_error(ErrorCode::corrupt_file, "tensor '" + tensor.name + "': " + reason);
}

// Stores each value in the low bytes of its little-endian form.
template <class Stored, class Value>
std::vector<std::byte> narrowed(const std::vector<Value>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto stored = static_cast<Stored>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
  return bytes;
}

std::vector<std::byte> from_typed_field(ElementType type, const TypedFields& fields) {
  switch (type) {
    case ElementType::float32:
      return narrowed<float>(fields.floats);
    case ElementType::int32:
      return narrowed<std::int32_t>(fields.ints32);
    case ElementType::int16:
    case ElementType::uint16:
    case ElementType::float16:
    case ElementType::bfloat16:
      return narrowed<std::uint16_t>(fields.ints32);
    case ElementType::int8:
    case ElementType::uint8:
    case ElementType::boolean:
      return narrowed<std::uint8_t>(fields.ints32);
    case ElementType::int64:
      return narrowed<std::int64_t>(fields.ints64);
    case ElementType::float64:
      return narrowed<double>(fields.doubles);
    case ElementType::uint32:
      return narrowed<std::uint32_t>(fields.uints64);
    case ElementType::uint64:
      return narrowed<std::uint64_t>(fields.uints64);
    default:
      return {};
  }
}

// The file beside (or below) the model's folder that `location` names; nothing when it points elsewhere.
std::optional<fs::path> external_path(const fs::path& folder, const std::string& location) {
  const fs::path relative(std::u8string(location.begin(), location.end()));
  if (location.empty() || relative.is_absolute() || relative.has_root_name() ||
      location.find('\0') != std::string::npos)
    return std::nullopt;
  std::error_code code;
  const fs::path base = fs::canonical(folder.empty() ? fs::path(".") : folder, code);
  if (code) return std::nullopt;
  // Canonical, so that neither ".." nor a symbolic link leads out of the folder.
  const fs::path target = fs::weakly_canonical(base / relative, code);
  if (code) return std::nullopt;
  const auto inside = target.lexically_relative(base);
  if (inside.empty() || *inside.begin() == ".." || *inside.begin() == ".") return std::nullopt;
  return target;
}

Status load_external(const fs::path& folder, TensorData& tensor) {
  if (!tensor.external) return {};
  const auto path = external_path(folder, tensor.external->location);
  if (!path)
    return damaged(
        tensor, "external location '" + tensor.external->location + "' does not lie in the model's folder");
  const std::u8string utf8 = path->u8string();
  const std::string name(utf8.begin(), utf8.end());
  const std::uint64_t wanted =
      static_cast<std::uint64_t>(tensor.element_count()) * element_type_size(tensor.type);
  if (tensor.external->length && *tensor.external->length != wanted)
    return damaged(tensor, "its shape needs " + std::to_string(wanted) + " bytes, the external part has " +
                               std::to_string(*tensor.external->length));
  IMPRINT_ASSIGN(tensor.bytes, read_file_part(name, tensor.external->offset, wanted));
  tensor.external.reset();
  return {};
}

Status load_external(const fs::path& folder, Graph& graph) {
  for (TensorData& tensor : graph.initializers) IMPRINT_CHECK(load_external(folder, tensor));
  for (Node& node : graph.nodes)
    for (Attribute& attribute : node.attributes) {
      for (TensorData& tensor : attribute.tensors) IMPRINT_CHECK(load_external(folder, tensor));
      for (Graph& subgraph : attribute.graphs) IMPRINT_CHECK(load_external(folder, subgraph));
    }
  return {};
}

}  // namespace

Status fill_bytes(TensorData& tensor, TypedFields fields) {
  const std::size_t size = element_type_size(tensor.type);
  std::uint64_t bytes = size == 0 ? 1 : size;
  for (const std::int64_t extent : tensor.extents) {
    if (extent < 0) return damaged(tensor, "an extent is " + std::to_string(extent));
    if (extent != 0 && bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / extent))
      return damaged(tensor, "its extents multiply to more than can be counted");
    bytes *= static_cast<std::uint64_t>(extent);
  }
  if (tensor.external || size == 0) return {};
  tensor.bytes = fields.raw ? std::move(*fields.raw) : from_typed_field(tensor.type, fields);
  if (tensor.bytes.size() != bytes)
    return damaged(tensor, "its shape needs " + std::to_string(bytes) + " bytes of " +
                               element_type_name(tensor.type) + ", the file has " +
                               std::to_string(tensor.bytes.size()));
  return {};
}

Result<Model> load(const std::string& path) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  auto model = parse(bytes);
  const auto in_file = [&](const Error& error) {
    return make_error(error.code, "'" + path + "': " + error.message);
  };
  if (!model) return in_file(model.error());
  const fs::path folder = fs::path(std::u8string(path.begin(), path.end())).parent_path();
  if (auto status = load_external(folder, model->graph); !status) return in_file(status.error());
  return model;
}

}  // namespace imprint::onnx
