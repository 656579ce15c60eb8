#include "tools/pages/tables.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "compute/base/text.h"

namespace imprint::pages {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kTable = "table:", kEnd = "end of table", kColumnsOf = "columns:";

struct Column {
  const char *name, *title;
  const char* field;  // as a JSON pointer into a result of imprint bench
  double scale = 1;
  bool whole = false;    // a count
  bool written = false;  // a figure from elsewhere: with the digits that the file has
};
constexpr Column kColumns[] = {
    {"gpu", "GPU", "/gpu_us/median"},
    {"p95", "p95", "/gpu_us/p95"},
    {"p99", "p99", "/gpu_us/p99"},
    {"replayed", "replayed", "/replayed_gpu_us/median"},
    {"pieces", "pieces", "/pieces_gpu_us/median"},
    {"chained", "chained", "/chained_gpu_us/median"},
    {"wall", "wall", "/wall_us/median"},
    {"cpu", "CPU", "/frame_cpu_us/median"},
    {"dearest", "longest", "/most_us"},
    {"waits", "waits", "/waits", 1, true},
    {"dispatches", "dispatches", "/dispatches", 1, true},
    {"barriers", "barriers", "/barriers", 1, true},
    {"kB", "kB", "/bytes", 1e-3},
    {"kFLOP", "kFLOP", "/flops", 1e-3},
    {"GB/s", "GB/s", "/gb_per_s"},
    {"TFLOP/s", "TFLOP/s", "/tflop_per_s"},
    {"Msteps/s", "M steps/s", "/steps_per_s", 1e-6},
    // Fields of imprint_studio_bench.
    {"ranks", "processes", "/ranks", 1, true},
    {"ksteps/s", "k samples/s", "/steps_per_s", 1e-3},
    {"sums", "in sums, %", "/sums_share", 100},
    {"score", "score", "/score"},
    {"loss", "loss", "/loss"},
    {"MiB", "MiB per process", "/memory_mib"},
    // Figures that no command here measures.
    {"target", "target", "/target", 1, false, true},
    {"hand_written", "hand-written, limit", "/hand_written", 1, false, true},
    {"pytorch", "PyTorch", "/pytorch", 1, false, true},
};

// The parts of a marker.
struct Wanted {
  std::string file;
  std::vector<std::string> rows, columns;
};

Wanted wanted_by(std::string_view marker) {
  Wanted wanted;
  marker.remove_prefix(kTable.size());
  for (bool first = true; !marker.empty(); first = false) {
    const std::size_t end = std::min(marker.find('|'), marker.size());
    const std::string_view part = trimmed(marker.substr(0, end));
    marker.remove_prefix(std::min(end + 1, marker.size()));
    if (first) {
      wanted.file = part;
    } else if (part.starts_with(kColumnsOf)) {
      std::istringstream words{std::string(part.substr(kColumnsOf.size()))};
      for (std::string word; words >> word;) wanted.columns.push_back(word);
    } else {
      wanted.rows.emplace_back(part);
    }
  }
  return wanted;
}

// 0.76 -> "0.76", 19.2 -> "19.2", 1622 -> "1,622"
std::string number(double value, bool whole) {
  char digits[32];
  const double size = std::abs(value);
  std::snprintf(digits, sizeof digits, "%.*f", whole || size >= 999.95 ? 0 : size < 1 ? 2 : 1, value);
  std::string out = digits;
  const std::size_t point = std::min(out.find('.'), out.size());
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t i = point; i > first + 3; i -= 3) out.insert(i - 3, ",");
  return out;
}

// A measurement that does not apply is 0 in the file and empty in the table; a count of 0 is one.
std::string cell(const Json& result, const Column& column) {
  const Json::json_pointer field(column.field);
  if (!result.contains(field) || !result[field].is_number()) return "";
  if (column.written) return result[field].dump();
  const double value = result[field].get<double>() * column.scale;
  return value == 0 && !column.whole ? "" : number(value, column.whole);
}

bool is_wanted(const Wanted& wanted, const std::string& name, const std::vector<std::string>& all) {
  if (wanted.rows.empty()) return true;
  return std::ranges::any_of(wanted.rows, [&](const std::string& row) {
    return std::ranges::find(all, row) != all.end() ? row == name : name.starts_with(row);
  });
}

std::string line_of(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& one : cells) line += " " + one + (one.empty() ? "|" : " |");
  return line + "\n";
}

std::string rule(std::size_t columns, std::size_t left) {
  std::string line = "|";
  for (std::size_t i = 0; i < columns; ++i) line += i < left ? " --- |" : " --: |";
  return line + "\n";
}

// The source of the figures: device, driver, day, command.
std::string origin(const Json& file) {
  std::string line = file.value("device", "");
  if (const std::string driver = file.value("driver", ""); !driver.empty()) line += ", " + driver;
  if (const std::string date = file.value("date", ""); !date.empty()) line += ", " + date;
  if (const std::string command = file.value("command", ""); !command.empty()) line += ": `" + command + "`";
  return line + "\n\n";
}

