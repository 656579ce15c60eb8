#include "compute/tuning/tuning_table.h"

#include "compute/base/json.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"

namespace imprint {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // keeps members in writing order

constexpr int kVersion = 1;
constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr std::size_t kMostNamed = 16;  // devices listed in an error

Error damaged(const std::string& how) { return make_error(ErrorCode::corrupt_file, "tuning table: " + how); }

std::string hex(std::span<const std::uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  for (std::uint8_t byte : bytes) digits += {kDigits[byte / 16], kDigits[byte % 16]};
  return digits;
}

OrderedJson identity(const vk::Capabilities& device) {
  return {{"name", device.device_name},
          {"driver", device.driver_name},
          {"vendor", device.vendor_id},
          {"device", device.device_id},
          {"driver_version", device.driver_version},
          {"pipeline_cache_uuid", hex(device.pipeline_cache_uuid)}};
}

// Ignores names, which are for people.
bool is_of(const Json& given, const vk::Capabilities& device) {
  const OrderedJson own = identity(device);
  for (const char* key : {"vendor", "device", "driver_version", "pipeline_cache_uuid"})
    if (given[key] != Json(own[key])) return false;
  return true;
}

Result<> check_table(const Json& table) {
  if (!table.is_object() || !table.contains("device") || !table.contains("kernels"))
    return damaged("found a table without device or kernels, expected both");
  const Json& device = table["device"];
  if (!device.is_object()) return damaged("device: found no object, expected one");
  for (const char* key : {"name", "driver", "pipeline_cache_uuid"})
    if (!device.contains(key) || !device[key].is_string())
      return damaged(text("device.", key, ": found no text, expected one"));
  for (const char* key : {"vendor", "device", "driver_version"})
    if (!device.contains(key) || !device[key].is_number_unsigned())
      return damaged(text("device.", key, ": found no whole number, expected one"));
  if (!table["kernels"].is_object()) return damaged("kernels: found no object, expected one");
  for (const auto& [kernel, variant] : table["kernels"].items())
    if (!variant.is_string())
      return damaged(text("kernels: ", quote(kernel), ": found no text, expected a variant"));
  return {};
}

Result<Json> parse(std::string_view content) {
  if (content.size() > kMostBytes)
    return damaged(text("found ", content.size(), " bytes, expected at most ", kMostBytes));
  auto parsed = parse_json(content);
  if (!parsed) return damaged(parsed.error().message + ". Give a file that imprint tune wrote.");
  Json& json = *parsed;
  if (!json.is_object() || !json.contains("imprint_tuning"))
    return damaged("found other JSON, expected a table. Give a file that imprint tune wrote.");
  const Json& version = json["imprint_tuning"];
  if (!version.is_number_unsigned()) return damaged("version: found no number, expected one");
  if (version != kVersion)
    return make_error(ErrorCode::unsupported,
                      text("tuning table: version: found ", version.dump(), ", expected ", kVersion,
                           ". Make a new one with imprint tune."));
  if (!json.contains("tables") || !json["tables"].is_array())
    return damaged("tables: found no list, expected one");
  for (const Json& table : json["tables"]) IMPRINT_CHECK(check_table(table));
  return std::move(json);
}

// The table in the order in which this library writes members.
OrderedJson ordered(const Json& table) {
  OrderedJson device;
  for (const char* key : {"name", "driver", "vendor", "device", "driver_version", "pipeline_cache_uuid"})
    device[key] = table["device"][key];
  return {{"device", std::move(device)}, {"kernels", OrderedJson(table["kernels"])}};
}

VariantTable kernels_of(const Json& table) {
  VariantTable variants;
  for (const auto& [kernel, variant] : table["kernels"].items())
    variants[kernel] = variant.get<std::string>();
  return variants;
}

}  // namespace

Result<std::vector<VariantTable>> read_tuning_tables(std::string_view content) {
  IMPRINT_ASSIGN(const Json json, parse(content));
  std::vector<VariantTable> tables;
  for (const Json& table : json["tables"]) tables.push_back(kernels_of(table));
  return tables;
}

Result<VariantTable> read_tuning_tables(std::string_view content, const vk::Capabilities& device) {
  IMPRINT_ASSIGN(const Json json, parse(content));
  std::string others;
  std::size_t other_count = 0;
  for (const Json& table : json["tables"]) {
    if (is_of(table["device"], device)) return kernels_of(table);
    if (++other_count > kMostNamed) continue;
    others += text(others.empty() ? "" : "; ", quote(table["device"]["name"].get_ref<const std::string&>()),
                   ", ", quote(table["device"]["driver"].get_ref<const std::string&>()));
  }
  return make_error(
      ErrorCode::unsupported,
      text("tuning table: found tables for ", others.empty() ? "no device" : others,
           other_count > kMostNamed ? " and more" : "", ", expected one for this driver build of ",
           quote(device.device_name), ", ", quote(device.driver_name),
           ". Measure on this device and driver with imprint tune."));
}

Result<std::string> write_tuning_tables(const VariantTable& table, const vk::Capabilities& device,
                                        std::string_view beside) {
  OrderedJson json{{"imprint_tuning", kVersion}, {"tables", OrderedJson::array()}};
  if (!beside.empty()) {
    IMPRINT_ASSIGN(const Json before, parse(beside));
    for (const Json& other : before["tables"])
      if (!is_of(other["device"], device)) json["tables"].push_back(ordered(other));
  }
  json["tables"].push_back({{"device", identity(device)}, {"kernels", OrderedJson(table)}});
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace imprint
