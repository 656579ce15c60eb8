#include "compute/model/weights/weights.h"

#include <algorithm>
#include <exception>
#include <new>

#include "compute/base/quote.h"
#include "compute/base/utf8.h"
#include "compute/model/files/checked_shape.h"
#include "compute/model/files/file.h"
#include "compute/model/weights/reader.h"

namespace imprint::weights {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50,
                        kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::size_t kEndBytes = 22, kLocatorBytes = 20, kLongestComment = 65535;
constexpr std::uint64_t k32 = 0xffffffffu;

template <class T>
T number_at(Bytes file, std::size_t at) {
  return Cursor(file, std::min(at, file.size())).number<T>();
}

struct Directory {
  std::uint64_t offset = 0, entries = 0;
};

Directory directory_of(Bytes file) {
  if (file.size() < kEndBytes) corrupt("a zip file without its directory");
  std::size_t at = file.size() - kEndBytes;
  const std::size_t first = at > kLongestComment ? at - kLongestComment : 0;
  while (number_at<std::uint32_t>(file, at) != kEnd) {
    if (at == first) corrupt("a zip file without its directory");
    --at;
  }
  Directory out{number_at<std::uint32_t>(file, at + 16), number_at<std::uint16_t>(file, at + 10)};
  if (at >= kLocatorBytes && number_at<std::uint32_t>(file, at - kLocatorBytes) == kLocator64) {
    const auto end = number_at<std::uint64_t>(file, at - kLocatorBytes + 8);
    if (end >= file.size() || number_at<std::uint32_t>(file, static_cast<std::size_t>(end)) != kEnd64)
      corrupt("a zip file whose 64-bit directory is elsewhere");
    out = {number_at<std::uint64_t>(file, static_cast<std::size_t>(end) + 48),
           number_at<std::uint64_t>(file, static_cast<std::size_t>(end) + 32)};
  }
  return out;
}

// Sizes and the offset, where 32 bits do not suffice.
void read_extra(Bytes extra, std::uint64_t& size, std::uint64_t& packed, std::uint64_t& offset) {
  Cursor cursor(extra);
  while (cursor.left() >= 4) {
    const auto kind = cursor.number<std::uint16_t>();
    Cursor part(cursor.take(cursor.number<std::uint16_t>()));
    if (kind != 1) continue;
    for (std::uint64_t* value : {&size, &packed, &offset})
      if (*value == k32) *value = part.number<std::uint64_t>();
  }
}

// An entry with its bytes in the file, header included.
struct PlacedEntry {
  ZipEntry entry;
  std::uint64_t begin = 0, end = 0;
};

PlacedEntry entry_at(Bytes file, Cursor& cursor) {
  if (cursor.number<std::uint32_t>() != kCentralHeader) corrupt("a zip file with a damaged directory");
  cursor.take(4);
  const auto flags = cursor.number<std::uint16_t>(), method = cursor.number<std::uint16_t>();
  cursor.take(8);
  std::uint64_t packed = cursor.number<std::uint32_t>(), size = cursor.number<std::uint32_t>();
  const auto name = cursor.number<std::uint16_t>(), extra = cursor.number<std::uint16_t>(),
             comment = cursor.number<std::uint16_t>();
  cursor.take(8);
  std::uint64_t offset = cursor.number<std::uint32_t>();
  ZipEntry out{std::string(cursor.words(name)), {}};
  read_extra(cursor.take(extra), size, packed, offset);
  cursor.take(comment);
  if ((flags & 1) != 0) lacking(text("entry ", quote(out.name), " is encrypted"));
  if (method != 0) lacking(text("entry ", quote(out.name), " is compressed. Save it without compression"));
  if (packed != size || offset >= file.size())
    corrupt(text("entry ", quote(out.name), " lies outside the file"));
  Cursor local(file, static_cast<std::size_t>(offset));
  if (local.number<std::uint32_t>() != kLocalHeader)
    corrupt(text("entry ", quote(out.name), " has no header"));
  local.take(22);
  const auto local_name = local.number<std::uint16_t>(), local_extra = local.number<std::uint16_t>();
  if (local.words(local_name) != out.name)
    corrupt(text("entry ", quote(out.name), " has another name in front of its content"));
  local.take(local_extra);
  out.content = local.take(size);
  return {std::move(out), offset, local.at()};
}

// Readers of one file must agree about its content: an entry has one name, and a byte one entry.
void check_apart(std::vector<PlacedEntry>& entries, std::uint64_t directory) {
  std::ranges::sort(entries, {}, [](const PlacedEntry& one) -> std::string_view { return one.entry.name; });
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (entries[i].entry.name == entries[i - 1].entry.name)
      corrupt(text("two entries are named ", quote(entries[i].entry.name)));
  std::ranges::sort(entries, {}, &PlacedEntry::begin);
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].end > (i + 1 < entries.size() ? entries[i + 1].begin : directory))
      corrupt(text("entry ", quote(entries[i].entry.name), " overlaps what is behind it"));
}

}  // namespace

