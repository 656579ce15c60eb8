#include "samples/pet/brain/keeper.h"

namespace pet {

std::size_t Keeper::save(const std::string& path, PetBrain::Which which) {
  waiting_.push_back({outcomes_.size(), path, which});
  outcomes_.emplace_back();
  const std::size_t wish = waiting_.back().number;
  step();
  return wish;
}

void Keeper::end(const std::string& problem) {
  outcomes_[waiting_.front().number] = {true, problem};
  waiting_.pop_front();
  writing_ = false;
}

void Keeper::step() {
  while (!waiting_.empty()) {
    if (!writing_) {
      if (const Result<> begun = brain_->save(waiting_.front().path, waiting_.front().which); !begun) {
        end(begun.error().message);
        continue;
      }
      writing_ = true;
    }
    const Result<bool> saved = brain_->saved();
    if (saved && !*saved) return;
    end(saved ? std::string() : saved.error().message);
  }
}

}  // namespace pet
