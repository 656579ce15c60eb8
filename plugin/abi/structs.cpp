#include "plugin/abi/structs.h"

#include <algorithm>

namespace imprint::abi {

imp_header read_header(const void* given) {
  imp_header header;
  std::memcpy(&header, given, sizeof header);
  return header;
}

Result<> check_filled_struct(const char* call, const char* name, const void* given, const StructKind& kind,
                             Next next) {
  if (!given) return refuse(call, text(name, ": found null, expected an ", kind.name));
  const imp_header header = read_header(given);
  if (header.type != kind.type)
    return refuse(call, text(name, ": found struct type ", header.type, ", expected ", kind.type,
                             ". Make it with ", kind.name, "_init."));
  if (header.size < kind.first_size || header.size > kLongestStruct)
    return refuse(
        call, text(name, ": found size ", header.size, ", expected ", kind.size, " bytes (", kind.first_size,
                   " in version 1) for an ", kind.name, ". Make it with ", kind.name, "_init."));
  if (header.next && next == Next::none)
    return refuse(call, text(name, ".header.next: found a next chain, expected null"));
  return {};
}

Result<> read_struct(const char* call, const char* name, const void* given, const StructKind& kind,
                     void* copy, Next next) {
  IMPRINT_CHECK(check_filled_struct(call, name, given, kind, next));
  const std::size_t size = read_header(given).size;
  const auto* bytes = static_cast<const std::byte*>(given);
  if (size > kind.size &&
      std::any_of(bytes + kind.size, bytes + size, [](std::byte byte) { return byte != std::byte{0}; }))
    return refuse(call, text(name, ": found size ", size,
                             " with a field set that this library does not know; "
                             "it knows the first ",
                             kind.size, " bytes of an ", kind.name,
                             ". Leave newer fields zero, or use the library that came with the header."));
  std::memcpy(copy, given, std::min(size, kind.size));
  return {};
}

void write_struct(const void* filled, const StructKind& kind, void* out) {
  const std::size_t size = std::min<std::size_t>(read_header(out).size, kind.size);
  std::memcpy(static_cast<std::byte*>(out) + sizeof(imp_header),
              static_cast<const std::byte*>(filled) + sizeof(imp_header), size - sizeof(imp_header));
}

}  // namespace imprint::abi
