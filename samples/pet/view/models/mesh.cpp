#include "samples/pet/view/models/mesh.h"

#include <cstddef>

namespace pet {
namespace {

std::int8_t snorm(float v) {
  return static_cast<std::int8_t>(std::lround(std::clamp(v, -1.0f, 1.0f) * 127.0f));
}
std::uint8_t unorm(float v) { return static_cast<std::uint8_t>(std::lround(clamp01(v) * 255.0f)); }

}  // namespace

std::uint32_t Mesh::add(Vec3 position, Vec3 normal, const Paint& color, float openness) {
  vertices.push_back({position,
                      {snorm(normal.x), snorm(normal.y), snorm(normal.z), snorm(openness)},
                      {unorm(color.color.x), unorm(color.color.y), unorm(color.color.z), unorm(color.mask)}});
  return static_cast<std::uint32_t>(vertices.size() - 1);
}

void Mesh::triangle(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  indices.insert(indices.end(), {a, b, c});
}

void Mesh::append(const Mesh& other, const Affine& by) {
  const std::uint32_t base = static_cast<std::uint32_t>(vertices.size());
  // Normals turn with the cofactors, so that they stay upright on a surface that is scaled unevenly.
  const Vec3 cx = cross(by.y, by.z), cy = cross(by.z, by.x), cz = cross(by.x, by.y);
  for (Vertex v : other.vertices) {
    const Vec3 n = normalize(cx * static_cast<float>(v.normal[0]) + cy * static_cast<float>(v.normal[1]) +
                             cz * static_cast<float>(v.normal[2]));
    v.position = transform(by, v.position);
    v.normal[0] = snorm(n.x);
    v.normal[1] = snorm(n.y);
    v.normal[2] = snorm(n.z);
    vertices.push_back(v);
  }
  for (std::uint32_t i : other.indices) indices.push_back(base + i);
}

Mesh disc(int sides, const Paint& color, float edge_openness) {
  Mesh mesh;
  const std::uint32_t center = mesh.add({}, {0, 0, 1}, color, 1.0f);
  for (int i = 0; i < sides; ++i) {
    const float a = 2.0f * kPi * static_cast<float>(i) / static_cast<float>(sides);
    mesh.add({std::cos(a), std::sin(a), 0.0f}, {0, 0, 1}, color, edge_openness);
  }
  for (int i = 0; i < sides; ++i)
    mesh.triangle(center, center + 1 + static_cast<std::uint32_t>(i),
                  center + 1 + static_cast<std::uint32_t>((i + 1) % sides));
  return mesh;
}

Mesh ring(float inner, int sides, const Paint& color) {
  Mesh mesh;
  for (int i = 0; i <= sides; ++i) {
    const float a = 2.0f * kPi * static_cast<float>(i) / static_cast<float>(sides);
    const Vec3 out{std::cos(a), std::sin(a), 0.0f};
    const std::uint32_t at = mesh.add(out * inner, {0, 0, 1}, color);
    mesh.add(out, {0, 0, 1}, color);
    if (i == 0) continue;
    mesh.triangle(at - 2, at - 1, at);
    mesh.triangle(at, at - 1, at + 1);
  }
  return mesh;
}

// Each corner has one vertex per face, moved in by the bevel. The vertex normals make the bevel look round.
Mesh bevelled_box(Vec3 half, float bevel, const Paint& color) {
  Mesh mesh;
  std::uint32_t at[8][3];
  for (int corner = 0; corner < 8; ++corner) {
    const Vec3 sign{corner & 1 ? 1.0f : -1.0f, corner & 2 ? 1.0f : -1.0f, corner & 4 ? 1.0f : -1.0f};
    const Vec3 inner{half.x - bevel, half.y - bevel, half.z - bevel};
    const float openness = sign.z > 0.0f ? 1.0f : 0.55f;
    at[corner][0] = mesh.add(sign * Vec3{half.x, inner.y, inner.z}, {sign.x, 0, 0}, color, openness);
    at[corner][1] = mesh.add(sign * Vec3{inner.x, half.y, inner.z}, {0, sign.y, 0}, color, openness);
    at[corner][2] = mesh.add(sign * Vec3{inner.x, inner.y, half.z}, {0, 0, sign.z}, color, openness);
  }
  const auto outward = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const Vec3 pa = mesh.vertices[a].position, pb = mesh.vertices[b].position, pc = mesh.vertices[c].position;
    if (dot(cross(pb - pa, pc - pa), pa + pb + pc) > 0.0f)
      mesh.triangle(a, b, c);
    else
      mesh.triangle(a, c, b);
  };
  const auto quad = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
    outward(a, b, c);
    outward(a, c, d);
  };
  for (int axis = 0; axis < 3; ++axis) {
    const int bit = 1 << axis, u = 1 << (axis + 1) % 3, v = 1 << (axis + 2) % 3;
    for (int side : {0, bit})
      quad(at[side][axis], at[side | u][axis], at[side | u | v][axis], at[side | v][axis]);
    for (int edge = 0; edge < 4; ++edge) {  // the four edges along this axis
      const int from = (edge & 1 ? u : 0) | (edge & 2 ? v : 0), to = from | bit;
      quad(at[from][(axis + 1) % 3], at[to][(axis + 1) % 3], at[to][(axis + 2) % 3],
           at[from][(axis + 2) % 3]);
    }
  }
  for (auto& corner : at) outward(corner[0], corner[1], corner[2]);
  return mesh;
}

