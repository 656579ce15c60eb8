#include "tools/studio/curriculum.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "compute/base/hash.h"
#include "compute/base/json.h"
#include "compute/base/philox.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"

namespace imprint::studio {

using Json = nlohmann::json;

struct Curriculum::Reader {
  static Error refuse(const std::string& field, const std::string& found, const std::string& expected) {
    return make_error(ErrorCode::corrupt_file, text("curriculum: ", clipped(field), ": found ",
                                                    clipped(found), ", expected ", expected, "."));
  }

  static Result<double> number(const Json& from, const std::string& field) {
    constexpr double kMost = 1e100;  // so that what is drawn is finite
    if (from.is_number() && std::abs(from.get<double>()) <= kMost) return from.get<double>();
    return refuse(field, from.dump(), from.is_number() ? "a number from -1e100 to 1e100" : "a number");
  }

  // The words for what was expected instead; null: it is sound.
  static const char* problem_of(const Parameter& made) {
    const std::vector<double>& given = made.numbers;
    if (made.kind == Parameter::Kind::grid) return given.empty() ? "one number or more" : nullptr;
    if (given.size() != 2) return "two numbers";
    if (made.kind == Parameter::Kind::uniform && given[0] > given[1]) return "the lower number first";
    if (made.kind == Parameter::Kind::normal && given[1] < 0) return "a deviation of 0 or more";
    return nullptr;
  }

  static Result<> into(const Json& from, const char* name, const std::string& field, double& number_of) {
    if (!from.contains(name)) return {};
    IMPRINT_ASSIGN(number_of, number(from[name], text(field, name)));
    return {};
  }

  // Means over fewer episodes are none.
  static Result<> episodes(const Json& from, const std::string& field, double& count) {
    IMPRINT_CHECK(into(from, "episodes", field, count));
    if (count >= 1) return {};
    return refuse(field + "episodes", from["episodes"].dump(), "a number of 1 or more");
  }

  // It stands in each row of curve.csv.
  static Result<std::string> name(const Json& from, const std::string& field) {
    if (!from.is_string()) return refuse(field, from.dump(), "a text");
    const std::string& given = from.get_ref<const std::string&>();
    const bool breaks_rows = std::ranges::any_of(
        given, [](unsigned char c) { return c < 0x20 || c == 0x7F || c == ',' || c == '"'; });
    if (given.empty() || breaks_rows)
      return refuse(field, from.dump(), "a text without commas, quotes and line breaks");
    return clipped(given);
  }

  static Result<Parameter> parameter(const Json& from, const std::string& field) {
    Parameter made;
    if (from.is_number()) {
      IMPRINT_ASSIGN(const double value, number(from, field));
      made.numbers = {value};
      return made;
    }
    static const std::pair<const char*, Parameter::Kind> kKinds[] = {{"uniform", Parameter::Kind::uniform},
                                                                     {"normal", Parameter::Kind::normal},
                                                                     {"grid", Parameter::Kind::grid},
                                                                     {"adaptive", Parameter::Kind::adaptive}};
    if (from.is_object() && from.size() == 1)
      for (const auto& [name, kind] : kKinds)
        if (const auto found = from.find(name); found != from.end() && found->is_array()) {
          made.kind = kind;
          for (const Json& each : *found) {
            IMPRINT_ASSIGN(const double value, number(each, field));
            made.numbers.push_back(value);
          }
          const char* expected = problem_of(made);
          return expected ? refuse(field, found->dump(), expected) : Result<Parameter>(std::move(made));
        }
    return refuse(
        field, from.dump(),
        "a number, or {\"uniform\": [low, high]}, {\"normal\": [mean, deviation]}, {\"grid\": [...]} "
        "or {\"adaptive\": [begin, end]}");
  }

  static Result<Parameters> parameters(const Json& from, const std::string& field) {
    Parameters made;
    if (!from.contains("parameters")) return made;
    const Json& given = from["parameters"];
    if (!given.is_object()) return refuse(field + "parameters", given.dump(), "an object");
    for (const auto& [name, value] : given.items()) {
      IMPRINT_ASSIGN(made[name], parameter(value, text(field, "parameters.", name)));
    }
    return made;
  }

