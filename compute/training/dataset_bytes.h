#pragma once
// Data sets from the bytes of files of unknown origin. dataset.h reads the files.
//
// Bounds for files of n bytes in all: time O(n); memory 4 n + 4 KiB beside the bytes, and 12 n while several
// CIFAR files grow into one. The formats hold them: each value of 4 bytes needs a byte of the file. Errors:
// corrupt_file and not_found, with the file's name.

#include <cstddef>
#include <span>
#include <string>

#include "compute/training/dataset.h"

namespace imprint::training {

struct FileContent {
  std::string name;
  std::span<const std::byte> bytes;
};

Result<DatasetRef> parse_idx(const FileContent& pictures, const FileContent& labels);

struct LabelledPictures {
  HostTensor pictures{DType::float32, {}, {}, {}}, labels{DType::int32, {}, {}, {}};
};
// Adds those of one file; their shapes stay as they are.
Result<> add_cifar(const FileContent& file, LabelledPictures& to);

Result<DatasetRef> parse_csv(const FileContent& file, const std::string& target);

}  // namespace imprint::training
