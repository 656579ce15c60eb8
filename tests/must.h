#pragma once
// For programs that end with a message where a call of Imprint fails: throws std::runtime_error.

#include <stdexcept>
#include <utility>

#include <imprint/imprint.hpp>

namespace imprint::game {

inline void must(const Outcome& outcome) {
  if (!outcome) throw std::runtime_error(outcome.message());
}

template <class T>
T must(Made<T> made) {
  if (!made) throw std::runtime_error(made.outcome.message());
  return std::move(made.value);
}

}  // namespace imprint::game
