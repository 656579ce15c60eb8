#pragma once
// Procedural meshes. Most are sculpted: soft shapes of a signed distance field, turned into triangles while
// loading.

#include <cstdint>
#include <vector>

#include "samples/pet/view/models/mesh_math.h"

namespace pet {

// sRGB, 0..1; mask: how far an instance's tint replaces this colour (a coat, a jumper).
struct Paint {
  Vec3 color{1.0f, 1.0f, 1.0f};
  float mask = 0.0f;
};

// 0xRRGGBB
constexpr Paint paint(std::uint32_t rgb, float mask = 0.0f) {
  return {{static_cast<float>(rgb >> 16 & 255) / 255.0f, static_cast<float>(rgb >> 8 & 255) / 255.0f,
           static_cast<float>(rgb & 255) / 255.0f},
          mask};
}

struct Vertex {
  Vec3 position;
  std::int8_t normal[4]{};  // xyz; w: openness to the sky, 127 = not occluded
  std::uint8_t color[4]{};  // sRGB, mask
};

struct Mesh {
  std::vector<Vertex> vertices;
  std::vector<std::uint32_t> indices;

  std::uint32_t add(Vec3 position, Vec3 normal, const Paint& color, float openness = 1.0f);
  void triangle(std::uint32_t a, std::uint32_t b, std::uint32_t c);
  // Appends a transformed copy.
  void append(const Mesh& other, const Affine& transform = {});
};

// ---- sculpting ----

// A soft shape. Sizes in metres; every shape lies around the origin of its transform.
struct Blob {
  enum class Kind : std::uint8_t { ellipsoid, capsule, box, torus };
  enum class Mode : std::uint8_t {
    add,    // blends into the shape so far
    carve,  // cuts from the shape so far
    stain,  // only changes the colour
  };
  Kind kind = Kind::ellipsoid;
  Mode mode = Mode::add;
  Vec3 size{0.1f, 0.1f, 0.1f};  // ellipsoid: radii; capsule: radius at the start, radius at the end, length
                                // along z; box: half extents; torus: radius, thickness
  float round = 0.0f;           // box: radius of its edges
  float blend = 0.03f;          // width of the blend, metres
  Affine at;                    // rigid
  Paint color;
};

Blob ellipsoid(Vec3 center, Vec3 radii, const Paint& color, float blend = 0.03f);
Blob ball(Vec3 center, float radius, const Paint& color, float blend = 0.03f);
Blob capsule(Vec3 from, Vec3 to, float radius_from, float radius_to, const Paint& color, float blend = 0.03f);
Blob box(Vec3 center, Vec3 half, float round, const Paint& color, float blend = 0.01f);
Blob torus(Vec3 center, Vec3 axis, float radius, float thickness, const Paint& color, float blend = 0.01f);
Blob turned(Blob blob, const Affine& rotation);  // about its own centre
Blob carved(Blob blob);
Blob stained(Blob blob);

// Triangles of the union in order, with cells of about `cell` metres.
Mesh sculpt(const std::vector<Blob>& blobs, float cell);

// ---- flat things ----

Mesh disc(int sides, const Paint& color,
          float edge_openness);  // radius 1 in the plane z = 0, facing up; openness falls to its edge
Mesh ring(float inner, int sides, const Paint& color);          // outer radius 1
Mesh bevelled_box(Vec3 half, float bevel, const Paint& color);  // 44 triangles, for objects that occur often
// A closed outline in the x, z plane, thickened along y with puffed faces: hearts, crosses, stars, bones.
Mesh puffed(const std::vector<Vec3>& outline, float thickness, const Paint& color);

std::vector<Vec3> heart_outline();
std::vector<Vec3> cross_outline();
std::vector<Vec3> star_outline();

}  // namespace pet
