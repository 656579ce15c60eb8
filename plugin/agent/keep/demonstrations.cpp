#include "plugin/agent/keep/demonstrations.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "compute/base/amount.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/safetensors.h"
#include "plugin/agent/learn/registry.h"

namespace imprint::agent {
namespace {

constexpr const char* kFormat = "imprint demonstrations 1";
constexpr std::uint32_t kMostBranches = 8, kMostContinuous = 64;  // of imp_brain_desc

Error bad_file(std::string_view field, std::string_view found, std::string_view expected) {
  return make_error(ErrorCode::corrupt_file,
                    text("demonstrations: ", field, ": found ", found, ", expected ", expected));
}

Result<std::string> metadata(const safetensors::File& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) return bad_file(key, "no metadata of this name", "some");
  return found->second;
}

// Whole numbers with one space between two.
Result<std::vector<std::uint32_t>> sizes_in(const safetensors::File& file, const std::string& key,
                                            std::uint32_t least, std::size_t most_sizes) {
  IMPRINT_ASSIGN(const std::string words, metadata(file, key));
  std::vector<std::uint32_t> sizes;
  const char *at = words.data(), *end = at + words.size();
  while (at != end) {
    std::uint32_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    const bool ends = next == end || (*next == ' ' && next + 1 != end);
    if (error != std::errc() || !ends || size < least || size > kMaxSize || sizes.size() == most_sizes)
      return bad_file(key, quote(clipped(words, 64)),
                      text("up to ", most_sizes, " whole numbers from ", least, " to ", kMaxSize));
    sizes.push_back(size);
    at = next == end ? end : next + 1;
  }
  return sizes;
}

// Null: the file has none, and `columns` says that it may.
Result<const safetensors::Array*> array_of(const safetensors::File& file, const std::string& name,
                                           safetensors::Type type, std::int64_t rows, std::int64_t columns) {
  const auto found = file.arrays.find(name);
  if (found == file.arrays.end()) return bad_file(name, "no array of this name", "one");
  const Shape expected = columns < 0 ? Shape{rows} : Shape{rows, columns};
  const safetensors::Array& array = found->second;
  if (array.type != type || !(array.shape == expected))
    return bad_file(name, text(safetensors::type_name(array.type), " ", array.shape.text()),
                    text(safetensors::type_name(type), " ", expected.text()));
  return &array;
}

Result<> check_numbers(const char* name, const std::vector<float>& values, float low, float high) {
  for (const float value : values)
    if (!(value >= low && value <= high))
      return bad_file(name, text(value),
                      high < std::numeric_limits<float>::max() ? text(low, " to ", high) : "a finite number");
  return {};
}

Result<> check_weights(const std::vector<float>& weights) {
  for (const float weight : weights)
    if (!(weight > 0) || !std::isfinite(weight))
      return bad_file("weight", text(weight), "a finite number above 0");
  return {};
}

Result<> check_choices(const Demonstrations& shown) {
  for (const std::int32_t goal : shown.goals)
    if (goal < 0 || static_cast<std::uint32_t>(goal) >= shown.goal_count)
      return bad_file("goal", text(goal), text("0 to ", shown.goal_count - 1));
  const std::size_t branches = shown.branch_sizes.size();
  for (std::size_t i = 0; i < shown.branches.size(); ++i) {
    const std::int32_t choice = shown.branches[i];
    const std::uint32_t size = shown.branch_sizes[i % branches];
    if (choice < 0 || static_cast<std::uint32_t>(choice) >= size)
      return bad_file("branches", text(choice, " of branch ", i % branches), text("0 to ", size - 1));
  }
  return {};
}

std::string sizes_text(const std::vector<std::uint32_t>& sizes) {
  std::string words;
  for (const std::uint32_t size : sizes) words += text(words.empty() ? "" : " ", size);
  return words;
}

// Observations and actions in words, without the number of demonstrations.
std::string form_of(const Demonstrations& shown) {
  std::string words = text(amount(shown.observation_width, "number"), ", ", amount(shown.goal_count, "goal"),
                           ", actions ", sizes_text(shown.branch_sizes));
  if (shown.continuous_count > 0)
    words += text(shown.branch_sizes.empty() ? "" : " and ", shown.continuous_count, " continuous");
  return words;
}

Demonstrations form_for(const BrainSpec& spec) {
  Demonstrations form;
  form.observation_width = spec.observation.width();
  form.goal_count = spec.goal_count;
  form.continuous_count = spec.action.continuous_count;
  form.branch_sizes = spec.action.branch_sizes;
  return form;
}

Result<> check_form(const Demonstrations& found, const Demonstrations& expected) {
  if (found.observation_width == expected.observation_width && found.goal_count == expected.goal_count &&
      found.continuous_count == expected.continuous_count && found.branch_sizes == expected.branch_sizes)
    return {};
  return make_error(ErrorCode::shape_mismatch,
                    text("demonstrations: form: found ", form_of(found), ", expected ", form_of(expected)));
}

std::size_t replay_index(std::span<const StateVariable> variables) {
  return static_cast<std::size_t>(std::ranges::find(variables, kReplayName, &StateVariable::name) -
                                  variables.begin());
}

// A damaged file may hold any number in a column; -1 is no choice.
std::int32_t whole(float value) {
  return value >= 0 && value < static_cast<float>(kMaxSize) ? static_cast<std::int32_t>(value) : -1;
}

void append_row(const SampleLayout& layout, std::span<const float> row, Demonstrations& to) {
  const auto part = [&row](std::uint32_t first, std::size_t count) { return row.subspan(first, count); };
  const auto seen = part(layout.observation, to.observation_width);
  to.observations.insert(to.observations.end(), seen.begin(), seen.end());
  to.goals.push_back(whole(row[layout.goal]));
  for (const float choice : part(layout.branches, to.branch_sizes.size()))
    to.branches.push_back(whole(choice));
  const auto numbers = part(layout.continuous, to.continuous_count);
  to.continuous.insert(to.continuous.end(), numbers.begin(), numbers.end());
  to.weights.push_back(row[layout.weight]);
}

// Writes demonstration i.
void write_row(const Demonstrations& from, std::size_t i, const Learner& learner, const SampleLayout& layout,
               std::span<float> row) {
  const auto copy = [&](const auto& values, std::size_t width, std::uint32_t first) {
    for (std::size_t k = 0; k < width; ++k) row[first + k] = static_cast<float>(values[i * width + k]);
  };
  copy(from.observations, from.observation_width, layout.observation);
  copy(from.goals, 1, layout.goal);
  copy(from.branches, from.branch_sizes.size(), layout.branches);
  copy(from.continuous, from.continuous_count, layout.continuous);
  if (learner.takes_demonstrations())
    learner.label(row, layout, 1.0f, from.weights[i], LabelSource::demonstration);
  else
    row[layout.weight] = from.weights[i];
}

}  // namespace

