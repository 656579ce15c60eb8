#include "compute/model/files/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "compute/base/json.h"
#include "compute/base/number_format.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"

namespace imprint::safetensors {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own reader

struct TypeInfo {
  std::string_view name;
  std::size_t size;
};
constexpr std::array<TypeInfo, 13> kTypes{{{"BOOL", 1},
                                           {"U8", 1},
                                           {"I8", 1},
                                           {"U16", 2},
                                           {"I16", 2},
                                           {"F16", 2},
                                           {"BF16", 2},
                                           {"U32", 4},
                                           {"I32", 4},
                                           {"F32", 4},
                                           {"U64", 8},
                                           {"I64", 8},
                                           {"F64", 8}}};

std::optional<Type> find_type(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (kTypes[i].name == name) return static_cast<Type>(i);
  return std::nullopt;
}

Error damaged(const std::string& reason) {
  return make_error(ErrorCode::corrupt_file, "safetensors: " + reason);
}

// Element count times element size, or nothing when that is not a number of bytes.
std::optional<std::uint64_t> byte_count(const Shape& shape, Type type) {
  std::uint64_t bytes = type_size(type);
  for (const std::int64_t extent : shape.extents()) {
    if (extent < 0) return std::nullopt;
    if (extent != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / static_cast<std::uint64_t>(extent))
      return std::nullopt;
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return bytes;
}

struct Entry {
  std::string name;
  Type type = Type::float32;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

Result<Entry> parse_entry(const std::string& name, const Json& json) {
  const auto bad = [&](const std::string& what) { return damaged(text("tensor ", quote(name), ": ", what)); };
  if (!json.is_object()) return bad("its header entry is not an object");
  const auto dtype = json.find("dtype"), shape = json.find("shape"), offsets = json.find("data_offsets");
  if (dtype == json.end() || shape == json.end() || offsets == json.end() || json.size() != 3)
    return bad("its header entry must hold dtype, shape and data_offsets, and nothing else");
  Entry entry;
  entry.name = name;
  if (!dtype->is_string()) return bad("dtype is not a string");
  const auto type = find_type(dtype->get_ref<const std::string&>());
  if (!type) return bad("unknown dtype " + quote(dtype->get_ref<const std::string&>()));
  entry.type = *type;
  if (!shape->is_array()) return bad("shape is not a list");
  if (shape->size() > static_cast<std::size_t>(Shape::kMaxRank))
    return make_error(ErrorCode::unsupported, text("safetensors: tensor ", quote(name), ": found rank ",
                                                   shape->size(), ", expected at most ", Shape::kMaxRank));
  for (const Json& extent : *shape) {
    if (!extent.is_number_unsigned() ||
        extent.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return bad("shape holds something else than extents");
    entry.shape.append(extent.get<std::int64_t>());
  }
  if (!offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
      !(*offsets)[1].is_number_unsigned())
    return bad("data_offsets is not a pair of byte offsets");
  entry.begin = (*offsets)[0].get<std::uint64_t>();
  entry.end = (*offsets)[1].get<std::uint64_t>();
  const auto bytes = byte_count(entry.shape, entry.type);
  if (entry.begin > entry.end || !bytes || entry.end - entry.begin != *bytes)
    return bad(text("shape ", entry.shape.text(), " of ", type_name(entry.type),
                    " does not fit the bytes from ", entry.begin, " to ", entry.end));
  return entry;
}

// The arrays share the bytes.
Result<File> parse_unguarded(const SharedBytes& whole) {
  const std::span<const std::byte> bytes = whole;
  if (bytes.size() < kLengthBytes)
    return damaged(text("found ", bytes.size(), " bytes, expected a header length of ", kLengthBytes));
  const auto header_length = load_element<std::uint64_t>(bytes.data(), 0);
  if (header_length > kMaxHeaderBytes || header_length > bytes.size() - kLengthBytes)
    return damaged(text("the header length ", header_length, " does not fit a file of ", bytes.size(),
                        " bytes: truncated, or not a safetensors file"));
  const auto header_text = bytes.subspan(kLengthBytes, static_cast<std::size_t>(header_length));
  const auto data = bytes.subspan(kLengthBytes + static_cast<std::size_t>(header_length));
  if (header_text.empty() || header_text[0] != std::byte{'{'})
    return damaged("the header does not begin with '{'");
  auto header = parse_json({reinterpret_cast<const char*>(header_text.data()), header_text.size()});
  if (!header) return damaged("the header: " + header.error().message);
  if (!header->is_object()) return damaged("the header is not a JSON object");

  File file;
  std::vector<Entry> entries;
  entries.reserve(header->size());
  for (const auto& [name, json] : header->items()) {
    if (name == "__metadata__") {
      if (!json.is_object()) return damaged("__metadata__ is not an object");
      for (const auto& [key, value] : json.items()) {
        if (!value.is_string()) return damaged(text("__metadata__ ", quote(key), " is not a string"));
        file.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    IMPRINT_ASSIGN(Entry entry, parse_entry(name, json));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::uint64_t position = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != position)
      return damaged(text("tensor ", quote(entry.name), " begins at byte ", entry.begin,
                          " where the one before ends at ", position));
    position = entry.end;
  }
  if (position != data.size())
    return damaged(
        text("tensors end at byte ", position, " of ", data.size(), ": truncated, or trailing bytes"));
  for (Entry& entry : entries) {
    SharedBytes part = whole.part(bytes.size() - data.size() + static_cast<std::size_t>(entry.begin),
                                  static_cast<std::size_t>(entry.end - entry.begin));
    file.arrays.emplace(std::move(entry.name), Array{entry.type, entry.shape, std::move(part)});
  }
  return file;
}

Result<std::vector<std::byte>> serialize_unguarded(const File& file) {
  // Widest elements first keeps every tensor aligned to its own element size; then by name, so that equal
  // contents give equal bytes.
  std::vector<const std::pair<const std::string, Array>*> order;
  for (const auto& entry : file.arrays) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return type_size(a->second.type) > type_size(b->second.type);
  });

  Json header = Json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  std::uint64_t position = 0;
  for (const auto* entry : order) {
    const auto& [name, array] = *entry;
    const auto bytes = byte_count(array.shape, array.type);
    if (name == "__metadata__")
      return make_error(
          ErrorCode::invalid_argument,
          "safetensors: '__metadata__' is the name of the metadata. Give the tensor another name.");
    if (!bytes || *bytes != array.bytes.size())
      return make_error(ErrorCode::invalid_argument,
                        text("safetensors: ", quote(name), ": found ", array.bytes.size(),
                             " bytes, expected shape ", array.shape.text(), " of ", type_name(array.type)));
    const auto extents = array.shape.extents();
    header[name] = {{"dtype", type_name(array.type)},
                    {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
                    {"data_offsets", {position, position + *bytes}}};
    position += *bytes;
  }
  std::string written = header.dump();
  written.append((kLengthBytes - written.size() % kLengthBytes) % kLengthBytes, ' ');

  std::vector<std::byte> bytes(kLengthBytes + written.size() + static_cast<std::size_t>(position));
  const std::uint64_t length = written.size();
  std::memcpy(bytes.data(), &length, sizeof(length));
  std::memcpy(bytes.data() + kLengthBytes, written.data(), written.size());
  std::byte* target = bytes.data() + kLengthBytes + written.size();
  for (const auto* entry : order)
    target = std::copy(entry->second.bytes.begin(), entry->second.bytes.end(), target);
  return bytes;
}

// Nothing that the JSON library or an allocation throws leaves this room.
template <class Function>
auto guarded(Function function, ErrorCode code) -> decltype(function()) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::out_of_host_memory, "safetensors: out of memory");
  } catch (const std::exception& exception) {
    return make_error(code, std::string("safetensors: ") + exception.what());
  }
}

Result<File> parse_file(const std::string& path, const SharedBytes& bytes) {
  auto file = guarded([&] { return parse_unguarded(bytes); }, ErrorCode::corrupt_file);
  if (!file) return make_error(file.error().code, "'" + path + "': " + file.error().message);
  return file;
}

template <class T>
Array packed(Type type, std::span<const T> values, const Shape& shape) {
  const auto bytes = std::as_bytes(values);
  return Array{type, shape, SharedBytes(std::vector(bytes.begin(), bytes.end()))};
}

template <class Stored, class Wanted>
Result<> convert_whole(const Array& array, std::vector<Wanted>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Stored value = load_element<Stored>(array.bytes.data(), i);
    if (!std::in_range<Wanted>(value))
      return make_error(
          ErrorCode::invalid_argument,
          text("element ", i, ": found ", value, ", expected a number of ", 8 * sizeof(Wanted), " bits"));
    out[i] = static_cast<Wanted>(value);
  }
  return {};
}

