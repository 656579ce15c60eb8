#pragma once
// Options of a trial by the names of their fields.

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

#include <imprint/imprint.hpp>

namespace imprint::trials {

// Takes what is named after the options' fields.
template <class Options>
void take(std::map<std::string, double>& from, const char* name, Options& into) {
  const auto found = from.find(name);
  if (found == from.end()) return;
  into = static_cast<Options>(found->second);
  from.erase(found);
}

// Options of signals and demonstrations beside the game's rewards.
inline void take_beside(std::uint32_t shown_steps, std::map<std::string, double> shown,
                        std::map<std::string, double> signals, game::BrainDesc& desc) {
  if (shown_steps > 0) {
    game::DemonstrationOptions& options = desc.demonstrations.emplace();
    take(shown, "capacity", options.capacity);
    take(shown, "batch_size", options.batch_size);
    take(shown, "pretraining", options.pretraining);
    take(shown, "half_life", options.half_life);
    take(shown, "strength", options.strength);
    take(shown, "margin", options.margin);
  }
  if (!signals.empty()) {
    game::SignalOptions& options = desc.reward_signals.emplace();
    take(signals, "reward_strength", options.reward_strength);
    take(signals, "curiosity", options.curiosity);
    take(signals, "curiosity_strength", options.curiosity_strength);
    take(signals, "curiosity_discount", options.curiosity_discount);
    take(signals, "imitation_strength", options.imitation_strength);
    take(signals, "imitation_discount", options.imitation_discount);
    take(signals, "hidden_size", options.hidden_size);
    take(signals, "learning_rate", options.learning_rate);
  }
  for (const auto& left : {shown, signals})
    if (!left.empty())
      throw std::runtime_error("options: found '" + left.begin()->first + "', expected others");
}

}  // namespace imprint::trials
