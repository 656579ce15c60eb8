#pragma once
// Exploration that depends on nothing but whose decision it is: the k-th decision of a seat meets the same
// noise whatever else happens in the batch, in the frame or in the game.

#include <cstdint>
#include <span>

namespace imprint::agent {

// Independent standard normal numbers times `deviation`, from Philox keyed by the seed and counted by seat,
// decision and element. Seat a of brain p draws as seat a of a single brain with seed + p. Box and Muller, A
// Note on the Generation of Random Normal Deviates, 1958.
void fill_noise(std::span<float> noise, float deviation, std::uint64_t brain_seed, std::uint32_t seat,
                std::uint64_t decision);

// Independent numbers of the standard Gumbel distribution: the index of the highest of logits + noise is then
// a draw from their softmax. Gumbel, Statistical Theory of Extreme Values and Some Practical Applications,
// 1954; Maddison, Tarlow, Minka, A* Sampling, 2014.
void fill_gumbel(std::span<float> noise, std::uint64_t brain_seed, std::uint32_t seat,
                 std::uint64_t decision);

// With probability `epsilon` raises one of the choices that `allowed` (1 = open, at least one) leaves open
// above all others, each with the same probability: epsilon-greedy. Draws apart from those of the noise.
void add_random_choice(std::span<float> noise, std::span<const std::int32_t> allowed, float epsilon,
                       std::uint64_t brain_seed, std::uint32_t seat, std::uint64_t decision);

}  // namespace imprint::agent