std::string Demonstrations::text() const {
  return imprint::text(amount(count(), "demonstration"), ": ", form_of(*this));
}

Result<Demonstrations> read_demonstrations(std::span<const std::byte> bytes) {
  IMPRINT_ASSIGN(const safetensors::File file, safetensors::parse(bytes));
  IMPRINT_ASSIGN(const std::string format, metadata(file, "format"));
  if (format != kFormat) return bad_file("format", quote(clipped(format, 64)), quote(kFormat));
  IMPRINT_ASSIGN(const std::vector<std::uint32_t> goals, sizes_in(file, "goal_count", 1, 1));
  if (goals.empty()) return bad_file("goal_count", "no number", "one");
  Demonstrations shown;
  shown.goal_count = goals[0];
  IMPRINT_ASSIGN(shown.branch_sizes, sizes_in(file, "branch_sizes", 2, kMostBranches));

  const auto seen = file.arrays.find("observation"), moved = file.arrays.find("continuous");
  if (seen == file.arrays.end()) return bad_file("observation", "no array of this name", "one");
  const Shape& shape = seen->second.shape;
  if (shape.rank() != 2 || shape[0] < 1 || shape[1] < 1 || shape[1] > kMaxSize)
    return bad_file("observation", shape.text(), "demonstrations, then up to 1048576 numbers of each");
  const std::int64_t rows = shape[0];
  shown.observation_width = static_cast<std::uint32_t>(shape[1]);
  if (moved != file.arrays.end()) {
    const Shape& numbers = moved->second.shape;
    if (numbers.rank() != 2 || numbers[1] < 1 || numbers[1] > kMostContinuous)
      return bad_file("continuous", numbers.text(), text("[", rows, ", 1 to ", kMostContinuous, "]"));
    shown.continuous_count = static_cast<std::uint32_t>(numbers[1]);
  }
  if (shown.branch_sizes.empty() && shown.continuous_count == 0)
    return bad_file("branch_sizes", "none, and no array continuous", "actions");

  using safetensors::Array, safetensors::Type;
  std::size_t arrays = 3;
  IMPRINT_ASSIGN(const Array* array, array_of(file, "observation", Type::float32, rows, shape[1]));
  shown.observations = array->floats();
  IMPRINT_ASSIGN(array, array_of(file, "goal", Type::int32, rows, -1));
  IMPRINT_ASSIGN(shown.goals, array->ints());
  IMPRINT_ASSIGN(array, array_of(file, "weight", Type::float32, rows, -1));
  shown.weights = array->floats();
  if (!shown.branch_sizes.empty()) {
    const auto columns = static_cast<std::int64_t>(shown.branch_sizes.size());
    IMPRINT_ASSIGN(array, array_of(file, "branches", Type::int32, rows, columns));
    IMPRINT_ASSIGN(shown.branches, array->ints());
    ++arrays;
  }
  if (shown.continuous_count > 0) {
    IMPRINT_ASSIGN(array, array_of(file, "continuous", Type::float32, rows, shown.continuous_count));
    shown.continuous = array->floats();
    ++arrays;
  }
  if (file.arrays.size() != arrays)
    return bad_file("arrays", text(file.arrays.size()), text(arrays, " for these actions"));
  constexpr float kLargest = std::numeric_limits<float>::max();
  IMPRINT_CHECK(check_numbers("observation", shown.observations, -kLargest, kLargest));
  IMPRINT_CHECK(check_numbers("continuous", shown.continuous, -1, 1));
  IMPRINT_CHECK(check_weights(shown.weights));
  IMPRINT_CHECK(check_choices(shown));
  return shown;
}