template <class Wanted>
Result<std::vector<Wanted>> whole_numbers(const Array& array) {
  std::vector<Wanted> out(array.bytes.size() / type_size(array.type));
  switch (array.type) {
    case Type::boolean:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = array.bytes[i] != std::byte{0};
      return out;
    case Type::uint8:
      IMPRINT_CHECK((convert_whole<std::uint8_t>(array, out)));
      return out;
    case Type::int8:
      IMPRINT_CHECK((convert_whole<std::int8_t>(array, out)));
      return out;
    case Type::uint16:
      IMPRINT_CHECK((convert_whole<std::uint16_t>(array, out)));
      return out;
    case Type::int16:
      IMPRINT_CHECK((convert_whole<std::int16_t>(array, out)));
      return out;
    case Type::uint32:
      IMPRINT_CHECK((convert_whole<std::uint32_t>(array, out)));
      return out;
    case Type::int32:
      IMPRINT_CHECK((convert_whole<std::int32_t>(array, out)));
      return out;
    case Type::uint64:
      IMPRINT_CHECK((convert_whole<std::uint64_t>(array, out)));
      return out;
    case Type::int64:
      IMPRINT_CHECK((convert_whole<std::int64_t>(array, out)));
      return out;
    case Type::float16:
    case Type::bfloat16:
    case Type::float32:
    case Type::float64:
      break;
  }
  return make_error(ErrorCode::dtype_mismatch,
                    text("found elements of ", type_name(array.type), ", expected whole numbers"));
}

}  // namespace

