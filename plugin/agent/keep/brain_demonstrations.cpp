// Demonstrations of a brain that runs, as files.

#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "plugin/agent/keep/brain_state.h"

namespace imprint::agent {
namespace {

// Errors of keep/demonstrations.h name no call.
template <class T>
Result<T> of_call(const char* call, Result<T> result) {
  if (result.ok()) return result;
  return make_error(result.error().code, text(call, ": ", result.error().message));
}

}  // namespace

Result<> BrainState::check_shows(const char* call, std::uint32_t brain) const {
  IMPRINT_CHECK(check_changes(call));
  const bool takes =
      learning_ && (learning_->learner().takes_demonstrations() || spec_.keeps_demonstrations());
  if (!takes)
    return make_error(ErrorCode::unsupported,
                      text(call, ": brain '", spec_.name, "': found learner ", learner_name(spec_.learner),
                           ", which takes no demonstrations. Give brain_create imp_demonstration_options, or "
                           "use the feedback or cloning learner."));
  if (brain == UINT32_MAX || brain < spec_.brain_count) return {};
  return make_error(
      ErrorCode::invalid_argument,
      text(call, ": brain_index: found ", brain, ", expected below ", spec_.brain_count, " or UINT32_MAX"));
}

Result<std::uint32_t> BrainState::load_demonstrations(const std::string& path, std::uint32_t brain) {
  constexpr const char* call = "brain_load_demonstrations";
  IMPRINT_CHECK(check_shows(call, brain));
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, of_call(call, read_file(path)));
  IMPRINT_ASSIGN(const Demonstrations shown, of_call(call, read_demonstrations(bytes)));
  IMPRINT_CHECK(of_call(call, show(shown, spec_, brain, learning_->training().replay())));
  learning_->experience().compares();
  const auto count = static_cast<std::uint32_t>(shown.count());
  counts_.demonstrations += std::uint64_t{count} * (brain == UINT32_MAX ? spec_.brain_count : 1);
  changed_ = true;
  publish();
  return count;
}

Result<Demonstrations> BrainState::kept_demonstrations(std::uint32_t brain) {
  if (spec_.keeps_demonstrations())
    return demonstrations_of(spec_, learning_->training().replay().demonstrations, brain);
  settle_eviction();
  StateReader reader(variables_);
  if (eviction_ && eviction_->replay()) reader.replay_left(eviction_->replay());
  IMPRINT_CHECK(reader.prepare(services_.context.runtime()));
  IMPRINT_CHECK(services_.context.check_running("brain_save_demonstrations"));
  for (const Commands& commands : reader.commands()) IMPRINT_CHECK(services_.context.run_now(commands));
  SavedBrain saved;
  saved.host = host_state();
  for (std::size_t i = 0; i < variables_.size(); ++i)
    saved.state.emplace_back(reader.bytes(i).begin(), reader.bytes(i).end());
  return demonstrations_in(spec_, variables_, saved, brain);
}

Result<> BrainState::save_demonstrations(const std::string& path, std::uint32_t brain) {
  constexpr const char* call = "brain_save_demonstrations";
  IMPRINT_CHECK(check_shows(call, brain));
  IMPRINT_ASSIGN(const Demonstrations shown, of_call(call, kept_demonstrations(brain)));
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, write_demonstrations(shown));
  return of_call(call, write_file_atomic(path, bytes));
}

Result<> BrainState::clear_demonstrations() {
  constexpr const char* call = "brain_clear_demonstrations";
  IMPRINT_CHECK(check_shows(call, UINT32_MAX));
  ReplayState& replay = learning_->training().replay();
  if (!spec_.keeps_demonstrations()) {
    if (learning_->learner().takes_feedback())
      return make_error(ErrorCode::unsupported,
                        text(call, ": brain '", spec_.name,
                             "': found the feedback learner, whose memory holds words too. Restore a "
                             "snapshot instead."));
    learning_->drop_step();
    replay.next.assign(spec_.brain_count, 0);
    replay.filled.assign(spec_.brain_count, 0);
    replay.waiting.clear();
  }
  replay.demonstrations.clear();
  changed_ = true;
  publish();
  return {};
}

}  // namespace imprint::agent
