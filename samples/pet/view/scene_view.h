#pragma once
// Turns worlds into draw lists: bodies, things, signs of feedback and the past action that they credit.

#include <cstdint>
#include <vector>

#include "samples/pet/view/render/renderer.h"
#include "samples/pet/view/scene_view_pet.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

class SceneView {
 public:
  // More than 16 would be too small to see.
  explicit SceneView(std::size_t most_yards = 16) : most_yards_(most_yards) {}

  // `seconds`: real time since the last call, for animation.
  void update(const std::vector<const WorldView*>& yards, const WorldView* ghost, float seconds);
  // Draws signs younger than `youngest_sign` seconds as if they were that old, so that a still picture shows
  // them grown. same_pet: all yards show one pet, so one coat.
  void draw(const std::vector<const WorldView*>& yards, const WorldView* ghost, const Camera& camera,
            float youngest_sign, bool same_pet, DrawList& list) const;

  // The ground that all yards cover.
  Vec2 center() const;
  Vec2 half() const;
  // The ground to frame in the first yard: the pet, its player and the pet's goal.
  struct Frame {
    Vec2 center, half;
  };
  Frame close_frame(const WorldView& world) const;
  Vec2 offset(std::size_t yard) const;

  // 0: the ghost stands in the pet and is not drawn; 1: it stands beside it.
  static float ghost_apart(const WorldView& world, const WorldView& ghost);

  // Places of bubbles, in the first yard.
  Vec3 pet_top(const WorldView& world) const {
    return pets_.empty() ? Vec3{} : pets_[0].body.head_top(world.pet);
  }
  Vec3 ghost_top(const WorldView& world) const { return ghost_.head_top(world.pet); }
  static Vec3 player_top(const WorldView& world) {
    return {world.player.position.x, world.player.position.y, 1.75f};
  }

 private:
  struct Yard {
    PetBody body;
    std::uint64_t scene = 0;
    float since_scene = 10.0f;  // seconds since the last new layout
    Vec2 player;                // the player's last drawn place
    float stride = 0.0f, pace = 0.0f;
  };
  void draw_yard(const WorldView& world, const Yard& yard, const Affine& at, std::size_t index, bool detailed,
                 DrawList& list) const;
  void draw_player(const WorldView& world, const Yard& yard, const Affine& at, DrawList& list) const;
  void draw_signs(const WorldView& world, const Affine& at, const Camera& camera, float youngest,
                  DrawList& list) const;
  void draw_lure(const WorldView& world, const Affine& at, const Camera& camera, DrawList& list) const;
  void draw_lesson(const WorldView& world, const Affine& at, const Camera& camera, DrawList& list) const;

  std::size_t most_yards_;
  std::vector<Yard> pets_;
  PetBody ghost_;
  std::uint64_t ghost_scene_ = 0;
  float seconds_ = 0.0f;
};

}  // namespace pet
