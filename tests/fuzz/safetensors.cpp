#include "compute/model/safetensors.h"

#include "tests/fuzz/harness.h"

namespace imprint::fuzz {

void safetensors(Bytes bytes) {
  const auto file = imprint::safetensors::parse(bytes);
  check_error(file);
  if (!file) return;
  for (const auto& [name, array] : file->arrays) {
    array.floats();
    check_error(array.ints());
  }
  check_error(file->find("a"));
  const auto written = imprint::safetensors::serialize(*file);
  require(written.ok(), "what is read can be written");
  const auto again = imprint::safetensors::parse(*written);
  require(again.ok() && again->arrays.size() == file->arrays.size() && again->metadata == file->metadata,
          "what is written can be read");
}

}  // namespace imprint::fuzz
