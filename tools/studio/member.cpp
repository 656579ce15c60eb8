#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compute/base/hash.h"
#include "compute/base/philox.h"
#include "compute/base/text.h"
#include "imprint/imprint_tools.h"
#include "imprint/studio.h"
#include "tools/studio/curriculum.h"
#include "tools/studio/group.h"
#include "tools/studio/report.h"
#include "tools/studio/run_folder.h"
#include "tools/studio/state_mean.h"

namespace imprint::studio {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kDrainMs = 600'000;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

namespace {

// Once; in all ranks.
void leave_evaluators_out(const Settings& settings) {
  static bool done = false;
  if (std::exchange(done, true)) return;
  Group& group = Group::all();
  if (settings.evaluators >= group.ranks() && settings.evaluators > 0)
    group.fail(text("evaluators: found ", settings.evaluators, " of ", group.ranks(),
                    " games, expected one game or more that learns"),
               kRefused);
  group.leave_out_of_sums(settings.evaluators);
}

}  // namespace

bool evaluates(const Settings& settings) {
  leave_evaluators_out(settings);
  return Group::all().rank() >= Group::all().adders();
}

void share(imp_brain_desc& desc, const Settings& settings) {
  Group& group = Group::all();
  const bool learns = !evaluates(settings);
  desc.seed += std::uint64_t{group.rank()} << 32;
  if (settings.share != Share::minibatches || !learns) return;
  static imp_shared_learning sharing = imp_shared_learning_init();
  sharing.index = group.rank();
  sharing.count = group.adders();
  sharing.add = [](void*, float* numbers, size_t count) { Group::all().add({numbers, count}); };
  sharing.header.next = desc.header.next;
  desc.header.next = &sharing;
}

struct Member::Parts {
  Parts(imp_context own_context, imp_brain own_brain, const Settings& given, const imp_api* own_api)
      : settings(given), folder(given.folder), context(own_context), brain(own_brain), api(own_api) {}

  // ---- calls of the plugin, which end the job when they fail ----
  void must(imp_result result) {
    if (result < 0) group.fail(api->last_error(), kRefused);
  }
  imp_brain_stats stats() {
    imp_brain_stats found = imp_brain_stats_init();
    must(api->tools->brain_get_stats(brain, &found));
    return found;
  }
  void drain() {
    const imp_result drained = api->context_drain(context, kDrainMs);
    if (drained == IMP_NOT_READY)
      group.fail(
          text("context_drain: found work after ", kDrainMs / 1000, " s, expected none. The device hangs."));
    must(drained);
  }
  void read_state() {
    std::size_t size = state.size();
    must(api->tools->brain_get_state(brain, state.data(), &size));
  }
  void write_state() { must(api->tools->brain_set_state(brain, state.data(), state.size())); }

  void note(bool waits) {
    if (alive) alive->set(exchanges, waits);
  }

  void start();
  std::vector<StateArray> arrays();
  void check_alike(const std::vector<StateArray>& own);
  void resume_or_share();
  void begin_worlds();
  void exchange();
  void meet();
  std::vector<Contribution> gather_contributions(Contribution own);
  Result<> save_to(const std::string& path);
  bool all_agree(const Result<>& done);
  bool states_are_equal();
  void make_checkpoint();
  void finish();
  void print_devices();
  void read_curriculum();
  Result<> save_curriculum(std::uint64_t number);

  Settings settings;
  RunFolder folder;
  imp_context context;
  imp_brain brain;
  const imp_api* api;
  Group& group = Group::all();

