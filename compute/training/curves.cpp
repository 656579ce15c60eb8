#include "compute/training/curves.h"

#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "compute/base/json.h"
#include "compute/base/text.h"
#include "compute/model/files/event_file.h"
#include "compute/model/files/file.h"
#include "compute/training/checkpoint.h"

namespace imprint::training {
namespace {

constexpr const char* kTable = "curves.csv";
constexpr const char* kLines = "curves.jsonl";
constexpr const char* kEvents = "events.out.tfevents.imprint";
constexpr std::string_view kColumns = "epoch,step,split,rate,loss,samples_per_second";
constexpr std::size_t kColumnCount = 6;

std::filesystem::path path_in(const std::string& folder, const char* name) {
  return std::filesystem::path(folder) / name;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string csv_line(const CurveRow& row) {
  std::string line = text(row.epoch, ",", row.step, ",", row.split, ",", exact(row.rate), ",",
                          exact(row.loss), ",", exact(row.samples_per_second));
  for (const double metric : row.metrics) line += "," + exact(metric);
  return line + "\n";
}

std::string json_line(const std::vector<std::string>& names, const CurveRow& row) {
  nlohmann::ordered_json line{{"epoch", row.epoch}, {"step", row.step},
                              {"split", row.split}, {"rate", row.rate},
                              {"loss", row.loss},   {"samples_per_second", row.samples_per_second}};
  for (std::size_t i = 0; i < std::min(names.size(), row.metrics.size()); ++i)
    line[names[i]] = row.metrics[i];
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

EventValues event_of(const std::vector<std::string>& names, const CurveRow& row) {
  EventValues event{.wall_s = wall_seconds(), .step = row.step};
  event.values = {{"loss/" + row.split, row.loss},
                  {"samples_per_second/" + row.split, row.samples_per_second}};
  if (row.split == "training") event.values.emplace_back("rate", row.rate);
  for (std::size_t i = 0; i < std::min(names.size(), row.metrics.size()); ++i)
    event.values.emplace_back(names[i] + "/" + row.split, row.metrics[i]);
  return event;
}

Result<> append(const std::filesystem::path& path, const std::string& head, const std::string& row) {
  const bool is_new = !std::filesystem::exists(path);
  std::ofstream file(path, std::ios::binary | std::ios::app);
  if (is_new) file << head;
  file << row;
  file.flush();
  if (!file)
    return make_error(ErrorCode::io, text(path.string(), ": found no room or no permission to write"));
  return {};
}

std::vector<std::string_view> parts_of(std::string_view line) {
  std::vector<std::string_view> parts;
  for (std::size_t comma = 0; comma != line.npos; line.remove_prefix(comma == line.npos ? 0 : comma + 1)) {
    comma = line.find(',');
    parts.push_back(line.substr(0, comma));
  }
  return parts;
}

template <class Number>
bool number_from(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool row_from(std::string_view line, std::size_t columns, CurveRow& row) {
  const std::vector<std::string_view> parts = parts_of(line);
  if (parts.size() != columns) return false;
  bool fits = number_from(parts[0], row.epoch) && number_from(parts[1], row.step) &&
              number_from(parts[3], row.rate) && number_from(parts[4], row.loss) &&
              number_from(parts[5], row.samples_per_second);
  row.split = parts[2];
  for (std::size_t i = kColumnCount; i < columns; ++i)
    fits = fits && number_from(parts[i], row.metrics.emplace_back());
  return fits;
}

Result<std::string> content_of(const std::filesystem::path& path) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(path.string()));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// The file with the lines that `keeps` chooses.
template <class Keeps>
Result<> filter_lines(const std::filesystem::path& path, Keeps keeps) {
  if (!std::filesystem::exists(path)) return {};
  IMPRINT_ASSIGN(const std::string all, content_of(path));
  std::string kept;
  for (std::size_t at = 0, end = 0; (end = all.find('\n', at)) != all.npos; at = end + 1)
    if (keeps(all.substr(at, end - at))) kept += all.substr(at, end - at + 1);
  return write_file_atomic(path.string(), std::as_bytes(std::span(kept)));
}

}  // namespace

Result<Curves> read_curves(const std::string& csv_path) {
  IMPRINT_ASSIGN(const std::string all, content_of(csv_path));
  Curves curves;
  std::size_t columns = 0, number = 0;
  for (std::size_t at = 0, end = 0; (end = all.find('\n', at)) != all.npos; at = end + 1) {
    const std::string_view line = std::string_view(all).substr(at, end - at);
    if (++number == 1) {
      if (!line.starts_with(kColumns))
        return make_error(ErrorCode::corrupt_file,
                          text(csv_path, ": line 1: expected the columns ", kColumns));
      const std::vector<std::string_view> names = parts_of(line);
      columns = names.size();
      curves.metric_names.assign(names.begin() + kColumnCount, names.end());
      continue;
    }
    if (!row_from(line, columns, curves.rows.emplace_back()))
      return make_error(ErrorCode::corrupt_file, text(csv_path, ": line ", number, ": expected ", columns,
                                                      " cells: numbers, and the split's name"));
  }
  return curves;
}

Result<> add_curve(const std::string& folder, const std::vector<std::string>& metric_names,
                   const CurveRow& row) {
  std::string head(kColumns);
  for (const std::string& name : metric_names) head += "," + name;
  IMPRINT_CHECK(append(path_in(folder, kTable), head + "\n", csv_line(row)));
  IMPRINT_CHECK(append(path_in(folder, kLines), "", json_line(metric_names, row)));
  return append(path_in(folder, kEvents), event_head(wall_seconds()),
                event_record(event_of(metric_names, row)));
}

Result<> cut_curves(const std::string& folder, std::int64_t step) {
  if (step < 0) {  // a run from the start, which may have other metrics
    std::error_code ignored;
    for (const char* name : {kTable, kLines, kEvents})
      std::filesystem::remove(path_in(folder, name), ignored);
    return {};
  }
  bool is_head = true;
  IMPRINT_CHECK(filter_lines(path_in(folder, kTable), [&](const std::string& line) {
    const std::vector<std::string_view> parts = parts_of(line);
    std::int64_t at = 0;
    return std::exchange(is_head, false) || (parts.size() > 1 && number_from(parts[1], at) && at <= step);
  }));
  IMPRINT_CHECK(filter_lines(path_in(folder, kLines), [&](const std::string& line) {
    const Result<nlohmann::json> row = parse_json(line);
    return row && row->is_object() && row->contains("step") && (*row)["step"].is_number_integer() &&
           (*row)["step"].get<std::int64_t>() <= step;
  }));
  const std::filesystem::path events = path_in(folder, kEvents);
  if (!std::filesystem::exists(events)) return {};
  IMPRINT_ASSIGN(const std::string all, content_of(events));
  const std::string kept = events_up_to(all, step);
  return write_file_atomic(events.string(), std::as_bytes(std::span(kept)));
}

bool is_curve_file(std::string_view name) { return name == kTable || name == kLines || name == kEvents; }

}  // namespace imprint::training
