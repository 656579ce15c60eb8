#include "compute/model/weights/weights.h"

#include "tests/fuzz/harness.h"

namespace imprint::fuzz {

void weights(Bytes bytes) {
  const auto file = imprint::weights::parse(bytes);
  check_error(file);
  if (!file) return;
  std::uint64_t total = 0;
  for (const auto& [name, array] : file->tensors.arrays) {
    require(
        array.bytes.size() == static_cast<std::size_t>(array.shape.element_count()) * type_size(array.type),
        "a tensor has the bytes of its shape");
    total += array.bytes.size();
  }
  require(total <= imprint::weights::kBytesPerByte * bytes.size() + (16 << 20),
          "memory is within the bounds");
  require(file->left_out.size() <= imprint::weights::kMostLeftOut, "the list of entries left out is short");
  const auto written = imprint::safetensors::serialize(file->tensors);
  check_error(written);
  if (written) require(imprint::safetensors::parse(*written).ok(), "tensors can be written and read again");
}

}  // namespace imprint::fuzz
