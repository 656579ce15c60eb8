// Names and look-ups of onnx/format/proto.h's structs.

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/onnx/format/proto.h"

namespace imprint::onnx {

std::string element_type_name(ElementType type) {
  switch (type) {
    case ElementType::undefined:
      return "undefined";
    case ElementType::float32:
      return "float32";
    case ElementType::uint8:
      return "uint8";
    case ElementType::int8:
      return "int8";
    case ElementType::uint16:
      return "uint16";
    case ElementType::int16:
      return "int16";
    case ElementType::int32:
      return "int32";
    case ElementType::int64:
      return "int64";
    case ElementType::string:
      return "string";
    case ElementType::boolean:
      return "bool";
    case ElementType::float16:
      return "float16";
    case ElementType::float64:
      return "float64";
    case ElementType::uint32:
      return "uint32";
    case ElementType::uint64:
      return "uint64";
    case ElementType::complex64:
      return "complex64";
    case ElementType::complex128:
      return "complex128";
    case ElementType::bfloat16:
      return "bfloat16";
    case ElementType::uint4:
      return "uint4";
    case ElementType::int4:
      return "int4";
  }
  return imprint::text("type ", static_cast<std::int32_t>(type));
}

std::size_t element_type_size(ElementType type) {
  switch (type) {
    case ElementType::uint8:
    case ElementType::int8:
    case ElementType::uint4:
    case ElementType::int4:
    case ElementType::boolean:
      return 1;
    case ElementType::uint16:
    case ElementType::int16:
    case ElementType::float16:
    case ElementType::bfloat16:
      return 2;
    case ElementType::float32:
    case ElementType::int32:
    case ElementType::uint32:
      return 4;
    case ElementType::int64:
    case ElementType::float64:
    case ElementType::uint64:
      return 8;
    default:
      return 0;
  }
}

std::int64_t TensorData::element_count() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  return count;
}

const Attribute* Node::find_attribute(std::string_view attribute_name) const {
  for (const Attribute& attribute : attributes)
    if (attribute.name == attribute_name) return &attribute;
  return nullptr;
}

std::string Node::text() const {
  const std::string op = clipped(domain.empty() ? op_type : domain + "." + op_type);
  if (!name.empty()) return op + " " + quote(name);
  return outputs.empty() ? op : op + " -> " + quote(outputs.front());
}

std::string ValueInfo::shape_text() const {
  if (!shape) return "[...]";
  std::string out = "[";
  for (const Dimension& dimension : *shape) {
    if (out.size() > 1) out += ", ";
    if (out.size() > 4 * kLongestQuote) return out + "...]";
    out += dimension.value            ? imprint::text(*dimension.value)
           : dimension.symbol.empty() ? std::string("?")
                                      : clipped(dimension.symbol);
  }
  return out + "]";
}

std::int64_t Model::opset() const {
  const auto found = opsets.find("");
  return found == opsets.end() ? 0 : found->second;
}

}  // namespace imprint::onnx