Result<std::vector<std::byte>> write_demonstrations(const Demonstrations& shown) {
  using safetensors::Array;
  const auto rows = static_cast<std::int64_t>(shown.count()),
             branches = static_cast<std::int64_t>(shown.branch_sizes.size());
  const auto floats = [](const std::vector<float>& values, const Shape& shape) {
    return Array::of(std::span<const float>(values), shape);
  };
  const auto ints = [](const std::vector<std::int32_t>& values, const Shape& shape) {
    return Array::of(std::span<const std::int32_t>(values), shape);
  };
  safetensors::File file;
  file.arrays.emplace("observation", floats(shown.observations, {rows, shown.observation_width}));
  file.arrays.emplace("goal", ints(shown.goals, {rows}));
  file.arrays.emplace("weight", floats(shown.weights, {rows}));
  if (branches > 0) file.arrays.emplace("branches", ints(shown.branches, {rows, branches}));
  if (shown.continuous_count > 0)
    file.arrays.emplace("continuous", floats(shown.continuous, {rows, shown.continuous_count}));
  file.metadata = {{"format", kFormat},
                   {"goal_count", text(shown.goal_count)},
                   {"branch_sizes", sizes_text(shown.branch_sizes)}};
  return safetensors::serialize(file);
}

Result<> append(Demonstrations& to, const Demonstrations& more) {
  IMPRINT_CHECK(check_form(more, to));
  const auto add = [](auto& into, const auto& values) {
    into.insert(into.end(), values.begin(), values.end());
  };
  add(to.observations, more.observations);
  add(to.goals, more.goals);
  add(to.branches, more.branches);
  add(to.continuous, more.continuous);
  add(to.weights, more.weights);
  return {};
}

namespace {

Error none_kept(std::uint32_t brain) {
  return make_error(ErrorCode::not_found,
                    text("demonstrations: found none in brain ", brain,
                         ", expected some. Call agent_demonstrate, or record by IMP_MODE_RECORD."));
}

Result<> check_brain(const BrainSpec& spec, std::uint32_t brain) {
  if (brain < spec.brain_count) return {};
  return make_error(ErrorCode::invalid_argument,
                    text("demonstrations: brain: found ", brain, ", expected less than ", spec.brain_count));
}

}  // namespace

Result<> show(const Demonstrations& shown, const BrainSpec& spec, std::uint32_t brain, ReplayState& replay) {
  if (brain != UINT32_MAX) IMPRINT_CHECK(check_brain(spec, brain));
  IMPRINT_CHECK(check_form(shown, form_for(spec)));
  const Learner& learner = learner_of(spec);
  const bool keeps = spec.keeps_demonstrations();
  const SampleLayout layout = keeps ? demonstration_layout(spec) : learner.layout(spec);
  const std::uint32_t first = brain == UINT32_MAX ? 0 : brain,
                      last = brain == UINT32_MAX ? spec.brain_count : brain + 1;
  for (std::uint32_t p = first; p < last; ++p) {
    const std::size_t room =
        keeps ? spec.demonstration_capacity - static_cast<std::uint32_t>(replay.demonstrations.filled()[p])
              : waiting_capacity(spec) - replay.waiting.size(p);
    if (shown.count() > room)
      return make_error(
          ErrorCode::invalid_argument,
          text("demonstrations: found ", shown.count(), " for brain ", p, ", expected at most ", room,
               keeps ? ". Raise imp_demonstration_options::capacity, or clear what it keeps."
                     : ", which may wait for its learn steps. Run frames, or load smaller files."));
  }
  for (std::uint32_t p = first; p < last; ++p)
    for (std::size_t i = 0; i < shown.count(); ++i) {
      const std::span<float> row = keeps ? replay.demonstrations.add(p) : replay.waiting.push(p);
      std::ranges::fill(row, 0.0f);
      write_row(shown, i, learner, layout, row);
    }
  return {};
}

