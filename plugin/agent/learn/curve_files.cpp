// Curves as files. Event files are records of protocol buffers: TensorFlow's TFRecord format, and the
// messages Event and Summary of event.proto and summary.proto.

#include <array>
#include <charconv>
#include <cmath>
#include <protozero/pbf_writer.hpp>
#include <span>

#include "compute/base/text.h"
#include "compute/model/file.h"
#include "plugin/agent/learn/curves.h"

namespace imprint::agent {
namespace {

// CRC-32C: Castagnoli, Brauer, Herrmann, Optimization of Cyclic Redundancy-Check Codes, 1993.
std::uint32_t crc32c(const std::string& bytes) {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<std::uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
  }
  return ~crc;
}

template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

// TFRecord rotates its checksums, so that one of data that holds checksums is not weak.
std::string checksum(const std::string& bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return little_endian(((crc >> 15) | (crc << 17)) + 0xA282EAD8u);
}

void add_record(const std::string& data, std::string& file) {
  const std::string length = little_endian(std::uint64_t{data.size()});
  file += length + checksum(length) + data + checksum(data);
}

// As few digits as tell it from others; empty: it is not finite.
std::string digits(double value) {
  std::array<char, 64> number{};
  if (!std::isfinite(value)) return "";
  return {number.data(), std::to_chars(number.data(), number.data() + number.size(), value).ptr};
}

struct EventField {
  enum : protozero::pbf_tag_type { wall_time = 1, step = 2, file_version = 3, summary = 5 };
};
struct SummaryField {
  enum : protozero::pbf_tag_type { value = 1, tag = 1, simple_value = 2 };
};

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
  std::string file, version;
  protozero::pbf_writer first(version);
  first.add_double(EventField::wall_time, rows.empty() ? 0 : rows.front().wall_s);
  first.add_string(EventField::file_version, "brain.Event:2");
  add_record(version, file);
  const std::vector<std::string> names = curve_names();
  for (const CurveRow& row : rows) {
    const std::vector<double> values = curve_values(row);
    std::string summary, event;
    protozero::pbf_writer entries(summary);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!std::isfinite(values[i])) continue;
      protozero::pbf_writer entry(entries, SummaryField::value);
      entry.add_string(SummaryField::tag, names[i]);
      entry.add_float(SummaryField::simple_value, static_cast<float>(values[i]));
    }
    protozero::pbf_writer all(event);
    all.add_double(EventField::wall_time, row.wall_s);
    all.add_int64(EventField::step, static_cast<std::int64_t>(row.counters.decisions));
    all.add_message(EventField::summary, summary);
    add_record(event, file);
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
