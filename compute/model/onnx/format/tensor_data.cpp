#include "compute/model/onnx/format/tensor_data.h"

#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <unordered_set>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/model/files/stored_size.h"

namespace imprint::onnx {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestLocation = 4096;  // bytes

Error damaged(const TensorData& tensor, const std::string& reason) {
  return make_error(ErrorCode::corrupt_file, text("tensor ", quote(tensor.name), ": ", reason));
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
    case ElementType::int4:
    case ElementType::uint4:
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

bool is_packed(ElementType type) { return type == ElementType::uint4 || type == ElementType::int4; }

// In a file.
std::uint64_t stored_bytes(ElementType type, std::uint64_t elements) {
  return is_packed(type) ? (elements + 1) / 2 : elements * element_type_size(type);
}

// A byte for each 4-bit number; the lower half of a byte is the first of two.
SharedBytes unpacked(ElementType type, const SharedBytes& packed, std::size_t elements) {
  std::vector<std::byte> bytes(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    const auto pair = std::to_integer<unsigned>(packed[i / 2]);
    const unsigned number = i % 2 == 0 ? pair & 15 : pair >> 4;
    bytes[i] = static_cast<std::byte>(type == ElementType::int4 && number > 7 ? number | 0xF0 : number);
  }
  return SharedBytes(std::move(bytes));
}

ElementType element_type(safetensors::Type type) {
  using safetensors::Type;
  switch (type) {
    case Type::boolean:
      return ElementType::boolean;
    case Type::uint8:
      return ElementType::uint8;
    case Type::int8:
      return ElementType::int8;
    case Type::uint16:
      return ElementType::uint16;
    case Type::int16:
      return ElementType::int16;
    case Type::float16:
      return ElementType::float16;
    case Type::bfloat16:
      return ElementType::bfloat16;
    case Type::uint32:
      return ElementType::uint32;
    case Type::int32:
      return ElementType::int32;
    case Type::float32:
      return ElementType::float32;
    case Type::uint64:
      return ElementType::uint64;
    case Type::int64:
      return ElementType::int64;
    case Type::float64:
      return ElementType::float64;
  }
  return ElementType::undefined;
}

// The files that hold a model's external tensors. Each is mapped once.
class ExternalFiles {
 public:
  explicit ExternalFiles(const fs::path& folder) {
    std::error_code code;
    base_ = fs::canonical(folder.empty() ? fs::path(".") : folder, code);
  }

  void set_limit(std::uint64_t most_bytes) { most_bytes_ = left_ = most_bytes; }

  // A location that leads elsewhere counts nothing. read_into refuses it.
  void count(const TensorData& tensor) {
    if (!tensor.external) return;
    if (const auto path = find(tensor))
      files_[**path].counted += stored_bytes(tensor.type, static_cast<std::uint64_t>(tensor.element_count()));
  }

  std::uint64_t counted_on_disk() const {
    std::uint64_t sum = 0;
    for (const auto& [path, file] : files_)
      if (const auto stored = stored_size(utf8_of(path))) sum += std::min(*stored, file.counted);
    return sum;
  }

  Result<> read_into(TensorData& tensor) {
    if (!tensor.external) return {};
    const ExternalData& external = *tensor.external;
    IMPRINT_ASSIGN(const fs::path* path, find(tensor));
    auto& [bytes, is_mapped, read, counted] = files_[*path];
    if (!is_mapped) {
      IMPRINT_ASSIGN(bytes, map_file(utf8_of(*path)));
      is_mapped = true;
    }
    const std::uint64_t wanted =
        stored_bytes(tensor.type, static_cast<std::uint64_t>(tensor.element_count()));
    if (external.length && *external.length != wanted)
      return damaged(tensor, text("external part: found ", *external.length, " bytes, expected ", wanted));
    // Tensors that share bytes are rare. Many that share all of a file are an attack.
    if (external.offset > bytes.size() || wanted > bytes.size() - external.offset)
      return damaged(tensor, text(quote(external.location), ": found ", bytes.size(), " bytes, expected ",
                                  wanted, " from byte ", external.offset, " on"));
    if (read + wanted > kExternalReads * bytes.size())
      return damaged(tensor, text("found tensors of more than ", kExternalReads, " times the bytes of ",
                                  quote(external.location), ", which has ", bytes.size()));
    // A 4-bit number is read into a byte; the others lie in the mapped file.
    const std::uint64_t taken =
        is_packed(tensor.type) ? static_cast<std::uint64_t>(tensor.element_count()) : wanted;
    if (taken > left_)
      return make_error(ErrorCode::out_of_host_memory,
                        text("tensor ", quote(tensor.name), ": found more than ", most_bytes_,
                             " bytes of external tensors, the limit of the import"));
    left_ -= taken;
    read += wanted;
    tensor.bytes = bytes.part(external.offset, wanted);
    if (is_packed(tensor.type)) try {
        tensor.bytes = unpacked(tensor.type, tensor.bytes, static_cast<std::size_t>(tensor.element_count()));
      } catch (const std::bad_alloc&) {
        return make_error(ErrorCode::out_of_host_memory,
                          text("tensor ", quote(tensor.name), ": found ", taken,
                               " bytes of 4-bit numbers, expected at most what the host has"));
      }
    tensor.external.reset();
    return {};
  }

 private:
  // In the model's folder or below.
  Result<const fs::path*> find(const TensorData& tensor) {
    const std::string& location = tensor.external->location;
    if (const auto known = paths_.find(location); known != paths_.end()) return &known->second;
    const auto outside = [&] {
      return damaged(tensor,
                     text("external location ", quote(location), " does not lie in the model's folder"));
    };
    if (location.size() > kLongestLocation)
      return damaged(tensor, text("external location: found ", location.size(), " bytes, expected at most ",
                                  kLongestLocation));
    const fs::path relative(std::u8string(location.begin(), location.end()));
    if (base_.empty() || location.empty() || relative.is_absolute() || relative.has_root_name() ||
        location.find('\0') != std::string::npos)
      return outside();
    std::error_code code;
    // Canonical, so that neither ".." nor a symbolic link leads out of the folder.
    const fs::path target = fs::weakly_canonical(base_ / relative, code);
    if (code) return outside();
    const auto inside = target.lexically_relative(base_);
    if (inside.empty() || *inside.begin() == ".." || *inside.begin() == ".") return outside();
    return &paths_.emplace(location, target).first->second;
  }

  static std::string utf8_of(const fs::path& path) {
    const std::u8string utf8 = path.u8string();
    return {utf8.begin(), utf8.end()};
  }

  std::uint64_t most_bytes_ = 0, left_ = 0;
  fs::path base_;
  std::map<std::string, fs::path, std::less<>> paths_;  // by location; never erased, so pointers stay
  struct File {
    SharedBytes bytes;
    bool is_mapped = false;
    std::uint64_t read = 0, counted = 0;  // bytes of tensors
  };
  std::map<fs::path, File> files_;
};

Result<> load_external(ExternalFiles& files, std::vector<Attribute>& attributes);

Result<> load_external(ExternalFiles& files, Graph& graph) {
  for (TensorData& tensor : graph.initializers) IMPRINT_CHECK(files.read_into(tensor));
  for (Node& node : graph.nodes) IMPRINT_CHECK(load_external(files, node.attributes));
  return {};
}

Result<> load_external(ExternalFiles& files, std::vector<Attribute>& attributes) {
  for (Attribute& attribute : attributes) {
    for (TensorData& tensor : attribute.tensors) IMPRINT_CHECK(files.read_into(tensor));
    for (Graph& subgraph : attribute.graphs) IMPRINT_CHECK(load_external(files, subgraph));
  }
  return {};
}

Result<> load_external(ExternalFiles& files, Model& model) {
  IMPRINT_CHECK(load_external(files, model.graph));
  for (Function& function : model.functions) {
    IMPRINT_CHECK(load_external(files, function.graph));
    IMPRINT_CHECK(load_external(files, function.defaults));
  }
  return {};
}

using Names = std::unordered_set<std::string_view>;

void add_reads(const Graph& graph, Names& names) {
  for (const ValueInfo& output : graph.outputs) names.insert(output.name);
  for (const Node& node : graph.nodes) {
    names.insert(node.inputs.begin(), node.inputs.end());
    for (const Attribute& attribute : node.attributes)
      for (const Graph& body : attribute.graphs) add_reads(body, names);
  }
}

void count_external(ExternalFiles& files, const Graph& graph, const Names& names) {
  for (const TensorData& tensor : graph.initializers)
    if (tensor.external && names.contains(tensor.name)) files.count(tensor);
  for (const Node& node : graph.nodes)
    for (const Attribute& attribute : node.attributes) {
      for (const TensorData& tensor : attribute.tensors) files.count(tensor);
      for (const Graph& body : attribute.graphs) count_external(files, body, names);
    }
}

}  // namespace

std::size_t TypedFields::bytes(ElementType type) const {
  switch (type) {
    case ElementType::float32:
      return 4 * floats.size();
    case ElementType::float64:
      return 8 * doubles.size();
    case ElementType::int64:
      return 8 * ints64.size();
    case ElementType::uint32:
    case ElementType::uint64:
      return element_type_size(type) * uints64.size();
    default:
      return element_type_size(type) * ints32.size();
  }
}

Result<> fill_bytes(TensorData& tensor, TypedFields fields) {
  const std::size_t size = element_type_size(tensor.type);
  std::uint64_t bytes = size == 0 ? 1 : size;
  for (const std::int64_t extent : tensor.extents) {
    if (extent < 0) return damaged(tensor, text("extent: found ", extent, ", expected at least 0"));
    if (extent != 0 && bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / extent))
      return damaged(tensor, "found extents whose product is beyond 2^63");
    bytes *= static_cast<std::uint64_t>(extent);
  }
  if (tensor.type == ElementType::string && tensor.strings.size() != bytes)
    return damaged(tensor, text("found ", tensor.strings.size(), " strings, expected ", bytes));
  if (tensor.type != ElementType::string) tensor.strings.clear();
  if (tensor.external || size == 0) return {};
  tensor.bytes = fields.raw ? std::move(*fields.raw) : SharedBytes(from_typed_field(tensor.type, fields));
  const std::uint64_t expected = is_packed(tensor.type) ? stored_bytes(tensor.type, bytes) : bytes;
  if (tensor.bytes.size() != expected)
    return damaged(tensor, text("found ", tensor.bytes.size(), " bytes, expected ", expected, " of ",
                                element_type_name(tensor.type), " for its shape"));
  if (is_packed(tensor.type)) tensor.bytes = unpacked(tensor.type, tensor.bytes, bytes);
  return {};
}

