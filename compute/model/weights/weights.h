#pragma once
// Named tensors from the files that other frameworks write: PyTorch's .pt and .pth (zip files and the form
// before them), GGUF, NumPy's .npy and .npz, safetensors. The bytes tell the format. Nothing in a file is
// executed: of a pickle only the construction of tensors and of plain containers is understood.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/result.h"
#include "compute/model/files/safetensors.h"

namespace imprint::weights {

struct LeftOut {
  std::string name, reason;
};

struct File {
  std::string format;             // "safetensors", "PyTorch", "GGUF" or "NumPy"
  safetensors::File tensors;      // names of nested containers are joined by dots: "model.fc1.weight"
  std::vector<LeftOut> left_out;  // up to kMostLeftOut; of other entries than tensors
};
inline constexpr std::size_t kMostLeftOut = 64;

// Blocks of GGUF's Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 become float32. A .npy file has one tensor, named "array".
// Bounds for a file of n bytes: time O(n log n); memory beside the file kBytesPerByte * n + 16 MiB, held by
// counting.
// Checksums of zip entries are not compared, since PyTorch can write files without them: compare a digest of
// the file to tell damage. Tensors of GGUF may share bytes; each is read by itself, and counted.
// Errors: corrupt_file (also a name that occurs twice, bytes that two entries share, bytes behind an array);
// unsupported (compressed entries, a tensor type that Imprint lacks, more memory than
// the bounds).
inline constexpr std::uint64_t kBytesPerByte = 8;
Result<File> parse(std::span<const std::byte> bytes);
Result<File> load(const std::string& path);

}  // namespace imprint::weights
