// NumPy's arrays (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html) and GGUF
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

#include "compute/base/number_format.h"
#include "compute/base/quote.h"
#include "compute/model/weights/reader.h"

namespace imprint::weights {
namespace {

using safetensors::Type;

constexpr std::string_view kNumpyMagic = "\x93NUMPY", kGgufMagic = "GGUF";
constexpr std::size_t kLongestHeader = 1 << 20, kMostAlignment = 1 << 20;

bool begins_with(Bytes file, std::string_view magic) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

struct NumpyType {
  std::string_view code;
  Type type;
};
constexpr std::array kNumpyTypes{
    NumpyType{"b1", Type::boolean}, NumpyType{"u1", Type::uint8}, NumpyType{"i1", Type::int8},
    NumpyType{"u2", Type::uint16},  NumpyType{"i2", Type::int16}, NumpyType{"f2", Type::float16},
    NumpyType{"u4", Type::uint32},  NumpyType{"i4", Type::int32}, NumpyType{"f4", Type::float32},
    NumpyType{"u8", Type::uint64},  NumpyType{"i8", Type::int64}, NumpyType{"f8", Type::float64}};

Type numpy_type(std::string_view found) {
  const std::string_view code = found.substr(std::min<std::size_t>(found.size(), 1));
  for (const NumpyType& row : kNumpyTypes)
    if (row.code == code && (found[0] == '<' || found[0] == '|' || found[0] == '=')) return row.type;
  lacking(text("elements of type ", quote(found), ", expected little-endian numbers"));
}

// The header is a dictionary as Python writes it, with three keys. Nothing else is understood, so that no
// reader sees another array in it.
class NumpyHeader {
 public:
  explicit NumpyHeader(std::string_view header) : rest_(header) {}

  Type type = Type::float32;
  bool columns = false;  // the first axis is the fastest
  std::vector<std::int64_t> extents;

  void read() {
    need('{');
    unsigned seen = 0;
    while (!skips('}')) {
      const std::string_view key = words();
      need(':');
      const unsigned bit = read_value(key);
      if ((seen & bit) != 0) corrupt(text("an array with two entries ", quote(key)));
      seen |= bit;
      if (!skips(',')) {
        need('}');
        break;
      }
    }
    if (seen != 7) corrupt("an array without descr, fortran_order and shape");
    skip_spaces();
    if (!rest_.empty()) corrupt("an array with text behind its header");
  }

 private:
  unsigned read_value(std::string_view key) {
    if (key == "descr") {
      type = numpy_type(words());
      return 1;
    }
    if (key == "fortran_order") {
      skip_spaces();
      columns = rest_.starts_with("True");
      if (!columns && !rest_.starts_with("False")) corrupt("an array whose order is neither True nor False");
      rest_.remove_prefix(columns ? 4 : 5);
      return 2;
    }
    if (key != "shape") corrupt(text("an array with an entry ", quote(key)));
    need('(');
    while (!skips(')')) {
      extents.push_back(number());
      if (extents.size() > 64) lacking("an array of more than 64 axes");
      if (skips(',')) continue;
      need(')');
      if (extents.size() == 1) corrupt("an array whose shape is no tuple");
      break;
    }
    return 4;
  }

  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }
  bool skips(char c) {
    skip_spaces();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void need(char c) {
    if (!skips(c)) corrupt(text("an array whose header lacks '", c, "' at ", quote(rest_)));
  }
  std::string_view words() {
    skip_spaces();
    const char mark = rest_.starts_with('"') ? '"' : '\'';
    if (!skips(mark)) lacking(text("an array with ", quote(rest_), ", expected a string"));
    const std::string_view out = rest_.substr(0, rest_.find(mark));
    if (out.size() == rest_.size()) corrupt("an array whose header ends in a string");
    rest_.remove_prefix(out.size() + 1);
    return out;
  }
  std::int64_t number() {
    skip_spaces();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) corrupt(text("an array whose shape has ", quote(rest_)));
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    skips('L');  // of Python 2
    return value;
  }

  std::string_view rest_;
};

// Column-major elements as row-major ones.
std::vector<std::byte> transposed(Bytes data, const Shape& shape, std::size_t size) {
  std::vector<std::byte> out(data.size());
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  std::vector<std::size_t> steps;
  for (std::size_t step = 1; steps.size() < index.size();) {
    steps.push_back(step);
    step *= static_cast<std::size_t>(shape[static_cast<int>(steps.size()) - 1]);
  }
  std::size_t from = 0;
  for (std::size_t at = 0; at < out.size(); at += size) {
    std::memcpy(out.data() + at, data.data() + from * size, size);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      from += steps[a];
      if (++index[a] < shape[axis]) break;
      from -= steps[a] * static_cast<std::size_t>(shape[axis]);
      index[a] = 0;
    }
  }
  return out;
}

}  // namespace

bool is_numpy(Bytes file) { return begins_with(file, kNumpyMagic); }

