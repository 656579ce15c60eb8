#pragma once
// ONNX files as plain structs, checked for consistency. onnx/import.h gives them meaning.
// Format: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/result.h"
#include "compute/base/shared_bytes.h"

namespace imprint::onnx {

// TensorProto.DataType. Other numbers in a file are kept and named "type <n>".
enum class ElementType : std::int32_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  uint4 = 21,
  int4 = 22
};

std::string element_type_name(ElementType type);
// Bytes of an element in TensorData::bytes; 0 for strings and types that Imprint does not know. 4-bit
// numbers, which files pack in pairs, have a byte each.
std::size_t element_type_size(ElementType type);

// Where the bytes of an external tensor are.
struct ExternalData {
  std::string location;  // relative to the model's folder
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

// TensorProto: an initializer or a tensor attribute.
struct TensorData {
  std::string name;
  ElementType type = ElementType::undefined;
  std::vector<std::int64_t> extents;  // >= 0, their product is a number of elements
  SharedBytes bytes;  // row-major, little-endian, packed: element count * element_type_size; empty for types
                      // of size 0
  std::vector<std::string> strings;      // elements of the type string
  std::optional<ExternalData> external;  // set: the bytes are in another file and `bytes` is empty

  std::int64_t element_count() const;
};

struct Graph;

// AttributeProto.AttributeType
enum class AttributeKind : std::int32_t {
  undefined = 0,
  float_value = 1,
  int_value = 2,
  string_value = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type = 13,
  types = 14
};

// A single value is a list of one: float_value in floats[0], tensor in tensors[0], and so on; `kind` tells
// them apart.
struct Attribute {
  std::string name;
  AttributeKind kind = AttributeKind::undefined;
  std::string reference;  // set: the attribute of the function around it that it takes its value from
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string> strings;
  std::vector<TensorData> tensors;
  std::vector<Graph> graphs;
};

struct Node {
  std::string name;
  std::string op_type;
  std::string domain;               // "" for ONNX's own operators ("ai.onnx" is read as "")
  std::vector<std::string> inputs;  // "" for an optional input that is left out
  std::vector<std::string> outputs;
  std::vector<Attribute> attributes;

  const Attribute* find_attribute(std::string_view attribute_name) const;
  std::string text() const;  // for messages: "Gemm 'fc1'", or "Gemm -> 'hidden'" for a node without a name
};

struct Dimension {
  std::optional<std::int64_t> value;
  std::string symbol;  // of a free dimension; may be empty
};

struct ValueInfo {
  std::string name;
  bool is_tensor = false;  // false: a sequence, map, optional or sparse tensor, or no type at all
  bool sequence = false;   // of tensors, also inside of an optional
  bool optional = false;
  ElementType type = ElementType::undefined;    // of the tensors of a sequence too
  std::optional<std::vector<Dimension>> shape;  // nothing: not even the rank is known

  std::string shape_text() const;  // "[batch, 26]"
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<TensorData> initializers;  // sparse ones as dense tensors
  std::vector<ValueInfo> inputs;         // up to ir_version 3 initializers are listed here too
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> values;  // declared types of intermediates; not trusted
};

// A model-local function: a graph of its own, whose inputs and outputs have names only.
struct Function {
  std::string name, domain;
  std::int64_t opset = 0;           // of ONNX's own domain; 0 when not declared
  std::vector<Attribute> defaults;  // of its attributes that have one
  Graph graph;
};

struct Model {
  std::int64_t ir_version = 0;
  std::string producer;                        // name and version
  std::map<std::string, std::int64_t> opsets;  // domain -> version; ONNX's own domain is ""
  Graph graph;
  std::vector<Function> functions;
  std::map<std::string, std::string> metadata;

  std::int64_t opset() const;  // of ONNX's own domain; 0 when not declared
};

// Never throws, whatever the bytes.
// Bounds for a file of n bytes, held by counting: linear time, memory kModelBytesPerByte * n + kModelBytes,
// at most kMaxParts messages and names. Errors: corrupt_file (not protobuf, truncated, a tensor whose bytes
// do not fit its shape, no graph or two, no operator set); unsupported (more parts or memory than the bounds,
// subgraphs nested deeper than kMaxDepth).
inline constexpr std::size_t kModelBytesPerByte = 32;
inline constexpr std::size_t kModelBytes = 1 << 20;
inline constexpr std::size_t kMaxParts = 4'000'000;
inline constexpr int kMaxDepth = 16;
Result<Model> parse(std::span<const std::byte> bytes);
// The same, but large tensors share the bytes instead of copying them.
Result<Model> parse_in_place(std::vector<std::byte> bytes);

// Reads a file, and maps the files that hold its external tensors, from the same folder or below. The system
// reads a tensor's bytes where they are used; a float32 tensor is never copied on the host if its offset is a
// multiple of four. The files must not change while the model, or what is made of it, lives.
// Bounds: those of parse; tensors of each external file at most kExternalReads times its bytes, of all
// together most_external_bytes, and no memory for them before they are used, except a byte for each number of
// 4 bits. Errors: those of parse;
// not_found, io; corrupt_file (an external path that is absolute, too long or leads out of the folder, a part
// that is not there, tensors that overlap too much); out_of_host_memory (most_external_bytes). They name the
// file.
inline constexpr std::uint64_t kExternalReads = 2;
Result<Model> load(const std::string& path, std::uint64_t most_external_bytes = std::uint64_t{1} << 40);

}  // namespace imprint::onnx
