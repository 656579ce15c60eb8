// Baskets that catch apples and let stones fall, by sight alone: each sees the picture of its own tree. On a
// GPU the game draws all pictures into one buffer, and no pixel passes through the CPU, in play or in
// learning. 15-eyes [--window] [--help]

#include <algorithm>
#include <array>
#include <cstdlib>

#include "arcade.h"

namespace {

using namespace arcade;

constexpr std::uint64_t kFrames = 6'000;
constexpr std::uint32_t kTrees = 16, kSide = 12;  // pixels of a picture
constexpr std::int32_t kThing = 3, kPlaces = kSide - kThing + 1, kGround = kSide - 1 - kThing;
constexpr std::uint32_t kWindow = 250;  // things per point of the curve

struct Tree {
  Agent agent;
  std::int32_t x = 0, y = 0, basket = kPlaces / 2;  // left, top of the thing; left of the basket
  bool stone = false;

  bool catches() const { return std::abs(basket - x) <= 1; }
};

class Eyes final : public Game {
 public:
  explicit Eyes(std::uint64_t seed) : Game(seed), seed_(seed) {
    for (Tree& tree : trees_) drop(tree);
  }

  // One picture below the other: each tree's pixels lie together.
  VkExtent2D picture_size() const override { return {kSide, kSide * kTrees}; }
  std::vector<VkRect2D> bright() const override {
    std::vector<VkRect2D> found;
    for (std::uint32_t i = 0; i < kTrees; ++i) {
      const auto top = static_cast<std::int32_t>(i * kSide);
      for (VkRect2D shape : shapes(trees_[i])) {
        shape.offset.y += top;
        found.push_back(shape);
      }
    }
    return found;
  }

  Outcome open(Context& context) override {
    const std::array<imp_stream, 1> eye = {picture_stream(1, kSide, kSide)};
    BrainDesc desc = BrainDesc::of(PpoOptions(), kSide * kSide, {3}, kTrees);
    desc.observations = picture().handle();
    desc.network.set_streams(eye);
    desc.seed = seed_;
    Made<Brain> brain = context.create_brain(desc);
    if (!brain) return brain.outcome;
    Made<std::vector<Agent>> agents = brain->create_agents(kTrees);
    if (!agents) return agents.outcome;
    brain_ = std::move(*brain);
    for (std::uint32_t i = 0; i < kTrees; ++i) trees_[i].agent = std::move((*agents)[i]);
    return done();
  }

  void step(Frame& frame) override {
    std::array<bool, kTrees> looks{};
    for (std::uint32_t i = 0; i < kTrees; ++i) {
      const Action action = frame.act(trees_[i].agent);
      if (action.is_new) fall(frame, trees_[i], static_cast<std::int32_t>(action.choices()[0]) - 1);
      looks[i] = action.wants_observation;
    }
    const bool on_cpu = !picture();
    const std::vector<float> seen = on_cpu ? pixels() : std::vector<float>();
    for (std::uint32_t i = 0; i < kTrees; ++i) {
      if (!looks[i]) continue;
      constexpr std::uint32_t kPixels = kSide * kSide;
      Agent& agent = trees_[i].agent;
      frame.keep(on_cpu ? agent.observe(std::span(seen).subspan(i * kPixels, kPixels))
                        : agent.observe_in_place(i * kPixels));
    }
  }

  void draw(Canvas& canvas) const override {
    constexpr float kCell = 0.245f, kPixel = 0.225f / kSide;
    for (std::uint32_t i = 0; i < kTrees; ++i) {
      const float left = 0.02f + kCell * static_cast<float>(i % 4),
                  top = 0.02f + kCell * static_cast<float>(i / 4);
      canvas.box({left, top}, {0.225f, 0.225f}, kInk);
      for (const VkRect2D& shape : shapes(trees_[i]))
        canvas.box({left + kPixel * static_cast<float>(shape.offset.x),
                    top + kPixel * static_cast<float>(shape.offset.y)},
                   {kPixel * static_cast<float>(shape.extent.width),
                    kPixel * static_cast<float>(shape.extent.height)},
                   kPaper);
    }
  }
  const char* axis() const override { return "apples caught and stones let fall"; }
  std::vector<const Curve*> curves() const override { return {&right_}; }

 private:
  // An apple is a cross, a stone a square.
  static std::vector<VkRect2D> shapes(const Tree& tree) {
    std::vector<VkRect2D> found = {{{tree.basket, static_cast<std::int32_t>(kSide) - 1}, {kThing, 1}}};
    if (tree.stone)
      found.push_back({{tree.x, tree.y}, {kThing, kThing}});
    else
      found.insert(found.end(), {{{tree.x + 1, tree.y}, {1, kThing}}, {{tree.x, tree.y + 1}, {kThing, 1}}});
    return found;
  }
  void drop(Tree& tree) {
    tree.x = static_cast<std::int32_t>(below(kPlaces));
    tree.y = 0;
    tree.stone = below(2) == 0;
  }

  void fall(Frame& frame, Tree& tree, std::int32_t move) {
    tree.basket = std::clamp(tree.basket + move, 0, kPlaces - 1);
    if (++tree.y < kGround) return;
    const bool right = tree.catches() != tree.stone;
    right_.add(right ? 1.0f : 0.0f);
    frame.keep(tree.agent.reward(right ? 1.0f : -1.0f));
    frame.keep(tree.agent.end_episode(EpisodeEnd::terminated));
    drop(tree);
  }

  std::uint64_t seed_;
  Brain brain_;
  std::array<Tree, kTrees> trees_;
  Curve right_{"right", kGreen, kWindow, 0.9f};
};

}  // namespace

int main(int argc, char** argv) {
  return arcade::play<Eyes>({"15-eyes", "Baskets with eyes", kFrames}, argc, argv);
}
