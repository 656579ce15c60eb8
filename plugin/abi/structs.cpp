#include "plugin/abi/structs.h"

#include <algorithm>
#include <string>

namespace imprint::abi {
namespace {

imp_header header_of(const void* given) {
  imp_header header;
  std::memcpy(&header, given, sizeof header);
  return header;
}

}  // namespace

Status check_filled_struct(const char* call, const char* name, const void* given, const StructKind& kind) {
  if (!given) return refuse(call, std::string(name) + " is null");
  const imp_header header = header_of(given);
  if (header.type != kind.type)
    return refuse(call, std::string(name) + " has struct type " + std::to_string(header.type) +
                            "; expected " + std::to_string(kind.type) + ": make it with " + kind.name +
                            "_init");
  if (header.size < kind.first_size || header.size > kLongestStruct)
    return refuse(call, std::string(name) + " has size " + std::to_string(header.size) + "; an " + kind.name +
                            " has " + std::to_string(kind.first_size) + " bytes in version 1, and " +
                            std::to_string(kind.size) + " in this library: make it with " + kind.name +
                            "_init");
  if (header.next)
    return refuse(call, std::string(name) + " has a next chain; it is reserved and must be null");
  return {};
}

Status read_struct(const char* call, const char* name, const void* given, const StructKind& kind,
                   void* copy) {
  IMPRINT_CHECK(check_filled_struct(call, name, given, kind));
  const std::size_t size = header_of(given).size;
  const auto* bytes = static_cast<const std::byte*>(given);
  if (size > kind.size &&
      std::any_of(bytes + kind.size, bytes + size, [](std::byte byte) { return byte != std::byte{0}; }))
    return refuse(call, std::string(name) + " has size " + std::to_string(size) +
                            "; this library knows the first " + std::to_string(kind.size) + " bytes of an " +
                            kind.name +
                            ", and behind them something is set: leave the newer fields zero, or use the "
                            "library that came with the header");
  std::memset(copy, 0, kind.size);
  std::memcpy(copy, given, std::min(size, kind.size));
  return {};
}

void write_struct(const void* filled, const StructKind& kind, void* out) {
  const std::size_t size = std::min<std::size_t>(header_of(out).size, kind.size);
  std::memcpy(static_cast<std::byte*>(out) + sizeof(imp_header),
              static_cast<const std::byte*>(filled) + sizeof(imp_header), size - sizeof(imp_header));
}

}  // namespace imprint::abi
