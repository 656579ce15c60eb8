// Data sets whose samples stay in files until they are used.

#include <algorithm>
#include <filesystem>
#include <optional>

#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/model/files/safetensors.h"
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
                             fields_[0].shape.text(), ". Give PictureOptions a height and a width."));
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

// Folders, or files, by name.
Result<std::vector<fs::path>> entries_of(const fs::path& folder, bool folders) {
  IMPRINT_ASSIGN(const std::vector<std::string> all, list_folder(folder.string()));
  std::vector<fs::path> found;
  std::error_code ignored;  // what cannot be looked at is neither
  for (const fs::path entry : all)
    if (folders ? fs::is_directory(entry, ignored) : fs::is_regular_file(entry, ignored))
      found.push_back(entry);
  return found;
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

namespace {

// Other files lie in folders of pictures too: notes, thumbnails of a file manager.
bool has_picture_name(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  const char* known[] = {".png", ".jpg", ".jpeg", ".jpe", ".pgm", ".ppm"};
  return std::ranges::any_of(known, [&](const char* each) { return ending == each; });
}

Result<DatasetRef> folder_of(const std::string& path, PictureReader read,
                             const std::function<bool(const fs::path&)>& counts, std::optional<Shape> shape) {
  IMPRINT_ASSIGN(const std::vector<fs::path> classes, entries_of(path, true));
  std::vector<std::pair<std::string, std::int32_t>> files;
  std::int32_t label = 0;
  for (const fs::path& folder : classes) {
    IMPRINT_ASSIGN(const std::vector<fs::path> members, entries_of(folder, false));
    for (const fs::path& file : members)
      if (counts(file)) files.emplace_back(file.string(), label);
    ++label;
  }
  if (files.empty())
    return make_error(ErrorCode::not_found,
                      text(path, ": found no picture, expected a folder of pictures per class"));
  if (!shape) {
    IMPRINT_ASSIGN(const HostTensor first, read(files[0].first));
    shape = first.shape;
  }
  return DatasetRef(std::make_shared<Pictures>(std::move(files), *shape, std::move(read)));
}

}  // namespace

Result<DatasetRef> picture_folder(const std::string& path, const PictureOptions& options) {
  std::optional<Shape> shape;
  if (options.height > 0 && options.width > 0) shape = Shape{options.channels, options.height, options.width};
  return folder_of(
      path, [options](const std::string& file) { return read_picture(file, options); }, has_picture_name,
      shape);
}

Result<DatasetRef> picture_folder(const std::string& path, PictureReader read) {
  return folder_of(
      path, std::move(read), [](const fs::path&) { return true; }, std::nullopt);
}

Result<std::vector<std::string>> class_names(const std::string& path) {
  IMPRINT_ASSIGN(const std::vector<fs::path> classes, entries_of(path, true));
  std::vector<std::string> names;
  for (const fs::path& folder : classes) names.push_back(folder.filename().string());
  return names;
}

}  // namespace imprint::training
