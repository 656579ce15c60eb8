// Files of the studio: episodes, curricula with how far they are, leagues.

#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/hash.h"
#include "compute/model/files/file.h"
#include "tests/fuzz/harness.h"
#include "tools/studio/curriculum.h"
#include "tools/studio/episode_log.h"
#include "tools/studio/league.h"

namespace imprint::fuzz {
namespace {

using imprint::studio::Curriculum;
using imprint::studio::EpisodeLog;
using imprint::studio::League;

void take_episode(Bytes bytes) {
  const auto log = EpisodeLog::parse(bytes, "an episode");
  check_error(log);
  if (!log) return;
  for (std::size_t step = 0; step < log->steps(); ++step) {
    require(log->observation_of(step).size() == log->observations, "a step has its observations");
    require(log->discrete_of(step).size() == log->branches, "a step has its choices");
    require(log->continuous_of(step).size() == log->numbers, "a step has its numbers");
  }
  const auto again = EpisodeLog::parse(log->bytes(), "an episode");
  require(again.ok() && again->bytes() == log->bytes(), "an episode that is read can be written and read");
}

// With the hash that it should have, so that mutations reach what is behind it.
void take_whole_episode(Bytes body) {
  std::vector<std::byte> file(body.begin(), body.end());
  const Hash128 hash = Hasher().bytes(body).digest();
  for (const std::uint64_t half : {hash.low, hash.high}) {
    const auto raw = std::as_bytes(std::span(&half, 1));
    file.insert(file.end(), raw.begin(), raw.end());
  }
  take_episode(file);
}

void draw_all(const Curriculum& curriculum) {
  for (const auto& [name, value] : curriculum.draw(5, 7))
    require(std::isfinite(value), "a parameter is a finite number");
}

void take_curriculum(std::string_view json) {
  auto curriculum = Curriculum::parse(std::string(json));
  check_error(curriculum);
  if (!curriculum) return;
  draw_all(*curriculum);
  // Numbers of a checkpoint: whatever the text begins with.
  std::vector<double> state(Curriculum::kStateNumbers);
  std::memcpy(state.data(), json.data(), std::min(json.size(), state.size() * sizeof(double)));
  curriculum->set_state(state);
  require(curriculum->lesson_name().size() < 128, "a lesson's name is short");
  draw_all(*curriculum);
  for (int i = 0; i < 4; ++i) {
    curriculum->take(1e3 * i, 60);
    require(curriculum->reach() >= 0 && curriculum->reach() <= 1, "a range grows to its whole");
    draw_all(*curriculum);
  }
}

void take_league(std::string_view text) {
  auto league = League::parse(std::string(text), "league");
  check_error(league);
  if (!league) return;
  for (const League::Entry& entry : league->entries())
    require(is_file_name(entry.brain), "an entry is a file of the league's folder");
  const auto again = League::parse(league->text(), "league");
  require(again.ok() && again->text() == league->text(), "a league that is read can be written and read");
  const std::vector<float> results(league->entries().size(), 1);
  league->take(results, results);
  require(std::isfinite(league->rating()), "a rating is a finite number");
  for (const League::Entry& entry : league->entries())
    require(std::isfinite(entry.rating) && std::isfinite(entry.chance()), "chances are finite numbers");
  for (const double which : {0.0, 0.5, 0.999})
    require(league->draw(0.9, which) <= league->entries().size(), "a draw is an entry or the newest weights");
  league->keep("newest");
  require(league->entries().size() <= League::kMostEntries, "a league stays small");
}

}  // namespace

void studio_files(Bytes bytes) {
  if (bytes.empty()) return;
  const Bytes content = bytes.subspan(1);
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  switch (std::to_integer<unsigned>(bytes[0]) % 4) {
    case 0:
      return take_episode(content);
    case 1:
      return take_whole_episode(content);
    case 2:
      return take_curriculum(text);
    default:
      return take_league(text);
  }
}

}  // namespace imprint::fuzz