Result<> make_dense(TensorData& tensor, const TensorData& indices, std::vector<std::int64_t> extents,
                    std::uint64_t most_bytes) {
  const bool outside = tensor.external || indices.external;
  const std::size_t size = element_type_size(tensor.type);
  if (outside || size == 0 || is_packed(tensor.type))
    return make_error(ErrorCode::unsupported,
                      text("sparse tensor ", quote(tensor.name), ": found ", element_type_name(tensor.type),
                           outside ? " in another file" : "",
                           ", expected numbers of at least 8 bits in this one. Write it as a dense tensor."));
  std::uint64_t bytes = size;
  for (const std::int64_t extent : extents) {
    if (extent < 0) return damaged(tensor, text("extent: found ", extent, ", expected at least 0"));
    if (extent > 0 && bytes > most_bytes / static_cast<std::uint64_t>(extent))
      return make_error(ErrorCode::unsupported,
                        text("sparse tensor ", quote(tensor.name), ": found a shape of more than ",
                             most_bytes, " bytes, which a file of this size may take. Use a smaller shape."));
    bytes *= static_cast<std::uint64_t>(extent);
  }
  const std::size_t count = tensor.bytes.size() / size, rank = extents.size();
  const std::vector<std::int64_t> amount{static_cast<std::int64_t>(count)},
      lists{amount[0], static_cast<std::int64_t>(rank)};
  const bool listed = indices.extents == lists;
  if (tensor.extents != amount || indices.type != ElementType::int64 ||
      (indices.extents != amount && !listed))
    return damaged(tensor, "found sparse indices of another form, expected int64, a place for each value");
  std::vector<std::int64_t> places(indices.bytes.size() / sizeof(std::int64_t));
  if (!places.empty()) std::memcpy(places.data(), indices.bytes.data(), indices.bytes.size());
  std::vector<std::byte> dense(bytes);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t place = listed ? 0 : places[i];
    for (std::size_t axis = 0; listed && place >= 0 && axis < rank; ++axis) {
      const std::int64_t along = places[i * rank + axis];
      place = along >= 0 && along < extents[axis] ? place * extents[axis] + along : -1;
    }
    if (place < 0 || static_cast<std::uint64_t>(place) >= bytes / size)
      return damaged(tensor, text("sparse value ", i, ": found a place outside of the shape"));
    std::memcpy(dense.data() + static_cast<std::size_t>(place) * size, tensor.bytes.data() + i * size, size);
  }
  tensor.extents = std::move(extents);
  tensor.bytes = SharedBytes(std::move(dense));
  return {};
}

