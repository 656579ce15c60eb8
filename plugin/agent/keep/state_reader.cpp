#include "plugin/agent/keep/state_reader.h"

#include <algorithm>
#include <utility>

namespace imprint::agent {

StateReader::StateReader(std::span<const StateVariable> state)
    : state_(state.begin(), state.end()),
      replay_index_(static_cast<std::size_t>(std::ranges::find(state_, kReplayName, &StateVariable::name) -
                                             state_.begin())) {}

Result<> StateReader::prepare(Runtime& runtime) {
  std::unique_ptr<StateReadback> kept, replay;
  if (!kept_) {
    std::vector<Variable> variables;
    for (std::size_t i = 0; i < state_.size(); ++i)
      if (i != replay_index_) variables.push_back(state_[i].variable);
    IMPRINT_ASSIGN(kept, runtime.read(variables));
  }
  if (!replay_ && !away_ && replay_index_ < state_.size()) {
    IMPRINT_ASSIGN(replay, runtime.read(std::span(&state_[replay_index_].variable, 1), true));
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
  if (index == replay_index_) return away_ ? std::span<const std::byte>(*away_) : replay_->bytes(0);
  return kept_->bytes(index < replay_index_ ? index : index - 1);
}

void StateReader::replay_left(std::shared_ptr<const std::vector<std::byte>> content) {
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
