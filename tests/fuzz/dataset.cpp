// Data sets of IDX, CIFAR and CSV files, from their bytes.

#include <algorithm>
#include <string>
#include <vector>

#include "compute/training/dataset_bytes.h"
#include "tests/fuzz/harness.h"

namespace imprint::fuzz {
namespace {

// The first and the last sample can be read.
void read_ends(const Result<training::DatasetRef>& set, std::size_t file_size) {
  check_error(set);
  if (!set) return;
  const training::Dataset& data = **set;
  std::vector<HostTensor> batch;
  std::int64_t values = 0;
  for (const training::Field& field : data.fields()) {
    const auto count = static_cast<std::size_t>(field.shape.element_count());
    values += field.shape.element_count();
    HostTensor& one = batch.emplace_back(HostTensor{field.dtype, field.shape, {}, {}});
    dtype_is_float(field.dtype) ? one.floats.resize(count) : one.ints.resize(count);
  }
  // Samples of no values need no bytes, but each has a label.
  require(static_cast<std::uint64_t>(values * data.size()) <= file_size, "each value has a byte of the file");
  for (const std::int64_t sample : {std::int64_t{0}, data.size() - 1})
    if (sample >= 0 && sample < data.size()) check_error(data.read(sample, batch, 0));
}

}  // namespace

// The first byte chooses the format, and the second how long the labels of IDX are or which column is "y".
void dataset(Bytes bytes) {
  if (bytes.size() < 2) return;
  const auto format = std::to_integer<unsigned>(bytes[0]) % 3, choice = std::to_integer<unsigned>(bytes[1]);
  const Bytes content = bytes.subspan(2);
  if (format == 0) {
    const std::size_t labels = std::min<std::size_t>(choice, content.size());
    read_ends(training::parse_idx({"pictures", content.subspan(labels)}, {"labels", content.first(labels)}),
              content.size());
  } else if (format == 1) {
    // Records of 3,073 bytes are made of what is there, repeated.
    constexpr std::size_t kRecord = 3073;
    std::vector<std::byte> file(choice % 4 * kRecord + (choice >= 192));
    for (std::size_t i = 0; i < file.size() && !content.empty(); ++i) file[i] = content[i % content.size()];
    training::LabelledPictures all;
    const auto added = training::add_cifar({"records", file}, all);
    check_error(added);
    require(!added || all.pictures.floats.size() + all.labels.ints.size() == file.size(),
            "each byte of a record is a value");
  } else {
    read_ends(training::parse_csv({"table", content}, std::string(1, static_cast<char>(choice))),
              content.size());
  }
}

}  // namespace imprint::fuzz
