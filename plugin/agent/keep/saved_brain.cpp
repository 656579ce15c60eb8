#include "plugin/agent/keep/saved_brain.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "compute/base/hash.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/safetensors.h"
#include "compute/nn/learners/rollout_ppo.h"
#include "plugin/agent/keep/schema.h"
#include "plugin/agent/learn/learners/feedback.h"
#include "plugin/agent/learn/registry.h"

namespace imprint::agent {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are in memory");

constexpr char kBrainMagic[8] = {'I', 'M', 'P', 'R', 'I', 'N', 'T', 'B'};

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t reserved;
  std::uint64_t schema_low, schema_high;
  std::uint64_t body_size;
  std::uint64_t body_low, body_high;
  std::uint64_t header_low, header_high;
};
static_assert(sizeof(FileHeader) == 72);
constexpr std::size_t kHashedHeader = offsetof(FileHeader, header_low);

Hash128 hash_of(std::span<const std::byte> bytes) { return Hasher().bytes(bytes).digest(); }

Hash128 header_hash(const FileHeader& header) {
  return hash_of(std::as_bytes(std::span(&header, 1)).first(kHashedHeader));
}

Error corrupt(const std::string& what) { return make_error(ErrorCode::corrupt_file, "saved brain: " + what); }

Error corrupt(std::string_view field, std::string_view found, std::string_view expected) {
  return corrupt(text(field, ": found ", found, ", expected ", expected));
}

Error cut_off(std::string_view field, std::string_view found, std::string_view expected) {
  return corrupt(field, found, text(expected, ". The file is damaged or cut off: load an older save."));
}

safetensors::Type file_type(DType dtype) {
  return dtype == DType::float32 ? safetensors::Type::float32 : safetensors::Type::int32;
}

constexpr std::size_t kCounters = 6;
constexpr const char *kNetwork = "network", *kBrain = "brain";

std::array<std::int64_t, kCounters> counters_of(const HostState& host) {
  const auto number = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  const BrainCounters& c = host.counters;
  return {number(host.seed),        number(c.decisions),   number(c.feedbacks),
          number(c.demonstrations), number(c.minibatches), number(c.episodes)};
}

Result<const safetensors::Array*> find_array(const safetensors::File& file, const std::string& name,
                                             safetensors::Type type, const Shape& shape) {
  const auto found = file.arrays.find(name);
  if (found == file.arrays.end()) return corrupt(name, "nothing", "an array");
  const safetensors::Array& array = found->second;
  if (array.type != type || !(array.shape == shape))
    return corrupt(name, text(safetensors::type_name(array.type), array.shape.text()),
                   text(safetensors::type_name(type), shape.text()));
  return &array;
}

Result<> check_bytes_finite(const std::string& name, std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    if (!std::isfinite(value)) return corrupt(name, text(value), "a finite number");
  }
  return {};
}

Result<> check_bytes_range(const std::string& name, std::span<const std::byte> bytes, std::int32_t low,
                           std::int32_t high) {
  for (std::size_t at = 0; at + sizeof(std::int32_t) <= bytes.size(); at += sizeof(std::int32_t)) {
    std::int32_t value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    if (value < low || value > high) return corrupt(name, text(value), text(low, " to ", high));
  }
  return {};
}

Result<std::vector<std::int32_t>> read_ints(const safetensors::File& file, const std::string& name,
                                            std::uint32_t count, std::int32_t low, std::int32_t high) {
  IMPRINT_ASSIGN(const safetensors::Array* array,
                 find_array(file, name, safetensors::Type::int32, Shape{count}));
  IMPRINT_CHECK(check_bytes_range(name, array->bytes, low, high));
  return array->ints();
}

struct OpenedFile {
  Hash128 schema;
  safetensors::File body;
};

