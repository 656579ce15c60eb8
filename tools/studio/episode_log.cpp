#include "tools/studio/episode_log.h"

#include <array>
#include <cstring>

#include "compute/base/byte_cursor.h"
#include "compute/base/hash.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"

namespace imprint::studio {
namespace {

// Little-endian: magic, version | head | parameters | observations | choices | numbers | hash of all before.
constexpr std::array<char, 8> kEpisodeMagic = {'I', 'M', 'P', 'E', 'P', 'I', '0', '1'};

struct EpisodeHead {
  std::uint64_t seed = 0, number = 0, steps = 0;
  double score = 0;
  std::uint32_t rank = 0, observations = 0, branches = 0, numbers = 0, parameters = 0, reserved = 0;
};

class EpisodeBytes {
 public:
  template <class T>
  void put(std::span<const T> values) {
    const auto raw = std::as_bytes(values);
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  }
  template <class T>
  void put(const T& value) {
    put(std::span(&value, 1));
  }
  std::vector<std::byte> bytes;
};

// `rows` times `columns` values. False: the bytes end before.
template <class T>
bool read_list(ByteCursor& cursor, std::vector<T>& values, std::uint64_t rows, std::uint64_t columns = 1) {
  if (columns > 0 && rows > cursor.left() / sizeof(T) / columns) return false;
  values.resize(rows * columns);
  const auto bytes = cursor.take(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return cursor.ok();
}

}  // namespace

Result<> EpisodeLog::add(std::span<const float> seen, std::span<const std::uint32_t> chosen,
                         std::span<const float> given) {
  if (observation.empty() && discrete.empty() && continuous.empty()) {
    observations = static_cast<std::uint32_t>(seen.size());
    branches = static_cast<std::uint32_t>(chosen.size());
    numbers = static_cast<std::uint32_t>(given.size());
  }
  if (seen.size() != observations || chosen.size() != branches || given.size() != numbers)
    return make_error(ErrorCode::shape_mismatch,
                      text("episode: found ", seen.size(), " observations, ", chosen.size(), " choices and ",
                           given.size(), " numbers, expected ", observations, ", ", branches, " and ",
                           numbers, " as in the first step. Give each agent an episode of its own."));
  observation.insert(observation.end(), seen.begin(), seen.end());
  discrete.insert(discrete.end(), chosen.begin(), chosen.end());
  continuous.insert(continuous.end(), given.begin(), given.end());
  return {};
}

std::vector<std::byte> EpisodeLog::bytes() const {
  EpisodeBytes out;
  out.put(std::span<const char>(kEpisodeMagic));
  out.put(EpisodeHead{seed, number, steps(), score, rank, observations, branches, numbers,
                      static_cast<std::uint32_t>(parameters.size()), 0});
  for (const auto& [name, value] : parameters) {
    out.put(static_cast<std::uint32_t>(name.size()));
    out.put(std::span<const char>(name));
    out.put(value);
  }
  out.put(std::span(observation));
  out.put(std::span(discrete));
  out.put(std::span(continuous));
  const Hash128 hash = Hasher().bytes(out.bytes).digest();
  out.put(hash.low);
  out.put(hash.high);
  return std::move(out.bytes);
}

Result<> EpisodeLog::write(const std::string& path) const { return write_file_atomic(path, bytes()); }

Result<EpisodeLog> EpisodeLog::read(const std::string& path) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  return parse(bytes, path);
}

Result<EpisodeLog> EpisodeLog::parse(std::span<const std::byte> bytes, const std::string& name) {
  const auto refuse = [&](const std::string& found_and_expected) {
    return make_error(ErrorCode::corrupt_file, text(quote(name), ": found ", found_and_expected,
                                                    ". Name a file of a run's folder episodes."));
  };
  constexpr std::size_t kHashBytes = 2 * sizeof(std::uint64_t);
  constexpr std::size_t kFewest = kEpisodeMagic.size() + sizeof(EpisodeHead) + kHashBytes;
  if (bytes.size() < kFewest) return refuse(text(bytes.size(), " bytes, expected at least ", kFewest));
  const std::span<const std::byte> body = bytes.first(bytes.size() - kHashBytes);
  const auto hash = ByteCursor(bytes, body.size()).number<Hash128>();
  ByteCursor cursor(body);
  const auto magic = cursor.number<std::array<char, kEpisodeMagic.size()>>();
  const auto head = cursor.number<EpisodeHead>();
  if (magic != kEpisodeMagic)
    return refuse("other first bytes, expected those of an episode of this version");
  if (Hasher().bytes(body).digest() != hash)
    return refuse("other bytes than those of which the last 16 are the hash, expected an undamaged file");
  EpisodeLog log{.seed = head.seed, .number = head.number, .rank = head.rank, .score = head.score};
  for (std::uint32_t i = 0; i < head.parameters; ++i) {
    const std::string given(cursor.words(cursor.number<std::uint32_t>()));
    const auto value = cursor.number<double>();
    if (!cursor.ok())
      return refuse(text("an end in parameter ", i, ", expected ", head.parameters, " parameters"));
    if (!log.parameters.emplace(given, value).second)
      return refuse(text("parameter ", quote(given), " twice, expected it once"));
  }
  log.observations = head.observations;
  log.branches = head.branches;
  log.numbers = head.numbers;
  if (!read_list(cursor, log.observation, head.steps, head.observations) ||
      !read_list(cursor, log.discrete, head.steps, head.branches) ||
      !read_list(cursor, log.continuous, head.steps, head.numbers) || cursor.left() > 0 ||
      log.steps() != head.steps)
    return refuse(text("fewer or more numbers than ", head.steps, " steps of ", head.observations,
                       " observations, ", head.branches, " choices and ", head.numbers,
                       " numbers have, expected those"));
  return log;
}

}  // namespace imprint::studio
