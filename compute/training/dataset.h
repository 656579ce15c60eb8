#pragma once
// Data sets: samples that are read by their number.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/base/shared_bytes.h"
#include "compute/program/run.h"
#include "compute/training/picture.h"

namespace imprint::training {

// One part of a sample, such as its picture or its label.
struct Field {
  std::string name;
  Shape shape;  // of one sample
  DType dtype = DType::float32;
};

// A data set as arrays that a device can hold whole, and what a program computes to take a batch from them.
struct DatasetArrays {
  struct Array {
    std::string name;
    Shape shape;
    DType dtype = DType::float32;
    SharedBytes bytes;  // packed elements, row-major
  };
  std::vector<Array> arrays;
  // arrays: as above; rows: int32 [batch]. The fields, [batch, sample's shape], with the bits of read().
  std::function<std::vector<Tensor>(std::span<const Tensor> arrays, const Tensor& rows)> batch;
  std::vector<std::int32_t> rows;  // of each sample; empty: the sample's number
};

// Threads: read() is called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  virtual const std::vector<Field>& fields() const = 0;
  // Writes the sample to row `row` of each field's batch [rows, sample's shape].
  virtual Result<> read(std::int64_t sample, std::span<HostTensor> batch, std::int64_t row) const = 0;
  // None: samples are read one by one. Every call gives the same content.
  virtual std::optional<DatasetArrays> arrays() const { return std::nullopt; }
};
using DatasetRef = std::shared_ptr<const Dataset>;

struct NamedTensor {
  std::string name;
  HostTensor values;  // [samples, ...]
};
// Samples in memory. Errors: invalid_argument (no field, or a scalar), dtype_mismatch (int64 or float64),
// shape_mismatch (unequal numbers of samples, or of values and shape).
Result<DatasetRef> in_memory(std::vector<NamedTensor> fields);

// The samples with these numbers, in this order. Error: invalid_argument (a number outside).
Result<DatasetRef> subset(DatasetRef dataset, std::vector<std::int64_t> samples);
// Two parts: the first has round(share * size) samples, drawn by the seed. Error: invalid_argument.
struct Parts {
  DatasetRef first, second;
};
Result<Parts> split(DatasetRef dataset, double share, std::uint64_t seed);

// Applies a function to each sample as it is read, on the loader's thread. `sample` is the number in the
// dataset; `fields` hold one sample each and keep shape and dtype.
using Transform = std::function<void(std::int64_t sample, std::span<HostTensor> fields)>;
DatasetRef mapped(DatasetRef dataset, Transform transform);

// Windows of a text of tokens: fields "x" and "y" int32 [length], where y is x one later. Sample i starts at
// token i. Error: invalid_argument (fewer than length + 1 tokens).
Result<DatasetRef> token_windows(std::vector<std::int32_t> tokens, std::int64_t length);

// The characters of a text as tokens, in the order of their bytes.
class Alphabet {
 public:
  explicit Alphabet(const std::string& text);
  std::int64_t size() const { return static_cast<std::int64_t>(letters_.size()); }
  // Characters that the alphabet lacks are left out.
  std::vector<std::int32_t> encode(const std::string& text) const;
  std::string decode(std::span<const std::int32_t> tokens) const;

 private:
  std::string letters_;
};

// MNIST's files: pictures and labels in the IDX format. Fields "x" float32 [1, rows, columns] in [0, 1] and
// "label" int32 []. http://yann.lecun.com/exdb/mnist. Errors: io, corrupt_file.
Result<DatasetRef> idx_files(const std::string& pictures, const std::string& labels);

// CIFAR-10's binary files, one after the other. Fields "x" float32 [3, 32, 32] in [0, 1] and "label" int32
// []. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. Errors: io, corrupt_file.
Result<DatasetRef> cifar_files(const std::vector<std::string>& paths);

// Arrays of a safetensors file that may be larger than memory: the system reads samples when they are used.
// One field per array, in the order of their names, [samples, ...]; integers become int32. The file must not
// change while the data set lives. Errors: those of safetensors::map; shape_mismatch (other numbers of
// samples); dtype_mismatch (64-bit integers).
Result<DatasetRef> mapped_file(const std::string& path);

// Pictures in one folder per class, as torchvision's ImageFolder: "x" float32 [channels, height, width] in
// [0, 1], and "label" int32 [], the place of the folder's name in alphabetical order. Takes the files whose
// names end as PNG, JPEG, PGM or PPM do. Without a size in the options all have that of the first. Files are
// read when they are used. Errors: io, not_found (no picture), those of the first picture.
Result<DatasetRef> picture_folder(const std::string& path, const PictureOptions& options = {});
// The same with a reader of other formats, for every file: it gives [channels, height, width] of one shape.
using PictureReader = std::function<Result<HostTensor>(const std::string& path)>;
Result<DatasetRef> picture_folder(const std::string& path, PictureReader read);
// The names of the folders, by label. Errors: io.
Result<std::vector<std::string>> class_names(const std::string& path);

// A table of numbers with a first line of names. Fields: "x" float32 [columns - 1], and the named column as
// "y" float32 []. Errors: io, corrupt_file (with the line), not_found.
Result<DatasetRef> csv_file(const std::string& path, const std::string& target);

// Numbers 0 .. count - 1 in an order that the seed and the round determine, equal on every machine.
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::uint32_t round);

}  // namespace imprint::training
