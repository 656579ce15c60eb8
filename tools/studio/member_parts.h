#pragma once
// The inside of a Member: member.cpp for games that learn, member_actors.cpp for actors and their learners.

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compute/base/hash.h"
#include "compute/base/text.h"
#include "imprint/imprint_tools.h"
#include "imprint/studio.h"
#include "tools/studio/actors.h"
#include "tools/studio/curriculum.h"
#include "tools/studio/group.h"
#include "tools/studio/league.h"
#include "tools/studio/report.h"
#include "tools/studio/run_folder.h"
#include "tools/studio/state_mean.h"

namespace imprint::studio {

using Clock = std::chrono::steady_clock;

inline double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

bool shared_brain_replays();  // whether its learner draws minibatches from a memory
// Of names and sizes: equal in brains of one desc.
Hash128 schema_of(const std::vector<StateArray>& arrays);

struct Member::Parts {
  Parts(imp_context own_context, imp_brain own_brain, const Settings& given, const imp_api* own_api)
      : settings(given), folder(given.folder), context(own_context), brain(own_brain), api(own_api) {}

  // On stderr, with rank and computer; the run goes on.
  void tell(const std::string& line) const {
    std::fprintf(stderr, "studio: rank %u on %s: %s\n", group.rank(), group.computer().c_str(), line.c_str());
  }

  // ---- calls of the plugin, which end the job when they fail ----
  void must(imp_result result) {
    if (result < 0) group.fail(api->last_error(), kRefused);
  }
  imp_brain_stats stats() {
    imp_brain_stats found = imp_brain_stats_init();
    must(api->tools->brain_get_stats(brain, &found));
    return found;
  }
  // Decisions that are learned from: not those of agents in inference mode, such as mirrors and opponents.
  std::uint64_t learned_decisions() {
    const imp_brain_stats now = stats();
    return now.decisions - now.inference_decisions;
  }
  // Another lesson: what games earned before says nothing about learning.
  void worlds_changed() { must(api->tools->brain_forget_returns(brain)); }
  void drain() {
    constexpr std::uint32_t kDrainMs = 600'000;
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

  double learning_us() {  // of the device, so far
    imp_context_stats found = imp_context_stats_init();
    must(api->tools->context_get_stats(context, &found));
    return found.learn_gpu_sum_us;
  }
  void print_learning_time();

  // For the report, the curriculum and its checkpoint. Not finite: told once, and left out.
  void take_score(double score);
  void open_note();
  RunFolder::Use use_of_folder() const {
    return {settings.league_period > 0, settings.record_period > 0, plays_apart()};
  }
  void note(bool waits) {
    if (alive) alive->set(exchanges, waits);
  }

  void start();
  bool frame();
  std::vector<StateArray> arrays();
  void check_alike(const std::vector<StateArray>& own);
  void begin_worlds();
  void exchange();
  Report::Figures learned_figures();
  void meet();
  Contribution own_contribution(const imp_brain_stats& learned, Clock::time_point arrived,
                                Clock::time_point met);
  std::vector<Contribution> gather_contributions(Contribution own);
  void print_devices();
  void read_curriculum();
  Result<> save_curriculum(std::uint64_t number);

  // ---- member_files.cpp ----
  bool load_checkpoint(const Checkpoint& from);
  Checkpoint checkpoint_before(std::uint64_t number);
  std::optional<Checkpoint> load_newest();
  void resume_or_share();
  std::string newest_text() const;
  Result<> save_to(const std::string& path);
  bool all_agree(const Result<>& done);
  bool states_are_equal();
  void make_checkpoint();
  void tell_of_unused();
  void finish();

  // ---- member_league.cpp ----
  void read_league();
  void take_first_league(std::vector<std::byte> words);
  void clear_results();
  void share_results();
  std::pair<League, std::string> next_league(std::uint64_t number) const;
  Result<> write_league(const League& next, std::uint64_t number) const;
  void take_league(League next, const std::string& gone);

  // ---- Share::actors (member_actors.cpp) ----
  bool plays_apart() const { return settings.share == Share::actors; }
  bool is_actor() const { return plays_apart() && settings.actor >= 0; }
  void start_actor(const std::vector<StateArray>& own);
  void open_door(const std::vector<StateArray>& own);
  bool play_on();   // a frame of an actor
  void learn_on();  // a learner, until the run is over
  void run_frame();
  void send_weights();
  bool take_news(ActorEnd::News& news);
  Hello hello_of(const std::vector<StateArray>& own);
  std::string find_learner() const;
  LearnerEnd::Offer take_steps(std::uint32_t source, std::span<const std::byte> sent, std::string& why);

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
  std::uint64_t first_steps = 0;      // of all games, of the starts before
  std::uint64_t first_decisions = 0;  // of this brain, as loaded
  std::string checkpoint_path;
  std::uint64_t world_seed = 0;
  bool worlds_restart = true, wants_end = false, over = false;
  bool told_score = false;
  double score_sum = 0, episodes = 0, reduced_s = 0, added_s = 0;
  Clock::time_point began = Clock::now(), played_from = began;
  std::shared_ptr<AliveNote> alive;
  bool is_evaluator = false;
  Clock::time_point looked_at{};  // of an evaluator, for the others
  std::uint64_t first_minibatches = 0;
  std::uint64_t curve_rows = 0;  // of the brain, in the report
  double first_learned_us = 0;
  Curriculum curriculum;
  std::uint64_t episodes_drawn = 0;  // since the worlds restarted
  // What the game ever asked for.
  bool draws_parameters = false, begins_episodes = false, draws_opponents = false;

  League league;
  std::vector<float> league_scores, league_matches;  // of this rank since the newest exchange
  std::uint64_t matches_drawn = 0;                   // since the worlds restarted

  std::optional<ActorEnd> actor;
  std::optional<LearnerEnd> learner;
  std::vector<std::span<std::byte>> weights;  // the parts of the state that actors need
  std::vector<std::byte> sent;                // as one piece
  std::uint64_t frames = 0, told_decisions = 0;
  Clock::time_point sent_at{};
};

}  // namespace imprint::studio