Result<OpenedFile> open_file(std::span<const std::byte> bytes) {
  FileHeader header;
  if (bytes.size() < sizeof header)
    return cut_off("file", text(bytes.size(), " bytes"), text("a header of ", sizeof header));
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kBrainMagic, sizeof kBrainMagic) != 0)
    return corrupt("file", "other first bytes", "those of a saved brain. Pass a file that brain_save wrote.");
  if (header_hash(header) != Hash128{header.header_low, header.header_high})
    return cut_off("header", "another hash", "the hash that it names");
  if (header.version != kSavedBrainVersion)
    return make_error(ErrorCode::unsupported,
                      text("saved brain: format version: found ", header.version, ", expected ",
                           kSavedBrainVersion, ". Use the library version that wrote the file."));
  const std::span<const std::byte> body = bytes.subspan(sizeof header);
  if (body.size() != header.body_size)
    return cut_off("body", text(body.size(), " bytes"), text(header.body_size));
  if (hash_of(body) != Hash128{header.body_low, header.body_high})
    return cut_off("body", "another hash", "the hash that the header names");
  IMPRINT_ASSIGN(safetensors::File file, safetensors::parse(body));
  return OpenedFile{{header.schema_low, header.schema_high}, std::move(file)};
}

std::string metadata_of(const safetensors::File& file, const char* name, const char* otherwise) {
  const auto found = file.metadata.find(name);
  return found == file.metadata.end() ? otherwise : found->second;
}

Error other_schema(const safetensors::File& file, const BrainSpec& spec, const char* hint) {
  return make_error(
      ErrorCode::shape_mismatch,
      text("saved brain: schema: found ", clipped(metadata_of(file, "schema", "another schema"), 1024),
           ", expected ", schema_text(spec), hint));
}

Result<> check_content(const std::string& name, std::span<const std::byte> bytes,
                       const StateVariable& entry) {
  return entry.variable.dtype() == DType::float32 ? check_bytes_finite(name, bytes)
                                                  : check_bytes_range(name, bytes, entry.low, entry.high);
}

// The array `name`, checked against `entry`.
Result<std::vector<std::byte>> content_of(const safetensors::File& file, const std::string& name,
                                          const StateVariable& entry) {
  IMPRINT_ASSIGN(const safetensors::Array* array,
                 find_array(file, name, file_type(entry.variable.dtype()), entry.variable.shape()));
  IMPRINT_CHECK(check_content(name, array->bytes, entry));
  return std::vector(array->bytes.begin(), array->bytes.end());
}

// The array of libraries whose brains trusted what they saw against the usual features, not the usual words.
constexpr const char* kUsualFeatures = "usual";

// A file of an older library lacks some variables, or has them with another meaning.
bool lacks(const safetensors::File& file, const StateVariable& entry) {
  return entry.otherwise && (!file.arrays.contains(entry.name) || file.arrays.contains(kUsualFeatures));
}