std::string_view type_name(Type type) { return kTypes[static_cast<std::size_t>(type)].name; }
std::size_t type_size(Type type) { return kTypes[static_cast<std::size_t>(type)].size; }

Array Array::of(std::span<const float> values, const Shape& shape) {
  return packed(Type::float32, values, shape);
}
Array Array::of(std::span<const std::int32_t> values, const Shape& shape) {
  return packed(Type::int32, values, shape);
}
Array Array::of(std::span<const std::int64_t> values, const Shape& shape) {
  return packed(Type::int64, values, shape);
}
Array Array::of_bools(std::span<const std::int32_t> values, const Shape& shape) {
  std::vector<std::byte> bytes;
  for (const std::int32_t value : values) bytes.push_back(std::byte{value != 0});
  return {Type::boolean, shape, SharedBytes(std::move(bytes))};
}

std::vector<float> Array::floats() const {
  const std::byte* data = bytes.data();
  std::vector<float> out(bytes.size() / type_size(type));
  const auto fill = [&](auto element) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = element(i);
  };
  switch (type) {
    case Type::boolean:
      fill([&](std::size_t i) { return data[i] != std::byte{0} ? 1.0f : 0.0f; });
      break;
    case Type::uint8:
      fill([&](std::size_t i) { return static_cast<float>(load_element<std::uint8_t>(data, i)); });
      break;
    case Type::int8:
      fill([&](std::size_t i) { return static_cast<float>(load_element<std::int8_t>(data, i)); });
      break;
    case Type::uint16:
      fill([&](std::size_t i) { return static_cast<float>(load_element<std::uint16_t>(data, i)); });
      break;
    case Type::int16:
      fill([&](std::size_t i) { return static_cast<float>(load_element<std::int16_t>(data, i)); });
      break;
    case Type::uint32:
      fill([&](std::size_t i) { return static_cast<float>(load_element<std::uint32_t>(data, i)); });
      break;
    case Type::int32:
      fill([&](std::size_t i) { return static_cast<float>(load_element<std::int32_t>(data, i)); });
      break;
    case Type::uint64:
      fill([&](std::size_t i) { return static_cast<float>(load_element<std::uint64_t>(data, i)); });
      break;
    case Type::int64:
      fill([&](std::size_t i) { return static_cast<float>(load_element<std::int64_t>(data, i)); });
      break;
    case Type::float16:
      fill([&](std::size_t i) { return float_from_half(load_element<std::uint16_t>(data, i)); });
      break;
    case Type::bfloat16:
      fill([&](std::size_t i) { return float_from_bfloat16(load_element<std::uint16_t>(data, i)); });
      break;
    case Type::float32:
      fill([&](std::size_t i) { return load_element<float>(data, i); });
      break;
    case Type::float64:
      fill([&](std::size_t i) { return static_cast<float>(load_element<double>(data, i)); });
      break;
  }
  return out;
}

Result<std::vector<std::int32_t>> Array::ints() const { return whole_numbers<std::int32_t>(*this); }
Result<std::vector<std::int64_t>> Array::long_ints() const { return whole_numbers<std::int64_t>(*this); }

Result<const Array*> File::find(std::string_view name) const {
  const auto found = arrays.find(std::string(name));
  if (found != arrays.end()) return &found->second;
  std::string known;
  for (const auto& entry : arrays) {
    if (known.size() > 500) {
      known += ", ...";
      break;
    }
    known += (known.empty() ? "" : ", ") + quote(entry.first);
  }
  return make_error(ErrorCode::not_found, text("no tensor ", quote(name),
                                               " in the file; there are: ", known.empty() ? "none" : known));
}

Result<File> parse(std::span<const std::byte> bytes) {
  return guarded([&] { return parse_unguarded(SharedBytes(std::vector(bytes.begin(), bytes.end()))); },
                 ErrorCode::corrupt_file);
}

Result<File> load(const std::string& path) {
  IMPRINT_ASSIGN(std::vector<std::byte> bytes, read_file(path));
  return parse_file(path, SharedBytes(std::move(bytes)));
}

Result<File> map(const std::string& path) {
  IMPRINT_ASSIGN(const SharedBytes bytes, map_file(path));
  return parse_file(path, bytes);
}

Result<std::vector<std::byte>> serialize(const File& file) {
  return guarded([&] { return serialize_unguarded(file); }, ErrorCode::invalid_argument);
}

Result<> save(const File& file, const std::string& path) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, serialize(file));
  return write_file_atomic(path, bytes);
}

}  // namespace imprint::safetensors