safetensors::Array read_numpy(Bytes file, Allowance& allowance) {
  if (!is_numpy(file)) corrupt("an entry that is no array");
  Cursor cursor(file, kNumpyMagic.size());
  const auto major = cursor.number<std::uint8_t>();
  cursor.take(1);
  if (major < 1 || major > 3) lacking(text("arrays of version ", int{major}, ", expected 1 to 3"));
  const std::uint32_t length = major == 1 ? cursor.number<std::uint16_t>() : cursor.number<std::uint32_t>();
  if (length > kLongestHeader)
    lacking(text("a header of ", length, " bytes, expected at most ", kLongestHeader));
  NumpyHeader header(cursor.words(length));
  header.read();
  safetensors::Array out;
  out.type = header.type;
  out.shape = known_shape(header.extents);
  const std::size_t size = type_size(out.type);
  const Bytes data = cursor.take(static_cast<std::uint64_t>(out.shape.element_count()) * size);
  if (cursor.left() > 0) corrupt(text("an array with ", cursor.left(), " bytes behind its elements"));
  allowance.take(data.size());
  const bool turned = header.columns && out.shape.rank() > 1;
  out.bytes = SharedBytes(turned ? transposed(data, out.shape, size)
                                 : std::vector<std::byte>(data.begin(), data.end()));
  return out;
}

// ---- GGUF ----

namespace {

constexpr std::size_t kBlock = 32;  // elements of a block of each type that has blocks

struct GgufType {
  std::uint32_t number;
  std::size_t block, bytes;  // elements and bytes of a block
  Type plain;                // of blocks of one
  void (*unpack)(const std::byte*, float*) = nullptr;
};

float half_at(const std::byte* at) { return float_from_half(load_element<std::uint16_t>(at, 0)); }
int byte_at(const std::byte* at, std::size_t i) { return std::to_integer<int>(at[i]); }

// A nibble for each of 32 elements: the low ones first, then the high ones.
void nibbles(const std::byte* packed, const std::function<float(int value, std::size_t i)>& make,
             float* out) {
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = make(byte_at(packed, i) & 15, i);
    out[i + 16] = make(byte_at(packed, i) >> 4, i + 16);
  }
}
void unpack_q4_0(const std::byte* at, float* out) {
  const float scale = half_at(at);
  nibbles(
      at + 2, [&](int value, std::size_t) { return static_cast<float>(value - 8) * scale; }, out);
}
void unpack_q4_1(const std::byte* at, float* out) {
  const float scale = half_at(at), least = half_at(at + 2);
  nibbles(
      at + 4, [&](int value, std::size_t) { return static_cast<float>(value) * scale + least; }, out);
}
void unpack_q5_0(const std::byte* at, float* out) {
  const float scale = half_at(at);
  const auto fifth = load_element<std::uint32_t>(at + 2, 0);
  nibbles(
      at + 6,
      [&](int value, std::size_t i) {
        return static_cast<float>((value | static_cast<int>(fifth >> i & 1) << 4) - 16) * scale;
      },
      out);
}
void unpack_q5_1(const std::byte* at, float* out) {
  const float scale = half_at(at), least = half_at(at + 2);
  const auto fifth = load_element<std::uint32_t>(at + 4, 0);
  nibbles(
      at + 8,
      [&](int value, std::size_t i) {
        return static_cast<float>(value | static_cast<int>(fifth >> i & 1) << 4) * scale + least;
      },
      out);
}
void unpack_q8_0(const std::byte* at, float* out) {
  const float scale = half_at(at);
  for (std::size_t i = 0; i < 32; ++i)
    out[i] = static_cast<float>(load_element<std::int8_t>(at + 2, i)) * scale;
}

constexpr std::array kGgufTypes{GgufType{0, 1, 4, Type::float32},
                                GgufType{1, 1, 2, Type::float16},
                                GgufType{2, kBlock, 18, Type::float32, unpack_q4_0},
                                GgufType{3, kBlock, 20, Type::float32, unpack_q4_1},
                                GgufType{6, kBlock, 22, Type::float32, unpack_q5_0},
                                GgufType{7, kBlock, 24, Type::float32, unpack_q5_1},
                                GgufType{8, kBlock, 34, Type::float32, unpack_q8_0},
                                GgufType{24, 1, 1, Type::int8},
                                GgufType{25, 1, 2, Type::int16},
                                GgufType{26, 1, 4, Type::int32},
                                GgufType{27, 1, 8, Type::int64},
                                GgufType{28, 1, 8, Type::float64},
                                GgufType{30, 1, 2, Type::bfloat16}};

// Bytes of a metadata value of this type; 0 for strings and lists.
std::size_t value_bytes(std::uint32_t type) {
  constexpr std::array<std::size_t, 13> kSizes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  if (type >= kSizes.size())
    corrupt(text("a value of type ", type, ", expected at most ", kSizes.size() - 1));
  return kSizes[type];
}

constexpr int kDeepestList = 3;

