// Data sets from files.

#include <algorithm>
#include <charconv>
#include <optional>

#include "compute/base/amount.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/training/dataset_bytes.h"

namespace imprint::training {
namespace {

std::uint32_t big_endian(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint32_t>(bytes[at + i]);
  return value;
}

// The extents of an IDX file of bytes with this number of axes.
Result<Shape> idx_shape(const FileContent& file, int axes) {
  const std::span<const std::byte> bytes = file.bytes;
  const auto bad = [&](const std::string& what) {
    return make_error(ErrorCode::corrupt_file, text(file.name, ": found ", what,
                                                    ", expected an IDX file of bytes with ", axes, " axes"));
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

float share_of(std::byte value) { return static_cast<float>(std::to_integer<int>(value)) / 255; }

// Calls take(cell) for each cell of a line, without blanks and quotes around it.
template <class Take>
void each_cell(std::string_view line, Take take) {
  while (true) {
    const std::size_t comma = line.find(',');
    std::string_view cell = line.substr(0, comma);
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '"')) cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '"')) cell.remove_suffix(1);
    take(cell);
    if (comma == line.npos) return;
    line.remove_prefix(comma + 1);
  }
}

std::optional<float> cell_value(std::string_view cell) {
  float value = 0;
  const auto [stop, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && stop == cell.data() + cell.size() ? std::optional(value) : std::nullopt;
}

// The lines of a table that hold something, with their numbers.
class Lines {
 public:
  explicit Lines(std::string_view rest) : rest_(rest) {}
  std::optional<std::string_view> next() {
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
      ++number_;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (!line.empty()) return line;
    }
    return std::nullopt;
  }
  std::size_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

std::size_t cells_in(std::string_view line) {
  return 1 + static_cast<std::size_t>(std::ranges::count(line, ','));
}

}  // namespace

Result<DatasetRef> parse_idx(const FileContent& pictures, const FileContent& labels) {
  IMPRINT_ASSIGN(const Shape shape, idx_shape(pictures, 3));
  IMPRINT_ASSIGN(const Shape count, idx_shape(labels, 1));
  if (count[0] != shape[0])
    return make_error(ErrorCode::corrupt_file,
                      text(labels.name, ": found ", count[0], " labels, expected ", shape[0]));
  HostTensor x{DType::float32, {shape[0], 1, shape[1], shape[2]}, {}, {}},
      y{DType::int32, {shape[0]}, {}, {}};
  const auto pixels = pictures.bytes.subspan(16), classes = labels.bytes.subspan(8);
  x.floats.resize(pixels.size());
  std::ranges::transform(pixels, x.floats.begin(), share_of);
  y.ints.resize(classes.size());
  std::ranges::transform(classes, y.ints.begin(), std::to_integer<std::int32_t>);
  return in_memory({{"x", std::move(x)}, {"label", std::move(y)}});
}

Result<DatasetRef> idx_files(const std::string& pictures, const std::string& labels) {
  IMPRINT_ASSIGN(const std::vector<std::byte> pixels, read_file(pictures));
  IMPRINT_ASSIGN(const std::vector<std::byte> classes, read_file(labels));
  return parse_idx({pictures, pixels}, {labels, classes});
}

Result<> add_cifar(const FileContent& file, LabelledPictures& to) {
  constexpr std::size_t kPixels = 3 * 32 * 32, kRecord = 1 + kPixels;
  const std::span<const std::byte> bytes = file.bytes;
  if (bytes.empty() || bytes.size() % kRecord != 0)
    return make_error(ErrorCode::corrupt_file,
                      text(file.name, ": found ", bytes.size(), " bytes, expected a multiple of ", kRecord));
  std::vector<float>& pixels = to.pictures.floats;
  std::size_t pixel = pixels.size();
  pixels.resize(pixel + bytes.size() / kRecord * kPixels);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % kRecord == 0)
      to.labels.ints.push_back(std::to_integer<std::int32_t>(bytes[i]));
    else
      pixels[pixel++] = share_of(bytes[i]);
  }
  return {};
}

Result<DatasetRef> cifar_files(const std::vector<std::string>& paths) {
  LabelledPictures all;
  for (const std::string& path : paths) {
    IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
    IMPRINT_CHECK(add_cifar({path, bytes}, all));
  }
  const auto count = static_cast<std::int64_t>(all.labels.ints.size());
  all.pictures.shape = {count, 3, 32, 32};
  all.labels.shape = {count};
  return in_memory({{"x", std::move(all.pictures)}, {"label", std::move(all.labels)}});
}

Result<DatasetRef> parse_csv(const FileContent& file, const std::string& target) {
  const std::string_view content(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  Lines lines(content);
  const std::string_view names = lines.next().value_or(std::string_view());
  const std::size_t columns = cells_in(names);
  std::optional<std::size_t> wanted;
  std::size_t column = 0;
  each_cell(names, [&](std::string_view name) {
    if (!wanted && name == target) wanted = column;
    ++column;
  });
  if (!wanted)
    return make_error(ErrorCode::not_found,
                      text(file.name, ": found no column ", quote(target), " in ", quote(names)));
  HostTensor x, y;
  x.floats.reserve(cells_in(content) - columns);  // a comma before each cell but the first of its line
  y.floats.reserve(1 + static_cast<std::size_t>(std::ranges::count(content, '\n')));
  while (const auto line = lines.next()) {
    const auto bad = [&](const std::string& found, const std::string& expected) {
      return make_error(ErrorCode::corrupt_file, text(file.name, ": line ", lines.number(), ": found ", found,
                                                      ", expected ", expected));
    };
    if (const std::size_t cells = cells_in(*line); cells != columns)
      return bad(amount(cells, "cell"), text(columns));
    std::optional<std::string_view> strange;
    column = 0;
    each_cell(*line, [&](std::string_view cell) {
      const std::optional<float> value = cell_value(cell);
      if (!value && !strange) strange = cell;
      (column++ == *wanted ? y : x).floats.push_back(value.value_or(0));
    });
    if (strange) return bad(quote(*strange), "a number");
  }
  const auto rows = static_cast<std::int64_t>(y.floats.size());
  x.shape = {rows, static_cast<std::int64_t>(columns) - 1};
  y.shape = {rows};
  return in_memory({{"x", std::move(x)}, {"y", std::move(y)}});
}

Result<DatasetRef> csv_file(const std::string& path, const std::string& target) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  return parse_csv({path, bytes}, target);
}

}  // namespace imprint::training
