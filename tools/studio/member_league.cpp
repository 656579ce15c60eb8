// A member's league: opponents for its games, and their results of all ranks.

#include <algorithm>
#include <cmath>
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
  take_first_league(std::move(words));
}

// Collective: rank 0's, as text.
void Member::Parts::take_first_league(std::vector<std::byte> words) {
  std::uint64_t size = words.size();
  group.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  words.resize(size);
  group.broadcast(words);
  if (!words.empty()) {
    Result<League> found = League::parse({reinterpret_cast<const char*>(words.data()), words.size()},
                                         folder.league_of(checkpoint_number));
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

// The league of a checkpoint, with its brain as an entry where one is due. Takes place once the checkpoint is
// complete: a full disk leaves all ranks the league that they had.
std::pair<League, std::string> Member::Parts::next_league(std::uint64_t number) const {
  League next = league;
  std::string gone;
  if (settings.league_period > 0 && number % settings.league_period == 0)
    gone = next.keep(text(number, ".brain"));
  return {std::move(next), std::move(gone)};
}

// Rank 0's part of a checkpoint.
Result<> Member::Parts::write_league(const League& next, std::uint64_t number) const {
  if (settings.league_period == 0) return {};
  if (number % settings.league_period == 0) {
    const std::string entry = folder.league_brain(text(number, ".brain"));
    IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(folder.brain_of(number, 0)));
    IMPRINT_CHECK(write_file_atomic(entry, bytes));
  }
  const std::string written = next.text();
  IMPRINT_CHECK(write_file_atomic(folder.league_of(number), std::as_bytes(std::span(written))));
  std::string table = "brain,rating,matches,score\n";
  for (const League::Entry& entry : next.entries())
    table += text(entry.brain, ",", entry.rating, ",", entry.matches, ",", entry.score, "\n");
  table += text("newest,", next.rating(), ",,\n");
  return write_file_atomic(folder.path() + "/league.csv", std::as_bytes(std::span(table)));
}

void Member::Parts::take_league(League next, const std::string& gone) {
  if (settings.league_period == 0) return;
  league = std::move(next);
  clear_results();
  if (settings.evaluators > 0) {  // they take no part in the sums of results, so their ratings lag
    const std::string words = league.text();
    const auto bytes = std::as_bytes(std::span(words));
    take_first_league({bytes.begin(), bytes.end()});
  }
  std::error_code ignored;
  if (group.rank() == 0 && !gone.empty()) std::filesystem::remove(folder.league_brain(gone), ignored);
}

// Another draw for each match of each rank, the same in a resumed run.
Opponent Member::draw_opponent() {
  Parts& own = *parts_;
  const std::uint64_t number = own.matches_drawn++;
  own.draws_opponents = true;
  const PhiloxCounter drawn =
      philox({static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32), 0, 0x1EA6},
             {static_cast<std::uint32_t>(own.world_seed), static_cast<std::uint32_t>(own.world_seed >> 32)});
  const std::vector<League::Entry>& entries = own.league.entries();
  const std::size_t chosen = own.league.draw(uniform_of(drawn[0]), uniform_of(drawn[1]));
  return {chosen < entries.size() ? own.folder.league_brain(entries[chosen].brain) : "", chosen};
}

void Member::match_ended(const Opponent& opponent, double score) {
  Parts& own = *parts_;
  if (std::isnan(score)) return own.take_score(score);  // told, and left out
  const std::vector<League::Entry>& entries = own.league.entries();
  // The entry may have gone since.
  if (opponent.entry >= entries.size() ||
      own.folder.league_brain(entries[opponent.entry].brain) != opponent.brain)
    return;
  own.league_scores[opponent.entry] += static_cast<float>(std::clamp(score, 0.0, 1.0));
  own.league_matches[opponent.entry] += 1;
}

}  // namespace imprint::studio
