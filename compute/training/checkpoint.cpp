#include "compute/training/checkpoint.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>

#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"

namespace imprint::training {
namespace {

template <class Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

std::string exact(double value) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : std::string("nan");
}

std::string decimals(double value, int count) {
  char text[512];
  if (std::isnan(value)) return "-";
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, count);
  return error == std::errc() ? std::string(text, end) : std::string("-");
}

std::string figures(double value, int count) {
  char text[64];
  if (std::isnan(value)) return "-";
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::general, count);
  return error == std::errc() ? std::string(text, end) : std::string("-");
}

std::map<std::string, std::string> metadata_of(const Position& position) {
  std::string metrics, kept;
  for (const double sum : position.sums.metrics) metrics += exact(sum) + " ";
  for (const KeptCheckpoint& each : position.kept) kept += exact(each.loss) + " " + each.file + " ";
  return {{"format", "imprint training 1"},
          {"epoch", text(position.epoch)},
          {"batch", text(position.batch)},
          {"step", text(position.step)},
          {"loss", exact(position.sums.loss)},
          {"samples", exact(position.sums.samples)},
          {"metrics", metrics},
          {"best_loss", exact(position.best_loss)},
          {"best_step", text(position.best_step)},
          {"bad_validations", text(position.bad_validations)},
          {"kept", kept}};
}

Result<Position> position_of(const std::map<std::string, std::string>& metadata) {
  const auto bad = [&](const std::string& name) {
    const auto found = metadata.find(name);
    return make_error(ErrorCode::corrupt_file, text("checkpoint: found ", name, " ",
                                                    quote(found == metadata.end() ? "" : found->second),
                                                    ", expected a checkpoint of a trainer"));
  };
  const auto value = [&](const char* name) {
    const auto found = metadata.find(name);
    return found == metadata.end() ? std::string() : found->second;
  };
  if (value("format") != "imprint training 1") return bad("format");
  Position position;
  const std::pair<const char*, std::int64_t*> counts[] = {{"epoch", &position.epoch},
                                                          {"batch", &position.batch},
                                                          {"step", &position.step},
                                                          {"best_step", &position.best_step},
                                                          {"bad_validations", &position.bad_validations}};
  for (const auto& [name, target] : counts) {
    if (target == &position.best_step && !metadata.contains(name)) continue;  // a file of an older version
    if (!read_number(value(name), *target) || *target < 0) return bad(name);
  }
  const std::pair<const char*, double*> numbers[] = {
      {"loss", &position.sums.loss}, {"samples", &position.sums.samples}, {"best_loss", &position.best_loss}};
  for (const auto& [name, target] : numbers)
    if (!read_number(value(name), *target)) return bad(name);
  for (const std::string& word : words_of(value("metrics")))
    if (!read_number(word, position.sums.metrics.emplace_back())) return bad("metrics");
  const std::vector<std::string> kept = words_of(value("kept"));
  if (kept.size() % 2 != 0) return bad("kept");
  for (std::size_t i = 0; i < kept.size(); i += 2) {
    KeptCheckpoint& each = position.kept.emplace_back();
    each.file = kept[i + 1];
    // A name that leaves the folder would delete a file elsewhere.
    if (!read_number(kept[i], each.loss) || !is_file_name(each.file)) return bad("kept");
  }
  return position;
}

}  // namespace imprint::training
