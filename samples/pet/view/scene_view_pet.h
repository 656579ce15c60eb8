#pragma once
// The pet's body: poses, and the blend between them.

#include <array>

#include "samples/pet/view/render/renderer.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

// All joints. Feet are the places of the soles in the pet's frame (+x forward, origin on the ground below its
// middle).
struct Posture {
  float hips = joint::kStandHeight;  // metres above the ground
  float lean = 0.0f;                 // of the back, nose up
  float roll = 0.0f;
  float shift = 0.0f;       // of the body over its feet, forward
  float forward = -0.18f;   // of all of it: the pet's position is about at its shoulders, so that it does not
                            // run into what it runs to
  float head_pitch = 0.0f;  // nose up
  float head_turn = 0.0f;   // left
  float head_tilt = 0.0f;
  float jaw = 0.0f;            // 0 closed .. 1 wide open
  float tail = 0.0f;           // -1 hanging .. 1 high
  float ears = 0.0f;           // -1 laid back .. 1 pricked
  float eyes = 1.0f;           // 0 closed
  float elbows = 0.0f;         // front legs bend backwards (0) or outwards (1)
  std::array<Vec3, 4> feet{};  // front left, front right, hind left, hind right
};

class PetBody {
 public:
  // Moves towards what `view` shows; `seconds` since the last call. jump_cut: do not blend.
  void update(const PetView& view, float seconds, bool jump_cut);

  // Adds the body; the look's tint is the colour of its coat.
  void draw(DrawList& list, const Affine& yard, const PetView& view, const Look& look, Layer layer) const;

  // In the yard's frame, after update().
  Vec3 head_top(const PetView& view) const;
  Vec3 mouth(const PetView& view) const;
  Vec2 middle(const PetView& view) const;

 private:
  struct Frames {
    Affine root, body, head;
    Affine body_in_root;
  };
  Frames frames(const PetView& view) const;

  Posture now_;
  float wag_phase_ = 0.0f, breath_phase_ = 0.0f, seconds_ = 0.0f, wag_ = 0.0f;
};

}  // namespace pet
