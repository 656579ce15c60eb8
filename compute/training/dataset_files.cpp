// Data sets from files.

#include <charconv>
#include <cmath>

#include "compute/base/amount.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/training/dataset.h"

namespace imprint::training {
namespace {

std::uint32_t big_endian(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint32_t>(bytes[at + i]);
  return value;
}

// The extents of an IDX file of bytes with this number of axes.
Result<Shape> idx_shape(std::span<const std::byte> bytes, int axes, const std::string& path) {
  const auto bad = [&](const std::string& what) {
    return make_error(ErrorCode::corrupt_file,
                      text(path, ": found ", what, ", expected an IDX file of bytes with ", axes, " axes"));
  };
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(axes);
  if (bytes.size() < header) return bad(text(bytes.size(), " bytes"));
  if (big_endian(bytes, 0) != (0x0800u | static_cast<std::uint32_t>(axes))) return bad("another type");
  Shape shape;
  for (int axis = 0; axis < axes; ++axis)
    shape.append(big_endian(bytes, 4 + 4 * static_cast<std::size_t>(axis)));
  if (static_cast<std::uint64_t>(shape.element_count()) != bytes.size() - header)
    return bad(text(bytes.size() - header, " bytes of elements for ", shape.text()));
  return shape;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    std::string_view cell = line.substr(0, comma);
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '"')) cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '"')) cell.remove_suffix(1);
    cells.push_back(cell);
    if (comma == line.npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<DatasetRef> idx_files(const std::string& pictures, const std::string& labels) {
  IMPRINT_ASSIGN(const std::vector<std::byte> pixels, read_file(pictures));
  IMPRINT_ASSIGN(const std::vector<std::byte> classes, read_file(labels));
  IMPRINT_ASSIGN(const Shape shape, idx_shape(pixels, 3, pictures));
  IMPRINT_ASSIGN(const Shape count, idx_shape(classes, 1, labels));
  if (count[0] != shape[0])
    return make_error(ErrorCode::corrupt_file,
                      text(labels, ": found ", count[0], " labels, expected ", shape[0]));
  HostTensor x{DType::float32, {shape[0], 1, shape[1], shape[2]}, {}, {}},
      y{DType::int32, {shape[0]}, {}, {}};
  for (std::size_t i = 16; i < pixels.size(); ++i)
    x.floats.push_back(static_cast<float>(std::to_integer<int>(pixels[i])) / 255);
  for (std::size_t i = 8; i < classes.size(); ++i)
    y.ints.push_back(std::to_integer<std::int32_t>(classes[i]));
  return in_memory({{"x", std::move(x)}, {"label", std::move(y)}});
}

Result<DatasetRef> cifar_files(const std::vector<std::string>& paths) {
  constexpr std::size_t kPixels = 3 * 32 * 32, kRecord = 1 + kPixels;
  HostTensor x, y{DType::int32, {}, {}, {}};
  for (const std::string& path : paths) {
    IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
    if (bytes.empty() || bytes.size() % kRecord != 0)
      return make_error(ErrorCode::corrupt_file,
                        text(path, ": found ", bytes.size(), " bytes, expected a multiple of ", kRecord));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const int value = std::to_integer<int>(bytes[i]);
      if (i % kRecord == 0)
        y.ints.push_back(value);
      else
        x.floats.push_back(static_cast<float>(value) / 255);
    }
  }
  const auto count = static_cast<std::int64_t>(y.ints.size());
  x.shape = {count, 3, 32, 32};
  y.shape = {count};
  return in_memory({{"x", std::move(x)}, {"label", std::move(y)}});
}

Result<DatasetRef> csv_file(const std::string& path, const std::string& target) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::string_view> names;
  std::size_t wanted = 0;
  HostTensor x, y;
  for (std::size_t line_number = 1; !rest.empty(); ++line_number) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    const std::vector<std::string_view> cells = cells_of(line);
    if (names.empty()) {
      names = cells;
      while (wanted < names.size() && names[wanted] != target) ++wanted;
      if (wanted == names.size())
        return make_error(ErrorCode::not_found,
                          text(path, ": found no column ", quote(target), " in ", quote(line)));
      continue;
    }
    for (std::size_t i = 0; i < cells.size() && cells.size() == names.size(); ++i) {
      float value = 0;
      const auto [stop, error] = std::from_chars(cells[i].data(), cells[i].data() + cells[i].size(), value);
      if (error != std::errc() || stop != cells[i].data() + cells[i].size())
        return make_error(ErrorCode::corrupt_file, text(path, ": line ", line_number, ": found ",
                                                        quote(cells[i]), ", expected a number"));
      (i == wanted ? y : x).floats.push_back(value);
    }
    if (cells.size() != names.size())
      return make_error(ErrorCode::corrupt_file,
                        text(path, ": line ", line_number, ": found ", amount(cells.size(), "cell"),
                             ", expected ", names.size()));
  }
  const auto rows = static_cast<std::int64_t>(y.floats.size());
  x.shape = {rows, static_cast<std::int64_t>(names.size()) - (names.empty() ? 0 : 1)};
  y.shape = {rows};
  return in_memory({{"x", std::move(x)}, {"y", std::move(y)}});
}

}  // namespace imprint::training
