#pragma once
// The game of the snippets of plugin/docs/engines.md.

#include <array>
#include <cstdint>

struct World {
  int steps = 0;
  std::array<float, 2> look() const { return {1, static_cast<float>(steps % 4)}; }
  bool over() const { return steps % 10 == 0; }
  float step(std::uint32_t direction) { return ++steps, direction == 1 ? 1.0f : -1.0f; }
};
