#pragma once
// Private: reading of bytes of unknown origin, and the readers of weights.h, each of one format.

#include <cstring>
#include <optional>

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

// Little-endian numbers, in order.
class Cursor {
 public:
  explicit Cursor(Bytes bytes, std::size_t at = 0) : bytes_(bytes), at_(at) {}

  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  Bytes take(std::uint64_t count) {
    if (count > left())
      corrupt(
          text("byte ", at_, ": found ", left(), " bytes, expected ", count, ": the file ends too early"));
    const Bytes out = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return out;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view words(std::uint64_t count) {
    const Bytes out = take(count);
    return {reinterpret_cast<const char*>(out.data()), out.size()};
  }
  // Up to the end of the line, which is skipped.
  std::string_view line() {
    const std::string_view rest{reinterpret_cast<const char*>(bytes_.data()) + at_, left()};
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) corrupt(text("byte ", at_, ": a line does not end"));
    at_ += end + 1;
    return rest.substr(0, end);
  }

 private:
  Bytes bytes_;
  std::size_t at_;
};

// The content of a stored (not compressed) entry of a zip file, by its name. Names differ, and entries do not
// overlap.
struct ZipEntry {
  std::string name;
  Bytes content;
};
bool is_zip(Bytes file);
std::vector<ZipEntry> zip_entries(Bytes file, Allowance& allowance);

Shape checked_extents(std::span<const std::int64_t> extents);
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
