// Baskets that catch apples and let stones fall, by sight alone: each sees the picture of its own tree. On a
// GPU the game draws all pictures into one buffer, and no pixel passes through the CPU, in play or in
// learning. 15-eyes [sharp] [--window] [--help]. Sharp eyes see 84 x 84 pixels and need a GPU.

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <variant>

#include "arcade.h"

namespace {

using namespace arcade;

constexpr std::uint32_t kTrees = 16, kWindow = 250;  // of a brain; things per point of the curve
constexpr std::int32_t kFields = 12, kThing = 3, kPlaces = kFields - kThing + 1,
                       kGround = kFields - 1 - kThing;

struct Tree {
  Agent agent;
  std::int32_t x = 0, y = 0, basket = kPlaces / 2;  // left, top of the thing; left of the basket
  bool stone = false;
};

struct Orchard {
  Curve right;
  Learner learner;
  Brain brain;
};

// kPixels: the side of a field.
template <std::uint32_t kPixels>
class Eyes final : public Game {
 public:
  static constexpr std::uint32_t kSide = kFields * kPixels, kPicture = kSide * kSide;

  explicit Eyes(std::uint64_t seed) : Game(seed), seed_(seed) {
    DqnOptions dqn;
    dqn.replay_capacity = 2000;  // two pictures per step
    dqn.learning_rate = 2.5e-4f;
    orchards_.push_back({{"PPO", kGreen, kWindow, 0.9f}, PpoOptions(), {}});
    if (kPixels > 1) orchards_.push_back({{"DQN", kBlue, kWindow, 0.9f}, dqn, {}});
    trees_.resize(kTrees * orchards_.size());
    for (Tree& tree : trees_) drop(tree);
  }

  // One picture below the other: each tree's pixels lie together.
  VkExtent2D picture_size() const override {
    return {kSide, kSide * static_cast<std::uint32_t>(trees_.size())};
  }
  std::vector<VkRect2D> bright() const override {
    constexpr auto kScale = static_cast<std::int32_t>(kPixels);
    std::vector<VkRect2D> found;
    std::int32_t top = 0;
    for (const Tree& tree : trees_) {
      for (const auto& [at, size] : shapes(tree))
        found.push_back(
            {{at.x * kScale, at.y * kScale + top}, {size.width * kPixels, size.height * kPixels}});
      top += static_cast<std::int32_t>(kSide);
    }
    return found;
  }

  Outcome open(Context& context) override {
    const imp_stream eye[] = {picture_stream(1, kSide, kSide)};
    Tree* tree = trees_.data();
    for (Orchard& orchard : orchards_) {
      BrainDesc desc = BrainDesc::of(orchard.learner, kPicture, {3}, kTrees);
      desc.observations = picture().handle();
      desc.network.set_streams(eye);
      desc.network.pictures_as_bytes = std::holds_alternative<DqnOptions>(orchard.learner) ? 1 : 0;
      desc.seed = seed_;
      desc.snapshot_count = 0;  // a copy of the replay each
      Made<Brain> brain = context.create_brain(desc);
      if (!brain) return brain.outcome;
      orchard.brain = std::move(*brain);
      Made<std::vector<Agent>> agents = orchard.brain.create_agents(kTrees);
      if (!agents) return agents.outcome;
      for (Agent& agent : *agents) (tree++)->agent = std::move(agent);
    }
    return done();
  }

  void step(Frame& frame) override {
    std::vector<bool> looks;
    for (std::size_t i = 0; i < trees_.size(); ++i) {
      const Action action = frame.act(trees_[i].agent);
      if (action.is_new) fall(frame, i, static_cast<std::int32_t>(action.choices()[0]) - 1);
      looks.push_back(action.wants_observation);
    }
    const std::vector<float> seen = picture() ? std::vector<float>() : pixels();
    for (std::size_t i = 0; i < looks.size(); ++i)
      if (looks[i])
        frame.keep(picture() ? trees_[i].agent.observe_in_place(i * kPicture)
                             : trees_[i].agent.observe(std::span(seen).subspan(i * kPicture, kPicture)));
  }

  void draw(Canvas& canvas) const override {
    const auto fields = [](auto count) { return 0.225f / kFields * static_cast<float>(count); };
    for (std::uint32_t i = 0; i < kTrees; ++i) {
      const float left = 0.02f + 0.245f * static_cast<float>(i % 4),
                  top = 0.02f + 0.245f * static_cast<float>(i / 4);
      canvas.box({left, top}, {0.225f, 0.225f}, kInk);
      for (const auto& [at, size] : shapes(trees_[i]))
        canvas.box({left + fields(at.x), top + fields(at.y)}, {fields(size.width), fields(size.height)},
                   kPaper);
    }
  }
  const char* axis() const override { return "apples caught and stones let fall"; }
  std::vector<const Curve*> curves() const override {
    std::vector<const Curve*> found;
    for (const Orchard& orchard : orchards_) found.push_back(&orchard.right);
    return found;
  }

 private:
  // In fields. An apple is a cross, a stone a square.
  static std::vector<VkRect2D> shapes(const Tree& tree) {
    const VkRect2D basket = {{tree.basket, kFields - 1}, {kThing, 1}};
    if (tree.stone) return {basket, {{tree.x, tree.y}, {kThing, kThing}}};
    return {basket, {{tree.x + 1, tree.y}, {1, kThing}}, {{tree.x, tree.y + 1}, {kThing, 1}}};
  }
  void drop(Tree& tree) {
    tree.x = static_cast<std::int32_t>(below(kPlaces)), tree.y = 0;
    tree.stone = below(2) == 0;
  }

  void fall(Frame& frame, std::size_t index, std::int32_t move) {
    Tree& tree = trees_[index];
    tree.basket = std::clamp(tree.basket + move, 0, kPlaces - 1);
    if (++tree.y < kGround) return;
    const bool right = (std::abs(tree.basket - tree.x) <= 1) != tree.stone;
    orchards_[index / kTrees].right.add(right ? 1.0f : 0.0f);
    frame.keep(tree.agent.reward(right ? 1.0f : -1.0f));
    frame.keep(tree.agent.end_episode(EpisodeEnd::terminated));
    drop(tree);
  }

  std::uint64_t seed_;
  std::vector<Orchard> orchards_;
  std::vector<Tree> trees_;  // kTrees of each
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "sharp")
    return arcade::play<Eyes<1>>({"15-eyes", "Baskets with eyes", 6'000}, argc, argv);
  return arcade::play<Eyes<7>>({"15-eyes sharp", "Baskets with sharp eyes", 30'000}, argc - 1, argv + 1);
}
