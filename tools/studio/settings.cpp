#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "compute/base/text.h"
#include "imprint/studio.h"
#include "tools/studio/group.h"

namespace imprint::studio {
namespace {

[[noreturn]] void refuse(const char* name, const char* found, const std::string& expected) {
  Group::all().fail(
      text(name, ": found '", found, "', expected ", expected, ". Start the game by imprint studio."),
      kRefused);
}

const char* given(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

template <class T>
void read(const char* name, T& value, T least = std::numeric_limits<T>::lowest()) {
  const char* words = given(name);
  if (!words) return;
  T found{};
  const char* end = words + std::strlen(words);
  const auto [at, problem] = std::from_chars(words, end, found);
  if (problem != std::errc() || at != end || !(found >= least))
    refuse(name, words, text("a number of ", least, " or more"));
  value = found;
}

void read(const char* name, std::string& value) {
  if (const char* words = given(name)) value = words;
}

}  // namespace

Settings Settings::from_environment() {
  Settings settings;
  read("IMPRINT_STUDIO_STEPS", settings.steps);
  read("IMPRINT_STUDIO_SECONDS", settings.seconds, 0.0);
  read("IMPRINT_STUDIO_FOLDER", settings.folder);
  read("IMPRINT_STUDIO_CHECKPOINT", settings.checkpoint_period);
  read("IMPRINT_STUDIO_EVERY", settings.exchange_period, 1u);
  read("IMPRINT_STUDIO_SEED", settings.seed);
  read("IMPRINT_STUDIO_REPORT", settings.report_period_s, 0.0);
  read("IMPRINT_STUDIO_EVALUATORS", settings.evaluators);
  read("IMPRINT_STUDIO_CURRICULUM", settings.curriculum);
  if (const char* share = given("IMPRINT_STUDIO_SHARE")) {
    const std::string kind = share;
    if (kind == "minibatches")
      settings.share = Share::minibatches;
    else if (kind == "actors")
      settings.share = Share::actors;
    else if (kind != "updates")
      refuse("IMPRINT_STUDIO_SHARE", share, "updates, minibatches or actors");
  }
  std::uint32_t compress = 0;
  read("IMPRINT_STUDIO_COMPRESS", compress);
  settings.compress = compress > 0;
  read("IMPRINT_STUDIO_ACTORS", settings.actors);
  read("IMPRINT_STUDIO_LEARNERS", settings.learners, 1u);
  read("IMPRINT_STUDIO_ACTOR", settings.actor, std::int64_t{0});
  read("IMPRINT_STUDIO_LEARNER", settings.learner);
  read("IMPRINT_STUDIO_REPLAY_RATIO", settings.replay_ratio, 0.001);
  read("IMPRINT_STUDIO_LEAGUE", settings.league_period);
  read("IMPRINT_STUDIO_RECORD", settings.record_period);
  read("IMPRINT_STUDIO_REPLAY", settings.replay);
  read("IMPRINT_STUDIO_PICTURES", settings.pictures);
  read("IMPRINT_STUDIO_LISTEN", settings.listen);
  return settings;
}

}  // namespace imprint::studio
