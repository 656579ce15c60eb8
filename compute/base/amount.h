#pragma once

// A count with its noun: "1 brain", "2 brains", "0 minibatches".

#include <cstdint>
#include <string>
#include <string_view>

namespace imprint {

inline std::string amount(std::uint64_t count, std::string_view noun) {
  const bool hisses = noun.ends_with("ch") || noun.ends_with("s");
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : hisses ? "es" : "s");
}

}  // namespace imprint
