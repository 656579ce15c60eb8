#pragma once
// Private: reading of bytes of unknown origin, and the readers of weights.h, each of one format.

#include <optional>

#include "compute/base/byte_cursor.h"
#include "compute/base/text.h"
#include "compute/model/weights/weights.h"

namespace imprint::weights {

using Bytes = std::span<const std::byte>;

// Thrown and caught inside of weights::parse only.
struct Refusal {
  ErrorCode code;
  std::string reason;
};
[[noreturn]] inline void corrupt(const std::string& reason) {
  throw Refusal{ErrorCode::corrupt_file, reason};
}
[[noreturn]] inline void lacking(const std::string& reason) { throw Refusal{ErrorCode::unsupported, reason}; }

// Calls `read`. A refusal in it says where: place() is a text.
template <class Place, class Read>
auto reading(const Place& place, const Read& read) {
  try {
    return read();
  } catch (Refusal& refusal) {
    refusal.reason = text(place(), ": ", refusal.reason);
    throw;
  }
}

inline constexpr std::size_t kLongestName = 1024;  // of a tensor, a storage and an entry that has a pickle

// Memory that the reader may still take. Work that makes nothing is counted too, so that it ends.
class Allowance {
 public:
  explicit Allowance(std::uint64_t file_bytes)
      : most_(kBytesPerByte * file_bytes + (std::uint64_t{16} << 20)), left_(most_) {}
  void take(std::uint64_t bytes) {
    if (bytes > left_)
      lacking(text("found contents of more than ", most_, " bytes, expected at most ", kBytesPerByte,
                   " bytes of memory per byte of the file, and 16 MiB"));
    left_ -= bytes;
  }

 private:
  std::uint64_t most_, left_;
};

// Refuses a file that ends before what is asked for.
class Cursor : public ByteCursor {
 public:
  using ByteCursor::ByteCursor;

  Bytes take(std::uint64_t count) {
    expect(count);
    return ByteCursor::take(count);
  }
  template <class T>
  T number() {
    expect(sizeof(T));
    return ByteCursor::number<T>();
  }
  std::string_view words(std::uint64_t count) {
    expect(count);
    return ByteCursor::words(count);
  }
  // Up to the end of the line, which is skipped.
  std::string_view line() {
    const std::size_t length =
        std::string_view(reinterpret_cast<const char*>(rest().data()), left()).find('\n');
    if (length == std::string_view::npos) corrupt(text("byte ", at(), ": a line does not end"));
    return words(length + 1).substr(0, length);
  }

 private:
  void expect(std::uint64_t count) const {
    if (count > left())
      corrupt(
          text("byte ", at(), ": found ", left(), " bytes, expected ", count, ": the file ends too early"));
  }
};

// The content of a stored (not compressed) entry of a zip file, by its name. Names differ, and entries do not
// overlap.
struct ZipEntry {
  std::string name;
  Bytes content;
};
bool is_zip(Bytes file);
std::vector<ZipEntry> zip_entries(Bytes file, Allowance& allowance);

Shape known_shape(std::span<const std::int64_t> extents);  // checked_shape, or a refusal
void add_tensor(File& out, const std::string& name, safetensors::Array array);
void leave_out(File& out, const std::string& name, const std::string& reason);

bool is_torch_zip(std::span<const ZipEntry> entries);
File read_torch_zip(std::span<const ZipEntry> entries, Allowance& allowance);
bool is_torch_legacy(Bytes file);
File read_torch_legacy(Bytes file, Allowance& allowance);
bool is_gguf(Bytes file);
File read_gguf(Bytes file, Allowance& allowance);
bool is_numpy(Bytes file);
safetensors::Array read_numpy(Bytes file, Allowance& allowance);

}  // namespace imprint::weights
