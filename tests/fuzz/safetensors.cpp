#include "compute/model/files/safetensors.h"

#include "plugin/agent/keep/demonstrations.h"
#include "tests/fuzz/harness.h"

namespace imprint::fuzz {
namespace {

void demonstrations(Bytes bytes) {
  const auto shown = agent::read_demonstrations(bytes);
  check_error(shown);
  if (!shown) return;
  const auto written = agent::write_demonstrations(*shown);
  require(written.ok(), "demonstrations that are read can be written");
  const auto again = agent::read_demonstrations(*written);
  require(again.ok() && again->text() == shown->text(), "demonstrations that are written can be read");
}

}  // namespace

void safetensors(Bytes bytes) {
  const auto file = imprint::safetensors::parse(bytes);
  check_error(file);
  demonstrations(bytes);
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
