#pragma once
// Exploration noise that depends only on whose decision it is: an agent's k-th decision meets the same noise
// whatever else happens in the batch, the frame or the game.

#include <array>
#include <cstdint>
#include <span>

namespace imprint::agent {

// The key of one decision's random numbers. Agent a of brain p draws as agent a of a single brain with
// seed + p.
struct DecisionDraw {
  std::uint64_t brain_seed = 0;
  std::uint32_t agent = 0;     // of the brain
  std::uint64_t decision = 0;  // counts the agent's decisions
  std::uint64_t of_brain = 0;  // counts those of all agents of the brain; no key
  // Noise that changes slowly from one decision to the next. Each number alone is distributed as ever.
  bool slow = false;
};

// Independent normal numbers of the given standard deviation, from Philox. Slow ones glide from one number to
// the next in 4 to 32 decisions; how many is drawn for each 32. Box, Muller, A Note on the
// Generation of Random Normal Deviates, 1958.
// first_word: 0 or kDriftWords, so that two kinds of noise of one decision are independent.
void fill_noise(std::span<float> noise, float deviation, const DecisionDraw& draw,
                std::uint32_t first_word = 0);
inline constexpr std::uint32_t kDriftWords = 1u << 30;  // of continuous actions

// Independent numbers of the standard Gumbel distribution: argmax(logits + noise) is a draw from
// softmax(logits). Gumbel, Statistical Theory of Extreme Values and Some Practical Applications, 1954;
// Maddison, Tarlow, Minka, A* Sampling, 2014.
void fill_gumbel(std::span<float> noise, const DecisionDraw& draw);

// Epsilon-greedy: with probability `epsilon` raises one choice above all others, each allowed one (1 in
// `allowed`; at least one) with the same probability. Its random numbers are independent of the noise. Slow
// draws keep a random choice for 4 to 32 decisions. Dabney, Ostrovski, Barreto, Temporally-Extended
// Epsilon-Greedy Exploration, 2021.
void add_random_choice(std::span<float> noise, std::span<const std::int32_t> allowed, float epsilon,
                       const DecisionDraw& draw);

// {one of the allowed choices, a number in [0, 1)}, independent of the numbers above; allowed empty: {0, 1}.
std::array<float, 2> draw_random_choice(std::span<const std::int32_t> allowed, const DecisionDraw& draw);

}  // namespace imprint::agent
