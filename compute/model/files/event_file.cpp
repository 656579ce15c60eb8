#include "compute/model/files/event_file.h"

#include <cmath>
#include <cstring>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

namespace imprint {
namespace {

// CRC-32C: Castagnoli, Brauer, Herrmann, Optimization of Cyclic Redundancy-Check Codes, 1993.
std::uint32_t crc32c(std::string_view bytes) {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<std::uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
  }
  return ~crc;
}

template <class T>
std::string event_bytes(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

// TFRecord rotates its checksums, so that one of data that holds checksums is not weak.
std::string checksum(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return event_bytes(((crc >> 15) | (crc << 17)) + 0xA282EAD8u);
}

std::string framed(const std::string& data) {
  const std::string length = event_bytes(std::uint64_t{data.size()});
  return length + checksum(length) + data + checksum(data);
}

struct EventField {
  enum : protozero::pbf_tag_type { wall_time = 1, step = 2, file_version = 3, summary = 5 };
};
struct SummaryField {
  enum : protozero::pbf_tag_type { value = 1, tag = 1, simple_value = 2 };
};

// The step of an event; 0 if it names none or is damaged.
std::int64_t step_in(std::string_view data) {
  try {
    protozero::pbf_reader event(data.data(), data.size());
    while (event.next(EventField::step, protozero::pbf_wire_type::varint)) return event.get_int64();
  } catch (const protozero::exception&) {
  }
  return 0;
}

}  // namespace

std::string event_head(double wall_s) {
  std::string data;
  protozero::pbf_writer event(data);
  event.add_double(EventField::wall_time, wall_s);
  event.add_string(EventField::file_version, "brain.Event:2");
  return framed(data);
}

std::string event_record(const EventValues& event) {
  std::string summary, data;
  protozero::pbf_writer entries(summary);
  for (const auto& [tag, value] : event.values) {
    if (!std::isfinite(value)) continue;
    protozero::pbf_writer entry(entries, SummaryField::value);
    entry.add_string(SummaryField::tag, tag);
    entry.add_float(SummaryField::simple_value, static_cast<float>(value));
  }
  protozero::pbf_writer all(data);
  all.add_double(EventField::wall_time, event.wall_s);
  all.add_int64(EventField::step, event.step);
  all.add_message(EventField::summary, summary);
  return framed(data);
}

std::string events_up_to(std::string_view file, std::int64_t step) {
  constexpr std::size_t kBefore = 12, kAfter = 4;  // length and its checksum; the data's checksum
  std::string kept;
  while (file.size() >= kBefore + kAfter) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    if (length > file.size() - kBefore - kAfter) break;
    const std::size_t size = kBefore + static_cast<std::size_t>(length) + kAfter;
    const std::string_view data = file.substr(kBefore, static_cast<std::size_t>(length));
    if (file.substr(size - kAfter, kAfter) != checksum(data)) break;
    if (step_in(data) <= step) kept += file.substr(0, size);
    file.remove_prefix(size);
  }
  return kept;
}

}  // namespace imprint
