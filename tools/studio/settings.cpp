#include <algorithm>
#include <cstdlib>
#include <string>

#include "imprint/studio.h"

namespace imprint::studio {
namespace {

const char* given(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

}  // namespace

Settings Settings::from_environment() {
  Settings settings;
  if (const char* value = given("IMPRINT_STUDIO_STEPS")) settings.steps = std::strtoull(value, nullptr, 10);
  if (const char* value = given("IMPRINT_STUDIO_SECONDS")) settings.seconds = std::strtod(value, nullptr);
  if (const char* value = given("IMPRINT_STUDIO_FOLDER")) settings.folder = value;
  if (const char* value = given("IMPRINT_STUDIO_CHECKPOINT"))
    settings.checkpoint_period = static_cast<std::uint32_t>(std::strtoul(value, nullptr, 10));
  if (const char* value = given("IMPRINT_STUDIO_EVERY"))
    settings.exchange_period = std::max(1u, static_cast<std::uint32_t>(std::strtoul(value, nullptr, 10)));
  if (const char* value = given("IMPRINT_STUDIO_SEED")) settings.seed = std::strtoull(value, nullptr, 10);
  if (const char* value = given("IMPRINT_STUDIO_REPORT"))
    settings.report_period_s = std::strtod(value, nullptr);
  if (const char* value = given("IMPRINT_STUDIO_EVALUATORS"))
    settings.evaluators = static_cast<std::uint32_t>(std::strtoul(value, nullptr, 10));
  if (const char* value = given("IMPRINT_STUDIO_CURRICULUM")) settings.curriculum = value;
  if (const char* value = given("IMPRINT_STUDIO_SHARE")) {
    const std::string share = value;
    settings.share = share == "minibatches" ? Share::minibatches
                     : share == "actors"    ? Share::actors
                                            : Share::updates;
  }
  if (const char* value = given("IMPRINT_STUDIO_ACTORS"))
    settings.actors = static_cast<std::uint32_t>(std::strtoul(value, nullptr, 10));
  if (const char* value = given("IMPRINT_STUDIO_LEARNERS"))
    settings.learners = std::max(1u, static_cast<std::uint32_t>(std::strtoul(value, nullptr, 10)));
  if (const char* value = given("IMPRINT_STUDIO_ACTOR")) settings.actor = std::strtoll(value, nullptr, 10);
  if (const char* value = given("IMPRINT_STUDIO_LEARNER")) settings.learner = value;
  if (const char* value = given("IMPRINT_STUDIO_REPLAY_RATIO"))
    settings.replay_ratio = std::strtod(value, nullptr);
  if (const char* value = given("IMPRINT_STUDIO_LEAGUE"))
    settings.league_period = static_cast<std::uint32_t>(std::strtoul(value, nullptr, 10));
  if (const char* value = given("IMPRINT_STUDIO_RECORD"))
    settings.record_period = std::strtoull(value, nullptr, 10);
  if (const char* value = given("IMPRINT_STUDIO_REPLAY")) settings.replay = value;
  if (const char* value = given("IMPRINT_STUDIO_PICTURES")) settings.pictures = value;
  if (const char* value = given("IMPRINT_STUDIO_LISTEN")) settings.listen = value;
  return settings;
}

}  // namespace imprint::studio
