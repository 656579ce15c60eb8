#pragma once
// TensorBoard's event files: records of protocol buffers in TensorFlow's TFRecord format, with the messages
// Event and Summary of event.proto and summary.proto.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace imprint {

// Numbers of one step, each under its tag. Numbers that are not finite are left out.
struct EventValues {
  double wall_s = 0;  // since 1970
  std::int64_t step = 0;
  std::vector<std::pair<std::string, double>> values = {};
};

// A file is a head and then records.
std::string event_head(double wall_s);
std::string event_record(const EventValues& event);
// The file without the records of later steps, and without a damaged end.
std::string events_up_to(std::string_view file, std::int64_t step);

}  // namespace imprint