Result<Demonstrations> demonstrations_of(const BrainSpec& spec, const DemonstrationMemory& memory,
                                         std::uint32_t brain) {
  IMPRINT_CHECK(check_brain(spec, brain));
  Demonstrations shown = form_for(spec);
  const SampleLayout layout = demonstration_layout(spec);
  for (std::int32_t i = 0; i < memory.filled()[brain]; ++i)
    append_row(layout, memory.row(brain, static_cast<std::uint32_t>(i)), shown);
  if (shown.count() == 0) return none_kept(brain);
  IMPRINT_CHECK(check_weights(shown.weights));  // a damaged file
  IMPRINT_CHECK(check_choices(shown));
  return shown;
}

Result<Demonstrations> demonstrations_in(const BrainSpec& spec, std::span<const StateVariable> variables,
                                         const SavedBrain& saved, std::uint32_t brain) {
  if (spec.keeps_demonstrations()) return demonstrations_of(spec, saved.host.replay.demonstrations, brain);
  if (spec.learner != LearnerKind::cloning)
    return make_error(ErrorCode::unsupported,
                      text("demonstrations: learner: found ", learner_name(spec.learner),
                           ", expected cloning, because only its memory holds nothing else. Record with "
                           "a brain of the cloning learner, or with imp_demonstration_options."));
  IMPRINT_CHECK(check_brain(spec, brain));
  const SampleLayout layout = learner_of(spec).layout(spec);
  const std::vector<std::byte>& memory = saved.state[replay_index(variables)];
  const auto filled = static_cast<std::size_t>(saved.host.replay.filled[brain]),
             next = static_cast<std::size_t>(saved.host.replay.next[brain]);
  const std::size_t capacity = spec.replay_capacity, oldest = (next + capacity - filled) % capacity;
  Demonstrations shown = form_for(spec);
  std::vector<float> row(layout.width);
  for (std::size_t i = 0; i < filled; ++i) {
    const std::size_t at = brain * capacity + (oldest + i) % capacity;
    std::memcpy(row.data(), memory.data() + at * layout.width * sizeof(float), row.size() * sizeof(float));
    append_row(layout, row, shown);
  }
  const SampleQueue& waiting = saved.host.replay.waiting;
  for (std::uint32_t i = 0; i < waiting.size(brain); ++i) append_row(layout, waiting.row(brain, i), shown);
  if (shown.count() == 0) return none_kept(brain);
  IMPRINT_CHECK(check_weights(shown.weights));  // a damaged file
  IMPRINT_CHECK(check_choices(shown));
  return shown;
}

Result<> add_demonstrations(const Demonstrations& shown, const BrainSpec& spec,
                            std::span<const StateVariable> variables, SavedBrain& saved) {
  const Learner* learner = find_learner(spec.learner);
  if (spec.keeps_demonstrations()) {
    IMPRINT_CHECK(show(shown, spec, UINT32_MAX, saved.host.replay));
    saved.host.counters.demonstrations += shown.count() * spec.brain_count;
    return {};
  }
  if (!learner || !learner->takes_demonstrations())
    return make_error(ErrorCode::unsupported,
                      text("demonstrations: learner: found ", learner_name(spec.learner),
                           ", which takes none, expected cloning or feedback."));
  IMPRINT_CHECK(check_form(shown, form_for(spec)));
  ReplayState& replay = saved.host.replay;
  const std::size_t capacity = spec.replay_capacity;
  for (std::uint32_t p = 0; p < spec.brain_count; ++p)
    if (const std::size_t wanted = shown.count() + static_cast<std::size_t>(replay.filled[p]);
        wanted > capacity)
      return make_error(ErrorCode::invalid_argument,
                        text("demonstrations: replay_capacity: found ", capacity, ", expected at least ",
                             wanted, ". Save a brain with a larger replay_capacity."));
  const SampleLayout layout = learner->layout(spec);
  std::vector<std::byte>& memory = saved.state[replay_index(variables)];
  std::vector<float> row(layout.width);
  for (std::uint32_t p = 0; p < spec.brain_count; ++p) {
    for (std::size_t i = 0; i < shown.count(); ++i) {
      const std::size_t at = p * capacity + (static_cast<std::size_t>(replay.next[p]) + i) % capacity;
      std::fill(row.begin(), row.end(), 0.0f);
      write_row(shown, i, *learner, layout, row);
      std::memcpy(memory.data() + at * layout.width * sizeof(float), row.data(), row.size() * sizeof(float));
    }
    const auto added = static_cast<std::int32_t>(shown.count());
    replay.filled[p] += added;
    replay.next[p] =
        static_cast<std::int32_t>((static_cast<std::size_t>(replay.next[p]) + shown.count()) % capacity);
  }
  saved.host.counters.demonstrations += shown.count() * spec.brain_count;
  return {};
}

}  // namespace imprint::agent
