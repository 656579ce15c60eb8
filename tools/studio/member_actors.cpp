// Share::actors: what an actor and its learner do between frames.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "compute/model/files/file.h"
#include "tools/studio/member_parts.h"

namespace imprint::studio {
namespace {

constexpr auto kBatch = std::chrono::milliseconds(1);    // an actor sends no more often
constexpr auto kPublish = std::chrono::milliseconds(1);  // a learner sends weights no more often
constexpr int kIdleMs = 5;
constexpr double kFirstSteps = 256;  // before a replay memory's first minibatch is due

// Actors do not learn: an optimiser's moments stay with the learner.
bool actors_need(const StateArray& array) { return array.name.find("adam") == std::string::npos; }

}  // namespace

Hello Member::Parts::hello_of(const std::vector<StateArray>& own) {
  const Hash128 schema = schema_of(own);
  Hello hello{.schema_low = schema.low, .schema_high = schema.high, .arrays = own.size()};
  hello.numbers = state.size() / sizeof(float);
  hello.actor = static_cast<std::uint32_t>(std::max<std::int64_t>(settings.actor, 0));
  hello.process = static_cast<std::uint32_t>(::getpid());
  hello.evaluates = is_evaluator ? 1 : 0;
  // Actors of several starts have the same numbers.
  if (!settings.learner.empty()) hello.joined = static_cast<std::uint32_t>(::getppid());
  std::strncpy(hello.computer, group.computer().c_str(), sizeof hello.computer - 1);
  for (const StateArray& array : own)
    if (actors_need(array))
      weights.push_back(std::span(state).subspan(array.offset, array.count * sizeof(float)));
  return hello;
}

std::string Member::Parts::find_learner() const {
  if (!settings.learner.empty()) return settings.learner;
  std::ifstream file(folder.learner(static_cast<std::uint32_t>(settings.actor % settings.learners)));
  std::string address;
  std::getline(file, address);
  return address;
}

// ---- an actor ----

void Member::Parts::start_actor(const std::vector<StateArray>& own) {
  is_evaluator = evaluates(settings);
  if (!settings.curriculum.empty()) {
    Result<Curriculum> found = Curriculum::read(settings.curriculum);
    if (!found) group.fail(found.error().message, kRefused);
    curriculum = std::move(*found);
  }
  if (!folder.none())
    (void)folder.make_folders(use_of_folder());  // of other computers' learners there is none
  open_note();
  read_state();
  actor.emplace(hello_of(own), [this] { return find_learner(); });
  ActorEnd::News news = actor->first([this] { note(true); });
  begin_worlds();
  over = !take_news(news);
  sent_at = Clock::now();
}

// False: the run is over.
bool Member::Parts::take_news(ActorEnd::News& news) {
  if (!news.refused.empty()) group.fail(news.refused, kRefused);
  if (!news.failed.empty()) group.fail(text("found no learner: ", news.failed), kAlone);
  if (news.state) {
    std::span<const std::byte> from(*news.state);
    for (const std::span<std::byte> part : weights) {
      if (from.size() < part.size()) group.fail("the learner sent weights of another brain", kRefused);
      std::ranges::copy(from.first(part.size()), part.begin());
      from = from.subspan(part.size());
    }
    write_state();
    steps = news.head.steps;
    if (!settings.curriculum.empty()) {
      const std::pair<std::size_t, double> before{curriculum.lesson(), curriculum.reach()};
      curriculum.set_state({news.head.curriculum.begin(), news.head.curriculum.end()});
      if (before != std::pair{curriculum.lesson(), curriculum.reach()}) worlds_changed();
    }
  }
  if (news.over && alive) alive->set_over();
  return !news.over;
}

bool Member::Parts::play_on() {
  ++frames;
  if (alive) alive->set(frames, false);
  std::size_t size = 0;  // in each frame: the brain keeps no more than some frames' steps
  must(api->tools->brain_take_experience(brain, nullptr, &size));
  if (size > 0) {
    sent.resize(sent.size() + size);
    must(api->tools->brain_take_experience(brain, sent.data() + sent.size() - size, &size));
  }
  const std::uint64_t decisions = learned_decisions();
  // A fast game decides hundreds of times in a millisecond: it would be that far ahead. Where labels teach,
  // few decisions become samples, and such a game plays on.
  const bool ahead = shared_brain_replays() && !is_evaluator &&
                     static_cast<double>(decisions - told_decisions) >= actor->room();
  if (!ahead && Clock::now() - sent_at < kBatch) return true;
  ExperienceHead head{std::exchange(score_sum, 0), std::exchange(episodes, 0),
                      sent.empty() ? 0.0 : static_cast<double>(decisions - told_decisions)};
  if (!sent.empty()) told_decisions = decisions;
  ActorEnd::News news = actor->exchange(head, sent, [this] {
    if (alive) alive->set(++frames, true);
  });
  sent.clear();
  over = !take_news(news);
  if (over) actor.reset();  // the learner sees that this actor knows
  sent_at = Clock::now();
  return !over;
}

// ---- a learner ----

void Member::Parts::open_door(const std::vector<StateArray>& own) {
  const auto refuse = [this](const Error& error) { group.fail(text("--listen: ", error.message), kRefused); };
  Result<Door> door = Door::open(settings.listen);
  if (!door) refuse(door.error());
  std::string address = door->address();
  if (address.starts_with("0.0.0.0:")) address.replace(0, 7, "127.0.0.1");
  if (!folder.none()) {
    const std::string line = address + "\n";
    const Result<> told = write_file_atomic(folder.learner(group.rank()), std::as_bytes(std::span(line)));
    if (!told.ok()) refuse(told.error());
  }
  std::printf("studio: learner %u hears actors at %s\n", group.rank(), door->address().c_str());
  std::fflush(stdout);
  learner.emplace(std::move(*door), hello_of(own),
                  LearnerEnd::Calls{[this](std::uint32_t source, std::span<const std::byte> found,
                                           std::string& why) { return take_steps(source, found, why); },
                                    [this](const std::string& line) {
                                      std::fprintf(stderr, "studio: learner %u: %s\n", group.rank(),
                                                   line.c_str());
                                    }});
  send_weights();
}

LearnerEnd::Offer Member::Parts::take_steps(std::uint32_t source, std::span<const std::byte> found,
                                            std::string& why) {
  const imp_brain_stats now = stats();
  // A memory that grows faster than it is learned from teaches less per step.
  const double paid = static_cast<double>(now.minibatches) / settings.replay_ratio + kFirstSteps;
  if (shared_brain_replays() && static_cast<double>(now.decisions) > paid) return LearnerEnd::Offer::full;
  const imp_result result = api->tools->brain_give_experience(brain, source, found.data(), found.size());
  if (result == IMP_NOT_READY) return LearnerEnd::Offer::full;
  if (result == IMP_OK) return LearnerEnd::Offer::taken;
  why = api->last_error();
  return LearnerEnd::Offer::damaged;
}

// The game's worlds stand still: its agents ask for nothing, and the frame begins a learn step alone. Without
// a budget no part of it runs early: the drain of the exchange runs it whole, in less time than in two parts.
void Member::Parts::run_frame() {
  constexpr std::uint64_t kFirstFrame = std::uint64_t{1} << 40;  // after all of the game's own
  constexpr std::uint32_t kBudgetUs = 0;
  imp_frame_info info = imp_frame_info_init();
  info.frame = kFirstFrame + frames;
  info.time_s = 1e9 + static_cast<double>(frames++) / 60;
  must(api->frame_begin(context, &info));
  must(api->frame_submit(context, kBudgetUs));
  must(api->frame_end(context));
}

void Member::Parts::send_weights() {
  const Clock::time_point now = Clock::now();
  if (now - sent_at < kPublish) return;
  sent_at = now;
  read_state();
  sent.clear();
  for (const std::span<std::byte> part : weights) sent.insert(sent.end(), part.begin(), part.end());
  WeightsHead head{.exchanges = exchanges, .steps = steps};
  std::ranges::copy(curriculum.state(), head.curriculum.begin());
  learner->send(head, sent);
}

void Member::Parts::learn_on() {
  while (!over) {
    const bool heard = learner->turn();
    run_frame();
    if (stats().minibatches == minibatches) {
      if (!heard) learner->wait(kIdleMs);
      continue;
    }
    if (++learn_steps < settings.exchange_period) {
      drain();
      minibatches = stats().minibatches;
      continue;
    }
    learn_steps = 0;
    exchange();
  }
}

}  // namespace imprint::studio