Result<std::string> bench_table(const Json& file, const Wanted& wanted) {
  std::vector<const Column*> columns;
  for (const std::string& name : wanted.columns) {
    const auto column =
        std::ranges::find(kColumns, name, [](const Column& c) { return std::string(c.name); });
    if (column == std::end(kColumns))
      return make_error(ErrorCode::invalid_argument,
                        "column: found '" + name + "', expected one of kColumns");
    columns.push_back(column);
  }
  if (columns.empty())
    return make_error(ErrorCode::invalid_argument, "columns: found none, expected the names of some");
  std::vector<std::string> head{"benchmark"}, names;
  for (const Column* column : columns) head.emplace_back(column->title);
  for (const Json& result : file["results"]) names.push_back(result.value("name", ""));
  std::string out = line_of(head) + rule(head.size(), 1);
  for (const Json& result : file["results"]) {
    const std::string name = result.value("name", "");
    if (!is_wanted(wanted, name, names)) continue;
    std::vector<std::string> row{"`" + name + "`"};
    for (const Column* column : columns) row.push_back(cell(result, *column));
    out += line_of(row);
  }
  return out;
}

// A text in which each {FILE NAME COLUMN} becomes that figure: of a file of imprint bench beside the table's,
// a result's name, and one of kColumns.
Result<std::string> with_figures(const fs::path& folder, const std::string& words) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t open; (open = words.find('{', at)) != std::string::npos;) {
    out += words.substr(at, open - at);
    const std::size_t close = std::min(words.find('}', open), words.size());
    std::istringstream parts(words.substr(open + 1, close - open - 1));
    std::string name, wanted, column_name;
    parts >> name >> wanted >> column_name;
    const Json file = Json::parse(read(folder / name), nullptr, false);
    const auto column = std::ranges::find(kColumns, std::string_view(column_name),
                                          [](const Column& one) { return std::string_view(one.name); });
    std::string figure;
    if (file.is_object() && file.contains("results") && column != std::end(kColumns))
      for (const Json& result : file["results"])
        if (result.value("name", "") == wanted) figure = cell(result, *column);
    if (figure.empty())
      return make_error(ErrorCode::not_found, "found no figure for " + words.substr(open, close + 1 - open) +
                                                  ", expected {FILE NAME COLUMN} of a measured file");
    out += figure;
    at = std::min(close + 1, words.size());
  }
  return out + words.substr(at);
}

Result<std::string> text_table(const fs::path& folder, const Json& file, const Wanted& wanted) {
  const auto head = file["columns"].get<std::vector<std::string>>();
  std::vector<std::string> names;
  for (const Json& row : file["rows"]) names.push_back(row.at(0).get<std::string>());
  std::string out = line_of(head) + rule(head.size(), file.value("left", 1u));
  for (const Json& row : file["rows"])
    if (is_wanted(wanted, row.at(0).get<std::string>(), names)) {
      auto cells = row.get<std::vector<std::string>>();
      for (std::string& words : cells) {
        IMPRINT_ASSIGN(words, with_figures(folder, words));
      }
      out += line_of(cells);
    }
  return out;
}

Result<std::string> table(const fs::path& folder, const Wanted& wanted) {
  const Json file = Json::parse(read(folder / wanted.file), nullptr, false);
  if (!file.is_object() ||
      (!file.contains("results") && !(file.contains("columns") && file.contains("rows"))))
    return make_error(
        ErrorCode::corrupt_file,
        wanted.file + ": found no measurements, expected JSON of imprint bench, or columns and rows");
  std::string rows;
  if (file.contains("results")) {
    IMPRINT_ASSIGN(rows, bench_table(file, wanted));
  } else {
    IMPRINT_ASSIGN(rows, text_table((folder / wanted.file).parent_path(), file, wanted));
  }
  if (std::ranges::count(rows, '\n') < 3)
    return make_error(ErrorCode::not_found, wanted.file + ": found none of the rows, expected at least one");
  return origin(file) + rows;
}

}  // namespace

Result<std::string> with_tables(const fs::path& root, const Page& page) {
  std::string out;
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    out += page.lines[i] + "\n";
    const std::string marker = comment_in(page.lines[i]);
    if (!marker.starts_with(kTable)) continue;
    auto written = table(root / page.path.parent_path(), wanted_by(marker));
    const std::string where = text(page.path.generic_string(), ':', i + 1, ": ");
    if (!written) return make_error(written.error().code, where + written.error().message);
    while (++i < page.lines.size() && comment_in(page.lines[i]) != kEnd) {
    }
    if (i == page.lines.size())
      return make_error(ErrorCode::corrupt_file,
                        where + "found a table without an end, expected <!-- end of table -->");
    out += *written + page.lines[i] + "\n";
  }
  return out;
}

}  // namespace imprint::pages