bool is_zip(Bytes file) { return file.size() >= 4 && number_at<std::uint32_t>(file, 0) == kLocalHeader; }

std::vector<ZipEntry> zip_entries(Bytes file, Allowance& allowance) {
  const Directory directory = directory_of(file);
  if (directory.offset > file.size()) corrupt("a zip file whose directory lies outside of it");
  Cursor cursor(file, static_cast<std::size_t>(directory.offset));
  std::vector<PlacedEntry> placed;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    placed.push_back(reading([&] { return text("entry ", i + 1, " of ", directory.entries); },
                             [&] { return entry_at(file, cursor); }));
    allowance.take(4 * sizeof(PlacedEntry) + placed.back().entry.name.size());
  }
  check_apart(placed, directory.offset);
  std::vector<ZipEntry> out;
  out.reserve(placed.size());
  for (PlacedEntry& one : placed) out.push_back(std::move(one.entry));
  return out;
}

Shape known_shape(std::span<const std::int64_t> extents) {
  const Result<Shape> shape = checked_shape(extents);
  if (shape) return *shape;
  if (shape.error().code == ErrorCode::unsupported) lacking(shape.error().message);
  corrupt(shape.error().message);
}

void add_tensor(File& out, const std::string& name, safetensors::Array array) {
  if (!is_utf8(name)) corrupt("a name that is not UTF-8");
  if (!out.tensors.arrays.emplace(name, std::move(array)).second)
    corrupt(text("two tensors are named ", quote(name)));
}

void leave_out(File& out, const std::string& name, const std::string& reason) {
  if (out.left_out.size() < kMostLeftOut) out.left_out.push_back({name, reason});
}

namespace {

File read_any(Bytes file) {
  Allowance allowance(file.size());
  File out;
  if (is_zip(file)) {
    const std::vector<ZipEntry> entries = zip_entries(file, allowance);
    if (is_torch_zip(entries)) return read_torch_zip(entries, allowance);
    out.format = "NumPy";
    for (const ZipEntry& entry : entries)
      if (entry.name.ends_with(".npy"))
        add_tensor(out, entry.name.substr(0, entry.name.size() - 4),
                   reading([&] { return text("entry ", quote(entry.name)); },
                           [&] { return read_numpy(entry.content, allowance); }));
      else
        leave_out(out, entry.name, "no array");
    if (out.tensors.arrays.empty()) corrupt("a zip file with neither data.pkl nor arrays");
    return out;
  }
  if (is_gguf(file)) return read_gguf(file, allowance);
  if (is_torch_legacy(file)) return read_torch_legacy(file, allowance);
  if (is_numpy(file)) {
    out.format = "NumPy";
    add_tensor(out, "array", read_numpy(file, allowance));
    return out;
  }
  out.format = "safetensors";
  auto read = safetensors::parse(file);
  if (!read) throw Refusal{read.error().code, read.error().message};
  out.tensors = std::move(*read);
  return out;
}

}  // namespace

Result<File> parse(Bytes bytes) {
  try {
    return read_any(bytes);
  } catch (const Refusal& refusal) {
    return make_error(refusal.code, "weights: " + refusal.reason);
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::out_of_host_memory, "weights: out of memory");
  } catch (const std::exception& exception) {
    return make_error(ErrorCode::internal, text("weights: ", exception.what()));
  }
}

Result<File> load(const std::string& path) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  auto file = parse(bytes);
  if (!file) return make_error(file.error().code, text("'", path, "': ", file.error().message));
  return file;
}

}  // namespace imprint::weights
