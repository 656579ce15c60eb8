#pragma once

// A count with its noun: "1 brain", "2 brains", "0 minibatches".

#include <cstdint>
#include <string>
#include <string_view>

namespace imprint {

inline std::string amount(std::uint64_t count, std::string_view noun) {
  std::string words = std::to_string(count) + " " + std::string(noun);
  if (count == 1) return words;
  if (noun.ends_with("try")) return words.replace(words.size() - 1, 1, "ies");  // entry
  return words += noun.ends_with("ch") || noun.ends_with("s") ? "es" : "s";
}

}  // namespace imprint
