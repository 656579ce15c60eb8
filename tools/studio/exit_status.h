#pragma once
// Exit statuses of a game, by which `imprint studio` knows whether another start may help.

namespace imprint::studio {

inline constexpr int kRefused = 3;  // no start helps
inline constexpr int kAlone = 4;    // an actor that found no learner for a minute

}  // namespace imprint::studio
