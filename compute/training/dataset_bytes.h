#pragma once
// Data sets from the bytes of files of unknown origin. dataset.h reads the files.
//
// Bounds for files of n bytes in all: time O(n); memory 4 n + 4 KiB beside the bytes, and 12 n while several
// CIFAR files grow into one. The formats hold them: each value of 4 bytes needs a byte of the file. Errors:
// corrupt_file and not_found, with the file's name.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/training/dataset.h"

namespace imprint::training {

struct FileContent {
  std::string name;
  std::span<const std::byte> bytes;
};

Result<DatasetRef> parse_idx(const FileContent& pictures, const FileContent& labels);

// One after the other.
struct LabelledPictures {
  std::vector<std::byte> pixels;
  std::vector<std::int32_t> labels;
};
// Adds those of one file.
Result<> add_cifar(const FileContent& file, LabelledPictures& to);

Result<DatasetRef> parse_csv(const FileContent& file, const std::string& target);

}  // namespace imprint::training