Result<> set_external(const std::pair<std::string, std::string>& entry, TensorData& tensor) {
  if (!tensor.external) tensor.external.emplace();
  const auto& [key, digits] = entry;
  if (key == "location") tensor.external->location = digits;
  if (key != "offset" && key != "length") return {};
  std::uint64_t value = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9' || value > (std::numeric_limits<std::uint64_t>::max() - 9) / 10)
      return damaged(tensor,
                     text("external ", key, ": found ", quote(digits), ", expected a number of bytes"));
    value = value * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  if (key == "offset") tensor.external->offset = value;
  if (key == "length") tensor.external->length = value;
  return {};
}

TensorData tensor_data(std::string name, const safetensors::Array& array) {
  TensorData out;
  out.name = std::move(name);
  out.type = element_type(array.type);
  out.extents.assign(array.shape.extents().begin(), array.shape.extents().end());
  out.bytes = array.bytes;
  return out;
}

Result<Model> load(const std::string& path, std::uint64_t most_external_bytes) {
  return load_with_limit(path, [&](std::uint64_t) { return most_external_bytes; });
}

Result<Model> load_with_limit(const std::string& path, const ExternalLimit& most_external_bytes) {
  IMPRINT_ASSIGN(std::vector<std::byte> bytes, read_file(path));
  auto model = parse_in_place(std::move(bytes));
  const auto in_file = [&](const Error& error) {
    return make_error(error.code, text("'", path, "': ", error.message));
  };
  if (!model) return in_file(model.error());
  const fs::path folder = fs::path(std::u8string(path.begin(), path.end())).parent_path();
  ExternalFiles files(folder);
  Names names;
  add_reads(model->graph, names);
  count_external(files, model->graph, names);
  files.set_limit(most_external_bytes(files.counted_on_disk()));
  if (auto status = load_external(files, *model); !status) return in_file(status.error());
  return model;
}

}  // namespace imprint::onnx
