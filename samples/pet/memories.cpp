#include "samples/pet/memories.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace pet {
namespace {

constexpr std::uint64_t kSwitchFrames = 12;  // between two changes of the ghost

}  // namespace

Memories::Memories(PetBrain& brain, PetBrain* ghost, Keeper& keeper, const std::string& folder)
    : brain_(&brain), ghost_(folder.empty() ? nullptr : ghost), keeper_(&keeper), folder_(folder) {}

void Memories::begin() {
  if (ghost_) untaught_ = ghost_->snapshot();
}

void Memories::keep(double now_s, std::optional<float> success, OverlayState& overlay) {
  Memory memory{brain_->snapshot(), std::nullopt, {}};
  if (ghost_) {
    memory.file = (std::filesystem::path(folder_) / (std::to_string(made_++) + ".imprint")).string();
    memory.wish = keeper_->save(memory.file, PetBrain::Which::in_use);
  }
  memories_.push_back(std::move(memory));
  overlay.snapshots.push_back({static_cast<float>(now_s), success.value_or(0.0f), success.has_value()});
  if (memories_.size() > brain_->snapshots_kept()) forget_oldest(overlay);
}

void Memories::forget_oldest(OverlayState& overlay) {
  if (overlay.then == 0u) {
    wanted_ = std::optional<std::size_t>();
  } else if (overlay.then) {
    --*overlay.then;
  }
  if (wanted_ && *wanted_ && **wanted_ > 0) --**wanted_;
  std::error_code ignored;
  if (!memories_.front().file.empty()) std::filesystem::remove(memories_.front().file, ignored);
  memories_.erase(memories_.begin());
  overlay.snapshots.erase(overlay.snapshots.begin());
}

std::string Memories::restore(std::uint64_t number, const OverlayState& overlay) {
  if (memories_.empty()) return "No memory yet: F6 keeps one.";
  const std::size_t index =
      number == 0 ? memories_.size() - 1 : std::min<std::size_t>(number - 1, memories_.size() - 1);
  brain_->restore(memories_[index].snapshot);
  return "Back to how it was at " + std::to_string(static_cast<int>(overlay.snapshots[index].seconds)) +
         " s.";
}

std::string Memories::step(std::uint64_t frame, OverlayState& overlay) {
  if (!wanted_ || !ghost_ || frame < rests_until_) return {};
  std::string word;
  const std::optional<std::size_t> wanted = *wanted_;
  if (wanted && *wanted < memories_.size()) {
    const Memory& memory = memories_[*wanted];
    if (!keeper_->done(*memory.wish)) return {};
    const std::string& problem = keeper_->problem(*memory.wish);
    const Result<> loaded = problem.empty() ? ghost_->load(memory.file) : Result<>(Error{problem});
    if (loaded)
      overlay.then = wanted;
    else
      word = "That memory cannot be shown: " + loaded.error().message;
  } else if (overlay.then) {
    ghost_->restore(untaught_);
    overlay.then.reset();
  }
  wanted_.reset();
  rests_until_ = frame + kSwitchFrames;
  return word;
}

}  // namespace pet
