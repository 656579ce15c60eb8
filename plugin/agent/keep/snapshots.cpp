#include "plugin/agent/keep/snapshots.h"

#include <algorithm>
#include <utility>

#include "compute/base/text.h"

namespace imprint::agent {

std::vector<Variable> describe_snapshot(std::span<const StateVariable> state, std::uint32_t index) {
  std::vector<Variable> copies;
  for (const StateVariable& entry : state)
    copies.push_back(Variable::zeros(text(entry.name, " of snapshot ", index), entry.variable.shape(),
                                     entry.variable.dtype()));
  return copies;
}

ProgramDescription describe_copy(const std::string& name, std::span<const Variable> from,
                                 std::span<const Variable> to) {
  ProgramDescription description;
  description.name = name;
  description.slot_count = 1;
  for (std::size_t i = 0; i < from.size(); ++i)
    description.updates.push_back(Update::assign(to[i], from[i].value()));
  return description;
}

Result<std::unique_ptr<Snapshots>> Snapshots::create(Runtime& runtime, const std::string& name,
                                                     std::span<const StateVariable> state,
                                                     std::uint32_t count, bool keeps_best) {
  if (keeps_best) ++count;
  auto snapshots = std::make_unique<Snapshots>();
  snapshots->keeps_best_ = keeps_best;
  snapshots->name_ = name;
  snapshots->state_.assign(state.begin(), state.end());
  snapshots->entries_.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    snapshots->entries_[i].variables = describe_snapshot(state, i);
    IMPRINT_CHECK(runtime.place_together(snapshots->entries_[i].variables));
  }
  return snapshots;
}

Result<std::vector<Snapshots::Programs>> Snapshots::compile(Runtime& runtime,
                                                            const std::function<void()>& advance) const {
  std::vector<Variable> live;
  for (const StateVariable& entry : state_) live.push_back(entry.variable);
  std::vector<Programs> programs;
  for (const Entry& entry : entries_) {
    Programs& made = programs.emplace_back();
    IMPRINT_ASSIGN(Program keep,
                   Program::compile(runtime, describe_copy(name_ + " keep", live, entry.variables)));
    made.keep = std::make_unique<Program>(std::move(keep));
    advance();
    IMPRINT_ASSIGN(Program restore,
                   Program::compile(runtime, describe_copy(name_ + " restore", entry.variables, live)));
    made.restore = std::make_unique<Program>(std::move(restore));
    advance();
  }
  return programs;
}

Result<Snapshots::Taken> Snapshots::take(const ReplayState& replay) {
  if (ring().empty())
    return make_error(ErrorCode::unsupported, text("brain_snapshot: snapshot_count of brain '", name_,
                                                   "': found 0, expected at least 1"));
  const std::size_t index = last_id_ % ring().size();
  Entry& entry = entries_[index];
  entry.id = ++last_id_;
  entry.replay = replay;
  return Taken{entry.id, index};
}

std::size_t Snapshots::take_best(const ReplayState& replay) {
  entries_.back().id = 1;
  entries_.back().replay = replay;
  return entries_.size() - 1;
}

Result<Snapshots::Found> Snapshots::find(std::uint64_t id) {
  for (std::size_t i = 0; i < ring().size(); ++i)
    if (id != 0 && entries_[i].id == id) return Found{&entries_[i].replay, i};
  std::string known;
  for (const Entry& entry : ring())
    if (entry.id != 0) known += text(known.empty() ? "" : ", ", entry.id);
  return make_error(ErrorCode::not_found, text("brain_restore: snapshot: found ", id,
                                               ", expected one of: ", known.empty() ? "none" : known));
}

Result<> Snapshots::run_once(RunOnce& runs) {
  if (std::exchange(ran_, true)) return {};
  for (const Programs& programs : programs_) {
    if (!runs.wants(*programs.keep) && !runs.wants(*programs.restore)) continue;
    IMPRINT_CHECK(runs.run(*programs.keep));
    IMPRINT_CHECK(runs.run(*programs.restore));
  }
  return {};
}

std::uint32_t Snapshots::count() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(ring(), [](const Entry& entry) { return entry.id != 0; }));
}

void Snapshots::each_program(const std::function<void(Program&)>& use) {
  for (const Programs& programs : programs_) {
    use(*programs.keep);
    use(*programs.restore);
  }
}

}  // namespace imprint::agent
