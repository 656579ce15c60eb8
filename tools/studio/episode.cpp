// Episodes that begin from a seed of their own, are kept as files, and are played again from them.

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "compute/base/philox.h"
#include "samples/picture/png.h"
#include "tools/studio/episode_log.h"
#include "tools/studio/member_parts.h"

namespace imprint::studio {

struct Episode::Parts {
  Member::Parts* member = nullptr;
  EpisodeLog log;  // as begun, or as read
  bool records = false, replays = false;
  std::size_t step = 0, pictures = 0;
};

Episode::Episode(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Episode::Episode() = default;
Episode::Episode(Episode&&) noexcept = default;
Episode& Episode::operator=(Episode&&) noexcept = default;
Episode::~Episode() = default;

std::uint64_t Episode::seed() const { return parts_->log.seed; }
const std::map<std::string, double>& Episode::parameters() const { return parts_->log.parameters; }
bool Episode::replays() const { return parts_->replays; }

void Episode::decided(std::span<const float> observation, std::span<std::uint32_t> branches,
                      std::span<float> continuous) {
  Parts& own = *parts_;
  if (own.records) {
    const Result<> added = own.log.add(observation, branches, continuous);
    if (!added.ok()) own.member->group.fail(added.error().message, kRefused);
  }
  if (!own.replays) return;
  const auto fail = [&](const std::string& found, const std::string& expected) {
    own.member->group.fail(text("replay: step ", own.step, ": found ", found, ", expected ", expected,
                                ". The game does not begin from Episode::seed() alone, or is another build."),
                           kRefused);
  };
  if (own.step >= own.log.steps()) fail("another step", text("the end after ", own.log.steps(), " steps"));
  if (observation.size() != own.log.observations || branches.size() != own.log.branches ||
      continuous.size() != own.log.numbers)
    fail("other sizes of observation or action", "those of the log");
  const std::span<const float> seen = own.log.observation_of(own.step);
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (std::memcmp(&seen[i], &observation[i], sizeof(float)) != 0)
      fail(text("observation ", i, " = ", observation[i]), text(seen[i]));
  std::ranges::copy(own.log.discrete_of(own.step), branches.begin());
  std::ranges::copy(own.log.continuous_of(own.step), continuous.begin());
  ++own.step;
}

void Episode::ended(double score) {
  Parts& own = *parts_;
  Member::Parts& member = *own.member;
  member.take_score(score);
  if (own.records) {
    own.log.score = score;
    const Result<> written = own.log.write(member.folder.episode(own.log.rank, own.log.number));
    // A full disk is no reason to end a run.
    if (!written.ok()) member.tell(written.error().message);
  }
  if (!own.replays) return;
  if (own.step != own.log.steps() || score != own.log.score)
    member.group.fail(text("replay: found the end after ", own.step, " steps with score ", score,
                           ", expected ", own.log.steps(), " steps and ", own.log.score),
                      kRefused);
  std::printf(
      "replayed %zu steps of episode %llu after checkpoint %llu of rank %u, score %g, as logged; %zu "
      "pictures\n",
      own.step, static_cast<unsigned long long>(own.log.number & UINT32_MAX),
      static_cast<unsigned long long>(own.log.number >> 32), own.log.rank, score, own.pictures);
  member.over = true;
}

bool Episode::wants_pictures() const { return parts_->replays && !parts_->member->settings.pictures.empty(); }

void Episode::picture(std::uint32_t width, std::uint32_t height, std::span<const std::uint8_t> rgba) {
  Parts& own = *parts_;
  if (!wants_pictures()) return;
  char name[32];
  std::snprintf(name, sizeof name, "/%06zu.png", own.pictures++);
  const std::string path = own.member->settings.pictures + name;
  std::error_code ignored;
  std::filesystem::create_directories(own.member->settings.pictures, ignored);
  if (rgba.size() != std::size_t{width} * height * 4 ||
      !picture::write_png(path, width, height, {rgba.begin(), rgba.end()}))
    own.member->group.fail(text("--pictures: cannot write '", path, "'"), kRefused);
}

// Another seed for each episode of each rank, the same in a resumed run.
Episode Member::begin_episode() {
  Parts& own = *parts_;
  auto made = std::make_unique<Episode::Parts>();
  made->member = &own;
  own.begins_episodes = true;
  if (!own.settings.replay.empty()) {
    Result<EpisodeLog> log = EpisodeLog::read(own.settings.replay);
    if (!log) own.group.fail(log.error().message, kRefused);
    made->log = std::move(*log);
    made->replays = true;
    return Episode(std::move(made));
  }
  const std::uint64_t number = own.episodes_drawn;
  const PhiloxCounter drawn =
      philox({static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32), 0, 0xE915},
             {static_cast<std::uint32_t>(own.world_seed), static_cast<std::uint32_t>(own.world_seed >> 32)});
  made->log.seed = std::uint64_t{drawn[0]} << 32 | drawn[1];
  made->log.parameters = draw_parameters();
  made->log.rank = own.group.rank();
  made->log.number = own.checkpoint_number << 32 | number;
  const std::uint64_t period = own.settings.record_period;
  made->records = period > 0 && !own.folder.none() && number % period == 0;
  return Episode(std::move(made));
}

}  // namespace imprint::studio
