#pragma once
// Checks of single fields. Errors: invalid_argument with the text `CALL: FIELD: found X, expected Y`.

#include <cstdint>
#include <span>
#include <string_view>

#include "compute/base/result.h"

namespace imprint::agent {

// what: the call or the struct that the field belongs to, as in "brain_create".
Error bad_field(std::string_view what, std::string_view field, std::string_view found,
                std::string_view expected);

Result<> check_range(std::string_view what, std::string_view field, std::uint32_t value, std::uint32_t low,
                     std::uint32_t high);
// Refuses NaN too.
Result<> check_number(std::string_view what, std::string_view field, float value, float low, float high);
Result<> check_positive(std::string_view what, std::string_view field, float value);
Result<> check_finite(std::string_view what, std::string_view field, std::span<const float> values);
// Files store names as UTF-8.
Result<> check_name(std::string_view what, std::string_view name);

}  // namespace imprint::agent
