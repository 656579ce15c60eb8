#include "samples/pet/brain/keeper.h"

#include <stdexcept>

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
    try {
      if (!writing_) {
        brain_->save(waiting_.front().path, waiting_.front().which);
        writing_ = true;
      }
      if (!brain_->saved()) return;
      end({});
    } catch (const std::runtime_error& error) {
      end(error.what());
    }
  }
}

}  // namespace pet