  static Result<> known(const Json& from, const std::string& field,
                        std::initializer_list<const char*> names) {
    if (!from.is_object()) return refuse(field.empty() ? "file" : field, from.dump(), "an object");
    for (const auto& [name, value] : from.items())
      if (std::ranges::find(names, name) == names.end()) {
        std::string list;
        for (const char* each : names) list += text(list.empty() ? "" : ", ", each);
        return refuse(field + name, "an unknown name", list);
      }
    return {};
  }
};

Result<Curriculum> Curriculum::parse(const std::string& json) {
  const auto parsed = parse_json(json);
  if (!parsed)
    return make_error(ErrorCode::corrupt_file,
                      text("curriculum: file: ", parsed.error().message, ", expected an object."));
  const Json& given = *parsed;
  IMPRINT_CHECK(Reader::known(given, "", {"parameters", "lessons", "adapt"}));
  Curriculum made;
  IMPRINT_ASSIGN(made.parameters_, Reader::parameters(given, ""));
  if (given.contains("adapt")) {
    const Json& adapt = given["adapt"];
    IMPRINT_CHECK(Reader::known(adapt, "adapt.", {"score", "episodes", "step"}));
    IMPRINT_CHECK(Reader::into(adapt, "score", "adapt.", made.adapt_score_));
    IMPRINT_CHECK(Reader::episodes(adapt, "adapt.", made.adapt_episodes_));
    IMPRINT_CHECK(Reader::into(adapt, "step", "adapt.", made.adapt_step_));
    if (!(made.adapt_step_ > 0 && made.adapt_step_ <= 1))
      return Reader::refuse("adapt.step", adapt["step"].dump(), "a number above 0, at most 1");
  }
  if (!given.contains("lessons")) return made;
  if (!given["lessons"].is_array()) return Reader::refuse("lessons", given["lessons"].dump(), "a list");
  for (const Json& each : given["lessons"]) {
    const std::string field = text("lessons[", made.lessons_.size(), "].");
    IMPRINT_CHECK(Reader::known(each, field, {"name", "parameters", "score", "episodes"}));
    Lesson lesson;
    lesson.name = text("lesson ", made.lessons_.size() + 1);
    if (each.contains("name")) {
      IMPRINT_ASSIGN(lesson.name, Reader::name(each["name"], field + "name"));
    }
    lesson.score = std::nan("");
    IMPRINT_ASSIGN(lesson.parameters, Reader::parameters(each, field));
    IMPRINT_CHECK(Reader::into(each, "score", field, lesson.score));
    IMPRINT_CHECK(Reader::episodes(each, field, lesson.episodes));
    const bool last = made.lessons_.size() + 1 == given["lessons"].size();
    if (!last && std::isnan(lesson.score))
      return Reader::refuse(field + "score", "none", "a number: only the last lesson has no end");
    made.lessons_.push_back(std::move(lesson));
  }
  return made;
}

Result<Curriculum> Curriculum::read(const std::string& path) {
  const auto bytes = read_file(path);
  if (!bytes) return make_error(bytes.error().code, text("curriculum: ", bytes.error().message));
  Result<Curriculum> made = parse({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (!made) return make_error(made.error().code, text(quote(path), ": ", made.error().message));
  return made;
}

bool Curriculum::has_parameters() const {
  return !parameters_.empty() ||
         std::ranges::any_of(lessons_, [](const Lesson& lesson) { return !lesson.parameters.empty(); });
}

const std::string& Curriculum::lesson_name() const {
  static const std::string none;
  return lessons_.empty() ? none : lessons_[lesson_].name;
}

std::map<std::string, double> Curriculum::draw(std::uint64_t seed, std::uint64_t episode) const {
  Parameters all = parameters_;
  if (!lessons_.empty())
    for (const auto& [name, parameter] : lessons_[lesson_].parameters) all[name] = parameter;
  std::map<std::string, double> drawn;
  for (const auto& [name, parameter] : all) {
    // A stream of its own for each name: another parameter does not change what this one draws.
    const Hash128 stream = Hasher().text(name).digest();
    const PhiloxCounter bits =
        philox({static_cast<std::uint32_t>(episode), static_cast<std::uint32_t>(episode >> 32),
                static_cast<std::uint32_t>(stream.low), static_cast<std::uint32_t>(stream.low >> 32)},
               {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    const double u = (static_cast<double>(bits[0]) + 0.5) / 4294967296.0,
                 v = (static_cast<double>(bits[1]) + 0.5) / 4294967296.0;
    const std::vector<double>& given = parameter.numbers;
    switch (parameter.kind) {
      case Parameter::Kind::constant:
        drawn[name] = given[0];
        break;
      case Parameter::Kind::uniform:
        drawn[name] = given[0] + u * (given[1] - given[0]);
        break;
      case Parameter::Kind::adaptive:
        drawn[name] = given[0] + u * reach_ * (given[1] - given[0]);
        break;
      case Parameter::Kind::normal:  // Box, Muller, A Note on the Generation of Random Normal Deviates, 1958
        drawn[name] = given[0] + given[1] * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
        break;
      case Parameter::Kind::grid:
        drawn[name] = given[std::min(given.size() - 1,
                                     static_cast<std::size_t>(u * static_cast<double>(given.size())))];
        break;
    }
  }
  return drawn;
}

bool Curriculum::take(double score_sum, double episodes) {
  if (episodes <= 0) return false;
  bool changed = false;
  if (lesson_ + 1 < lessons_.size()) {
    sum_ += score_sum;
    count_ += episodes;
    if (count_ >= lessons_[lesson_].episodes) {
      if (sum_ / count_ >= lessons_[lesson_].score) {
        ++lesson_;
        changed = true;
      }
      sum_ = count_ = 0;
    }
  }
  adapt_sum_ += score_sum;
  adapt_count_ += episodes;
  if (adapt_count_ < adapt_episodes_) return changed;
  const double mean = adapt_sum_ / adapt_count_, before = reach_;
  if (mean >= adapt_score_)
    reach_ = std::min(1.0, reach_ + adapt_step_);
  else if (mean < adapt_score_ - 0.5 * std::abs(adapt_score_))
    reach_ = std::max(0.0, reach_ - adapt_step_);
  adapt_sum_ = adapt_count_ = 0;
  return changed || reach_ != before;
}

void Curriculum::set_state(const std::vector<double>& state) {
  const auto number = [&](std::size_t i) { return std::isfinite(state[i]) ? state[i] : 0.0; };
  const double last = lessons_.empty() ? 0 : static_cast<double>(lessons_.size() - 1);
  lesson_ = static_cast<std::size_t>(std::clamp(number(0), 0.0, last));
  reach_ = std::clamp(number(1), 0.0, 1.0);
  sum_ = number(2);
  count_ = number(3);
  adapt_sum_ = number(4);
  adapt_count_ = number(5);
}

}  // namespace imprint::studio
