#pragma once
// Exit statuses of a game, by which `imprint studio` knows whether another start may help. Numbers that games
// do not use.

namespace imprint::studio {

inline constexpr int kRefused = 113;  // no start helps
inline constexpr int kAlone = 114;    // an actor that found no learner for a minute

}  // namespace imprint::studio
