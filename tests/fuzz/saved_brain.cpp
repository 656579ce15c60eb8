#include <cstring>
#include <vector>

#include "compute/base/hash.h"
#include "plugin/agent/brain_programs.h"
#include "plugin/agent/keep/saved_brain.h"
#include "plugin/agent/keep/schema.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/seed_brain.h"

namespace imprint::fuzz {
namespace {

constexpr std::size_t kHeader = 72, kHashed = 56;  // saved_brain.h has the layout

void take(Bytes bytes) {
  static const agent::BrainSpec spec = seed_brain();
  static const std::vector<agent::StateVariable> state = agent::describe_brain(spec)->state;
  const auto brain = agent::decode_brain(bytes, spec, state);
  check_error(brain);
  check_error(agent::decode_weights(bytes, spec, state));
  check_error(agent::describe_file(bytes));
  if (!brain) return;
  const std::vector<std::span<const std::byte>> contents(brain->state.begin(), brain->state.end());
  const auto written = agent::encode_brain(spec, state, brain->host, contents);
  require(written.ok(), "a brain that is read can be written");
  require(agent::decode_brain(*written, spec, state).ok(), "a brain that is written can be read");
}

}  // namespace

std::vector<std::byte> enveloped(Bytes body, const agent::BrainSpec& spec) {
  std::vector<std::byte> file(kHeader + body.size());
  const auto put = [&](std::size_t at, const auto& value) {
    std::memcpy(file.data() + at, &value, sizeof value);
  };
  const auto put_hash = [&](std::size_t at, const Hash128& hash) {
    put(at, hash.low);
    put(at + 8, hash.high);
  };
  std::memcpy(file.data(), "IMPRINTB", 8);
  put(8, agent::kSavedBrainVersion);
  put_hash(16, agent::schema_hash(spec));
  put(32, std::uint64_t{body.size()});
  if (!body.empty()) std::memcpy(file.data() + kHeader, body.data(), body.size());
  put_hash(40, Hasher().bytes(body).digest());
  put_hash(kHashed, Hasher().bytes(std::span<const std::byte>(file).first(kHashed)).digest());
  return file;
}

void saved_brain(Bytes bytes) {
  take(bytes);
  const Bytes body = bytes.size() > kHeader ? bytes.subspan(kHeader) : bytes;
  take(enveloped(body, seed_brain()));
}

}  // namespace imprint::fuzz