std::vector<std::byte> otherwise_of(const StateVariable& entry) {
  const std::vector<float> values(static_cast<std::size_t>(entry.variable.shape().element_count()),
                                  *entry.otherwise);
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Usual words of a brain that an older library saved without them.
void hear_memory_again(const BrainSpec& spec, std::span<const StateVariable> variables, SavedBrain& brain) {
  const auto content = [&](const char* name) -> std::vector<std::byte>* {
    const auto found = std::ranges::find(variables, name, &StateVariable::name);
    return found == variables.end() ? nullptr
                                    : &brain.state[static_cast<std::size_t>(found - variables.begin())];
  };
  std::vector<std::byte>* heard = content(kHeardName);
  std::vector<std::byte>* usual = content(kUsualName);
  std::vector<std::byte>* memory = content(kReplayName);
  if (!heard || !usual || !memory) return;
  const auto floats = [](std::vector<std::byte>& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  std::vector<float> words = floats(*heard), means = floats(*usual);
  hear_again(spec, brain.host.replay, floats(*memory), words, means);
  std::memcpy(heard->data(), words.data(), heard->size());
  std::memcpy(usual->data(), means.data(), usual->size());
}

// A feedback brain acts by heads that it may not trust whole (Network::trusted). Weights alone act by the
// heads that there are, so the last layer takes that in.
Result<> fold_trust(safetensors::File& file, std::span<const StateVariable> variables,
                    std::uint32_t goal_count) {
  if (!file.arrays.contains(kTrustName) || file.arrays.contains(kUsualFeatures)) return {};
  const StateVariable *weight = nullptr, *bias = nullptr;
  for (const StateVariable& entry : variables)
    if (entry.name.starts_with("network.")) weight = std::exchange(bias, &entry);
  const Shape &shape = weight->variable.shape(), &one_row = bias->variable.shape();
  const std::int64_t brains = shape[0], inputs = shape[1], outputs = shape[2], goals = goal_count,
                     per_goal = outputs / goals;
  const auto read = [&](const std::string& name, const Shape& expected) -> Result<std::vector<float>> {
    IMPRINT_ASSIGN(const safetensors::Array* array,
                   find_array(file, name, safetensors::Type::float32, expected));
    IMPRINT_CHECK(check_bytes_finite(name, array->bytes));
    return array->floats();
  };
  IMPRINT_ASSIGN(const std::vector<float> trust, read(kTrustName, {brains, goals}));
  IMPRINT_ASSIGN(const std::vector<float> usual, read(kUsualName, {brains, 1, goals, per_goal}));
  IMPRINT_ASSIGN(std::vector<float> weights, read(weight->name, shape));
  IMPRINT_ASSIGN(std::vector<float> biases, read(bias->name, one_row));
  const auto at = [](std::int64_t index) { return static_cast<std::size_t>(index); };
  for (std::int64_t p = 0; p < brains; ++p) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      const double trusted = double{trust[at(p * goals + o / per_goal)]};
      for (std::int64_t i = 0; i < inputs; ++i) {
        float& own = weights[at((p * inputs + i) * outputs + o)];
        own = static_cast<float>(trusted * double{own});
      }
      float& own = biases[at(p * outputs + o)];
      own = static_cast<float>(trusted * double{own} + (1 - trusted) * double{usual[at(p * outputs + o)]});
    }
  }
  file.arrays[weight->name] = safetensors::Array::of(std::span<const float>(weights), shape);
  file.arrays[bias->name] = safetensors::Array::of(std::span<const float>(biases), one_row);
  return {};
}

Result<> read_waiting(const safetensors::File& file, const BrainSpec& spec, ReplayState& replay) {
  const SampleLayout layout = learner_of(spec).layout(spec);
  const std::uint32_t width = layout.width;
  // The file does not say which agent took a step. With several agents, no step is known to follow another.
  const bool apart = learner_of(spec).collects_rollouts() && spec.agents_per_brain > 1;
  IMPRINT_ASSIGN(const std::vector<std::int32_t> counts,
                 read_ints(file, "waiting.counts", spec.brain_count, 0, INT32_MAX));
  std::int64_t total = 0;
  for (const std::int32_t count : counts) total += count;
  IMPRINT_ASSIGN(const safetensors::Array* rows,
                 find_array(file, "waiting.rows", safetensors::Type::float32, Shape{total, width}));
  IMPRINT_CHECK(check_bytes_finite("waiting.rows", rows->bytes));
  const std::byte* next = rows->bytes.data();
  // More waited under other settings, or came from actors.
  const std::int64_t most = spec.receives_experience ? INT32_MAX : waiting_capacity(spec);
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
    if (spec.receives_experience) replay.waiting.make_room(static_cast<std::uint64_t>(counts[p]));
    for (std::int32_t k = 0; k < counts[p]; ++k, next += std::size_t{width} * sizeof(float)) {
      if (k < counts[p] - most) continue;
      const std::span<float> row = replay.waiting.push(p);
      std::memcpy(row.data(), next, std::size_t{width} * sizeof(float));
      if (apart) row[layout.begins] = 1;
    }
  }
  return {};
}

