#include "tools/imprint/brain_file.h"

#include <functional>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include "compute/base/json.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "plugin/agent/spec/option_fields.h"
#include "plugin/agent/validate.h"
#include "plugin/include/imprint/imprint.h"

namespace imprint::tools {
namespace {

constexpr std::uint64_t kMostBytes = 4 << 20;  // a list of brains with every scale has far fewer
constexpr std::size_t kMostBrains = 4096;      // in one list

// The expected value where one does not fit; empty when it was taken.
using Taker = std::function<std::string(const nlohmann::json& value)>;

template <class T>
std::string take_number(const nlohmann::json& value, T& into) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!value.is_number()) return "a number";
  } else if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<T>::max()) {
    return "a whole number of " + std::to_string(8 * sizeof(T)) + " bits";
  }
  into = value.get<T>();
  return {};
}

template <class T>
Taker number(T& into) {
  return [&into](const nlohmann::json& value) { return take_number(value, into); };
}

// A field of the C interface: 0 or 1 there.
Taker flag(bool& into) {
  return [&into](const nlohmann::json& value) -> std::string {
    const bool is_number = value.is_number_unsigned() && value.get<std::uint64_t>() <= 1;
    if (!value.is_boolean() && !is_number) return "true or false";
    into = is_number ? value.get<std::uint64_t>() == 1 : value.get<bool>();
    return {};
  };
}

template <class T>
Taker list(std::vector<T>& into) {
  return [&into](const nlohmann::json& value) -> std::string {
    if (!value.is_array()) return "a list";
    into.clear();
    into.reserve(value.size());
    for (const nlohmann::json& one : value) {
      T element{};
      if (const std::string expected = take_number(one, element); !expected.empty())
        return "a list of which each is " + expected;
      into.push_back(element);
    }
    return {};
  };
}

