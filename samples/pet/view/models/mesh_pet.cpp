// The pet: a small round dog with a big head, upright ears and a curled tail.

#include "samples/pet/view/models/mesh_models.h"

namespace pet {
namespace {

constexpr Paint kCoat = paint(0xe8954a, 1.0f);
constexpr Paint kDark = paint(0xb9652b, 0.6f);
constexpr Paint kCream = paint(0xfdf0dc);
constexpr Paint kBlack = paint(0x2a1c1a);
constexpr Paint kCollar = paint(0x2f9fb3);
constexpr Paint kGold = paint(0xffcf4d);
constexpr Paint kPink = paint(0xf2a099);
constexpr Paint kTongue = paint(0xf0717e);
constexpr Paint kMouth = paint(0x7d2f36);

Vec3 mirrored(Vec3 p, float side) { return {p.x, p.y * side, p.z}; }

}  // namespace

Mesh make_torso() {
  std::vector<Blob> blobs = {
      ellipsoid({0.0f, 0.0f, 0.0f}, {0.19f, 0.165f, 0.17f}, kCoat),
      capsule({0.05f, 0.0f, 0.005f}, {0.42f, 0.0f, 0.03f}, 0.155f, 0.175f, kCoat, 0.12f),
      ellipsoid({0.44f, 0.0f, 0.03f}, {0.18f, 0.175f, 0.19f}, kCoat, 0.12f),
      capsule({0.47f, 0.0f, 0.08f}, {0.56f, 0.0f, 0.27f}, 0.15f, 0.125f, kCoat, 0.12f),
      stained(ellipsoid({0.64f, 0.0f, 0.04f}, {0.15f, 0.13f, 0.21f}, kCream, 0.06f)),
      stained(ellipsoid({0.27f, 0.0f, -0.20f}, {0.40f, 0.12f, 0.12f}, kCream, 0.06f)),
  };
  return sculpt(blobs, 0.024f);
}

Mesh make_collar() {
  Mesh collar =
      sculpt({torus({0.535f, 0.0f, 0.205f}, {0.42f, 0.0f, 0.9f}, 0.147f, 0.027f, kCollar)}, 0.0125f);
  collar.append(sculpt({ball({0.70f, 0.0f, 0.105f}, 0.038f, kGold)}, 0.011f));
  return collar;
}

Mesh make_head() {
  std::vector<Blob> blobs = {
      ellipsoid({0.05f, 0.0f, 0.135f}, {0.205f, 0.205f, 0.185f}, kCoat),
      ellipsoid({0.10f, 0.105f, 0.06f}, {0.12f, 0.11f, 0.10f}, kCoat, 0.08f),
      ellipsoid({0.10f, -0.105f, 0.06f}, {0.12f, 0.11f, 0.10f}, kCoat, 0.08f),
      capsule({0.16f, 0.0f, 0.075f}, {0.33f, 0.0f, 0.06f}, 0.095f, 0.068f, kCream, 0.07f),
      stained(ellipsoid({0.16f, 0.15f, 0.01f}, {0.13f, 0.10f, 0.085f}, kCream, 0.06f)),
      stained(ellipsoid({0.16f, -0.15f, 0.01f}, {0.13f, 0.10f, 0.085f}, kCream, 0.06f)),
      stained(ellipsoid({0.30f, 0.0f, 0.10f}, {0.16f, 0.07f, 0.09f}, kCream, 0.05f)),
      stained(ellipsoid({0.22f, 0.0f, 0.24f}, {0.09f, 0.026f, 0.10f}, kCream, 0.03f)),
      stained(ball({0.185f, 0.085f, 0.265f}, 0.032f, kCream, 0.02f)),
      stained(ball({0.185f, -0.085f, 0.265f}, 0.032f, kCream, 0.02f)),
  };
  return sculpt(blobs, 0.02f);
}

Mesh make_face() {
  std::vector<Blob> blobs;
  for (float side : {1.0f, -1.0f})
    blobs.push_back(
        ellipsoid(mirrored({0.213f, 0.096f, 0.18f}, side), {0.036f, 0.041f, 0.049f}, kBlack, 0.0f));
  for (float side : {1.0f, -1.0f})
    blobs.push_back(ball(mirrored({0.241f, 0.090f, 0.201f}, side), 0.0155f, paint(0xffffff), 0.002f));
  blobs.push_back(ellipsoid({0.392f, 0.0f, 0.092f}, {0.034f, 0.044f, 0.034f}, kBlack, 0.0f));
  return sculpt(blobs, 0.0085f);
}

Mesh make_eyelids() {
  std::vector<Blob> blobs;
  for (float side : {1.0f, -1.0f}) {
    const Vec3 center = mirrored({0.218f, 0.097f, 0.172f}, side);
    for (int i = 0; i < 4; ++i) {
      const auto point = [&](int k) {
        const float t = (static_cast<float>(k) - 2.0f) / 2.0f;
        return center + Vec3{-0.008f * std::abs(t) - 0.004f, 0.04f * t, 0.016f * t * t};
      };
      blobs.push_back(capsule(point(i), point(i + 1), 0.0095f, 0.0095f, kBlack, 0.0f));
    }
  }
  blobs.push_back(ellipsoid({0.392f, 0.0f, 0.092f}, {0.034f, 0.044f, 0.034f}, kBlack, 0.0f));
  return sculpt(blobs, 0.0085f);
}

Mesh make_jaw() {
  return sculpt(
      {
          capsule({0.0f, 0.0f, -0.005f}, {0.155f, 0.0f, -0.005f}, 0.062f, 0.048f, kCream),
          stained(box({0.08f, 0.0f, 0.05f}, {0.12f, 0.045f, 0.03f}, 0.02f, kMouth, 0.015f)),
          ellipsoid({0.105f, 0.0f, 0.036f}, {0.085f, 0.034f, 0.018f}, kTongue, 0.004f),
      },
      0.014f);
}

Mesh make_ear(float side) {
  const Affine lean = rotation_x(-0.28f * side) * rotation_z(0.35f * side);
  Blob shell = ellipsoid(rotate(lean, {0.0f, 0.0f, 0.085f}), {0.042f, 0.088f, 0.125f}, kCoat);
  Blob tip = ellipsoid(rotate(lean, {0.0f, 0.0f, 0.165f}), {0.026f, 0.045f, 0.068f}, kDark, 0.05f);
  Blob inner =
      stained(ellipsoid(rotate(lean, {0.045f, 0.0f, 0.085f}), {0.03f, 0.048f, 0.085f}, kPink, 0.02f));
  return sculpt({turned(shell, lean), turned(tip, lean), turned(inner, lean)}, 0.0165f);
}

Mesh make_tail() {
  return sculpt(
      {
          capsule({0.0f, 0.0f, 0.0f}, {-0.09f, 0.0f, 0.11f}, 0.055f, 0.072f, kCoat),
          capsule({-0.09f, 0.0f, 0.11f}, {-0.075f, 0.0f, 0.23f}, 0.072f, 0.07f, kCoat, 0.05f),
          capsule({-0.075f, 0.0f, 0.23f}, {0.02f, 0.0f, 0.27f}, 0.066f, 0.042f, kCream, 0.05f),
      },
      0.019f);
}

Mesh make_thigh(bool front) {
  const float top = front ? 0.088f : 0.122f;
  return sculpt({capsule({0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, -joint::kThigh}, top, 0.062f, kCoat)}, 0.019f);
}

Mesh make_shin() {
  return sculpt(
      {
          capsule({0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, -joint::kShin}, 0.06f, 0.052f, kCoat),
          ellipsoid({0.028f, 0.0f, -joint::kShin}, {0.083f, 0.064f, 0.05f}, kCream, 0.03f),
          stained(ellipsoid({0.0f, 0.0f, -joint::kShin}, {0.09f, 0.09f, 0.075f}, kCream, 0.03f)),
      },
      0.017f);
}

}  // namespace pet