void write_waiting(safetensors::File& file, const BrainSpec& spec, const ReplayState& replay) {
  const std::uint32_t width = learner_of(spec).layout(spec).width;
  std::vector<std::int32_t> counts;
  std::vector<float> rows;
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
    counts.push_back(static_cast<std::int32_t>(replay.waiting.size(p)));
    for (std::uint32_t k = 0; k < replay.waiting.size(p); ++k) {
      const std::span<const float> row = replay.waiting.row(p, k);
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  const auto total = static_cast<std::int64_t>(rows.size() / width);
  file.arrays.emplace("waiting.counts",
                      safetensors::Array::of(std::span<const std::int32_t>(counts), Shape{spec.brain_count}));
  file.arrays.emplace("waiting.rows",
                      safetensors::Array::of(std::span<const float>(rows), Shape{total, width}));
}

// int64 [P, 3]: steps, news, the bits of the newest reward.
constexpr const char* kSparsity = "waiting.sparsity";

void write_sparsity(safetensors::File& file, const BrainSpec& spec, const ReplayState& replay) {
  std::vector<std::int64_t> numbers;
  for (const RewardSparsity& sparsity : replay.sparsity) {
    numbers.push_back(static_cast<std::int64_t>(sparsity.steps));
    numbers.push_back(static_cast<std::int64_t>(sparsity.count));
    numbers.push_back(std::bit_cast<std::int32_t>(sparsity.reward));
  }
  file.arrays.emplace(
      kSparsity, safetensors::Array::of(std::span<const std::int64_t>(numbers), Shape{spec.brain_count, 3}));
}

Result<> read_sparsity(const safetensors::File& file, const BrainSpec& spec, ReplayState& replay) {
  IMPRINT_ASSIGN(const safetensors::Array* array,
                 find_array(file, kSparsity, safetensors::Type::int64, Shape{spec.brain_count, 3}));
  IMPRINT_ASSIGN(const std::vector<std::int64_t> numbers, array->long_ints());
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
    const std::int64_t steps = numbers[3 * p], count = numbers[3 * p + 1];
    const auto reward = std::bit_cast<float>(static_cast<std::int32_t>(numbers[3 * p + 2]));
    if (count < 0 || count > steps) return corrupt(kSparsity, text(count), text("0 to ", steps));
    if (!std::isfinite(reward)) return corrupt(kSparsity, text(reward), "a finite number");
    replay.sparsity[p] = {reward, static_cast<std::uint64_t>(steps), static_cast<std::uint64_t>(count)};
  }
  return {};
}

// Demonstrations: how many of each brain, its next row, the rows, and the minibatches made by them alone.
constexpr const char *kDemonstrationCounts = "demonstrations.counts",
                     *kDemonstrationNext = "demonstrations.next", *kDemonstrationRows = "demonstrations.rows",
                     *kDemonstrationMinibatches = "demonstrations.minibatches";

void write_demonstration_memory(safetensors::File& file, const BrainSpec& spec,
                                const DemonstrationMemory& shown) {
  const std::uint32_t width = demonstration_layout(spec).width;
  std::vector<float> rows;
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
    const auto own = shown.rows().subspan(std::size_t{p} * spec.demonstration_capacity * width,
                                          static_cast<std::size_t>(shown.filled()[p]) * width);
    rows.insert(rows.end(), own.begin(), own.end());
  }
  const Shape brains{spec.brain_count};
  file.arrays.emplace(kDemonstrationCounts, safetensors::Array::of(shown.filled(), brains));
  file.arrays.emplace(kDemonstrationNext, safetensors::Array::of(shown.next(), brains));
  file.arrays.emplace(kDemonstrationMinibatches,
                      safetensors::Array::of(std::span<const std::int32_t>(shown.pretrained), brains));
  file.arrays.emplace(kDemonstrationRows,
                      safetensors::Array::of(std::span<const float>(rows),
                                             Shape{static_cast<std::int64_t>(shown.count()), width}));
}

