// The yard: a slice of meadow with a fence, a tree and the pet's things.

#include "samples/pet/view/models/mesh_models.h"

#include <utility>

#include "samples/pet/yard/world_view.h"

namespace pet {
namespace {

constexpr float kIslandHalf = 5.95f;

// A hash to 0..1: scattered things lie where they lie on every run.
float scatter(std::uint32_t a, std::uint32_t b) {
  std::uint32_t h = a * 0x9e3779b1u ^ (b + 0x7f4a7c15u) * 0x85ebca6bu;
  h ^= h >> 15;
  h *= 0x2c1b3c6du;
  h ^= h >> 13;
  return static_cast<float>(h & 0xffffffu) / static_cast<float>(0x1000000);
}

Mesh make_picket() {
  const Paint white = paint(0xfbf4e6);
  Mesh picket;
  picket.append(bevelled_box({0.105f, 0.036f, 0.34f}, 0.018f, white), translation({0, 0, 0.34f}));
  picket.append(bevelled_box({0.0745f, 0.035f, 0.0745f}, 0.016f, white),
                translation({0, 0, 0.68f}) * rotation_y(kPi / 4));
  return picket;
}

void add_fence(Mesh& scenery) {
  const Mesh picket = make_picket();
  const auto side = [&](Vec3 from, Vec3 to, bool turned_side) {
    const float run = length(to - from);
    const int count = static_cast<int>(run / 0.34f);
    const Affine turn = turned_side ? rotation_z(kPi / 2) : Affine{};
    for (int i = 0; i <= count; ++i) {
      const Vec3 at = mix(from, to, static_cast<float>(i) / static_cast<float>(count));
      const float wobble = 0.94f + 0.1f * scatter(static_cast<std::uint32_t>(i), turned_side ? 7 : 3);
      scenery.append(picket, translation(at) * turn * scaling({1.0f, 1.0f, wobble}));
    }
    for (float z : {0.22f, 0.52f}) {
      const Vec3 back = turned_side ? Vec3{to.x > 0 ? 0.05f : -0.05f, 0.0f, 0.0f} : Vec3{0.0f, 0.05f, 0.0f};
      const Vec3 half = turned_side ? Vec3{0.03f, run / 2, 0.05f} : Vec3{run / 2, 0.03f, 0.05f};
      scenery.append(bevelled_box(half, 0.015f, paint(0xf0e6d2)),
                     translation(mix(from, to, 0.5f) + back + Vec3{0, 0, z}));
    }
  };
  constexpr float e = 5.55f;
  side({-e, e, 0.0f}, {e, e, 0.0f}, false);
  side({-e, -e + 0.3f, 0.0f}, {-e, e - 0.3f, 0.0f}, true);
  side({e, -e + 0.3f, 0.0f}, {e, e - 0.3f, 0.0f}, true);
}

Mesh make_tree() {
  const Paint bark = paint(0x8a5a3c), leaf = paint(0x5fa345), light = paint(0x8cc653), deep = paint(0x47883f);
  Mesh tree =
      sculpt({capsule({0, 0, -0.1f}, {0.06f, 0, 1.5f}, 0.24f, 0.15f, bark),
              capsule({0.03f, 0, 0.9f}, {0.5f, 0.1f, 1.7f}, 0.1f, 0.07f, bark, 0.06f),
              ball({0.2f, -0.1f, 0.0f}, 0.14f, bark, 0.15f), ball({-0.2f, -0.12f, 0.0f}, 0.13f, bark, 0.15f)},
             0.09f);
  tree.append(sculpt(
      {
          ball({0.0f, 0.0f, 2.2f}, 0.85f, leaf),
          ball({0.65f, -0.1f, 2.0f}, 0.58f, leaf, 0.14f),
          ball({-0.62f, -0.05f, 2.0f}, 0.6f, deep, 0.14f),
          ball({0.15f, -0.45f, 1.85f}, 0.55f, deep, 0.14f),
          ball({0.3f, 0.1f, 2.8f}, 0.58f, light, 0.14f),
          ball({-0.32f, -0.15f, 2.72f}, 0.5f, leaf, 0.14f),
          ball({0.75f, 0.0f, 2.5f}, 0.42f, light, 0.14f),
          stained(ball({0.3f, -0.3f, 3.3f}, 0.6f, light, 0.6f)),
      },
      0.115f));
  return tree;
}

Mesh make_bush(const Paint& leaf, const Paint& light) {
  return sculpt(
      {ball({0.0f, 0.0f, 0.2f}, 0.36f, leaf), ball({0.34f, 0.02f, 0.16f}, 0.27f, leaf, 0.08f),
       ball({-0.33f, 0.0f, 0.15f}, 0.26f, leaf, 0.08f), ball({0.1f, -0.14f, 0.34f}, 0.24f, light, 0.08f)},
      0.075f);
}

void add_blade(Mesh& mesh, Vec3 foot, float angle, float width, float height, float lean, const Paint& root,
               const Paint& tip) {
  const Vec3 side{std::cos(angle) * width, std::sin(angle) * width, 0.0f};
  const Vec3 over{-std::sin(angle) * lean, std::cos(angle) * lean, height};
  // Blades take the light of the ground, so that tufts melt into it; the tip sways by its mask.
  const Vec3 normal = normalize({over.x * 0.6f, over.y * 0.6f, 1.0f});
  const std::uint32_t a = mesh.add(foot - side, normal, {root.color, 0.0f}, 0.75f);
  mesh.add(foot + side, normal, {root.color, 0.0f}, 0.75f);
  mesh.add(foot + over, normal, {tip.color, 1.0f}, 1.0f);
  mesh.triangle(a, a + 1, a + 2);
  mesh.triangle(a, a + 2, a + 1);
}

void add_flower(Mesh& mesh, Vec3 foot, float height, const Paint& petals, float size) {
  add_blade(mesh, foot, 0.7f, 0.012f, height, 0.0f, paint(0x5d9440), paint(0x79b04c));
  const Vec3 top = foot + Vec3{0, 0, height};
  const std::uint32_t center = mesh.add(top + Vec3{0, 0, 0.014f}, {0, 0, 1}, {paint(0xffd75e).color, 1.0f});
  constexpr int kPetals = 12;
  for (int i = 0; i < kPetals; ++i) {
    const float a = 2.0f * kPi * static_cast<float>(i) / kPetals, r = i % 2 ? size : size * 0.62f;
    mesh.add(top + Vec3{r * std::cos(a), r * std::sin(a), i % 2 ? 0.004f : 0.0f}, {0, 0, 1},
             {petals.color, 1.0f});
  }
  for (int i = 0; i < kPetals; ++i)
    mesh.triangle(center, center + 1 + static_cast<std::uint32_t>(i),
                  center + 1 + static_cast<std::uint32_t>((i + 1) % kPetals));
  const std::uint32_t yellow = mesh.add(top + Vec3{0, 0, 0.022f}, {0, 0, 1}, {paint(0xf6b93b).color, 1.0f});
  for (int i = 0; i < 6; ++i) {
    const float a = 2.0f * kPi * static_cast<float>(i) / 6.0f;
    mesh.add(top + Vec3{size * 0.36f * std::cos(a), size * 0.36f * std::sin(a), 0.018f}, {0, 0, 1},
             {paint(0xf6b93b).color, 1.0f});
  }
  for (std::uint32_t i = 0; i < 6; ++i) mesh.triangle(yellow, yellow + 1 + i, yellow + 1 + (i + 1) % 6);
}

}  // namespace

Mesh make_island() {
  // A square with round corners, swept along a profile with round edges: out from the middle, down, and in
  // again.
  constexpr float kRound = 0.45f, kEdge = 0.16f, kThick = 1.1f;
  constexpr int kCorner = 8, kSides = 4 * kCorner;
  const Paint grass = paint(0x7cb84e);
  struct Ring {
    float inset, z;
    Vec2 normal;  // outwards, up
  };
  std::vector<Ring> rings;
  const auto edge = [&](float middle_z, float from, float to) {
    for (int i = 0; i <= 4; ++i) {
      const float a = mix(from, to, static_cast<float>(i) / 4.0f);
      rings.push_back(
          {kEdge - kEdge * std::cos(a), middle_z + kEdge * std::sin(a), {std::cos(a), std::sin(a)}});
    }
  };
  edge(-kEdge, kPi / 2, 0.0f);
  edge(-kThick + kEdge, 0.0f, -kPi / 2);
  Mesh mesh;
  const std::uint32_t top = mesh.add({}, {0, 0, 1}, grass);
  for (const Ring& r : rings)
    for (int i = 0; i < kSides; ++i) {
      const int corner = i / kCorner;
      const float a =
          kPi / 2 * (static_cast<float>(corner) + static_cast<float>(i % kCorner) / (kCorner - 1));
      const float sx = corner == 0 || corner == 3 ? 1.0f : -1.0f, sy = corner < 2 ? 1.0f : -1.0f,
                  middle = kIslandHalf - kRound;
      const Vec3 out{std::cos(a), std::sin(a), 0.0f};
      mesh.add({sx * middle + out.x * (kRound - r.inset), sy * middle + out.y * (kRound - r.inset), r.z},
               {out.x * r.normal.x, out.y * r.normal.x, r.normal.y}, grass,
               r.z > -kEdge - 0.01f ? 1.0f : mix(0.45f, 1.0f, (r.z + kThick) / kThick));
    }
  const std::uint32_t first = top + 1;
  for (std::uint32_t i = 0; i < kSides; ++i) mesh.triangle(top, first + i, first + (i + 1) % kSides);
  for (std::uint32_t ring = 0; ring + 1 < rings.size(); ++ring)
    for (std::uint32_t i = 0; i < kSides; ++i) {
      const std::uint32_t a = first + ring * kSides + i, b = first + ring * kSides + (i + 1) % kSides;
      mesh.triangle(a, a + kSides, b);
      mesh.triangle(b, a + kSides, b + kSides);
    }
  return mesh;
}

Mesh make_scenery() {
  Mesh scenery;
  add_fence(scenery);
  scenery.append(make_tree(), translation({-4.35f, 4.75f, 0.0f}));
  const Mesh bush = make_bush(paint(0x5c9f48), paint(0x7fbb55));
  scenery.append(bush, translation({-2.6f, 5.05f, 0.0f}) * scaling(0.85f));
  scenery.append(bush, translation({-1.55f, 5.1f, 0.0f}) * rotation_z(2.0f) * scaling(0.62f));
  scenery.append(bush, translation({5.0f, 5.0f, 0.0f}) * scaling(0.7f));
  scenery.append(bush, translation({-5.05f, -4.9f, 0.0f}) * rotation_z(1.0f) * scaling(0.75f));
  scenery.append(bush, translation({5.05f, -4.95f, 0.0f}) * rotation_z(0.3f) * scaling(0.8f));
  const Paint stone = paint(0xc9c3b8);
  for (const auto& [at, size] :
       {std::pair{Vec3{4.75f, -4.35f, 0.0f}, 0.2f}, std::pair{Vec3{4.5f, -5.0f, 0.0f}, 0.28f},
        std::pair{Vec3{-4.45f, -5.15f, 0.0f}, 0.22f}, std::pair{Vec3{-3.3f, 4.75f, 0.0f}, 0.2f}})
    scenery.append(sculpt({ellipsoid({0, 0, 0.02f}, {size, size * 0.8f, size * 0.6f}, stone),
                           ellipsoid({size * 0.9f, size * 0.3f, 0.0f},
                                     {size * 0.6f, size * 0.5f, size * 0.4f}, stone, 0.06f)},
                          size * 0.2f),
                   translation(at));
  return scenery;
}

Mesh make_meadow() {
  Mesh mesh;
  constexpr float kReach = kIslandHalf - 0.18f;
  for (std::uint32_t i = 0; i < 1700; ++i) {
    const Vec3 at{(scatter(i, 1) * 2 - 1) * kReach, (scatter(i, 2) * 2 - 1) * kReach, 0.0f};
    const bool edge = std::max(std::abs(at.x), std::abs(at.y)) > 5.15f;
    const float tone = scatter(i, 4);
    const Paint root{mix(paint(0x6aa844).color, paint(0x7db651).color, tone)};
    const Paint tip{mix(paint(0x8fc95a).color, paint(0xb7dd72).color, tone)};
    const int blades = edge ? 6 : 4;
    for (int b = 0; b < blades; ++b) {
      const std::uint32_t k = i * 8 + static_cast<std::uint32_t>(b);
      const float angle = scatter(k, 5) * 2 * kPi;
      const Vec3 foot = at + Vec3{(scatter(k, 6) - 0.5f) * 0.14f, (scatter(k, 7) - 0.5f) * 0.14f, -0.01f};
      add_blade(mesh, foot, angle, 0.016f, (edge ? 0.13f : 0.075f) + 0.07f * scatter(k, 8),
                0.05f * scatter(k, 9), root, tip);
    }
  }
  const Paint petals[4] = {paint(0xfff7f0), paint(0xf7a8c0), paint(0xfdf0a8), paint(0xc9b6f2)};
  for (std::uint32_t i = 0; i < 150; ++i) {
    // Most flowers grow along the fence, a few in the grass.
    const float along = (scatter(i, 11) * 2 - 1) * 5.3f, off = 4.75f + scatter(i, 12) * 0.62f;
    const std::uint32_t side = i % 4;
    Vec3 at = side == 0   ? Vec3{along, off, 0}
              : side == 1 ? Vec3{-off, along, 0}
              : side == 2 ? Vec3{off, along, 0}
                          : Vec3{along, -off - 0.25f, 0};
    if (i % 11 == 0) at = {along * 0.8f, (scatter(i, 13) * 2 - 1) * 4.2f, 0};
    add_flower(mesh, at, 0.13f + 0.13f * scatter(i, 14), petals[static_cast<int>(scatter(i, 15) * 4.0f) & 3],
               0.062f + 0.03f * scatter(i, 16));
  }
  return mesh;
}

Mesh make_sofa() {
  const Paint cloth = paint(0xd9667a), cushion = paint(0xe98592), wood = paint(0x9b6a43),
              pillow = paint(0xf9e7c4);
  Mesh sofa = sculpt(
      {
          box({0.0f, 0.0f, 0.27f}, {1.08f, 0.46f, 0.14f}, 0.09f, cloth),
          box({0.0f, 0.36f, 0.52f}, {1.06f, 0.14f, 0.34f}, 0.12f, cloth, 0.05f),
          box({-0.98f, 0.0f, 0.42f}, {0.13f, 0.46f, 0.24f}, 0.11f, cloth, 0.05f),
          box({0.98f, 0.0f, 0.42f}, {0.13f, 0.46f, 0.24f}, 0.11f, cloth, 0.05f),
      },
      0.05f);
  for (float x : {-0.425f, 0.425f})
    sofa.append(sculpt({box({x, -0.06f, 0.45f}, {0.415f, 0.4f, 0.09f}, 0.08f, cushion)}, 0.05f));
  sofa.append(sculpt({turned(box({0.6f, 0.14f, 0.66f}, {0.2f, 0.075f, 0.2f}, 0.07f, pillow),
                             rotation_y(0.6f) * rotation_x(-0.3f))},
                     0.035f));
  for (float x : {-0.95f, 0.95f})
    for (float y : {-0.36f, 0.36f})
      sofa.append(sculpt({capsule({x, y, 0.0f}, {x, y, 0.16f}, 0.045f, 0.06f, wood)}, 0.035f));
  return sofa;
}

Mesh make_bed() {
  const Paint rim = paint(0x5b7fc7), trim = paint(0x4a69ad), pad = paint(0xf3e3c8);
  return sculpt(
      {
          torus({0.0f, 0.0f, 0.13f}, {0, 0, 1}, 0.6f, 0.14f, rim),
          carved(capsule({0.55f, 0.0f, 0.22f}, {0.9f, 0.0f, 0.22f}, 0.14f, 0.16f, rim, 0.05f)),
          ellipsoid({0.0f, 0.0f, 0.05f}, {0.58f, 0.58f, 0.1f}, pad, 0.02f),
          stained(torus({0.0f, 0.0f, 0.03f}, {0, 0, 1}, 0.73f, 0.05f, trim, 0.03f)),
      },
      0.04f);
}

Mesh make_bowl() {
  const Paint clay = paint(0xeef3f5), band = paint(0x3fa7d6), inside = paint(0xd9e2e6);
  return sculpt(
      {
          capsule({0.0f, 0.0f, 0.02f}, {0.0f, 0.0f, 0.11f}, 0.3f, 0.26f, clay),
          carved(box({0.0f, 0.0f, 0.42f}, {0.5f, 0.5f, 0.25f}, 0.0f, clay, 0.02f)),
          carved(box({0.0f, 0.0f, -0.5f}, {0.5f, 0.5f, 0.5f}, 0.0f, clay, 0.02f)),
          carved(ellipsoid({0.0f, 0.0f, 0.22f}, {0.23f, 0.23f, 0.13f}, inside, 0.02f)),
          stained(box({0.0f, 0.0f, 0.085f}, {0.5f, 0.5f, 0.03f}, 0.0f, band, 0.015f)),
          stained(ellipsoid({0.0f, 0.0f, 0.22f}, {0.235f, 0.235f, 0.14f}, inside, 0.01f)),
      },
      0.024f);
}

Mesh make_kibble() {
  Mesh kibble;
  for (std::uint32_t i = 0; i < 26; ++i) {
    const float a = scatter(i, 21) * 2 * kPi, r = 0.17f * std::sqrt(scatter(i, 22));
    kibble.append(
        sculpt({ellipsoid({r * std::cos(a), r * std::sin(a), 0.125f + 0.03f * scatter(i, 23) - r * 0.12f},
                          {0.036f, 0.036f, 0.028f}, paint(scatter(i, 24) < 0.5f ? 0xa9693a : 0xc2824a))},
               0.02f));
  }
  return kibble;
}

// A tennis ball's colours: found at once on grass.
Mesh make_ball() {
  const Paint red = paint(0xf0483e), white = paint(0xfffaf0);
  return sculpt({ball({}, 1.0f, red), stained(box({}, {1.2f, 0.24f, 1.2f}, 0.0f, white, 0.06f)),
                 stained(ball({0.0f, 1.0f, 0.0f}, 0.42f, white, 0.06f)),
                 stained(ball({0.0f, -1.0f, 0.0f}, 0.42f, white, 0.06f))},
                0.13f);
}

std::array<Mesh, kMeshCount> make_meshes() {
  std::array<Mesh, kMeshCount> meshes;
  const auto put = [&](MeshId id, Mesh mesh) { meshes[static_cast<std::size_t>(id)] = std::move(mesh); };
  put(MeshId::island, make_island());
  put(MeshId::scenery, make_scenery());
  put(MeshId::meadow, make_meadow());
  put(MeshId::sofa, make_sofa());
  put(MeshId::bed, make_bed());
  put(MeshId::bowl, make_bowl());
  put(MeshId::kibble, make_kibble());
  put(MeshId::ball, make_ball());
  put(MeshId::torso, make_torso());
  put(MeshId::collar, make_collar());
  put(MeshId::head, make_head());
  put(MeshId::face, make_face());
  put(MeshId::eyelids, make_eyelids());
  put(MeshId::jaw, make_jaw());
  put(MeshId::ear_left, make_ear(1.0f));
  put(MeshId::ear_right, make_ear(-1.0f));
  put(MeshId::tail, make_tail());
  put(MeshId::thigh_front, make_thigh(true));
  put(MeshId::thigh_hind, make_thigh(false));
  put(MeshId::shin, make_shin());
  put(MeshId::player_body, make_player_body());
  put(MeshId::player_head, make_player_head());
  put(MeshId::player_arm, make_player_arm());
  put(MeshId::player_leg, make_player_leg());
  put(MeshId::clicker, make_clicker());
  put(MeshId::heart, puffed(heart_outline(), 0.32f, paint(0xf0466a)));
  put(MeshId::cross, puffed(cross_outline(), 0.2f, paint(0x4a3f80)));
  put(MeshId::star, puffed(star_outline(), 0.25f, paint(0xffc93c)));
  put(MeshId::bone, make_bone());
  put(MeshId::bark_line, sculpt({capsule({0, 0, 0}, {1.0f, 0, 0}, 0.09f, 0.16f, paint(0xffffff))}, 0.08f));
  put(MeshId::disc, disc(28, paint(0xffffff), 0.0f));
  put(MeshId::ring, ring(0.86f, 40, paint(0xffffff)));
  return meshes;
}

}  // namespace pet
