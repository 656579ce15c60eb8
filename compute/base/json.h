#pragma once
// Parses JSON from files of unknown origin.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "compute/base/result.h"

namespace imprint {

inline constexpr int kDeepestJson = 8;                // levels of lists and objects
inline constexpr std::size_t kJsonBytesPerByte = 32;  // memory of the parsed value, per byte of text
inline constexpr std::size_t kJsonBytes = 64 << 10;   // plus this much

// Parses a whole text. Refuses three things that nlohmann::json accepts silently:
// - a name twice in one object;
// - deep nesting, since copying, writing and destroying a value use stack per level;
// - values that need far more memory than their text.
//
// Bounds for a text of n bytes: time O(n log n), from sorting names; memory kJsonBytesPerByte * n +
// kJsonBytes. Throws only std::bad_alloc. Errors: corrupt_file, with the byte and the limit. The message has
// no prefix: callers name the file.
Result<nlohmann::json> parse_json(std::string_view text);

}  // namespace imprint
