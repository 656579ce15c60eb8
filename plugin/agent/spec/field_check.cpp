#include "plugin/agent/spec/field_check.h"

#include <cmath>

#include "compute/base/text.h"
#include "compute/base/utf8.h"

namespace imprint::agent {

Error bad_field(std::string_view what, std::string_view field, std::string_view found,
                std::string_view expected) {
  return make_error(ErrorCode::invalid_argument,
                    text(what, ": ", field, ": found ", found, ", expected ", expected));
}

Result<> check_range(std::string_view what, std::string_view field, std::uint32_t value, std::uint32_t low,
                     std::uint32_t high) {
  if (value >= low && value <= high) return {};
  return bad_field(what, field, text(value), text(low, " to ", high));
}

Result<> check_number(std::string_view what, std::string_view field, float value, float low, float high) {
  if (std::isfinite(value) && value >= low && value <= high) return {};
  return bad_field(what, field, text(value), text("a number from ", low, " to ", high));
}

Result<> check_positive(std::string_view what, std::string_view field, float value) {
  if (std::isfinite(value) && value > 0) return {};
  return bad_field(what, field, text(value), "a number above 0");
}

Result<> check_finite(std::string_view what, std::string_view field, std::span<const float> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return bad_field(what, text(field, "[", i, "]"), text(values[i]), "a finite number");
  return {};
}

Result<> check_name(std::string_view what, std::string_view name) {
  if (is_utf8(name)) return {};
  return bad_field(what, "name", "bytes that are not UTF-8", "UTF-8, which files need");
}

}  // namespace imprint::agent
