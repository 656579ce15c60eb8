// JSON that the command line reads: profiles and brains.

#include <string_view>

#include "tests/fuzz/harness.h"
#include "tools/imprint/brain_file.h"
#include "tools/imprint/profiles.h"

namespace imprint::fuzz {

void profile(Bytes bytes) {
  const auto read = tools::parse_profile("file", bytes);
  check_error(read);
  if (!read) return;
  const std::string text = tools::profile_json(*read);
  const auto again = tools::parse_profile("file", std::as_bytes(std::span(text)));
  require(again.ok() && again->equals(*read), "what is written can be read");
}

void brain_file(Bytes bytes) {
  const auto brains = tools::parse_brains("file", bytes);
  check_error(brains);
}

}  // namespace imprint::fuzz
