#pragma once
// Files below 1 MB that are made to take a reader's time or memory (bombs_main.cpp measures the readers).

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace imprint::fuzz {

enum class BombKind {
  model,
  named,  // a model whose free dimension N has any extent up to a bound
  brain,
  table,
  archive,
  cache,
  safetensors,
  demonstrations,
  profile,
  brain_file,
  model_file,
  picture,  // only where the library reads PNG and JPEG
  csv,
  episode,
  curriculum,
  league,
  bounds,  // of free dimensions, one a line
  weights  // the last
};

using FileBytes = std::vector<std::byte>;

inline FileBytes bytes_of(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

inline constexpr std::size_t kMostBombBytes = 1'000'000;  // nearly

// `first`, then `item(i)` with commas between until the file is full, then `last`.
template <class Item>
std::string filled(std::string first, Item item, const std::string& last) {
  for (int i = 0; first.size() < kMostBombBytes - 1000; ++i) first += (i ? "," : std::string()) + item(i);
  return first + last;
}

inline std::string quoted(int i) { return "\"" + std::to_string(i) + "\""; }

struct Bomb {
  std::string name;
  BombKind kind;
  std::function<FileBytes()> make;
};

// The first file of each kind, to compare with.
inline constexpr const char* kHarmless = "a harmless file";

// Beside the models lies this file of 1 GiB, which takes no room on the disk.
inline constexpr const char* kLargeFile = "large.bin";
inline constexpr const char* kInAnotherFile =
    " in another file";  // the end of names of models with tensors there

// And this model of many inputs, for the files that name one.
inline constexpr const char* kManyInputs = "many_inputs.onnx";
FileBytes many_inputs();

std::vector<Bomb> model_bombs();  // ONNX: input "x" of [N, 1], so that one row of numbers runs them
std::vector<Bomb> operator_bombs();
std::vector<Bomb> body_bombs();
std::vector<Bomb> named_bombs();
std::vector<Bomb> data_bombs();  // tables, the studio's files, bounds
std::vector<Bomb> file_bombs();  // every other kind
#ifdef IMPRINT_FUZZ_PICTURES
std::vector<Bomb> picture_bombs();
#endif

}  // namespace imprint::fuzz
