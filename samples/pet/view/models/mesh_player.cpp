// The player: a small friendly figure, and the things that it holds up.

#include "samples/pet/view/models/mesh_models.h"

namespace pet {
namespace {

constexpr Paint kSkin = paint(0xe8b08a);
constexpr Paint kJumper = paint(0x3c8f9a);
constexpr Paint kStripe = paint(0xf4ead7);
constexpr Paint kTrousers = paint(0x3d4a6b);
constexpr Paint kShoe = paint(0xd8604c);
constexpr Paint kHair = paint(0x59352a);
constexpr Paint kInk = paint(0x2d2226);

}  // namespace

Mesh make_player_body() {
  return sculpt(
      {
          capsule({0.0f, 0.0f, 0.62f}, {0.0f, 0.0f, 0.98f}, 0.215f, 0.17f, kJumper),
          ellipsoid({0.0f, 0.0f, 1.0f}, {0.15f, 0.225f, 0.12f}, kJumper, 0.08f),
          stained(box({0.0f, 0.0f, 0.86f}, {0.4f, 0.4f, 0.035f}, 0.01f, kStripe, 0.012f)),
          stained(box({0.0f, 0.0f, 0.73f}, {0.4f, 0.4f, 0.035f}, 0.01f, kStripe, 0.012f)),
          ellipsoid({0.0f, 0.0f, 0.53f}, {0.19f, 0.215f, 0.13f}, kTrousers, 0.02f),
          capsule({0.0f, 0.0f, 1.08f}, {0.01f, 0.0f, 1.2f}, 0.075f, 0.07f, kSkin, 0.02f),
          torus({0.0f, 0.0f, 1.105f}, {0.0f, 0.0f, 1.0f}, 0.085f, 0.035f, kStripe, 0.01f),
      },
      0.027f);
}

// Origin at the neck.
Mesh make_player_head() {
  std::vector<Blob> blobs = {
      ellipsoid({0.0f, 0.0f, 0.20f}, {0.185f, 0.185f, 0.20f}, kSkin),
      ellipsoid({0.19f, 0.0f, 0.17f}, {0.03f, 0.028f, 0.026f}, kSkin, 0.02f),
      // Hair lies behind a slanted plane: a cap, a fringe and a bun.
      ellipsoid({-0.045f, 0.0f, 0.255f}, {0.19f, 0.205f, 0.185f}, kHair, 0.008f),
      ellipsoid({0.09f, 0.07f, 0.37f}, {0.10f, 0.11f, 0.055f}, kHair, 0.03f),
      ball({-0.10f, 0.0f, 0.47f}, 0.085f, kHair, 0.03f),
  };
  for (float side : {1.0f, -1.0f}) {
    blobs.push_back(ellipsoid({0.172f, 0.072f * side, 0.215f}, {0.018f, 0.02f, 0.027f}, kInk, 0.002f));
    blobs.push_back(stained(ball({0.165f, 0.115f * side, 0.145f}, 0.04f, paint(0xe98c7a), 0.04f)));
    blobs.push_back(ellipsoid({0.0f, 0.185f * side, 0.19f}, {0.035f, 0.03f, 0.045f}, kSkin, 0.01f));
  }
  for (int i = 0; i < 4; ++i) {
    const auto mouth = [](int k) {
      const float t = (static_cast<float>(k) - 2.0f) / 2.0f;
      return Vec3{0.178f - 0.012f * t * t, 0.055f * t, 0.098f + 0.022f * t * t};
    };
    blobs.push_back(stained(capsule(mouth(i), mouth(i + 1), 0.014f, 0.014f, kInk, 0.006f)));
  }
  return sculpt(blobs, 0.018f);
}

// Hangs down from the shoulder; bends forward a little.
Mesh make_player_arm() {
  return sculpt(
      {
          capsule({0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, -0.20f}, 0.082f, 0.07f, kJumper),
          capsule({0.0f, 0.0f, -0.20f}, {0.035f, 0.0f, -0.38f}, 0.07f, 0.066f, kJumper, 0.02f),
          torus({0.037f, 0.0f, -0.39f}, {0.2f, 0.0f, -1.0f}, 0.05f, 0.026f, kStripe, 0.01f),
          ball({0.045f, 0.0f, -0.455f}, 0.072f, kSkin, 0.01f),
          ellipsoid({0.095f, 0.03f, -0.435f}, {0.028f, 0.025f, 0.035f}, kSkin, 0.02f),
      },
      0.021f);
}

Mesh make_player_leg() {
  return sculpt(
      {
          capsule({0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, -0.46f}, 0.1f, 0.08f, kTrousers),
          ellipsoid({0.045f, 0.0f, -0.5f}, {0.13f, 0.082f, 0.065f}, kShoe, 0.01f),
      },
      0.025f);
}

Mesh make_clicker() {
  return sculpt({box({0.0f, 0.0f, 0.0f}, {0.075f, 0.05f, 0.025f}, 0.02f, paint(0x5b6bd6)),
                 ball({0.03f, 0.0f, 0.028f}, 0.026f, paint(0xffcf4d), 0.004f)},
                0.011f);
}

Mesh make_bone() {
  const Paint biscuit = paint(0xe6b877);
  std::vector<Blob> blobs = {capsule({-0.55f, 0.0f, 0.0f}, {0.55f, 0.0f, 0.0f}, 0.26f, 0.26f, biscuit)};
  for (float x : {-0.68f, 0.68f})
    for (float z : {-0.25f, 0.25f})
      blobs.push_back(ellipsoid({x, 0.0f, z}, {0.30f, 0.27f, 0.30f}, biscuit, 0.12f));
  return sculpt(blobs, 0.085f);
}

}  // namespace pet
