#include "plugin/agent/keep/state_reader.h"

#include <utility>

namespace imprint::agent {

StateReader::StateReader(std::span<const StateVariable> state) : state_(state.begin(), state.end()) {
  std::size_t counts[2] = {};
  for (const StateVariable& entry : state_) places_.push_back({is_replay(entry), counts[is_replay(entry)]++});
}

Result<> StateReader::prepare(Runtime& runtime) {
  std::vector<Variable> variables, remembered;
  for (const StateVariable& entry : state_)
    (is_replay(entry) ? remembered : variables).push_back(entry.variable);
  std::unique_ptr<StateReadback> kept, replay;
  if (!kept_) {
    IMPRINT_ASSIGN(kept, runtime.read(variables));
  }
  if (!replay_ && !away_ && !remembered.empty()) {
    IMPRINT_ASSIGN(replay, runtime.read(remembered, true));
  }
  if (kept) kept_ = std::move(kept);
  if (replay) replay_ = std::move(replay);
  list_commands();
  return {};
}

void StateReader::list_commands() {
  commands_.clear();
  for (const StateReadback* part : {kept_.get(), replay_.get()})
    if (part) commands_.push_back(part->commands());
}

std::span<const std::byte> StateReader::bytes(std::size_t index) const {
  const Place& place = places_[index];
  if (!place.replay) return kept_->bytes(place.index);
  return away_ ? std::span<const std::byte>((*away_)[place.index]) : replay_->bytes(place.index);
}

void StateReader::replay_left(std::shared_ptr<const Contents> content) {
  away_ = std::move(content);
  replay_.reset();
  list_commands();
}

void StateReader::replay_came_back(std::unique_ptr<StateReadback> readback) {
  away_.reset();
  replay_ = std::move(readback);
  list_commands();
}

}  // namespace imprint::agent
