#include "tools/studio/league.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"

namespace imprint::studio {

std::size_t League::draw(double whether, double which) const {
  if (entries_.empty() || whether < kNewestShare) return entries_.size();
  const auto weight = [](const Entry& entry) { return std::pow(1 - entry.chance(), 2); };
  double sum = 0;
  for (const Entry& entry : entries_) sum += weight(entry);
  double left = which * sum;
  for (std::size_t i = 0; i + 1 < entries_.size(); ++i) {
    left -= weight(entries_[i]);
    if (left < 0) return i;
  }
  return entries_.size() - 1;
}

std::string League::keep(const std::string& brain) {
  std::string gone;
  if (entries_.size() == kMostEntries) {
    const auto easiest = std::ranges::max_element(entries_, {}, &Entry::chance);
    gone = easiest->brain;
    entries_.erase(easiest);
  }
  entries_.push_back({.brain = brain, .rating = rating_});
  return gone;
}

// Elo's step for many matches at once, each entry in turn.
void League::take(std::span<const float> scores, std::span<const float> matches) {
  constexpr double kStep = 16, kScale = 400, kMostChange = 100;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    const double count = static_cast<double>(matches[i]), score = static_cast<double>(scores[i]);
    entry.matches += count;
    entry.score += score;
    const double expected = count / (1 + std::pow(10.0, (entry.rating - rating_) / kScale));
    const double change = std::clamp(kStep * (score - expected), -kMostChange, kMostChange);
    rating_ += change;
    entry.rating -= change;
  }
}

std::string League::text() const {
  std::ostringstream words;
  words.precision(17);
  words << "league " << entries_.size() << " " << rating_ << "\n";
  for (const Entry& entry : entries_)
    words << entry.rating << " " << entry.matches << " " << entry.score << " " << entry.brain << "\n";
  return words.str();
}

Result<League> League::parse(const std::string& text, const std::string& file) {
  // Far beyond those of any run, and sums of them are finite.
  constexpr double kMostRating = 1e6, kMostMatches = 1e15;
  const auto refuse = [&](std::size_t line, const char* expected) {
    return make_error(ErrorCode::corrupt_file,
                      imprint::text(quote(file), ": line ", line, ": found other words, expected ", expected,
                                    ". Begin the run in another folder."));
  };
  const auto is_rating = [](double rating) { return std::abs(rating) <= kMostRating; };
  const auto is_count = [](double count) { return count >= 0 && count <= kMostMatches; };
  std::istringstream words(text);
  std::string title;
  std::size_t count = 0;
  League league;
  words >> title >> count >> league.rating_;
  if (!words || title != "league" || count > kMostEntries || !is_rating(league.rating_))
    return refuse(1, "'league', at most 64 entries and a rating");
  for (std::size_t i = 0; i < count; ++i) {
    Entry entry;
    words >> entry.rating >> entry.matches >> entry.score >> std::ws;
    std::getline(words, entry.brain);
    if (!words || !is_rating(entry.rating) || !is_count(entry.matches) || !is_count(entry.score))
      return refuse(i + 2, "a rating, a number of matches, a score and a file's name");
    // Entries are read and, once they are the easiest, deleted.
    if (!is_file_name(entry.brain)) return refuse(i + 2, "the name of a file in the folder 'league'");
    league.entries_.push_back(std::move(entry));
  }
  return league;
}

}  // namespace imprint::studio
