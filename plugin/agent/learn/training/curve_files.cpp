// Curves as files: tables of text, and TensorBoard's event files.

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "compute/base/text.h"
#include "compute/model/files/event_file.h"
#include "compute/model/files/file.h"
#include "plugin/agent/learn/training/curves.h"

namespace imprint::agent {
namespace {

// As few digits as tell it from others; empty: it is not finite.
std::string digits(double value) {
  std::array<char, 64> number{};
  if (!std::isfinite(value)) return "";
  return {number.data(), std::to_chars(number.data(), number.data() + number.size(), value).ptr};
}

}  // namespace

std::vector<std::string> curve_names() {
  std::vector<std::string> names = {"return", "length", "loss"};
#define IMPRINT_ENTRY(name) names.emplace_back(#name);
  IMPRINT_METRICS(IMPRINT_ENTRY)
#undef IMPRINT_ENTRY
  for (const char* count : {"minibatches", "episodes", "used_samples", "dropped_intake", "dropped_stale",
                            "dropped_unfollowed", "uncredited"})
    names.emplace_back(count);
  return names;
}

std::vector<double> curve_values(const CurveRow& row) {
  std::vector<double> values = {double{row.mean_return}, double{row.mean_length}, double{row.loss}};
  values.insert(values.end(), row.metrics.begin(), row.metrics.end());
  for (const std::uint64_t count :
       {row.counters.minibatches, row.counters.episodes, row.used, row.lost.intake, row.lost.stale,
        row.lost.unfollowed, row.lost.uncredited})
    values.push_back(static_cast<double>(count));
  return values;
}

std::string curves_as_csv(const std::vector<CurveRow>& rows) {
  std::string file = "wall_s,decisions";
  for (const std::string& name : curve_names()) file += "," + name;
  file += "\n";
  for (const CurveRow& row : rows) {
    file += text(digits(row.wall_s), ",", row.counters.decisions);
    for (const double value : curve_values(row)) file += "," + digits(value);
    file += "\n";
  }
  return file;
}

std::string curves_as_events(const std::vector<CurveRow>& rows) {
  std::string file = event_head(rows.empty() ? 0 : rows.front().wall_s);
  const std::vector<std::string> names = curve_names();
  for (const CurveRow& row : rows) {
    EventValues event{.wall_s = row.wall_s, .step = static_cast<std::int64_t>(row.counters.decisions)};
    const std::vector<double> values = curve_values(row);
    for (std::size_t i = 0; i < names.size(); ++i) event.values.emplace_back(names[i], values[i]);
    file += event_record(event);
  }
  return file;
}

Result<> write_curves(const std::string& path, const std::vector<CurveRow>& rows) {
  const bool events = path.find("tfevents", path.find_last_of("/\\") + 1) != std::string::npos;
  const std::string file = events ? curves_as_events(rows) : curves_as_csv(rows);
  const Result<> written = write_file_atomic(path, std::as_bytes(std::span(file)));
  if (!written)
    return make_error(written.error().code, text("brain_write_curves: ", written.error().message));
  return {};
}

}  // namespace imprint::agent
