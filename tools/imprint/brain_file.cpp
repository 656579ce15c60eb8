#include "tools/imprint/brain_file.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <type_traits>

#include "compute/base/json.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/file.h"

namespace imprint::tools {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostBytes = 4 << 20;  // a list of brains with every scale has far fewer

// What was expected where a value does not fit; empty when it was taken.
using Taker = std::function<std::string(const Json& value)>;

template <class T>
Taker number(T& into) {
  return [&into](const Json& value) -> std::string {
    if constexpr (std::is_floating_point_v<T>) {
      if (!value.is_number()) return "a number";
    } else if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<T>::max()) {
      return "a whole number of " + std::to_string(8 * sizeof(T)) + " bits";
    }
    into = value.get<T>();
    return {};
  };
}

Taker flag(bool& into) {
  return [&into](const Json& value) -> std::string {
    return value.is_boolean() ? (into = value.get<bool>(), "") : "true or false";
  };
}

template <class T>
Taker list(std::vector<T>& into) {
  return [&into](const Json& value) -> std::string {
    if (!value.is_array()) return "a list";
    into.clear();
    for (const Json& one : value) {
      T element{};
      if (std::string expected = number(element)(one); !expected.empty())
        return "a list of which each is " + expected;
      into.push_back(element);
    }
    return {};
  };
}

template <class Enum>
Taker word(Enum& into, Enum last, const char* (*name)(Enum)) {
  return [&into, last, name](const Json& value) -> std::string {
    std::string words;
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      const auto one = static_cast<Enum>(i);
      if (value.is_string() && value.get<std::string>() == name(one)) {
        into = one;
        return {};
      }
      words += (i ? ", " : "one of ") + std::string(name(one));
    }
    return words;
  };
}

std::map<std::string, Taker> takers(BrainFile& brain) {
  agent::BrainSpec& s = brain.spec;
  return {
      {"name",
       [&s](const Json& value) -> std::string {
         return value.is_string() ? (s.name = value.get<std::string>(), "") : "a text";
       }},
      {"observation_count", number(s.observation.count)},
      {"observation_scale", list(s.observation.scale)},
      {"goal_count", number(s.goal_count)},
      {"branch_sizes", list(s.action.branch_sizes)},
      {"continuous_count", number(s.action.continuous_count)},
      {"hidden_sizes", list(s.hidden_sizes)},
      {"activation", word(s.activation, agent::Activation::gelu, agent::activation_name)},
      {"brain_count", number(s.brain_count)},
      {"agents_per_brain", number(s.agents_per_brain)},
      {"seed", number(s.seed)},
      {"action_latency_frames", number(s.action_latency_frames)},
      {"decision_period_frames", number(s.decision_period_frames)},
      {"learner", word(s.learner, agent::kLastLearner, agent::learner_name)},
      {"learn_period_frames", number(s.learn_period_frames)},
      {"batch_size", number(s.batch_size)},
      {"replay_capacity", number(s.replay_capacity)},
      {"learning_rate", number(s.learning_rate)},
      {"max_gradient_norm", number(s.max_gradient_norm)},
      {"exploration", number(s.exploration)},
      {"margin", number(s.margin)},
      {"margin_weight", number(s.margin_weight)},
      {"credit_delay_s", number(s.credit_delay_s)},
      {"credit_width_s", number(s.credit_width_s)},
      {"snapshot_count", number(s.snapshot_count)},
      {"discount", number(s.discount)},
      {"target_period", number(s.target_period)},
      {"target_rate", number(s.target_rate)},
      {"double_estimate", flag(s.double_estimate)},
      {"epsilon", number(s.epsilon)},
      {"epsilon_decisions", number(s.epsilon_decisions)},
      {"trace_decay", number(s.trace_decay)},
      {"rollout_steps", number(s.rollout_steps)},
      {"epochs", number(s.epochs)},
      {"advantage_decay", number(s.advantage_decay)},
      {"clip_range", number(s.clip_range)},
      {"entropy_coefficient", number(s.entropy_coefficient)},
      {"observations",
       [&brain](const Json& value) -> std::string {
         std::vector<std::uint32_t> extents;
         if (std::string expected = list(extents)(value); !expected.empty()) return expected;
         constexpr std::uint64_t kMostElements =
             std::numeric_limits<std::int32_t>::max();  // as imp_api::tensor_create
         std::uint64_t elements = 1;
         bool fits = !extents.empty() && extents.size() <= 8;
         for (const std::uint32_t extent : extents) {
           fits = fits && extent > 0 && elements <= kMostElements / extent;
           elements *= extent;
         }
         if (!fits)
           return "a shape of 1 to 8 extents of 1 or more, and at most " + std::to_string(kMostElements) +
                  " elements";
         brain.observations.emplace();
         for (const std::uint32_t extent : extents) brain.observations->append(extent);
         return {};
       }},
      {"actions", flag(brain.actions)},
  };
}

Result<BrainFile> parse_brain(const std::string& file, const Json& json) {
  const auto refuse = [&](const std::string& what) {
    return make_error(ErrorCode::corrupt_file, "'" + file + "': " + what);
  };
  if (!json.is_object())
    return refuse("this is no JSON object with the fields of imp_brain_desc, nor a list of such");
  BrainFile brain;
  const std::map<std::string, Taker> fields = takers(brain);
  for (const auto& [key, value] : json.items()) {
    const auto field = fields.find(key);
    if (field == fields.end()) return refuse("imp_brain_desc has no field " + quote(key));
    if (const std::string expected = field->second(value); !expected.empty())
      return refuse(text(key, ": found ", clipped(value.dump()), ", expected ", expected));
  }
  brain.spec.decision_period_frames = std::max(1u, brain.spec.decision_period_frames);  // as the C ABI has it
  if (Status valid = agent::validate(brain.spec); !valid)
    return make_error(valid.error().code, "'" + file + "': " + valid.error().message);
  return brain;
}

}  // namespace

Result<std::vector<BrainFile>> load_brains(const std::string& file) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(file, kMostBytes));
  return parse_brains(file, bytes);
}

Result<std::vector<BrainFile>> parse_brains(const std::string& file, std::span<const std::byte> bytes) {
  const auto parsed = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!parsed) return make_error(parsed.error().code, text("'", file, "': ", parsed.error().message));
  const Json& json = *parsed;
  std::vector<BrainFile> brains;
  if (!json.is_array()) {
    IMPRINT_ASSIGN(BrainFile brain, parse_brain(file, json));
    brains.push_back(std::move(brain));
    return brains;
  }
  if (json.empty()) return make_error(ErrorCode::corrupt_file, "'" + file + "': the list has no brain");
  for (const Json& one : json) {
    IMPRINT_ASSIGN(BrainFile brain, parse_brain(file, one));
    brains.push_back(std::move(brain));
  }
  return brains;
}

}  // namespace imprint::tools
