#include "tools/imprint/studio_command.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <span>

#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "tools/studio/run_folder.h"

namespace imprint::tools {
namespace {

using Words = std::vector<std::string>;

bool is_option(const std::string& word) { return word.starts_with("--"); }

// Where GAME begins: options of the tool are single words with '='.
std::ptrdiff_t begin_of_game(const Words& words) {
  return std::ranges::find_if(words,
                              [](const std::string& word) {
                                return !is_option(word) || word.find('=') == std::string::npos;
                              }) -
         words.begin();
}

std::string joined(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line.empty() ? "nothing" : line;
}

std::string change(std::span<const std::string> before, std::span<const std::string> now) {
  return text(joined(now), " instead of ", joined(before));
}

}  // namespace

std::vector<std::string> words_of_run(const StudioOptions& options) {
  Words words = {text("--share=", options.share),           text("--every=", options.every),
                 text("--checkpoint=", options.checkpoint), text("--seed=", options.seed),
                 text("--evaluators=", options.evaluators), text("--league=", options.league),
                 text("--curriculum=", options.curriculum)};
  if (options.share == "actors") {
    words.push_back(text("--learners=", options.learners));
    words.push_back(text("--replay-ratio=", options.replay_ratio));
  }
  words.insert(words.end(), options.game.begin(), options.game.end());
  return words;
}

std::string changed_words(const Words& before, const Words& now) {
  const std::ptrdiff_t old_game = begin_of_game(before), new_game = begin_of_game(now);
  std::string changes;
  const auto add = [&](const std::string& one) { changes += (changes.empty() ? "" : "; ") + one; };
  for (const std::string& word : std::span(now).first(static_cast<std::size_t>(new_game))) {
    const std::string name = word.substr(0, word.find('=') + 1);
    const auto same = std::find_if(before.begin(), before.begin() + old_game,
                                   [&](const std::string& other) { return other.starts_with(name); });
    if (same != before.begin() + old_game && *same != word) add(change({&*same, 1}, {&word, 1}));
  }
  std::span<const std::string> olds = std::span(before).subspan(static_cast<std::size_t>(old_game)),
                               news = std::span(now).subspan(static_cast<std::size_t>(new_game));
  if (std::ranges::equal(olds, news)) return changes;
  std::size_t same = 0;
  while (same < std::min(olds.size(), news.size()) && olds[same] == news[same]) ++same;
  if (same > 0 && is_option(news[same - 1])) --same;  // the option that a changed value is of
  olds = olds.subspan(same);
  news = news.subspan(same);
  while (!olds.empty() && !news.empty() && olds.back() == news.back()) {
    olds = olds.first(olds.size() - 1);
    news = news.first(news.size() - 1);
  }
  add(change(olds, news));
  return changes;
}

Result<> note_command(const StudioOptions& options, bool goes_on) {
  const std::string path = studio::RunFolder(options.folder).command();
  const Words now = words_of_run(options);
  Words before;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) before.push_back(line);
  if (goes_on && !before.empty()) {
    const std::string changes = changed_words(before, now);
    if (!changes.empty()) std::printf("studio: the run goes on with other options: %s\n", changes.c_str());
  }
  std::string lines;
  for (const std::string& word : now) {
    std::string line = word;
    std::ranges::replace(line, '\n', ' ');
    lines += line + "\n";
  }
  return write_file_atomic(path, std::as_bytes(std::span(lines)));
}

}  // namespace imprint::tools
