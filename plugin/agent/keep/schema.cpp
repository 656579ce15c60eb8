#include "plugin/agent/keep/schema.h"

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "plugin/agent/learn/registry.h"

namespace imprint::agent {
namespace {

void add_networks(const BrainSpec& spec, Hasher& hasher) {
  hasher.text("imprint brain schema 1");
  hasher.number(spec.observation.count);
  for (std::uint32_t i = 0; i < spec.observation.count; ++i)
    hasher.number(spec.observation.scale.empty() ? 1.0f : spec.observation.scale[i]);
  hasher.number(spec.goal_count);
  hasher.number(static_cast<std::uint32_t>(spec.action.branch_sizes.size()));
  for (const std::uint32_t size : spec.action.branch_sizes) hasher.number(size);
  hasher.number(spec.action.continuous_count);
  hasher.number(static_cast<std::uint32_t>(spec.hidden_sizes.size()));
  for (const std::uint32_t size : spec.hidden_sizes) hasher.number(size);
  hasher.number(spec.activation).number(spec.brain_count);
  if (spec.observation.stack > 1) hasher.text("stack").number(spec.observation.stack);
  for (const StreamSpec& stream : spec.observation.streams)
    hasher.text("stream")
        .number(stream.kind)
        .number(stream.count)
        .number(stream.channels)
        .number(stream.height)
        .number(stream.width)
        .number(stream.features)
        .number(stream.vocabulary)
        .number(stream.outputs());
  if (spec.has_cell()) hasher.text("cell").number(spec.cell).number(spec.cell_size);
  if (spec.head_count() != spec.action.output_count()) hasher.number(spec.head_count());
  if (network_traits(spec).normalised_layers) hasher.text("layer norm");
}

std::string stream_text(const StreamSpec& stream) {
  switch (stream.kind) {
    case StreamKind::vector:
      return text(" vector ", stream.count);
    case StreamKind::picture:
      return text(" picture ", stream.channels, "x", stream.height, "x", stream.width);
    case StreamKind::entities:
      return text(" entities ", stream.count, "x", stream.features);
    case StreamKind::ids:
      return text(" ids ", stream.count, " of ", stream.vocabulary);
  }
  return {};
}

bool has_replay(const BrainSpec& spec) {
  const Learner* learner = find_learner(spec.learner);
  return learner && learner->replays();
}

std::vector<SchemaSetting> settings(const BrainSpec& spec) {
  const Learner* learner = find_learner(spec.learner);
  return learner ? learner->schema(spec) : std::vector<SchemaSetting>();
}

template <class T>
std::string list_json(const std::vector<T>& values) {
  std::string json = "[";
  for (std::size_t i = 0; i < values.size(); ++i) json += text(i == 0 ? "" : ", ", values[i]);
  return json + "]";
}

std::string streams_json(const std::vector<StreamSpec>& streams) {
  std::string json = "[";
  for (const StreamSpec& stream : streams) {
    json += text(json.size() > 1 ? ", " : "", "{\"kind\": \"", stream_name(stream.kind), "\"");
    const std::pair<const char*, std::uint32_t> numbers[] = {
        {"count", stream.count}, {"channels", stream.channels}, {"height", stream.height},
        {"width", stream.width}, {"features", stream.features}, {"vocabulary", stream.vocabulary},
        {"size", stream.size}};
    for (const auto& [name, value] : numbers)
      if (value > 0) json += text(", \"", name, "\": ", value);
    json += "}";
  }
  return json + "]";
}

// The learner's options that are part of the schema.
std::string options_json(const BrainSpec& spec) {
  std::string json;
  const auto add = [&json](const char* name, const auto& value) {
    json += text(json.empty() ? "" : ", ", "\"", name, "\": ", value);
  };
  if (has_replay(spec)) add("replay_capacity", spec.replay_capacity);
  for (const SchemaSetting& setting : settings(spec))
    if (setting.is_flag)
      add(setting.name, setting.value != 0);
    else
      add(setting.name, setting.value);
  return json.empty() ? "" : text(", \"", learner_name(spec.learner), "\": {", json, "}");
}

// The fields of imp_demonstration_options and imp_signal_options.
std::string beside_json(const BrainSpec& spec) {
  std::string json;
  if (spec.group_size > 0) json += text(", \"groups\": {\"group_size\": ", spec.group_size, "}");
  if (spec.pool_size > 0) json += text(", \"self_play\": {\"pool_size\": ", spec.pool_size, "}");
  if (spec.keeps_demonstrations())
    json += text(", \"demonstrations\": {\"capacity\": ", spec.demonstration_capacity, "}");
  if (!spec.has_signals()) return json;
  return json + text(", \"signals\": {\"curiosity\": \"", curiosity_name(spec.curiosity),
                     "\", \"curiosity_strength\": ", spec.curiosity_strength,
                     ", \"imitation_strength\": ", spec.imitation_strength,
                     ", \"hidden_size\": ", spec.signal_size, "}");
}

}  // namespace

Hash128 network_hash(const BrainSpec& spec) {
  Hasher hasher;
  add_networks(spec, hasher);
  return hasher.digest();
}

Hash128 schema_hash(const BrainSpec& spec) {
  Hasher hasher;
  add_networks(spec, hasher);
  hasher.number(spec.agents_per_brain).number(spec.learner);
  if (has_replay(spec)) hasher.number(spec.replay_capacity);
  if (has_replay(spec) && spec.pictures_as_bytes) hasher.text("pictures as bytes");
  for (const SchemaSetting& setting : settings(spec))
    if (setting.words) hasher.text(setting.words);
  if (spec.group_size > 0) hasher.text("groups").number(spec.group_size);
  if (spec.pool_size > 0) hasher.text("pool").number(spec.pool_size);
  if (spec.keeps_demonstrations()) hasher.text("demonstrations").number(spec.demonstration_capacity);
  if (spec.curiosity_strength > 0) hasher.text("curiosity").number(spec.curiosity).number(spec.signal_size);
  if (spec.imitation_strength > 0) hasher.text("imitation").number(spec.signal_size);
  return hasher.digest();
}

std::string schema_text(const BrainSpec& spec) {
  std::string words = amount(spec.observation.count, "observation");
  if (spec.observation.stack > 1) words += text(" stacked ", spec.observation.stack);
  for (const StreamSpec& stream : spec.observation.streams) words += stream_text(stream);
  words += text(", ", amount(spec.goal_count, "goal"), ", actions");
  for (const std::uint32_t size : spec.action.branch_sizes) words += text(" ", size);
  if (spec.action.continuous_count > 0) words += text(" and ", spec.action.continuous_count, " continuous");
  words += ", network ";
  const std::vector<std::uint32_t> sizes = spec.layer_sizes();
  for (std::size_t i = 0; i < sizes.size(); ++i)
    words += text(i == 0 ? "" : "-", spec.has_cell() && i + 2 == sizes.size() ? cell_name(spec.cell) : "",
                  sizes[i]);
  words += text(" ", activation_name(spec.activation), ", ", amount(spec.brain_count, "brain"), " of ",
                amount(spec.agents_per_brain, "agent"), ", learner ", learner_name(spec.learner));
  if (has_replay(spec)) words += text(", replay ", spec.replay_capacity);
  if (has_replay(spec) && spec.pictures_as_bytes) words += " with pictures as bytes";
  for (const SchemaSetting& setting : settings(spec))
    if (setting.words) words += text(", ", setting.words);
  if (spec.group_size > 0) words += text(", groups of ", spec.group_size);
  if (spec.pool_size > 0) words += text(", pool ", spec.pool_size);
  if (spec.keeps_demonstrations()) words += text(", demonstrations ", spec.demonstration_capacity);
  if (spec.curiosity_strength > 0) words += text(", ", curiosity_name(spec.curiosity), " ", spec.signal_size);
  if (spec.imitation_strength > 0) words += text(", imitation ", spec.signal_size);
  return words;
}

std::string schema_json(const BrainSpec& spec) {
  const ObservationSpec& seen = spec.observation;
  std::string json = text("{\"observation_count\": ", seen.count);
  if (!seen.scale.empty()) json += ", \"observation_scale\": " + list_json(seen.scale);
  if (seen.stack > 1) json += text(", \"stack\": ", seen.stack);
  if (!seen.streams.empty()) json += ", \"streams\": " + streams_json(seen.streams);
  if (spec.pictures_as_bytes) json += ", \"pictures_as_bytes\": true";
  json +=
      text(", \"goal_count\": ", spec.goal_count, ", \"branch_sizes\": ", list_json(spec.action.branch_sizes),
           ", \"continuous_count\": ", spec.action.continuous_count,
           ", \"hidden_sizes\": ", list_json(spec.hidden_sizes), ", \"activation\": \"",
           activation_name(spec.activation), "\"");
  if (spec.has_cell())
    json += text(", \"cell\": \"", cell_name(spec.cell), "\", \"cell_size\": ", spec.cell_size);
  return json + text(", \"brain_count\": ", spec.brain_count,
                     ", \"agents_per_brain\": ", spec.agents_per_brain, ", \"learner\": \"",
                     learner_name(spec.learner), "\"", options_json(spec), beside_json(spec), "}");
}

}  // namespace imprint::agent
