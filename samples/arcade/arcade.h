#pragma once
// A frame loop for small games that learn: a device, a window or none, a canvas and the learning curves.
//
//   class Duel final : public arcade::Game { ... };
//   int main(int argc, char** argv) {
//     return arcade::play<Duel>({"06-adaptive-enemy", "An enemy that adapts", 6000}, argc, argv);
//   }

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "canvas.h"
#include "drawn_picture.h"
#include "imprint/imprint.hpp"

namespace arcade {

using namespace imprint::game;
using namespace picture;

// Something that the game measures: a point is the mean of `window` values that follow each other.
class Curve {
 public:
  // goal: a run in which the last point does not reach it has not learned.
  Curve(std::string name, std::uint32_t colour, std::uint32_t window, float goal)
      : name_(std::move(name)), colour_(colour), window_(window), goal_(goal) {}
  void add(float value);

  const std::string& name() const { return name_; }
  std::uint32_t colour() const { return colour_; }
  float goal() const { return goal_; }
  const std::vector<float>& points() const { return points_; }
  float last() const { return points_.empty() ? 0 : points_.back(); }

 private:
  std::string name_;
  std::uint32_t colour_, window_;
  float goal_;
  double sum_ = 0;
  std::uint32_t count_ = 0;
  std::vector<float> points_;
};

class Game {
 public:
  virtual ~Game() = default;
  // Makes brains and agents.
  virtual Outcome open(Context& context) = 0;
  // One frame: actions, rewards, observations. Failures are kept in `frame`.
  virtual void step(Frame& frame) = 0;
  virtual void draw(Canvas& canvas) const = 0;
  // y axis of the picture, and the curves to draw in it.
  virtual const char* axis() const = 0;
  virtual std::vector<const Curve*> curves() const = 0;

  // ---- of brains with eyes ----
  // Pixels of the picture that they see, and what is bright in it. On a GPU the picture is drawn after each
  // step(), before the decisions of its frame.
  virtual VkExtent2D picture_size() const { return {0, 0}; }
  virtual std::vector<VkRect2D> bright() const { return {}; }
  void give_picture(Tensor picture) { picture_ = std::move(picture); }  // before open()

 protected:
  // The buffer that holds the picture; without a handle on device cpu, which needs pixels().
  const Tensor& picture() const { return picture_; }
  std::vector<float> pixels() const;

  // The outcome of an open() in which nothing failed.
  static Outcome done() { return {nullptr, IMP_OK}; }
  explicit Game(std::uint64_t seed) : random_(seed) {}
  float uniform(float least, float most) {
    return least + (most - least) * static_cast<float>(random_()) / 4294967296.0f;
  }
  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(random_() % count); }

 private:
  std::mt19937 random_;
  Tensor picture_;
};

struct Show {
  const char* name;   // of the program
  const char* title;  // of the window and the picture
  std::uint64_t frames;
};
using MakeGame = std::function<std::unique_ptr<Game>(std::uint64_t seed)>;

// The whole program. Returns the exit status: 1 when something failed or a curve misses its goal.
int play(const Show& show, const MakeGame& make, int argc, char** argv);

template <class T>
int play(const Show& show, int argc, char** argv) {
  return play(
      show, [](std::uint64_t seed) { return std::make_unique<T>(seed); }, argc, argv);
}

}  // namespace arcade
