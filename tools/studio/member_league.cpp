// A member's league: opponents for its games, and their results of all ranks.

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "compute/base/philox.h"
#include "compute/model/files/file.h"
#include "tools/studio/member_parts.h"

namespace imprint::studio {

void Member::Parts::read_league() {
  if (settings.league_period == 0) return;
  if (folder.none() || settings.checkpoint_period == 0 || plays_apart())
    group.fail(
        "--league: found no folder, no checkpoints or --share actors, expected the first two and another "
        "way to share: checkpoints become opponents.",
        kRefused);
  std::vector<std::byte> words;
  if (group.rank() == 0 && checkpoint_number > 0) {
    auto found = read_file(folder.league_of(checkpoint_number));
    if (found)
      words = std::move(*found);
    else if (found.error().code != ErrorCode::not_found)  // a run may begin a league later
      group.fail(found.error().message, kRefused);
  }
  std::uint64_t size = words.size();
  group.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  words.resize(size);
  group.broadcast(words);
  if (!words.empty()) {
    Result<League> found = League::parse({reinterpret_cast<const char*>(words.data()), words.size()});
    if (!found) group.fail(found.error().message, kRefused);
    league = std::move(*found);
  }
  clear_results();
}

void Member::Parts::clear_results() {
  league_scores.assign(league.entries().size(), 0.0f);
  league_matches.assign(league.entries().size(), 0.0f);
}

// Collective among the ranks that learn: the same sums in all.
void Member::Parts::share_results() {
  if (settings.league_period == 0 || is_evaluator || league_scores.empty()) return;
  group.add(league_scores);
  group.add(league_matches);
  league.take(league_scores, league_matches);
  clear_results();
}

// Collective. A checkpoint's brain becomes an entry, and the league becomes part of the checkpoint.
Result<> Member::Parts::keep_league(std::uint64_t number) {
  if (settings.league_period == 0) return {};
  if (number % settings.league_period == 0) {
    const std::string entry = folder.league_entry(number);
    if (group.rank() == 0) {
      std::error_code problem;
      std::filesystem::copy_file(folder.brain_of(number, 0), entry,
                                 std::filesystem::copy_options::overwrite_existing, problem);
      if (problem) return make_error(ErrorCode::io, text("cannot write '", entry, "': ", problem.message()));
    }
    const std::string gone = league.keep(entry);
    std::error_code ignored;
    if (group.rank() == 0 && !gone.empty()) std::filesystem::remove(gone, ignored);
    clear_results();
  }
  if (group.rank() > 0) return {};
  const std::string written = league.text();
  IMPRINT_CHECK(write_file_atomic(folder.league_of(number), std::as_bytes(std::span(written))));
  std::string table = "brain,rating,matches,score\n";
  for (const League::Entry& entry : league.entries())
    table += text(entry.brain.substr(entry.brain.rfind('/') + 1), ",", entry.rating, ",", entry.matches, ",",
                  entry.score, "\n");
  table += text("newest,", league.rating(), ",,\n");
  return write_file_atomic(folder.path() + "/league.csv", std::as_bytes(std::span(table)));
}

// Another draw for each match of each rank, the same in a resumed run.
Opponent Member::draw_opponent() {
  Parts& own = *parts_;
  const std::uint64_t number = own.matches_drawn++;
  const PhiloxCounter drawn =
      philox({static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32), 0, 0x1EA6},
             {static_cast<std::uint32_t>(own.world_seed), static_cast<std::uint32_t>(own.world_seed >> 32)});
  const std::vector<League::Entry>& entries = own.league.entries();
  const std::size_t chosen = own.league.draw(uniform_of(drawn[0]), uniform_of(drawn[1]));
  return {chosen < entries.size() ? entries[chosen].brain : "", chosen};
}

void Member::match_ended(const Opponent& opponent, double score) {
  Parts& own = *parts_;
  const std::vector<League::Entry>& entries = own.league.entries();
  // The entry may have gone since.
  if (opponent.entry >= entries.size() || entries[opponent.entry].brain != opponent.brain) return;
  own.league_scores[opponent.entry] += static_cast<float>(std::clamp(score, 0.0, 1.0));
  own.league_matches[opponent.entry] += 1;
}

}  // namespace imprint::studio
