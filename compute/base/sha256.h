#pragma once
// SHA-256 (FIPS 180-4), for checks against a digest that an attacker does not control. Written here because
// the readers also build for Windows, for which Debian packages no such library under a permissive licence.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace imprint {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::span<const std::byte> data);
std::string hex(const Sha256& digest);  // 64 lower-case digits

}  // namespace imprint
