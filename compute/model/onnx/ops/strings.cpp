// Strings, which must be known, and counts of words. Strings of a model or of known inputs are of the host;
// what is computed at run time are numbers.

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "compute/base/text.h"
#include "compute/model/onnx/op.h"
#include "compute/tensor/composites/composites.h"

namespace imprint::onnx {
namespace {

using Strings = std::vector<std::string>;

// Strings of an input that is known. Their letters count as constants.
const Strings* known_strings(OpContext& context, int input) {
  const Value& value = context.value(input);
  if (!value.is_tensor() || value.type() != ElementType::string || !value.host()) {
    context.unsupported(text("input ", input, ": found ", value.text(), ", expected strings that are known"));
    return nullptr;
  }
  const Strings& strings = value.host()->strings;
  std::size_t letters = 0;
  for (const std::string& one : strings) letters += one.size();
  if (!context.mover().may_fold(ElementType::string,
                                static_cast<std::int64_t>(strings.size() + letters / sizeof(std::string)))) {
    context.unsupported("strings of this size");
    return nullptr;
  }
  return &strings;
}

void set_strings(OpContext& context, Strings strings, const Shape& shape) {
  HostArray out;
  out.type = ElementType::string;
  out.shape = shape;
  out.strings = std::move(strings);
  context.set(0, Value::known(std::move(out)));
}

std::string turned_case(std::string word, const std::string& action) {
  for (char& letter : word) {
    if (action == "LOWER" && letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    if (action == "UPPER" && letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return word;
}

// [n] or [1, n]: drops stop words and changes the case of English letters.
void string_normalizer(OpContext& context) {
  const Strings* words = known_strings(context, 0);
  if (!words) return;
  const Shape& shape = context.shape(0);
  if (!context.require(shape.rank() == 1 || (shape.rank() == 2 && shape[0] == 1),
                       "expected [n] or [1, n], not " + shape.text()))
    return;
  const std::string action = context.string_attribute("case_change_action", "NONE");
  const bool exact = context.int_attribute("is_case_sensitive", 0) != 0;
  const auto key = [&](const std::string& word) { return exact ? word : turned_case(word, "LOWER"); };
  std::set<std::string> stops;
  for (const std::string& word : context.strings_attribute("stopwords")) stops.insert(key(word));
  Strings kept;
  for (const std::string& word : *words)
    if (!stops.contains(key(word))) kept.push_back(turned_case(word, action));
  if (kept.empty()) kept.emplace_back();
  const auto count = static_cast<std::int64_t>(kept.size());
  set_strings(context, std::move(kept), shape.rank() == 1 ? Shape{count} : Shape{1, count});
}

void string_concat(OpContext& context) {
  const Strings *a = known_strings(context, 0), *b = known_strings(context, 1);
  if (!a || !b) return;
  const bool one_a = a->size() == 1, one_b = b->size() == 1;
  if (!context.require(context.shape(0) == context.shape(1) || one_a || one_b, "the shapes differ")) return;
  const bool by_a = !one_a || (one_b && context.shape(0).rank() >= context.shape(1).rank());
  Strings out;
  const std::size_t count = by_a ? a->size() : b->size();
  std::size_t letters = 0;
  for (std::size_t i = 0; i < count; ++i) letters += (*a)[one_a ? 0 : i].size() + (*b)[one_b ? 0 : i].size();
  if (!context.mover().may_fold(ElementType::string,
                                static_cast<std::int64_t>(count + letters / sizeof(std::string))))
    return context.unsupported("strings of this size");
  for (std::size_t i = 0; i < count; ++i) out.push_back((*a)[one_a ? 0 : i] + (*b)[one_b ? 0 : i]);
  set_strings(context, std::move(out), context.shape(by_a ? 0 : 1));
}

// ---- counts of words ----

struct Grams {
  Extents pool;                // words of all n-grams
  Extents begins;              // where those of length 1, 2, .. begin in the pool
  Extents columns;             // the output's column of each
  std::vector<float> weights;  // empty: 1
  std::int64_t least = 1, most = 1, skips = 0;
};

// Strings become the number of an equal string of the pool, or -1.
Tensor numbered(OpContext& context, Grams& grams) {
  if (context.value(0).type() != ElementType::string) {
    grams.pool = context.ints_attribute("pool_int64s");
    return imprint::cast(context.tensor(0), DType::int32);
  }
  std::map<std::string, std::int64_t> numbers;
  for (const std::string& word : context.strings_attribute("pool_strings"))
    grams.pool.push_back(numbers.emplace(word, static_cast<std::int64_t>(numbers.size())).first->second);
  const Strings* words = known_strings(context, 0);
  if (!words) return Tensor();
  std::vector<std::int32_t> out;
  for (const std::string& word : *words) {
    const auto found = numbers.find(word);
    out.push_back(found == numbers.end() ? -1 : static_cast<std::int32_t>(found->second));
  }
  return Tensor::from_ints(out, context.shape(0));
}

bool reads_grams(OpContext& context, Grams& grams) {
  grams.begins = context.ints_attribute("ngram_counts");
  grams.columns = context.ints_attribute("ngram_indexes");
  grams.weights = context.floats_attribute("weights");
  grams.least = context.int_attribute("min_gram_length", 1);
  grams.most = context.int_attribute("max_gram_length", 1);
  grams.skips = context.int_attribute("max_skip_count", 0);
  bool sane = grams.least >= 1 && grams.most >= grams.least && grams.most <= 64 && grams.skips >= 0 &&
              grams.skips <= 1024 && static_cast<std::size_t>(grams.most) <= grams.begins.size() &&
              (grams.weights.empty() || grams.weights.size() == grams.columns.size());
  const auto words = static_cast<std::int64_t>(grams.pool.size());
  std::size_t all = 0;
  for (std::size_t n = 1; sane && n <= grams.begins.size(); ++n) {
    const std::int64_t begin = grams.begins[n - 1], end = n < grams.begins.size() ? grams.begins[n] : words;
    sane = begin >= 0 && begin <= end && end <= words && (end - begin) % static_cast<std::int64_t>(n) == 0;
    if (sane) all += static_cast<std::size_t>(end - begin) / n;
  }
  sane = sane && all == grams.columns.size() && all > 0;
  for (std::size_t i = 0; sane && i < all; ++i) sane = grams.columns[i] >= 0 && grams.columns[i] < (1 << 20);
  for (const std::int64_t word : grams.pool) sane = sane && std::in_range<std::int32_t>(word);
  return context.require(sane, "the n-grams do not fit their counts and indexes");
}

// How often each n-gram of length n occurs in the rows of x: [rows, grams of this length].
Tensor occurrences(const Tensor& x, const Grams& grams, std::int64_t n, const Tensor& pool) {
  Tensor sum = imprint::zeros({x.extent(0), pool.extent(0)});
  const std::int64_t skips = n == 1 ? 0 : grams.skips;
  for (std::int64_t skip = 0; skip <= skips && (n - 1) * (skip + 1) < x.extent(1); ++skip) {
    const Tensor windows = imprint::window(x, 1, n, 1, skip + 1);  // [rows, places, n]
    const Tensor same =
        imprint::equal(imprint::unsqueeze(windows, 2), imprint::reshape(pool, {1, 1, pool.extent(0), n}));
    sum = sum + imprint::sum(imprint::cast(imprint::all(same, {3}), DType::float32), {1});
  }
  return sum;
}

void tf_idf(OpContext& context) {
  Grams grams;
  Tensor x = numbered(context, grams);
  if (context.failure() || !reads_grams(context, grams)) return;
  const bool flat = x.rank() == 1;
  if (flat) x = imprint::unsqueeze(x, 0);
  if (!context.require(x.rank() == 2, "expected [n] or [rows, n], not " + x.shape().text()) ||
      !context.may_make((grams.most - grams.least + 1) * (grams.skips + 1) * 16))
    return;
  const std::int64_t width = *std::max_element(grams.columns.begin(), grams.columns.end()) + 1;
  if (!context.mover().may_fold(ElementType::int64, width + static_cast<std::int64_t>(grams.pool.size())))
    return context.unsupported("constants of this size");
  std::vector<Tensor> parts;
  for (std::size_t n = 1; n <= grams.begins.size(); ++n) {
    const std::int64_t begin = grams.begins[n - 1];
    const std::int64_t end =
        n < grams.begins.size() ? grams.begins[n] : static_cast<std::int64_t>(grams.pool.size());
    const std::int64_t count = (end - begin) / static_cast<std::int64_t>(n);
    if (count == 0) continue;
    const auto length = static_cast<std::int64_t>(n);
    context.checked(Extents{x.extent(0), x.extent(1), count, length});
    if (context.failure()) return;
    const std::vector<std::int32_t> words(grams.pool.begin() + begin, grams.pool.begin() + end);
    parts.push_back(length < grams.least || length > grams.most
                        ? imprint::zeros({x.extent(0), count})
                        : occurrences(x, grams, length, Tensor::from_ints(words, {count, length})));
  }
  Tensor found = imprint::concat(parts, 1);
  const std::string mode = context.string_attribute("mode", "TF");
  if (mode == "IDF") found = imprint::cast(found > 0.0f, DType::float32);
  if (mode != "TF" && !grams.weights.empty())
    found = found * Tensor::from(grams.weights, {static_cast<std::int64_t>(grams.weights.size())});
  std::vector<std::int32_t> from(static_cast<std::size_t>(width), -1);
  for (std::size_t i = 0; i < grams.columns.size(); ++i) {
    std::int32_t& column = from[static_cast<std::size_t>(grams.columns[i])];
    if (column >= 0) {
      context.require(false, text("ngram_indexes: found ", grams.columns[i], " twice"));
      return;
    }
    column = static_cast<std::int32_t>(i);
  }
  const Tensor out = imprint::take(found, 1, Tensor::from_ints(from, {width}));
  context.set(0, flat ? imprint::squeeze(out, 0) : out, ElementType::float32);
}

constexpr std::array kTextOps{
    OpHandler{"StringNormalizer", string_normalizer, nullptr, Takes::text},
    OpHandler{"StringConcat", string_concat, nullptr, Takes::text},
    OpHandler{"TfIdfVectorizer", tf_idf, nullptr, Takes::text},
};

template <class Number>
std::optional<Number> number_in(const std::string& word) {
  const char* begin = word.data() + (word.starts_with("+") ? 1 : 0);
  Number value{};
  const auto [end, error] = std::from_chars(begin, word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

}  // namespace

std::span<const OpHandler> text_ops() { return kTextOps; }

// Casts between known strings and numbers. False when neither side has strings.
bool cast_text(OpContext& context, ElementType to) {
  const Value from = context.value(0);
  if (from.type() != ElementType::string && to != ElementType::string) return false;
  const HostArray* host = from.host();
  constexpr std::int64_t kStringsPerNumber = 3;  // in memory: the digits of many lie beside the string
  std::int64_t most = (to == ElementType::string ? kStringsPerNumber : 1) * from.shape().element_count();
  if (from.type() == ElementType::string && host)  // all digits of a number are read
    for (const std::string& word : host->strings)
      most += static_cast<std::int64_t>(word.size() / sizeof(std::string));
  if (!from.foldable() || !context.mover().may_fold(ElementType::string, most)) {
    context.unsupported("a cast of numbers of run time to strings");
    return true;
  }
  HostArray out;
  out.type = to;
  out.shape = host->shape;
  if (from.type() == to) {
    context.set(0, from);
  } else if (to == ElementType::string) {
    out.strings.reserve(static_cast<std::size_t>(host->shape.element_count()));
    for (const float value : host->floats) out.strings.push_back(text(value));
    for (const std::int64_t value : host->ints) out.strings.push_back(text(value));
    context.set(0, Value::known(std::move(out)));
  } else {
    out.type = is_float(to) ? ElementType::float32 : ElementType::int64;
    for (const std::string& word : host->strings) {
      const std::optional<double> value = number_in<double>(word);
      if (!context.require(value.has_value(), "a string is no number")) return true;
      if (is_float(to)) {
        out.floats.own().push_back(static_cast<float>(*value));
        continue;
      }
      if (!context.require(*value > -0x1p62 && *value < 0x1p62, "a number is out of range")) return true;
      // A whole number keeps all of its digits.
      const std::int64_t whole = number_in<std::int64_t>(word).value_or(static_cast<std::int64_t>(*value));
      out.ints.push_back(to == ElementType::boolean ? *value != 0 : whole);
    }
    out = cast_known(out, to);
    context.set(0, Value::known(std::move(out)));
  }
  return true;
}

}  // namespace imprint::onnx