void skip_value(Cursor& cursor, std::uint32_t type, int depth) {
  if (type == 8) {
    cursor.take(cursor.number<std::uint64_t>());
  } else if (type == 9) {
    const auto inner = cursor.number<std::uint32_t>();
    const auto count = cursor.number<std::uint64_t>();
    if (depth > kDeepestList) corrupt(text("lists nested deeper than ", kDeepestList));
    if (count > cursor.left())
      corrupt(text("byte ", cursor.at(), ": a list of ", count, " values, expected at most ", cursor.left(),
                   ", the bytes that follow"));
    for (std::uint64_t i = 0; i < count; ++i) skip_value(cursor, inner, depth + 1);
  } else {
    cursor.take(value_bytes(type));
  }
}

struct GgufTensor {
  std::string name;
  Shape shape;
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
};

safetensors::Array gguf_array(const GgufType& type, const GgufTensor& tensor, Bytes data,
                              Allowance& allowance) {
  const auto count = static_cast<std::uint64_t>(tensor.shape.element_count());
  if (count % type.block != 0)
    corrupt(text("found ", count, " elements, expected a multiple of a block's ", type.block));
  if (tensor.offset > data.size())
    corrupt(text("it begins at byte ", tensor.offset, " of ", data.size(), " bytes of tensors"));
  const std::uint64_t blocks = count / type.block;
  const Bytes bytes = Cursor(data, static_cast<std::size_t>(tensor.offset)).take(blocks * type.bytes);
  safetensors::Array out;
  out.type = type.plain;
  out.shape = tensor.shape;
  allowance.take(count * type_size(type.plain));
  if (!type.unpack) {
    out.bytes = SharedBytes(std::vector(bytes.begin(), bytes.end()));
    return out;
  }
  std::vector<std::byte> unpacked(static_cast<std::size_t>(count) * sizeof(float));
  std::array<float, kBlock> block;
  for (std::size_t i = 0; i < blocks; ++i) {
    type.unpack(bytes.data() + i * type.bytes, block.data());
    std::memcpy(unpacked.data() + i * sizeof block, block.data(), sizeof block);
  }
  out.bytes = SharedBytes(std::move(unpacked));
  return out;
}

}  // namespace

bool is_gguf(Bytes file) { return begins_with(file, kGgufMagic); }

File read_gguf(Bytes file, Allowance& allowance) {
  Cursor cursor(file, kGgufMagic.size());
  const auto version = cursor.number<std::uint32_t>();
  if (version != 2 && version != 3) lacking(text("GGUF of version ", version, ", expected 2 or 3"));
  const auto tensor_count = cursor.number<std::uint64_t>(), value_count = cursor.number<std::uint64_t>();
  std::uint64_t alignment = 32;
  for (std::uint64_t i = 0; i < value_count; ++i) {
    const std::string_view key = cursor.words(cursor.number<std::uint64_t>());
    const auto type = cursor.number<std::uint32_t>();
    if (key == "general.alignment" && type == 4)
      alignment = cursor.number<std::uint32_t>();
    else
      reading([&] { return text("metadata ", quote(key)); }, [&] { skip_value(cursor, type, 0); });
  }
  if (alignment == 0 || alignment > kMostAlignment)
    corrupt(text("an alignment of ", alignment, ", expected 1 to ", kMostAlignment));
  std::vector<GgufTensor> tensors;
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    GgufTensor& tensor = tensors.emplace_back();
    tensor.name = cursor.words(cursor.number<std::uint64_t>());
    allowance.take(3 * sizeof(GgufTensor) + 2 * tensor.name.size());
    const auto rank = cursor.number<std::uint32_t>();
    if (rank > 16) corrupt(text("tensor ", quote(tensor.name), ": rank ", rank, ", expected at most 16"));
    std::vector<std::int64_t> extents(rank);
    for (std::uint32_t k = 0; k < rank; ++k)  // the fastest axis comes first
      extents[rank - 1 - k] = static_cast<std::int64_t>(cursor.number<std::uint64_t>());
    tensor.shape =
        reading([&] { return text("tensor ", quote(tensor.name)); }, [&] { return known_shape(extents); });
    tensor.type = cursor.number<std::uint32_t>();
    tensor.offset = cursor.number<std::uint64_t>();
  }
  const std::uint64_t begin = (cursor.at() + alignment - 1) / alignment * alignment;
  if (begin > file.size() && !tensors.empty()) corrupt("the file ends before its tensors");
  const Bytes data = file.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(begin, file.size())));
  File out;
  out.format = "GGUF";
  for (const GgufTensor& tensor : tensors) {
    const auto type = std::ranges::find(kGgufTypes, tensor.type, &GgufType::number);
    if (type == kGgufTypes.end())
      leave_out(out, tensor.name, text("blocks of type ", tensor.type));
    else
      add_tensor(out, tensor.name,
                 reading([&] { return text("tensor ", quote(tensor.name)); },
                         [&] { return gguf_array(*type, tensor, data, allowance); }));
  }
  return out;
}

}  // namespace imprint::weights
