#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "compute/base/philox.h"
#include "tools/studio/episode_log.h"
#include "tools/studio/member_parts.h"

namespace imprint::studio {
namespace {

// Once; in all ranks.
void leave_evaluators_out(const Settings& settings) {
  static bool done = false;
  if (std::exchange(done, true) || !settings.replay.empty()) return;
  Group& group = Group::all();
  const bool apart = settings.share == Share::actors;
  const std::uint32_t games = apart ? settings.actors : group.ranks();
  if (settings.evaluators >= games && settings.evaluators > 0)
    group.fail(text("--evaluators: found ", settings.evaluators, " of ", games, apart ? " actors" : " games",
                    ", expected one or more that ", apart ? "sends steps." : "learns."),
               kRefused);
  if (!apart) group.leave_out_of_sums(settings.evaluators);
}

}  // namespace

bool evaluates(const Settings& settings) {
  leave_evaluators_out(settings);
  if (settings.share == Share::actors)
    return settings.actor + settings.evaluators >= std::int64_t{settings.actors};
  return Group::all().rank() >= Group::all().adders();
}

namespace {

bool replays = false;  // the brain that share() saw: DQN, SAC

// Counts and sums of few numbers stay exact.
void add_gradients_compressed(void*, float* numbers, size_t count) {
  constexpr std::size_t kFew = 2048;
  if (count < kFew) return Group::all().add({numbers, count});
  Group::all().add_compressed({numbers, count});
}

}  // namespace

bool shared_brain_replays() { return replays; }

void share(imp_brain_desc& desc, const Settings& settings) {
  Group& group = Group::all();
  replays = desc.learner == IMP_LEARNER_DQN || desc.learner == IMP_LEARNER_SAC;
  const bool learns = !evaluates(settings);
  desc.seed += std::uint64_t{group.rank()} << 32;
  static imp_shared_learning sharing = imp_shared_learning_init();
  if (settings.share == Share::actors) {
    sharing.experience = settings.actor >= 0 ? IMP_EXPERIENCE_SENT : IMP_EXPERIENCE_RECEIVED;
    sharing.header.next = desc.header.next;
    desc.header.next = &sharing;
    return;
  }
  if (settings.share != Share::minibatches || !learns) return;
  sharing.index = group.rank();
  sharing.count = group.adders();
  sharing.add = [](void*, float* numbers, size_t count) { Group::all().add({numbers, count}); };
  if (settings.compress) sharing.add = add_gradients_compressed;
  sharing.header.next = desc.header.next;
  desc.header.next = &sharing;
}

// ---- joining ----

std::vector<StateArray> Member::Parts::arrays() {
  std::vector<StateArray> found;
  for (std::uint32_t i = 0;; ++i) {
    imp_state_array array = imp_state_array_init();
    const imp_result result = api->tools->brain_get_state_array(brain, i, &array);
    if (result == IMP_ERROR_NOT_FOUND) return found;
    must(result);
    found.push_back({array.name, array.offset, array.count, array.is_integer != 0, array.merge});
  }
}

Hash128 schema_of(const std::vector<StateArray>& arrays) {
  Hasher hasher;
  for (const StateArray& array : arrays) hasher.text(array.name).number(array.count).number(array.is_integer);
  return hasher.digest();
}

void Member::Parts::check_alike(const std::vector<StateArray>& own) {
  const Hash128 hash = schema_of(own);
  const std::array<std::uint64_t, 4> mine = {hash.low, hash.high, own.size(), state.size() / sizeof(float)};
  const std::vector<std::uint64_t> all = group.gather(mine);
  bool alike = true;
  std::string differing;
  for (std::uint32_t other = 1; other < group.ranks(); ++other) {
    if (std::equal(mine.size() * other + all.begin(), mine.size() * (other + 1) + all.begin(), all.begin()))
      continue;
    alike = false;
    differing += text("rank ", other, ": found ", all[4 * other + 2], " arrays of ", all[4 * other + 3],
                      " numbers, expected rank 0's ", all[2], " of ", all[3], ". ");
  }
  if (alike) return;
  if (group.rank() == 0)
    group.fail(differing + "Give the brains of all games the same imp_brain_desc, except for the seed.",
               kRefused);
  group.barrier();  // rank 0 ends the job
}

void Member::Parts::begin_worlds() {
  const std::uint64_t of = settings.seed;
  const PhiloxCounter drawn = philox({group.rank(), static_cast<std::uint32_t>(checkpoint_number),
                                      static_cast<std::uint32_t>(checkpoint_number >> 32), 0x5EED},
                                     {static_cast<std::uint32_t>(of), static_cast<std::uint32_t>(of >> 32)});
  world_seed = std::uint64_t{drawn[0]} << 32 | drawn[1];
  worlds_restart = true;
  episodes_drawn = matches_drawn = 0;
}

void Member::Parts::open_note() {
  if (folder.none()) return;
  auto found = AliveNote::create(folder, group.rank(), group.computer());
  if (!found) group.fail(found.error().message, kRefused);
  alive = std::move(*found);
  note(false);
}

void Member::Parts::start() {
  std::size_t size = 0;
  must(api->tools->brain_get_state(brain, nullptr, &size));
  state.resize(size);
  if (!settings.replay.empty()) {
    const Result<EpisodeLog> log = EpisodeLog::read(settings.replay);
    if (!log) group.fail(log.error().message, kRefused);
    must(api->brain_set_learning(brain, 0));
    return begin_worlds();
  }
  const std::vector<StateArray> own = arrays();
  if (is_actor()) return start_actor(own);
  check_alike(own);
  mean.emplace(own);
  is_evaluator = evaluates(settings);
  resume_or_share();
  read_curriculum();
  read_league();
  print_devices();
  minibatches = first_minibatches = stats().minibatches;
  first_learned_us = learning_us();
  first_decisions = learned_decisions();
  first_steps = steps;
  begin_worlds();
  if (group.rank() == 0) {
    ReportOptions options{.learners = group.adders(),
                          .games = plays_apart() ? settings.actors : group.adders(),
                          .period_s = settings.report_period_s,
                          .wanted_steps = settings.steps};
    if (!folder.none()) options.curve_path = folder.curve();
    if (!folder.none()) options.events_path = folder.events();
    report.emplace(std::move(options));
    report->begin(steps);
  }
  open_note();
  if (is_evaluator) group.arrive();
  if (plays_apart()) open_door(own);
  played_from = Clock::now();
}

// ---- the exchange ----

std::vector<Contribution> Member::Parts::gather_contributions(Contribution own) {
  const double mine[Contribution::kNumbers] = {
      own.plays_s, own.waits_s, own.reduces_s, own.score_sum, own.episodes,      own.steps,
      own.loss,    own.stopped, own.ends,      own.evaluates, own.evaluated_sum, own.evaluations};
  const std::vector<double> all = group.gather(mine);
  std::vector<Contribution> shares;
  for (std::size_t i = 0; i < all.size(); i += Contribution::kNumbers)
    shares.push_back({all[i], all[i + 1], all[i + 2], all[i + 3], all[i + 4], all[i + 5], all[i + 6],
                      all[i + 7], all[i + 8], all[i + 9], all[i + 10], all[i + 11]});
  return shares;
}

Contribution Member::Parts::own_contribution(const imp_brain_stats& learned, Clock::time_point arrived,
                                             Clock::time_point met) {
  Contribution own;
  // With shared minibatches a learn step waits and reduces within.
  const double added = settings.share == Share::minibatches ? group.seconds_in_add() - added_s : 0;
  own.plays_s = seconds_between(played_from, arrived) - added;
  own.waits_s = seconds_between(arrived, met);
  own.reduces_s = reduced_s + added;
  own.score_sum = std::exchange(score_sum, 0);
  own.episodes = std::exchange(episodes, 0);
  if (learner) {
    const LearnerEnd::Scores scores = learner->take_scores();
    own.score_sum = scores.score_sum;
    own.episodes = scores.episodes;
    own.evaluated_sum = scores.evaluated_sum;
    own.evaluations = scores.evaluations;
  }
  own.steps = is_evaluator
                  ? 0
                  : static_cast<double>(learned.decisions - learned.inference_decisions - first_decisions);
  // Samples of labels are fewer than decisions, so the actors tell how many those were.
  if (learner) own.steps = learner->steps();
  own.evaluates = is_evaluator;
  own.loss = learned.stopped_brains > 0 ? 0 : static_cast<double>(learned.last_loss);
  own.stopped = learned.stopped_brains;
  const bool late =
      settings.seconds > 0 && group.rank() == 0 && seconds_between(began, Clock::now()) >= settings.seconds;
  own.ends = wants_end || late || (group.rank() == 0 && alive && alive->asked_to_end());
  return own;
}

void Member::Parts::exchange() {
  drain();
  const imp_brain_stats learned = stats();
  const Clock::time_point arrived = Clock::now();
  note(true);
  meet();
  const Clock::time_point met = Clock::now();
  const std::vector<Contribution> shares = gather_contributions(own_contribution(learned, arrived, met));
  std::uint32_t takers = 0;
  double all_steps = 0;
  bool ends = false;
  for (std::uint32_t other = 0; other < group.ranks(); ++other) {
    const Contribution& share = shares[other];
    all_steps += share.steps;
    ends = ends || share.ends > 0;
    if (share.evaluates > 0) continue;
    if (share.stopped == 0)
      ++takers;
    else if (group.rank() == 0)
      std::fprintf(
          stderr, "studio: rank %u: loss: found a number that is not finite; its share is left out\n", other);
  }
  if (takers == 0)
    group.fail(
        "loss: found numbers that are not finite in all games. Lower learning_rate, and see which "
        "observations or rewards the games give.",
        kRefused);
  const bool averages = settings.share == Share::updates || (plays_apart() && group.adders() > 1);
  if (averages && !is_evaluator) {
    read_state();
    mean->average(state, learned.stopped_brains == 0, takers, group);
    write_state();
  }
  if (settings.evaluators > 0 && !plays_apart()) {
    if (settings.share == Share::minibatches && !is_evaluator) read_state();
    group.broadcast(state);
    if (is_evaluator) write_state();
  }
  double scores = 0, scored = 0;
  for (const Contribution& share : shares)
    if (share.evaluates == 0) {
      scores += share.score_sum;
      scored += share.episodes;
    }
  if (curriculum.take(scores, scored)) worlds_changed();
  share_results();
  ++exchanges;
  // Brains count too, but what games of an earlier start decided is in no brain of this one's, or in many.
  steps = first_steps + static_cast<std::uint64_t>(all_steps);
  minibatches = stats().minibatches;
  reduced_s = seconds_between(met, Clock::now());
  added_s = group.seconds_in_add();
  if (report) report->add(exchanges, steps, shares, curriculum.lesson_name(), learned_figures());
  over = ends || (settings.steps > 0 && steps >= settings.steps);
  if (settings.checkpoint_period > 0 && !folder.none() &&
      (over || exchanges % settings.checkpoint_period == 0)) {
    if (report) report->flush_curve();
    make_checkpoint();
  }
  if (!over && is_evaluator) group.arrive();
  if (!over && learner) send_weights();
  played_from = Clock::now();
  note(false);
}

// The newest row of the brain's own curves, once.
Report::Figures Member::Parts::learned_figures() {
  imp_curves row = imp_curves_init();
  if (api->tools->brain_get_curves(brain, UINT64_MAX, &row) < 0 || row.rows == curve_rows) return {};
  curve_rows = row.rows;
  const auto of = [](float value) { return static_cast<double>(value); };
  return {{"learner/policy_loss", of(row.policy_loss)},
          {"learner/value_loss", of(row.value_loss)},
          {"learner/entropy", of(row.entropy)},
          {"learner/divergence", of(row.divergence)},
          {"learner/clipped_share", of(row.clipped_share)},
          {"learner/gradient_norm", of(row.gradient_norm)},
          {"learner/explained_variance", of(row.explained_variance)},
          {"learner/episode_return", of(row.mean_return)},
          {"learner/episode_length", of(row.mean_length)}};
}

// Evaluators arrive after each exchange already, so that none waits for them here.
void Member::Parts::meet() {
  if (settings.evaluators == 0 || plays_apart()) return group.barrier();
  if (is_evaluator) return;  // frame() saw that all arrived
  group.arrive();
  while (!group.all_arrived()) std::this_thread::yield();  // evaluators may share the core
}

// ---- lessons ----

// Rank 0 reads the file of a checkpoint; all read that of the settings.
void Member::Parts::read_curriculum() {
  if (settings.curriculum.empty()) return;
  Result<Curriculum> found = Curriculum::read(settings.curriculum);
  if (!found) group.fail(found.error().message, kRefused);
  curriculum = std::move(*found);
  std::vector<double> numbers(Curriculum::kStateNumbers, 0.0);
  if (group.rank() == 0 && checkpoint_number > 0) numbers = folder.read_lesson(checkpoint_number, numbers);
  group.broadcast(std::as_writable_bytes(std::span(numbers)));
  curriculum.set_state(numbers);
}

Result<> Member::Parts::save_curriculum(std::uint64_t number) {
  if (settings.curriculum.empty()) return {};
  return folder.write_lesson(number, curriculum.state());
}

// One line per device: its ranks.
void Member::Parts::print_devices() {
  std::array<std::uint64_t, 16> own{};
  const std::string name = text(device(), " of ", group.computer());
  std::memcpy(own.data(), name.data(), std::min(name.size(), sizeof own - 1));
  const std::vector<std::uint64_t> all = group.gather(own);
  if (group.rank() > 0 || settings.report_period_s <= 0) return;
  std::map<std::string, std::string> ranks_of;
  for (std::uint32_t r = 0; r < group.ranks(); ++r) {
    std::string& list = ranks_of[reinterpret_cast<const char*>(all.data() + r * own.size())];
    list += text(list.empty() ? "" : ", ", r);
  }
  for (const auto& [which, list] : ranks_of)
    std::printf("device %s: %s %s\n", which.c_str(), list.find(',') == std::string::npos ? "rank" : "ranks",
                list.c_str());
}

void Member::Parts::print_learning_time() {
  const std::uint64_t learned = stats().minibatches - first_minibatches;
  const double us = learning_us() - first_learned_us;
  if (us <= 0 || learned == 0 || settings.report_period_s <= 0) return;
  std::printf("learning of rank 0: %.1f us of the device per minibatch\n", us / static_cast<double>(learned));
}

// ---- the face ----

Member::Member(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Member::Member(Member&&) noexcept = default;
Member& Member::operator=(Member&&) noexcept = default;

namespace {

bool member_plays = false;  // from join() to the last frame

// Destructors of the stack do not run then. The plugin's newest error is gone already.
void tell_of_exit() {
  if (!std::exchange(member_plays, false)) return;
  Group& group = Group::all();
  std::fprintf(stderr, "studio: rank %u on %s leaves before the run is over: it called exit()\n",
               group.rank(), group.computer().c_str());
}

}  // namespace

// The game's own end, or an error on its way out: mpirun then ends the job without naming the rank.
Member::~Member() {
  if (!parts_) return;
  member_plays = false;
  if (parts_->over) return;
  const std::string error = parts_->api->last_error();
  std::fprintf(stderr, "studio: rank %u on %s leaves before the run is over. %s%s\n", parts_->group.rank(),
               parts_->group.computer().c_str(),
               error.empty() ? "" : "Imprint's newest error: ", error.c_str());
}

void Member::Parts::take_score(double score) {
  if (!std::isfinite(score)) {
    if (!std::exchange(told_score, true))
      tell(text("score: found ", score,
                ", expected a finite number. Such episodes and matches do not count."));
    return;
  }
  score_sum += score;
  episodes += 1;
}

bool Member::Parts::frame() {
  if (over) return false;
  if (alive) alive->add_frame();
  if (!settings.replay.empty()) {
    constexpr std::uint64_t kMostFrames = 100'000;
    if (!begins_episodes && ++frames > kMostFrames)
      group.fail(text("replay: found no episode in ", kMostFrames,
                      " frames. Call Member::begin_episode where an episode begins."),
                 kRefused);
    return true;
  }
  if (is_actor()) return play_on();
  if (learner) {
    learn_on();
    finish();
    return false;
  }
  if (is_evaluator) {
    // A look gives the core away where games share cores: once per frame, it would leave few frames.
    constexpr auto kLook = std::chrono::milliseconds(2);
    if (Clock::now() - looked_at < kLook) return true;
    looked_at = Clock::now();
    if (!group.all_arrived()) return true;
    exchange();
    if (!over) return true;
    finish();
    return false;
  }
  if (stats().minibatches == minibatches) return true;
  if (++learn_steps < settings.exchange_period) {
    drain();  // the same number of steps between exchanges, however fast the device is
    minibatches = stats().minibatches;
    return true;
  }
  learn_steps = 0;
  exchange();
  if (!over) return true;
  finish();
  return false;
}

bool Member::frame() { return member_plays = parts_->frame(); }
bool Member::restarts() { return std::exchange(parts_->worlds_restart, false); }
std::uint64_t Member::seed() const { return parts_->world_seed; }
const std::string& Member::checkpoint() const { return parts_->checkpoint_path; }
void Member::episode_ended(double score) { parts_->take_score(score); }
std::map<std::string, double> Member::draw_parameters() {
  parts_->draws_parameters = true;
  return parts_->curriculum.draw(parts_->world_seed, parts_->episodes_drawn++);
}
const std::string& Member::lesson() const { return parts_->curriculum.lesson_name(); }
void Member::end() { parts_->wants_end = true; }
std::uint64_t Member::steps() const { return parts_->steps; }

Member join(imp_context context, imp_brain brain, const Settings& settings, const imp_api* api) {
  static bool joined = false;
  Group& group = Group::all();
  if (joined)
    group.fail(
        "join: found a second brain, expected one per process. Make a kennel of them: "
        "imp_brain_desc::brain_count.",
        kRefused);
  joined = true;
  std::atexit(tell_of_exit);
  member_plays = true;
  if (!api && imp_get_api(IMP_ABI_VERSION, &api) != IMP_OK)
    group.fail("imp_get_api: found another version of the library than the header's", kRefused);
  auto parts = std::make_unique<Member::Parts>(context, brain, settings, api);
  parts->start();
  return Member(std::move(parts));
}

}  // namespace imprint::studio
