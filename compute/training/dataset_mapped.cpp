// Data sets whose samples stay in files until they are used.

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "compute/base/number_format.h"
#include "compute/base/text.h"
#include "compute/model/file.h"
#include "compute/model/safetensors.h"
#include "compute/training/dataset.h"

namespace imprint::training {
namespace {

namespace fs = std::filesystem;

class MappedArrays final : public Dataset {
 public:
  MappedArrays(safetensors::File file, std::int64_t size) : size_(size) {
    for (auto& [name, array] : file.arrays) {
      using safetensors::Type;
      const bool is_float = array.type == Type::float32 || array.type == Type::float64 ||
                            array.type == Type::float16 || array.type == Type::bfloat16;
      fields_.push_back(
          {name, Shape(array.shape.extents().subspan(1)), is_float ? DType::float32 : DType::int32});
      arrays_.push_back(std::move(array));
    }
  }
  std::int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }

  Result<> read(std::int64_t sample, std::span<HostTensor> batch, std::int64_t row) const override {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const safetensors::Array& whole = arrays_[i];
      const std::int64_t count = fields_[i].shape.element_count();
      const std::size_t bytes = static_cast<std::size_t>(count) * safetensors::type_size(whole.type);
      const safetensors::Array one{whole.type, fields_[i].shape,
                                   whole.bytes.part(static_cast<std::size_t>(sample) * bytes, bytes)};
      if (fields_[i].dtype == DType::float32) {
        const std::vector<float> values = one.floats();
        std::copy(values.begin(), values.end(), batch[i].floats.begin() + row * count);
      } else {
        IMPRINT_ASSIGN(const std::vector<std::int32_t> values, one.ints());
        std::copy(values.begin(), values.end(), batch[i].ints.begin() + row * count);
      }
    }
    return {};
  }

 private:
  std::int64_t size_;
  std::vector<safetensors::Array> arrays_;
  std::vector<Field> fields_;
};

class Pictures final : public Dataset {
 public:
  Pictures(std::vector<std::pair<std::string, std::int32_t>> files, const Shape& shape, PictureReader read)
      : files_(std::move(files)),
        read_(std::move(read)),
        fields_{{"x", shape, DType::float32}, {"label", {}, DType::int32}} {}
  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  const std::vector<Field>& fields() const override { return fields_; }

  Result<> read(std::int64_t sample, std::span<HostTensor> batch, std::int64_t row) const override {
    const auto& [path, label] = files_[static_cast<std::size_t>(sample)];
    IMPRINT_ASSIGN(const HostTensor picture, read_(path));
    if (picture.shape != fields_[0].shape)
      return make_error(ErrorCode::shape_mismatch,
                        text(path, ": found a picture ", picture.shape.text(), ", expected ",
                             fields_[0].shape.text(), " as the first. Resize them to one size."));
    const std::int64_t count = fields_[0].shape.element_count();
    std::copy(picture.floats.begin(), picture.floats.end(), batch[0].floats.begin() + row * count);
    batch[1].ints[static_cast<std::size_t>(row)] = label;
    return {};
  }

 private:
  std::vector<std::pair<std::string, std::int32_t>> files_;
  PictureReader read_;
  std::vector<Field> fields_;
};

std::vector<fs::path> sorted_entries(const fs::path& folder, bool folders) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (folders ? entry.is_directory(error) : entry.is_regular_file(error)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// The next number of a netpbm header; comments run from # to the end of the line. -1: there is none.
std::int64_t header_number(std::string_view bytes, std::size_t& at) {
  while (at < bytes.size() && (bytes[at] == '#' || bytes[at] == ' ' || bytes[at] == '\n' ||
                               bytes[at] == '\r' || bytes[at] == '\t'))
    at = bytes[at] == '#' ? std::min(bytes.find('\n', at), bytes.size()) : at + 1;
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(bytes.data() + at, bytes.data() + bytes.size(), value);
  at = static_cast<std::size_t>(end - bytes.data());
  return error == std::errc() ? value : -1;
}

}  // namespace

Result<DatasetRef> mapped_file(const std::string& path) {
  IMPRINT_ASSIGN(safetensors::File file, safetensors::map(path));
  std::int64_t size = -1;
  for (const auto& [name, array] : file.arrays) {
    if (array.type == safetensors::Type::int64 || array.type == safetensors::Type::uint64)
      return make_error(ErrorCode::dtype_mismatch,
                        text(path, ": found ", safetensors::type_name(array.type), " in '", name,
                             "', expected floats or integers of 32 bits at most"));
    const std::int64_t count = array.shape.rank() > 0 ? array.shape[0] : 0;
    if (count < 1 || (size >= 0 && count != size))
      return make_error(ErrorCode::shape_mismatch,
                        text(path, ": found '", name, "' ", array.shape.text(), ", expected [",
                             size < 0 ? std::string("samples") : text(size), ", ...]"));
    size = count;
  }
  if (size < 0) return make_error(ErrorCode::not_found, text(path, ": found no array, expected one or more"));
  return DatasetRef(std::make_shared<MappedArrays>(std::move(file), size));
}

Result<HostTensor> read_netpbm(const std::string& path) {
  IMPRINT_ASSIGN(const std::vector<std::byte> content, read_file(path));
  const std::string_view bytes(reinterpret_cast<const char*>(content.data()), content.size());
  const std::int64_t channels = bytes.starts_with("P5") ? 1 : bytes.starts_with("P6") ? 3 : 0;
  std::size_t at = std::min<std::size_t>(2, bytes.size());
  const std::int64_t width = header_number(bytes, at), height = header_number(bytes, at),
                     most = header_number(bytes, at);
  ++at;  // one space before the pixels
  const bool fits = channels > 0 && width > 0 && height > 0 && width <= 1 << 16 && height <= 1 << 16 &&
                    most > 0 && most < 256 && at <= bytes.size() &&
                    bytes.size() - at == static_cast<std::size_t>(channels * width * height);
  if (!fits)
    return make_error(
        ErrorCode::corrupt_file,
        text(path, ": expected a binary PGM or PPM of 8 bits, whole. Convert it, or give a reader."));
  HostTensor picture{DType::float32, {channels, height, width}, {}, {}};
  for (std::int64_t channel = 0; channel < channels; ++channel)
    for (std::int64_t pixel = 0; pixel < width * height; ++pixel)
      picture.floats.push_back(static_cast<float>(static_cast<unsigned char>(
                                   bytes[at + static_cast<std::size_t>(pixel * channels + channel)])) /
                               static_cast<float>(most));
  return picture;
}

Result<DatasetRef> picture_folder(const std::string& path, PictureReader read) {
  if (!fs::is_directory(path))
    return make_error(ErrorCode::io, text(path, ": found no folder, expected one"));
  if (!read) read = read_netpbm;
  std::vector<std::pair<std::string, std::int32_t>> files;
  std::int32_t label = 0;
  for (const fs::path& folder : sorted_entries(path, true)) {
    for (const fs::path& file : sorted_entries(folder, false)) files.emplace_back(file.string(), label);
    ++label;
  }
  if (files.empty())
    return make_error(ErrorCode::not_found,
                      text(path, ": found no picture, expected a folder of pictures per class"));
  IMPRINT_ASSIGN(const HostTensor first, read(files[0].first));
  return DatasetRef(std::make_shared<Pictures>(std::move(files), first.shape, std::move(read)));
}

}  // namespace imprint::training