Result<> read_demonstration_memory(const safetensors::File& file, const BrainSpec& spec,
                                   DemonstrationMemory& shown) {
  const std::uint32_t width = demonstration_layout(spec).width;
  IMPRINT_ASSIGN(const std::vector<std::int32_t> counts,
                 read_ints(file, kDemonstrationCounts, spec.brain_count, 0,
                           static_cast<std::int32_t>(spec.demonstration_capacity)));
  IMPRINT_ASSIGN(const std::vector<std::int32_t> minibatches,
                 read_ints(file, kDemonstrationMinibatches, spec.brain_count, 0, INT32_MAX / 2));
  const auto capacity = static_cast<std::int32_t>(spec.demonstration_capacity);
  IMPRINT_ASSIGN(const std::vector<std::int32_t> next,
                 read_ints(file, kDemonstrationNext, spec.brain_count, 0, capacity - 1));
  std::int64_t total = 0;
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
    total += counts[p];
    if (counts[p] < capacity && next[p] != counts[p])
      return corrupt(kDemonstrationNext, text(next[p]), text(counts[p]));
  }
  IMPRINT_ASSIGN(const safetensors::Array* rows,
                 find_array(file, kDemonstrationRows, safetensors::Type::float32, Shape{total, width}));
  IMPRINT_CHECK(check_bytes_finite(kDemonstrationRows, rows->bytes));
  const std::byte* from = rows->bytes.data();
  for (std::uint32_t p = 0; p < spec.brain_count; ++p)
    for (std::int32_t k = 0; k < counts[p]; ++k, from += std::size_t{width} * sizeof(float))
      std::memcpy(shown.add(p).data(), from, std::size_t{width} * sizeof(float));
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) shown.set_next(p, next[p]);
  shown.pretrained = minibatches;
  return {};
}

// Self-play: learn/samples/opponents.h.
constexpr const char *kPoolRatings = "opponents.ratings", *kPoolNumbers = "opponents.numbers";

void write_opponents(safetensors::File& file, const BrainSpec& spec, const Opponents& opponents) {
  const std::vector<float> ratings = opponents.ratings();
  const std::vector<std::int64_t> numbers = opponents.numbers();
  file.arrays.emplace(kPoolRatings, safetensors::Array::of(std::span<const float>(ratings),
                                                           Shape{spec.brain_count, 1 + spec.pool_size}));
  file.arrays.emplace(kPoolNumbers,
                      safetensors::Array::of(std::span<const std::int64_t>(numbers),
                                             Shape{spec.brain_count, Opponents::numbers_per_brain(spec)}));
}

Result<> read_opponents(const safetensors::File& file, const BrainSpec& spec, Opponents& opponents) {
  IMPRINT_ASSIGN(const safetensors::Array* ratings, find_array(file, kPoolRatings, safetensors::Type::float32,
                                                               Shape{spec.brain_count, 1 + spec.pool_size}));
  IMPRINT_CHECK(check_bytes_finite(kPoolRatings, ratings->bytes));
  IMPRINT_ASSIGN(const safetensors::Array* array,
                 find_array(file, kPoolNumbers, safetensors::Type::int64,
                            Shape{spec.brain_count, Opponents::numbers_per_brain(spec)}));
  IMPRINT_ASSIGN(const std::vector<std::int64_t> numbers, array->long_ints());
  if (const char* found = opponents.set(ratings->floats(), numbers))
    return corrupt(kPoolNumbers, found, "counts of a pool");
  return {};
}

}  // namespace