template <class Enum>
Taker word(Enum& into, Enum last, const char* (*name)(Enum)) {
  return [&into, last, name](const nlohmann::json& value) -> std::string {
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

using Takers = std::map<std::string, Taker>;

// A list of objects with the fields of imp_stream.
Taker streams(std::vector<agent::StreamSpec>& into) {
  return [&into](const nlohmann::json& value) -> std::string {
    if (!value.is_array() || value.size() > agent::kMostStreams)
      return text("a list of at most ", agent::kMostStreams, " streams");
    into.clear();
    for (const nlohmann::json& one : value) {
      if (!one.is_object()) return "a list of which each is an object with the fields of imp_stream";
      agent::StreamSpec& stream = into.emplace_back();
      const Takers fields = {{"kind", word(stream.kind, agent::StreamKind::ids, agent::stream_name)},
                             {"count", number(stream.count)},
                             {"channels", number(stream.channels)},
                             {"height", number(stream.height)},
                             {"width", number(stream.width)},
                             {"features", number(stream.features)},
                             {"vocabulary", number(stream.vocabulary)},
                             {"size", number(stream.size)}};
      for (const auto& [key, given] : one.items()) {
        const auto field = fields.find(key);
        if (field == fields.end()) return "streams with the fields of imp_stream; it has no " + quote(key);
        if (const std::string expected = field->second(given); !expected.empty())
          return "streams whose " + key + " is " + expected;
      }
    }
    return {};
  };
}

// An object with some fields.
Taker object(Takers fields) {
  return [fields = std::move(fields)](const nlohmann::json& value) -> std::string {
    if (!value.is_object()) return "an object";
    for (const auto& [key, given] : value.items()) {
      const auto field = fields.find(key);
      if (field == fields.end()) return "an object without the field " + quote(key);
      if (const std::string expected = field->second(given); !expected.empty())
        return "an object whose " + key + " is " + expected;
    }
    return {};
  };
}

template <class T>
Taker option(T& into) {
  if constexpr (std::is_same_v<T, bool>)
    return flag(into);
  else if constexpr (std::is_same_v<T, agent::Curiosity>)
    return word(into, agent::Curiosity::surprise, agent::curiosity_name);
  else
    return number(into);
}

template <class Options>
void add_options(const Options& defaults, agent::BrainSpec& spec, Takers& takers) {
  agent::each_option(defaults, spec, [&takers](const char* name, auto by_default, auto& field) {
    agent::take_option(name, by_default, field);
    takers[name] = option(field);
  });
}

// A struct beside the learner's options: an object without a field has the struct's default for it.
template <class Options, class Each>
Taker beside(const Options& defaults, agent::BrainSpec& spec, Each each) {
  Takers takers;
  each(defaults, spec, [&takers](const char* name, auto, auto& field) { takers[name] = option(field); });
  return [=, &spec, fields = object(std::move(takers))](const nlohmann::json& value) {
    each(defaults, spec, agent::take_option);
    return fields(value);
  };
}

// The options of a learner; sets their defaults.
Takers options_of(agent::LearnerKind learner, agent::BrainSpec& spec) {
  Takers takers;
  switch (learner) {
    case agent::LearnerKind::none:
      spec.exploration = 0;
      break;
#define IMPRINT_OPTIONS(name)                               \
  case agent::LearnerKind::name:                            \
    add_options(imp_##name##_options_init(), spec, takers); \
    break;
      IMPRINT_LEARNERS(IMPRINT_OPTIONS)
#undef IMPRINT_OPTIONS
  }
  return takers;
}

// The fields of imp_brain_desc, of imp_network_options, and of what stands beside a learner's rewards.
Takers fields_of(BrainFile& brain) {
  agent::BrainSpec& s = brain.spec;
  return {
      {"name",
       [&s](const nlohmann::json& value) -> std::string {
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
      {"streams", streams(s.observation.streams)},
      {"stack", number(s.observation.stack)},
      {"pictures_as_bytes", flag(s.pictures_as_bytes)},
      {"cell", word(s.cell, agent::Cell::lstm, agent::cell_name)},
      {"cell_size", number(s.cell_size)},
      {"sequence_steps", number(s.sequence_steps)},
      {"seed", number(s.seed)},
      {"action_latency_frames", number(s.action_latency_frames)},
      {"decision_period_frames", number(s.decision_period_frames)},
      {"learner", word(s.learner, agent::kLastLearner, agent::learner_name)},
      {"snapshot_count", number(s.snapshot_count)},
      {"fall_back", flag(s.fall_back)},
      {"demonstrations", beside(imp_demonstration_options_init(), s, agent::each_demonstration_option)},
      {"groups", beside(imp_group_options_init(), s, agent::each_group_option)},
      {"self_play", beside(imp_self_play_options_init(), s, agent::each_self_play_option)},
      {"signals", beside(imp_signal_options_init(), s, agent::each_signal_option)},
      {"observations",
       [&brain](const nlohmann::json& value) -> std::string {
         std::vector<std::uint32_t> extents;
         if (std::string expected = list(extents)(value); !expected.empty()) return expected;
         constexpr std::uint64_t kMostElements =
             std::numeric_limits<std::int32_t>::max();  // as tensor_create_vk
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

// Whether a key holds a learner's options.
bool is_learner(const std::string& key) {
  for (int i = 1; i <= static_cast<int>(agent::kLastLearner); ++i)
    if (key == agent::learner_name(static_cast<agent::LearnerKind>(i))) return true;
  return false;
}

Result<BrainFile> parse_brain(const std::string& file, const nlohmann::json& json) {
  const auto refuse = [&](const std::string& what) {
    return make_error(ErrorCode::corrupt_file, "'" + file + "': " + what);
  };
  if (!json.is_object())
    return refuse("this is no JSON object with the fields of imp_brain_desc, nor a list of such");
  BrainFile brain;
  const Takers fields = fields_of(brain);
  for (const auto& [key, value] : json.items()) {
    if (is_learner(key)) continue;
    const auto field = fields.find(key);
    if (field == fields.end())
      return refuse("neither imp_brain_desc nor imp_network_options has a field " + quote(key));
    if (const std::string expected = field->second(value); !expected.empty())
      return refuse(text(key, ": found ", clipped(value.dump()), ", expected ", expected));
  }
  const std::string learner = agent::learner_name(brain.spec.learner);
  const Takers options = options_of(brain.spec.learner, brain.spec);
  for (const auto& [key, value] : json.items()) {
    if (!is_learner(key)) continue;
    if (key != learner) return refuse(key + ": found options of " + key + ", expected those of " + learner);
    if (!value.is_object())
      return refuse(text(key, ": found ", clipped(value.dump()), ", expected an object"));
    for (const auto& [name, given] : value.items()) {
      const auto option = options.find(name);
      if (option == options.end()) return refuse(text("imp_", key, "_options has no field ", quote(name)));
      if (const std::string expected = option->second(given); !expected.empty())
        return refuse(text(key, ".", name, ": found ", clipped(given.dump()), ", expected ", expected));
    }
  }
  Result<agent::BrainSpec> valid = agent::checked(brain.spec);
  if (!valid) return make_error(valid.error().code, "'" + file + "': " + valid.error().message);
  brain.spec = std::move(*valid);
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
  const nlohmann::json& json = *parsed;
  std::vector<BrainFile> brains;
  if (!json.is_array()) {
    IMPRINT_ASSIGN(BrainFile brain, parse_brain(file, json));
    brains.push_back(std::move(brain));
    return brains;
  }
  if (json.empty()) return make_error(ErrorCode::corrupt_file, "'" + file + "': the list has no brain");
  if (json.size() > kMostBrains)
    return make_error(ErrorCode::corrupt_file, text("'", file, "': found a list of ", json.size(),
                                                    " brains, expected at most ", kMostBrains));
  for (const nlohmann::json& one : json) {
    IMPRINT_ASSIGN(BrainFile brain, parse_brain(file, one));
    brains.push_back(std::move(brain));
  }
  return brains;
}

}  // namespace imprint::tools
