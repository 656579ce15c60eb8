#include "tools/imprint/profiles.h"

#include <algorithm>
#include <limits>

#include "compute/base/json.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"

namespace imprint::tools {
namespace {

Result<vk::CapabilityProfile> profile_of(const std::string& file, const nlohmann::json& json) {
  const auto refuse = [&](const std::string& what) {
    return make_error(ErrorCode::corrupt_file, text("profile '", file, "': ", what));
  };
  if (!json.is_object()) return refuse("found no JSON object. Write one with imprint devices --profile.");
  vk::CapabilityProfile profile;
  profile.name = file;
  for (const auto& [key, value] : json.items()) {
    if (key == "name") {
      if (!value.is_string())
        return refuse(text("name: found ", clipped(value.dump()), ", expected a string."));
      profile.name = value.get<std::string>();
      continue;
    }
    const vk::ProfileField* field = vk::find_profile_field(key);
    if (!field) return refuse("there is no field " + quote(key));
    const bool fits = field->flag
                          ? value.is_boolean()
                          : value.is_number_unsigned() &&
                                value.get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max();
    if (!fits)
      return refuse(text(key, ": found ", clipped(value.dump()), ", expected ",
                         field->flag ? "true or false" : "a whole number of 32 bits"));
    field->set(profile, field->flag ? value.get<bool>() : value.get<std::uint32_t>());
  }
  if (const std::string below = profile.below_vulkan(); !below.empty()) return refuse(below);
  return profile;
}

}  // namespace

Result<vk::CapabilityProfile> find_profile(const std::string& name_or_file) {
  const auto named = vk::named_profiles();
  if (const auto found = std::ranges::find(named, name_or_file, &vk::CapabilityProfile::name);
      found != named.end())
    return *found;
  const auto bytes = read_file(name_or_file, 1 << 20);
  if (!bytes)
    return make_error(bytes.error().code, text("profile: found '", name_or_file, "', expected one of ",
                                               profile_names(), " or a file: ", bytes.error().message));
  return parse_profile(name_or_file, *bytes);
}

Result<vk::CapabilityProfile> parse_profile(const std::string& file, std::span<const std::byte> bytes) {
  const auto json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!json) return make_error(json.error().code, text("profile '", file, "': ", json.error().message));
  return profile_of(file, *json);
}

std::string profile_json(const vk::CapabilityProfile& profile) {
  nlohmann::ordered_json json{{"name", profile.name}};
  for (const vk::ProfileField& field : vk::profile_fields()) {
    if (field.flag)
      json[field.name] = profile.*field.flag;
    else
      json[field.name] = profile.*field.number;
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string profile_names() {
  std::string names;
  for (const vk::CapabilityProfile& profile : vk::named_profiles())
    names += (names.empty() ? "" : ", ") + profile.name;
  return names;
}

}  // namespace imprint::tools