Result<std::vector<std::byte>> encode_brain(const BrainSpec& spec, std::span<const StateVariable> variables,
                                            const HostState& host,
                                            std::span<const std::span<const std::byte>> state) {
  safetensors::File file;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (const Result<> content = check_content(variables[i].name, state[i], variables[i]); !content)
      return make_error(ErrorCode::wrong_state,
                        text("brain_save: nothing was written, because brain_load would refuse it: ",
                             content.error().message));
    safetensors::Array array;
    array.type = file_type(variables[i].variable.dtype());
    array.shape = variables[i].variable.shape();
    array.bytes = SharedBytes(std::vector(state[i].begin(), state[i].end()));
    file.arrays.emplace(variables[i].name, std::move(array));
  }
  file.arrays.emplace(
      "host.counters",
      safetensors::Array::of(std::span<const std::int64_t>(counters_of(host)), Shape{kCounters}));
  const std::vector<std::int64_t> draws(host.draws.begin(), host.draws.end());
  file.arrays.emplace("host.draws", safetensors::Array::of(std::span<const std::int64_t>(draws),
                                                           Shape{spec.agent_capacity()}));
  if (spec.learns()) {
    file.arrays.emplace("replay.next", safetensors::Array::of(std::span<const std::int32_t>(host.replay.next),
                                                              Shape{spec.brain_count}));
    file.arrays.emplace(
        "replay.filled",
        safetensors::Array::of(std::span<const std::int32_t>(host.replay.filled), Shape{spec.brain_count}));
    write_waiting(file, spec, host.replay);
    if (spec.keeps_demonstrations()) write_demonstration_memory(file, spec, host.replay.demonstrations);
    if (spec.pool_size > 0) write_opponents(file, spec, host.replay.opponents);
    if (learner_of(spec).slows_exploration()) write_sparsity(file, spec, host.replay);
  }
  file.metadata = {{"format", "imprint brain"},
                   {"name", spec.name},
                   {"schema", schema_text(spec)},
                   {kBrain, schema_json(spec)},
                   {kNetwork, network_hash(spec).hex()}};
  IMPRINT_ASSIGN(const std::vector<std::byte> body, safetensors::serialize(file));

  FileHeader header{};
  std::memcpy(header.magic, kBrainMagic, sizeof kBrainMagic);
  header.version = kSavedBrainVersion;
  const Hash128 schema = schema_hash(spec), body_hash = hash_of(body);
  header.schema_low = schema.low, header.schema_high = schema.high;
  header.body_size = body.size();
  header.body_low = body_hash.low, header.body_high = body_hash.high;
  const Hash128 own = header_hash(header);
  header.header_low = own.low, header.header_high = own.high;

  std::vector<std::byte> bytes(sizeof header + body.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, body.data(), body.size());
  return bytes;
}

Result<SavedBrain> decode_brain(std::span<const std::byte> bytes, const BrainSpec& spec,
                                std::span<const StateVariable> variables) {
  IMPRINT_ASSIGN(const OpenedFile opened, open_file(bytes));
  const safetensors::File& file = opened.body;
  const std::string network = metadata_of(file, kNetwork, "");
  if (opened.schema != schema_hash(spec))
    return other_schema(file, spec,
                        network == network_hash(spec).hex()
                            ? ". Its weights fit: take them by brain_load_weights."
                            : ". Use the descriptor that the save was made with.");
  const bool learns = spec.learns();
  const bool has_sparsity = learns && learner_of(spec).slows_exploration() && file.arrays.contains(kSparsity);
  const auto absent =
      static_cast<std::size_t>(std::ranges::count_if(variables, [&](const StateVariable& entry) {
        return entry.otherwise && !file.arrays.contains(entry.name);
      }));
  const std::size_t expected = variables.size() - absent + (file.arrays.contains(kUsualFeatures) ? 1 : 0) +
                               2 + (learns ? 4 : 0) + (has_sparsity ? 1 : 0) +
                               (spec.keeps_demonstrations() ? 4 : 0) + (spec.pool_size > 0 ? 2 : 0);
  if (file.arrays.size() != expected)
    return corrupt("body", text(file.arrays.size(), " arrays"), text(expected));

  SavedBrain brain;
  for (const StateVariable& entry : variables) {
    if (lacks(file, entry)) {
      brain.state.push_back(otherwise_of(entry));
      continue;
    }
    IMPRINT_ASSIGN(brain.state.emplace_back(), content_of(file, entry.name, entry));
  }

  IMPRINT_ASSIGN(const safetensors::Array* counters,
                 find_array(file, "host.counters", safetensors::Type::int64, Shape{kCounters}));
  IMPRINT_ASSIGN(const std::vector<std::int64_t> numbers, counters->long_ints());
  const auto number = [&](std::size_t i) { return static_cast<std::uint64_t>(numbers[i]); };
  brain.host.seed = number(0);
  brain.host.counters = {number(1), number(2), number(3), number(4), number(5)};
  IMPRINT_ASSIGN(const safetensors::Array* draws,
                 find_array(file, "host.draws", safetensors::Type::int64, Shape{spec.agent_capacity()}));
  IMPRINT_ASSIGN(const std::vector<std::int64_t> draw_counts, draws->long_ints());
  brain.host.draws.assign(draw_counts.begin(), draw_counts.end());

  if (learns) {
    const auto capacity = static_cast<std::int32_t>(spec.replay_capacity);
    brain.host.replay = ReplayState::empty(spec);
    IMPRINT_ASSIGN(brain.host.replay.next, read_ints(file, "replay.next", spec.brain_count, 0, capacity - 1));
    IMPRINT_ASSIGN(brain.host.replay.filled, read_ints(file, "replay.filled", spec.brain_count, 0, capacity));
    IMPRINT_CHECK(read_waiting(file, spec, brain.host.replay));
    if (has_sparsity) IMPRINT_CHECK(read_sparsity(file, spec, brain.host.replay));
    if (spec.keeps_demonstrations())
      IMPRINT_CHECK(read_demonstration_memory(file, spec, brain.host.replay.demonstrations));
    if (spec.pool_size > 0) IMPRINT_CHECK(read_opponents(file, spec, brain.host.replay.opponents));
    if (!file.arrays.contains(kUsualName)) hear_memory_again(spec, variables, brain);
  }
  return brain;
}

