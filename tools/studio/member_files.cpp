// A member's files in the folder of its run, and how it goes on from them.

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/studio/member_parts.h"

namespace imprint::studio {

// ---- the newest checkpoint ----

// Collective. False: a rank cannot load its brain.
bool Member::Parts::load_checkpoint(const Checkpoint& from) {
  checkpoint_path = folder.brain_of(from.number, from.ranks == group.ranks() ? group.rank() : 0);
  const imp_result result = api->brain_load(brain, checkpoint_path.c_str());
  enum : std::uint64_t { kLoaded, kDamaged, kOther };
  const std::uint64_t own = result >= 0 ? kLoaded : result == IMP_ERROR_SHAPE_MISMATCH ? kOther : kDamaged;
  const std::vector<std::uint64_t> all = group.gather(std::array<std::uint64_t, 1>{own});
  // The checkpoints before it are of that other brain too.
  if (const auto other = std::ranges::find(all, kOther); other != all.end()) {
    if (other - all.begin() == group.rank())
      group.fail(text(api->last_error(), " Or begin again in another --folder; this one stays as it is."),
                 kRefused);
    group.barrier();  // that rank ends the job
  }
  if (own == kDamaged) tell(api->last_error());
  return std::ranges::count(all, kLoaded) == std::ssize(all);
}

// Rank 0 calls it where a checkpoint cannot be loaded.
Checkpoint Member::Parts::checkpoint_before(std::uint64_t number) {
  const std::optional<Checkpoint> found = folder.before(number);
  if (!found)
    group.fail(
        text("checkpoint ", number,
             ": found a brain that cannot be loaded, see above, and no checkpoint before it. Begin again "
             "in another --folder."),
        kRefused);
  tell(text("takes checkpoint ", found->number, " instead of ", number));
  return *found;
}

// Collective. The newest checkpoint that all ranks can load; none in a new folder.
std::optional<Checkpoint> Member::Parts::load_newest() {
  std::array<std::uint64_t, 5> words{};
  const auto put = [&](const Checkpoint& from) {
    words = {1, from.number, from.exchanges, from.steps, from.ranks};
  };
  if (!folder.none() && group.rank() == 0) {
    if (Result<> made = folder.make_folders(use_of_folder()); !made.ok())
      group.fail(made.error().message, kRefused);
    const Result<std::optional<Checkpoint>> found = folder.newest();
    if (!found) group.fail(found.error().message, kRefused);
    if (*found) put(**found);
  }
  const std::uint64_t newest = words[1];
  for (;;) {
    group.broadcast(std::as_writable_bytes(std::span(words)));
    if (words[0] == 0) return std::nullopt;
    const Checkpoint from{words[1], words[2], words[3], static_cast<std::uint32_t>(words[4])};
    const bool loaded = load_checkpoint(from);
    if (loaded && group.rank() == 0 && newest != from.number)
      if (const Result<> named = folder.complete(from); !named.ok()) tell(named.error().message);
    if (loaded) return from;
    if (group.rank() == 0) put(checkpoint_before(from.number));
  }
}

// The state of the newest checkpoint, or rank 0's.
void Member::Parts::resume_or_share() {
  if (const std::optional<Checkpoint> from = load_newest()) {
    checkpoint_number = from->number;
    exchanges = from->exchanges;
    steps = from->steps;
    const bool exact = from->ranks == group.ranks();
    if (group.rank() == 0) {
      if (const Result<> cut = folder.cut_curve(*from); !cut.ok()) tell(cut.error().message);
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

// ---- the next one, and the outcome ----

std::string Member::Parts::newest_text() const {
  return checkpoint_number > 0 ? text("Checkpoint ", checkpoint_number, " stays the newest.")
                               : "There is no checkpoint yet.";
}

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
  if (!done.ok()) tell(done.error().message);
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
  Result<> saved = save_to(path);
  if (!saved.ok())
    saved = make_error(saved.error().code, text(saved.error().message, ". ", newest_text(),
                                                " Free some space on that disk; the run goes on."));
  if (!all_agree(saved)) return;
  auto [next_league_state, gone] = next_league(next.number);
  const auto write_rest = [&]() -> Result<> {
    IMPRINT_CHECK(save_curriculum(next.number));
    IMPRINT_CHECK(write_league(next_league_state, next.number));
    return folder.complete(next);
  };
  if (!all_agree(group.rank() == 0 ? write_rest() : Result<>())) return;
  take_league(std::move(next_league_state), gone);
  checkpoint_number = next.number;
  checkpoint_path = path;
  // Evaluators change no bit of the brain. Their episodes, perhaps longer than a checkpoint's period, go on.
  if (is_evaluator) return;
  must(api->brain_load(brain, path.c_str()));
  minibatches = stats().minibatches;
  begin_worlds();
}

// Options of the run that the game never took part in.
void Member::Parts::tell_of_unused() {
  if (plays_apart() || group.rank() > 0) return;
  if (curriculum.has_parameters() && !draws_parameters)
    tell(
        "--curriculum: the game took no parameters, so they changed nothing. Call Member::draw_parameters or "
        "begin_episode for each episode.");
  if (settings.record_period > 0 && !begins_episodes)
    tell("--record: the game began no episode, so none is recorded. Call Member::begin_episode for each.");
  if (settings.league_period > 0 && !draws_opponents)
    tell("--league: the game took no opponent. Call Member::draw_opponent for each match.");
}

void Member::Parts::finish() {
  if (report) report->end(exchanges, steps);
  if (group.rank() == 0) print_learning_time();
  report.reset();
  tell_of_unused();
  Result<> saved;
  if (!folder.none() && group.rank() == 0) saved = save_to(folder.final_brain());
  if (learner) learner->end();
  const bool whole = all_agree(saved);
  if (!whole)
    group.fail(text("the final brain is not on disk. ", newest_text(),
                    " Free some space on that disk: the same command ",
                    checkpoint_number > 0 ? "goes on from there." : "begins again."),
               kRefused);
  group.finish();
}

}  // namespace imprint::studio
