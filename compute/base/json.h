#pragma once
// JSON from files that anyone may have written.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "compute/base/result.h"

namespace imprint {

inline constexpr int kDeepestJson = 8;                // levels of lists and objects
inline constexpr std::size_t kJsonBytesPerByte = 32;  // memory of the parsed value, per byte of text
inline constexpr std::size_t kJsonBytes = 64 << 10;   // and besides

// The value of a whole text. Refuses what nlohmann::json takes in silence: a name twice in one object, deep
// nesting (copying, writing and destroying use stack per level) and values that need far more memory than
// their text.
//
// Bounds for a text of n bytes: time O(n log n), from sorting names; memory kJsonBytesPerByte * n +
// kJsonBytes. Never throws except std::bad_alloc. Errors: corrupt_file, with the byte and the limit; no
// prefix, so callers name the file.
Result<nlohmann::json> parse_json(std::string_view text);

}  // namespace imprint