Result<std::vector<std::vector<std::byte>>> decode_weights(std::span<const std::byte> bytes,
                                                           const BrainSpec& spec,
                                                           std::span<const StateVariable> variables) {
  IMPRINT_ASSIGN(OpenedFile opened, open_file(bytes));
  safetensors::File& file = opened.body;
  const std::string network = metadata_of(file, kNetwork, "");
  if (network.empty())
    return make_error(ErrorCode::unsupported,
                      "saved brain: network: found nothing, because an older library wrote the file. Load it "
                      "by brain_load and save it again.");
  if (network != network_hash(spec).hex())
    return other_schema(file, spec, ". Use the observations, goals, actions and layers of the save.");
  IMPRINT_CHECK(fold_trust(file, variables, spec.goal_count));
  std::vector<std::vector<std::byte>> contents(variables.size());
  constexpr std::string_view kTarget = "target.", kTargetValue = "target_value.";
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const std::string& own = variables[i].name;
    if (variables[i].otherwise) contents[i] = otherwise_of(variables[i]);
    // Weights of a file are no first weights.
    if (own == nn::RolloutPpo::kFresh)
      contents[i].assign(
          static_cast<std::size_t>(variables[i].variable.shape().element_count()) * sizeof(float),
          std::byte{0});
    const bool is_target = own.starts_with(kTarget);
    const std::string name = is_target ? "network." + own.substr(kTarget.size())
                             : own.starts_with(kTargetValue)
                                 ? "beside.value." + own.substr(kTargetValue.size())
                                 : own;
    const bool is_network = name.starts_with("network."),
               is_beside = (own.starts_with("critic.") || own.starts_with("target_critic.") ||
                            name.starts_with("beside.value.") || own == "least_reward" ||
                            own == "most_reward" || own == "log_temperature" || own == kLogDeviationName) &&
                           file.arrays.contains(name);
    if (!is_network && !is_beside) continue;
    IMPRINT_ASSIGN(contents[i], content_of(file, name, variables[i]));
  }
  return contents;
}

Result<BrainDescription> describe_file(std::span<const std::byte> bytes) {
  IMPRINT_ASSIGN(const OpenedFile opened, open_file(bytes));
  return BrainDescription{metadata_of(opened.body, "name", "brain"), metadata_of(opened.body, kBrain, "")};
}

}  // namespace imprint::agent
