#pragma once
// Private: reading protobuf messages of unknown origin.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/base/text.h"

namespace imprint::onnx {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// Thrown and caught inside of the reader only, as protozero's own exceptions are.
struct Refused {
  ErrorCode code;
  std::string reason;
};

[[noreturn]] inline void damaged(const std::string& reason) {
  throw Refused{ErrorCode::corrupt_file, reason};
}

// protozero reads a field of an unexpected wire type as garbage, and asserts in debug builds.
inline void expect(const pbf_reader& message, pbf_wire_type type, const char* field) {
  if (!message.has_wire_type(type)) damaged(imprint::text("field ", field, " has the wrong wire type"));
}

inline std::string words(pbf_reader& message, const char* field) {
  expect(message, pbf_wire_type::length_delimited, field);
  return message.get_string();
}
inline std::int64_t integer(pbf_reader& message, const char* field) {
  expect(message, pbf_wire_type::varint, field);
  return message.get_int64();
}
inline pbf_reader submessage(pbf_reader& message, const char* field) {
  expect(message, pbf_wire_type::length_delimited, field);
  return message.get_message();
}

// Room for `count` more, growing geometrically: a list may come in many short runs.
template <class T>
void grow(std::vector<T>& out, std::size_t count) {
  const std::size_t needed = out.size() + count;
  if (needed > out.capacity()) out.reserve(std::max(needed, 2 * out.capacity()));
}

// How often each field below 32 occurs in a message, so that lists of structs are made once, at their size.
using FieldCounts = std::array<std::size_t, 32>;
inline FieldCounts count_fields(pbf_reader message) {
  FieldCounts counts{};
  while (message.next()) {
    if (message.tag() < counts.size()) ++counts[message.tag()];
    message.skip();
  }
  return counts;
}

}  // namespace imprint::onnx
