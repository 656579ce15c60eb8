// Tables of numbers, and files of the studio.

#include <string>

#include "tests/fuzz/bombs.h"
#include "tools/studio/episode_log.h"

namespace imprint::fuzz {
namespace {

std::string repeated_text(const std::string& text, std::size_t bytes = kMostBombBytes) {
  std::string all;
  while (all.size() + text.size() <= bytes) all += text;
  return all;
}

void add_csv(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* name, std::function<std::string()> make) {
    bombs.push_back({name, BombKind::csv, [make = std::move(make)] { return bytes_of(make()); }});
  };
  add("names alone", [] { return repeated_text(","); });
  add("columns", [] {
    return repeated_text(",", kMostBombBytes / 3) + "y\n1" + repeated_text(",1", kMostBombBytes / 3 * 2);
  });
  add("rows", [] { return "y\n" + repeated_text("1\n"); });
  add("rows of nothing", [] { return "y,y\n" + repeated_text(",\n"); });
  add("rows of other lengths", [] { return "y\n" + repeated_text("1,\n"); });
  add("empty lines", [] { return repeated_text("\r\n"); });
  add("blanks and quotes", [] { return "y\n" + repeated_text("\" "); });
  add("one long number", [] { return "y\n" + repeated_text("9"); });
  add("long numbers", [] { return "y\n" + repeated_text("0." + std::string(500, '3') + "e-300\n"); });
}

void add_episodes(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* name, auto fill) {
    bombs.push_back({name, BombKind::episode, [fill] {
                       studio::EpisodeLog log;
                       fill(log);
                       return log.bytes();
                     }});
  };
  add("parameters", [](studio::EpisodeLog& log) {
    for (int i = 0; i < 55'000; ++i) log.parameters[std::to_string(i)] = 1;
  });
  add("one long parameter",
      [](studio::EpisodeLog& log) { log.parameters[std::string(kMostBombBytes - 1000, 'x')] = 1; });
  add("steps", [](studio::EpisodeLog& log) {
    log.branches = 1;
    log.discrete.resize(240'000);
  });
  add("a large step", [](studio::EpisodeLog& log) {
    log.observations = 240'000;
    log.observation.resize(240'000);
  });
  bombs.push_back({"parameters that are not there", BombKind::episode,
                   [] { return FileBytes(kMostBombBytes, std::byte{0xFF}); }});
}

void add_curricula(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* name, std::function<std::string()> make) {
    bombs.push_back({name, BombKind::curriculum, [make = std::move(make)] { return bytes_of(make()); }});
  };
  add("parameters",
      [] { return filled(R"({"parameters":{)", [](int i) { return quoted(i) + ":1"; }, "}}"); });
  add("a parameter of lists", [] { return R"({"parameters":{"a":)" + repeated_text("[[0]"); });
  add("lessons", [] { return filled(R"({"lessons":[)", [](int) { return R"({"score":1})"; }, "]}"); });
  add("lessons with parameters", [] {
    return filled(R"({"lessons":[)", [](int) { return R"({"score":1,"parameters":{"a":1}})"; }, "]}");
  });
  add("a grid", [] { return filled(R"({"parameters":{"a":{"grid":[)", [](int) { return "1"; }, "]}}}"); });
  add("grids", [] {
    return filled(R"({"parameters":{)", [](int i) { return quoted(i) + R"(:{"grid":[1]})"; }, "}}");
  });
}

void add_leagues(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* name, std::function<std::string()> make) {
    bombs.push_back({name, BombKind::league, [make = std::move(make)] { return bytes_of(make()); }});
  };
  add("entries",
      [] { return "league 64 1200\n" + repeated_text("1 2 1 " + std::string(15'000, 'x') + "\n"); });
  add("more entries than may be", [] { return "league 99999999 1\n" + repeated_text("1 2 1 x\n"); });
  add("one long number", [] { return "league " + repeated_text("9"); });
  add("blanks", [] { return "league 1 1200\n1 2 1" + repeated_text(" \n"); });
  add("one long line", [] { return "league 1 1200\n1 2 1 " + repeated_text("x") + "\n"; });
}

void add_bounds(std::vector<Bomb>& bombs) {
  const auto add = [&](const char* name, std::function<std::string()> make) {
    bombs.push_back({name, BombKind::bounds, [make = std::move(make)] { return bytes_of(make()); }});
  };
  add("one long number", [] { return "n=" + repeated_text("9"); });
  add("one long sum", [] { return "past=4\ny:3=past" + repeated_text("+past"); });
  add("a sum of numbers", [] { return "past=4\ny:3=past" + repeated_text("+16777216"); });
  add("blanks", [] { return "past=4\ny:3=" + repeated_text(" "); });
  add("one long name", [] { return repeated_text("x") + "=4"; });
  add("slashes", [] { return "height=64" + repeated_text("/"); });
}

}  // namespace

std::vector<Bomb> data_bombs() {
  std::vector<Bomb> bombs = {{kHarmless, BombKind::csv, [] { return bytes_of("y\n1\n"); }},
                             {kHarmless, BombKind::episode, [] { return studio::EpisodeLog().bytes(); }},
                             {kHarmless, BombKind::curriculum, [] { return bytes_of("{}"); }},
                             {kHarmless, BombKind::league, [] { return bytes_of("league 0 1200\n"); }},
                             {kHarmless, BombKind::bounds, [] { return bytes_of("n=1"); }}};
  add_csv(bombs);
  add_episodes(bombs);
  add_curricula(bombs);
  add_leagues(bombs);
  add_bounds(bombs);
  return bombs;
}

}  // namespace imprint::fuzz