// Rings of the outline shrink towards the centre while they rise, like a cushion.
Mesh puffed(const std::vector<Vec3>& outline, float thickness, const Paint& color) {
  Mesh mesh;
  const std::uint32_t count = static_cast<std::uint32_t>(outline.size());
  constexpr int kRings = 5;
  const auto outward = [&](std::uint32_t i) {
    const Vec3 along = outline[(i + 1) % count] - outline[(i + count - 1) % count];
    return normalize({along.z, 0.0f, -along.x});
  };
  for (int ring_index = -kRings; ring_index <= kRings; ++ring_index) {
    const float angle = 0.5f * kPi * static_cast<float>(ring_index) / static_cast<float>(kRings);
    const float inset = 1.0f - 0.32f * (1.0f - std::cos(angle));
    for (std::uint32_t i = 0; i < count; ++i) {
      const Vec3 p = outline[i] * inset;
      const Vec3 n = normalize(outward(i) * std::cos(angle) + Vec3{0.0f, std::sin(angle), 0.0f});
      mesh.add({p.x, thickness * std::sin(angle), p.z}, n, color);
    }
  }
  for (int ring_index = 0; ring_index < 2 * kRings; ++ring_index)
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t a = static_cast<std::uint32_t>(ring_index) * count + i;
      const std::uint32_t b = static_cast<std::uint32_t>(ring_index) * count + (i + 1) % count;
      mesh.triangle(a, a + count, b);
      mesh.triangle(b, a + count, b + count);
    }
  // The faces: fans, right for every outline that sees its centre.
  for (float side : {-1.0f, 1.0f}) {
    const std::uint32_t center = mesh.add({0.0f, side * thickness * 1.05f, 0.0f}, {0.0f, side, 0.0f}, color);
    const std::uint32_t rim = side < 0.0f ? 0 : 2 * kRings * count;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t a = rim + i, b = rim + (i + 1) % count;
      if (side < 0.0f)
        mesh.triangle(center, a, b);
      else
        mesh.triangle(center, b, a);
    }
  }
  return mesh;
}

// Outlines run counter-clockwise seen from -y, within -1..1.
std::vector<Vec3> heart_outline() {
  std::vector<Vec3> outline;
  constexpr int kPoints = 48;
  for (int i = 0; i < kPoints; ++i) {
    const float t = 2.0f * kPi * (static_cast<float>(i) + 0.5f) / kPoints;
    const float s = std::sin(t);
    const float z = 13.0f * std::cos(t) - 5.0f * std::cos(2 * t) - 2.0f * std::cos(3 * t) - std::cos(4 * t);
    outline.push_back({-16.0f * s * s * s / 17.0f, 0.0f, (z + 2.5f) / 17.0f});
  }
  return outline;
}

std::vector<Vec3> cross_outline() {
  constexpr float w = 0.3f, e = 0.95f;
  const Vec3 upright[12] = {{w, 0, w},   {w, 0, e},   {-w, 0, e}, {-w, 0, w}, {-e, 0, w}, {-e, 0, -w},
                            {-w, 0, -w}, {-w, 0, -e}, {w, 0, -e}, {w, 0, -w}, {e, 0, -w}, {e, 0, w}};
  std::vector<Vec3> outline;
  for (Vec3 p : upright) outline.push_back({(p.x - p.z) * 0.7071f, 0.0f, (p.x + p.z) * 0.7071f});
  return outline;
}

std::vector<Vec3> star_outline() {
  std::vector<Vec3> outline;
  for (int i = 0; i < 10; ++i) {
    const float a = kPi * (0.5f + static_cast<float>(i) / 5.0f), r = i % 2 ? 0.52f : 1.0f;
    outline.push_back({r * std::cos(a), 0.0f, r * std::sin(a)});
  }
  return outline;
}

}  // namespace pet
