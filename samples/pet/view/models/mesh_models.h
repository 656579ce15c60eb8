#pragma once
// All models by name. Sizes in metres, z up, +x forward.

#include <array>
#include <cstddef>
#include <cstdint>

#include "samples/pet/view/models/mesh.h"

namespace pet {

enum class MeshId : std::uint8_t {
  // the yard
  island,   // the ground, a slice of meadow
  scenery,  // fence, tree, bushes, stones
  meadow,   // grass and flowers, which sway
  sofa,
  bed,
  bowl,
  kibble,
  ball,
  // the pet, in its joints' own frames (see scene_view_pet.cpp)
  torso,
  collar,
  head,
  face,     // eyes and nose, glossy
  eyelids,  // instead of the eyes when closed
  jaw,
  ear_left,
  ear_right,
  tail,
  thigh_front,
  thigh_hind,
  shin,
  // the player
  player_body,
  player_head,
  player_arm,
  player_leg,
  clicker,
  // signs
  heart,
  cross,
  star,
  bone,
  bark_line,
  disc,
  ring,
  count,
};

inline constexpr std::size_t kMeshCount = static_cast<std::size_t>(MeshId::count);

std::array<Mesh, kMeshCount> make_meshes();

// The parts of make_meshes.
Mesh make_island();
Mesh make_scenery();
Mesh make_meadow();
Mesh make_sofa();
Mesh make_bed();
Mesh make_bowl();
Mesh make_kibble();
Mesh make_ball();
Mesh make_torso();
Mesh make_collar();
Mesh make_head();
Mesh make_face();
Mesh make_eyelids();
Mesh make_jaw();
Mesh make_ear(float side);  // +1 left, -1 right
Mesh make_tail();
Mesh make_thigh(bool front);
Mesh make_shin();
Mesh make_player_body();
Mesh make_player_head();
Mesh make_player_arm();
Mesh make_player_leg();
Mesh make_clicker();
Mesh make_bone();

// ---- the pet's joints ----
// The body's frame has its origin between the hips. The head's is at the neck.
namespace joint {
inline constexpr Vec3 kNeck{0.55f, 0.0f, 0.24f};
inline constexpr Vec3 kJaw{0.15f, 0.0f, 0.025f};    // in the head's frame
inline constexpr Vec3 kEar{0.01f, 0.135f, 0.265f};  // left, in the head's frame
inline constexpr Vec3 kTail{-0.15f, 0.0f, 0.10f};
inline constexpr Vec3 kShoulder{0.44f, 0.115f, -0.05f};  // left front
inline constexpr Vec3 kHip{-0.02f, 0.115f, -0.05f};      // left hind
inline constexpr float kThigh = 0.19f;                   // from hip to knee
inline constexpr float kShin = 0.19f;                    // from knee to ankle
inline constexpr float kAnkle = 0.05f;                   // of the ankle above the sole
inline constexpr float kStandHeight = 0.43f;             // of the hips
inline constexpr Vec3 kPlayerShoulder{0.0f, 0.235f, 1.02f};
inline constexpr Vec3 kPlayerHip{0.0f, 0.11f, 0.56f};
inline constexpr float kPlayerNeck = 1.16f;
}  // namespace joint

}  // namespace pet