  std::optional<StateMean> mean;
  std::optional<Report> report;  // of rank 0
  std::vector<std::byte> state;
  std::uint64_t minibatches = 0;  // of the newest frame
  std::uint32_t learn_steps = 0;  // since the newest exchange
  std::uint64_t exchanges = 0, steps = 0, checkpoint_number = 0;
  std::string checkpoint_path;
  std::uint64_t world_seed = 0;
  bool worlds_restart = true, wants_end = false, over = false;
  double score_sum = 0, episodes = 0, reduced_s = 0, added_s = 0;
  Clock::time_point began = Clock::now(), played_from = began;
  std::optional<AliveNote> alive;
  bool is_evaluator = false;
  Curriculum curriculum;
  std::uint64_t episodes_drawn = 0;  // since the worlds restarted
};

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

void Member::Parts::check_alike(const std::vector<StateArray>& own) {
  Hasher hasher;
  for (const StateArray& array : own) hasher.text(array.name).number(array.count).number(array.is_integer);
  const Hash128 hash = hasher.digest();
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

// The state of the newest checkpoint, or rank 0's.
void Member::Parts::resume_or_share() {
  std::array<std::uint64_t, 5> words{};
  if (!folder.none() && group.rank() == 0) {
    if (Result<> made = folder.make_folders(); !made.ok()) group.fail(made.error().message, kRefused);
    const Result<std::optional<Checkpoint>> found = folder.newest();
    if (!found) group.fail(found.error().message, kRefused);
    if (*found) words = {1, (*found)->number, (*found)->exchanges, (*found)->steps, (*found)->ranks};
  }
  group.broadcast(std::as_writable_bytes(std::span(words)));
  if (words[0] == 1) {
    checkpoint_number = words[1];
    exchanges = words[2];
    steps = words[3];
    const bool exact = words[4] == group.ranks();
    checkpoint_path = folder.brain_of(checkpoint_number, exact ? group.rank() : 0);
    must(api->brain_load(brain, checkpoint_path.c_str()));
    if (group.rank() == 0) {
      (void)folder.cut_curve(exchanges);
      std::printf("resumes from checkpoint %llu: exchange %llu, %llu steps%s\n",
                  static_cast<unsigned long long>(checkpoint_number),
                  static_cast<unsigned long long>(exchanges), static_cast<unsigned long long>(steps),
                  exact ? "" : "; another number of games than before, so not with the same bits");
    }
    if (exact) return;
  }
  read_state();
  group.broadcast(state);
  write_state();
}

void Member::Parts::begin_worlds() {
  const std::uint64_t of = settings.seed;
  const PhiloxCounter drawn = philox({group.rank(), static_cast<std::uint32_t>(checkpoint_number),
                                      static_cast<std::uint32_t>(checkpoint_number >> 32), 0x5EED},
                                     {static_cast<std::uint32_t>(of), static_cast<std::uint32_t>(of >> 32)});
  world_seed = std::uint64_t{drawn[0]} << 32 | drawn[1];
  worlds_restart = true;
  episodes_drawn = 0;
}

void Member::Parts::start() {
  std::size_t size = 0;
  must(api->tools->brain_get_state(brain, nullptr, &size));
  state.resize(size);
  const std::vector<StateArray> own = arrays();
  check_alike(own);
  mean.emplace(own);
  is_evaluator = evaluates(settings);
  resume_or_share();
  read_curriculum();
  print_devices();
  minibatches = stats().minibatches;
  begin_worlds();
  if (group.rank() == 0) {
    report.emplace(group.adders(), settings.report_period_s, folder.none() ? "" : folder.curve());
    report->begin(steps);
  }
  if (!folder.none()) alive.emplace(folder, group.rank(), group.computer());
  note(false);
  if (is_evaluator) group.arrive();
  played_from = Clock::now();
}

// ---- the exchange ----

std::vector<Contribution> Member::Parts::gather_contributions(Contribution own) {
  const double mine[Contribution::kNumbers] = {own.plays_s,  own.waits_s,  own.reduces_s, own.score_sum,
                                               own.episodes, own.steps,    own.loss,      own.stopped,
                                               own.ends,     own.evaluates};
  const std::vector<double> all = group.gather(mine);
  std::vector<Contribution> shares;
  for (std::size_t i = 0; i < all.size(); i += Contribution::kNumbers)
    shares.push_back({all[i], all[i + 1], all[i + 2], all[i + 3], all[i + 4], all[i + 5], all[i + 6],
                      all[i + 7], all[i + 8], all[i + 9]});
  return shares;
}

void Member::Parts::exchange() {
  drain();
  const imp_brain_stats learned = stats();
  const Clock::time_point arrived = Clock::now();
  note(true);
  meet();
  const Clock::time_point met = Clock::now();
  Contribution own;
  // With shared minibatches a learn step waits and reduces within.
  const double added = settings.share == Share::minibatches ? group.seconds_in_add() - added_s : 0;
  own.plays_s = seconds_between(played_from, arrived) - added;
  own.waits_s = seconds_between(arrived, met);
  own.reduces_s = reduced_s + added;
  own.score_sum = std::exchange(score_sum, 0);
  own.episodes = std::exchange(episodes, 0);
  own.steps = is_evaluator ? 0 : static_cast<double>(learned.decisions);
  own.evaluates = is_evaluator;
  own.loss = learned.stopped_brains > 0 ? 0 : static_cast<double>(learned.last_loss);
  own.stopped = learned.stopped_brains;
  const bool late =
      settings.seconds > 0 && group.rank() == 0 && seconds_between(began, Clock::now()) >= settings.seconds;
  own.ends = wants_end || late;
  const std::vector<Contribution> shares = gather_contributions(own);
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
  if (settings.share == Share::updates && !is_evaluator) {
    read_state();
    mean->average(state, learned.stopped_brains == 0, takers, group);
    write_state();
  }
  if (settings.evaluators > 0) {
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
  curriculum.take(scores, scored);
  ++exchanges;
  steps = static_cast<std::uint64_t>(all_steps);
  minibatches = stats().minibatches;
  reduced_s = seconds_between(met, Clock::now());
  added_s = group.seconds_in_add();
  if (report) report->add(exchanges, steps, shares, curriculum.lesson_name());
  over = ends || (settings.steps > 0 && steps >= settings.steps);
  if (!over && settings.checkpoint_period > 0 && !folder.none() &&
      exchanges % settings.checkpoint_period == 0)
    make_checkpoint();
  if (!over && is_evaluator) group.arrive();
  played_from = Clock::now();
  note(false);
}

// Evaluators arrive after each exchange already, so that none waits for them here.
void Member::Parts::meet() {
  if (settings.evaluators == 0) return group.barrier();
  if (is_evaluator) return;  // frame() saw that all arrived
  group.arrive();
  while (!group.all_arrived()) {
  }
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
    std::printf("device %s: ranks %s\n", which.c_str(), list.c_str());
}

// ---- files ----

Result<> Member::Parts::save_to(const std::string& path) {
  const auto failed = [&](imp_result result) {
    return make_error(ErrorCode::io, text(api->result_name(result), ": ", api->last_error()));
  };
  if (const imp_result begun = api->brain_save(brain, path.c_str()); begun < 0) return failed(begun);
  drain();
  if (const imp_result saved = api->brain_save_status(brain); saved != IMP_OK) return failed(saved);
  return {};
}

// Collective. Tells each rank's failure.
bool Member::Parts::all_agree(const Result<>& done) {
  if (!done.ok())
    std::fprintf(stderr, "studio: rank %u on %s: %s\n", group.rank(), group.computer().c_str(),
                 done.error().message.c_str());
  const std::vector<std::uint64_t> all = group.gather(std::array<std::uint64_t, 1>{done.ok() ? 1u : 0u});
  return std::ranges::all_of(all, [](std::uint64_t one) { return one == 1; });
}

// Collective.
bool Member::Parts::states_are_equal() {
  read_state();
  const Hash128 hash = Hasher().bytes(state).digest();
  const std::vector<std::uint64_t> all = group.gather(std::array<std::uint64_t, 2>{hash.low, hash.high});
  for (std::size_t i = 2; i < all.size(); ++i)
    if (all[i] != all[i % 2]) return false;
  return true;
}

// A run goes on from the file that it just wrote, as a resumed one does: the bits are the same.
void Member::Parts::make_checkpoint() {
  if (!states_are_equal())
    group.fail(
        "found brains that differ after an exchange, expected equal ones. Call studio::share before "
        "brain_create in every game.",
        kRefused);
  const Checkpoint next{checkpoint_number + 1, exchanges, steps, group.ranks()};
  Result<> made;
  if (group.rank() == 0) made = folder.make_checkpoint_folder(next.number);
  if (!all_agree(made)) return;
  const std::string path = folder.brain_of(next.number, group.rank());
  if (!all_agree(save_to(path))) return;  // the checkpoint before stays the newest
  if (!all_agree(group.rank() == 0 ? save_curriculum(next.number) : Result<>())) return;
  if (!all_agree(group.rank() == 0 ? folder.complete(next) : Result<>())) return;
  checkpoint_number = next.number;
  checkpoint_path = path;
  must(api->brain_load(brain, path.c_str()));
  minibatches = stats().minibatches;
  begin_worlds();
}

void Member::Parts::finish() {
  if (report) report->end(exchanges, steps);
  report.reset();
  Result<> saved;
  if (!folder.none() && group.rank() == 0) saved = save_to(folder.final_brain());
  const bool whole = all_agree(saved);
  if (!whole)
    group.fail(
        "the final brain is not on disk. Free some space and start again: the run resumes "
        "from its newest checkpoint.",
        kRefused);
  group.finish();
}

// ---- the face ----

Member::Member(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Member::Member(Member&&) noexcept = default;
Member& Member::operator=(Member&&) noexcept = default;
Member::~Member() = default;

bool Member::frame() {
  Parts& own = *parts_;
  if (own.over) return false;
  if (own.is_evaluator) {
    if (!own.group.all_arrived()) return true;
    own.exchange();
    if (!own.over) return true;
    own.finish();
    return false;
  }
  if (own.stats().minibatches == own.minibatches) return true;
  if (++own.learn_steps < own.settings.exchange_period) {
    own.drain();  // the same number of steps between exchanges, however fast the device is
    own.minibatches = own.stats().minibatches;
    return true;
  }
  own.learn_steps = 0;
  own.exchange();
  if (!own.over) return true;
  own.finish();
  return false;
}

bool Member::restarts() { return std::exchange(parts_->worlds_restart, false); }
std::uint64_t Member::seed() const { return parts_->world_seed; }
const std::string& Member::checkpoint() const { return parts_->checkpoint_path; }
void Member::episode_ended(double score) {
  parts_->score_sum += score;
  parts_->episodes += 1;
}
std::map<std::string, double> Member::draw_parameters() {
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
  if (!api && imp_get_api(IMP_ABI_VERSION, &api) != IMP_OK)
    group.fail("imp_get_api: found another version of the library than the header's", kRefused);
  auto parts = std::make_unique<Member::Parts>(context, brain, settings, api);
  parts->start();
  return Member(std::move(parts));
}

}  // namespace imprint::studio
