// Soft shapes to triangles: a distance field of blobs, meshed by surface nets (S. Gibson, "Constrained
// elastic surface nets", 1998; here the common form with one vertex per cell). Vertices are then moved onto
// the surface along the gradient.

#include <cstddef>
#include <limits>

#include "samples/pet/view/models/mesh.h"

namespace pet {
namespace {

float distance(const Blob& b, Vec3 world) {
  // The transform is rigid, so its transpose turns back.
  const Vec3 d = world - b.at.origin;
  const Vec3 p{dot(d, b.at.x), dot(d, b.at.y), dot(d, b.at.z)};
  switch (b.kind) {
    case Blob::Kind::ellipsoid: {
      const Vec3 q{p.x / b.size.x, p.y / b.size.y, p.z / b.size.z};
      const Vec3 r{q.x / b.size.x, q.y / b.size.y, q.z / b.size.z};
      const float k0 = length(q), k1 = length(r);
      return k1 < 1e-6f ? -std::min({b.size.x, b.size.y, b.size.z}) : k0 * (k0 - 1.0f) / k1;
    }
    case Blob::Kind::capsule: {
      const float t = clamp01(p.z / b.size.z);
      return length(p - Vec3{0.0f, 0.0f, t * b.size.z}) - mix(b.size.x, b.size.y, t);
    }
    case Blob::Kind::box: {
      const Vec3 q{std::abs(p.x) - b.size.x + b.round, std::abs(p.y) - b.size.y + b.round,
                   std::abs(p.z) - b.size.z + b.round};
      return length({std::max(q.x, 0.0f), std::max(q.y, 0.0f), std::max(q.z, 0.0f)}) +
             std::min(std::max({q.x, q.y, q.z}), 0.0f) - b.round;
    }
    case Blob::Kind::torus:
      return length({std::sqrt(p.x * p.x + p.y * p.y) - b.size.x, 0.0f, p.z}) - b.size.y;
  }
  return 0.0f;
}

float smooth_min(float a, float b, float k) {
  if (k <= 0.0f) return std::min(a, b);
  const float h = std::max(k - std::abs(a - b), 0.0f) / k;
  return std::min(a, b) - h * h * k * 0.25f;
}

class Field {
 public:
  explicit Field(const std::vector<Blob>& blobs) : blobs_(blobs) {}

  float at(Vec3 p) const {
    float d = std::numeric_limits<float>::max();
    for (const Blob& b : blobs_) {
      if (b.mode == Blob::Mode::add)
        d = d == std::numeric_limits<float>::max() ? distance(b, p) : smooth_min(d, distance(b, p), b.blend);
      if (b.mode == Blob::Mode::carve) d = -smooth_min(-d, distance(b, p), b.blend);
    }
    return d;
  }

  Vec3 normal(Vec3 p, float h) const {
    return normalize({at({p.x + h, p.y, p.z}) - at({p.x - h, p.y, p.z}),
                      at({p.x, p.y + h, p.z}) - at({p.x, p.y - h, p.z}),
                      at({p.x, p.y, p.z + h}) - at({p.x, p.y, p.z - h})});
  }

  // The colour of the nearest blob, mixed over about its blend width where two meet.
  Paint color(Vec3 p) const {
    Paint result;
    float nearest = std::numeric_limits<float>::max();
    for (const Blob& b : blobs_) {
      if (b.mode == Blob::Mode::carve) continue;
      const float d = distance(b, p);
      const float width = std::max(b.blend * 0.5f, 1e-3f);
      float share = 1.0f;
      if (b.mode == Blob::Mode::stain) {
        share = smooth(width, -width, d);
      } else if (nearest != std::numeric_limits<float>::max()) {
        share = smooth(width, -width, d - nearest);
        nearest = std::min(nearest, d);
      } else {
        nearest = d;
      }
      result.color = mix(result.color, b.color.color, share);
      result.mask = mix(result.mask, b.color.mask, share);
    }
    return result;
  }

  // How much of the way out along the normal is free: 1 in the open, less in creases.
  float openness(Vec3 p, Vec3 n, float reach) const {
    float hidden = 0.0f, weight = 0.0f;
    for (float step : {0.25f, 0.5f, 1.0f}) {
      const float h = reach * step;
      hidden += (1.0f - clamp01(at(p + n * h) / h)) * (1.25f - step);
      weight += 1.25f - step;
    }
    return 1.0f - hidden / weight;
  }

  void bounds(Vec3& low, Vec3& high) const {
    low = {1e9f, 1e9f, 1e9f};
    high = -low;
    for (const Blob& b : blobs_) {
      if (b.mode != Blob::Mode::add) continue;
      Vec3 reach = b.size;
      Vec3 center = b.at.origin;
      if (b.kind == Blob::Kind::capsule) {
        const float r = std::max(b.size.x, b.size.y);
        center = center + b.at.z * (b.size.z * 0.5f);
        reach = {r, r, b.size.z * 0.5f + r};
      }
      if (b.kind == Blob::Kind::torus) reach = {b.size.x + b.size.y, b.size.x + b.size.y, b.size.y};
      const auto extent = [&](float x, float y, float z) {
        return std::abs(x) * reach.x + std::abs(y) * reach.y + std::abs(z) * reach.z + b.blend * 0.3f;
      };
      const Vec3 e{extent(b.at.x.x, b.at.y.x, b.at.z.x), extent(b.at.x.y, b.at.y.y, b.at.z.y),
                   extent(b.at.x.z, b.at.y.z, b.at.z.z)};
      low = {std::min(low.x, center.x - e.x), std::min(low.y, center.y - e.y),
             std::min(low.z, center.z - e.z)};
      high = {std::max(high.x, center.x + e.x), std::max(high.y, center.y + e.y),
              std::max(high.z, center.z + e.z)};
    }
  }

 private:
  const std::vector<Blob>& blobs_;
};

}  // namespace

Mesh sculpt(const std::vector<Blob>& blobs, float cell) {
  const Field field(blobs);
  Vec3 low, high;
  field.bounds(low, high);
  low = low - Vec3{cell, cell, cell} * 1.5f;
  high = high + Vec3{cell, cell, cell} * 1.5f;
  const int nx = static_cast<int>(std::ceil((high.x - low.x) / cell)) + 1;
  const int ny = static_cast<int>(std::ceil((high.y - low.y) / cell)) + 1;
  const int nz = static_cast<int>(std::ceil((high.z - low.z) / cell)) + 1;
  const auto corner = [&](int x, int y, int z) { return (static_cast<std::size_t>(z) * ny + y) * nx + x; };

  std::vector<float> values(static_cast<std::size_t>(nx) * ny * nz);
  for (int z = 0; z < nz; ++z)
    for (int y = 0; y < ny; ++y)
      for (int x = 0; x < nx; ++x)
        values[corner(x, y, z)] = field.at(low + Vec3{x * cell, y * cell, z * cell});

  // One vertex in each cell that the surface passes: the mean of its edge crossings, then on the surface.
  Mesh mesh;
  constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<std::uint32_t> vertex_of(values.size(), kNone);
  for (int z = 0; z + 1 < nz; ++z)
    for (int y = 0; y + 1 < ny; ++y)
      for (int x = 0; x + 1 < nx; ++x) {
        float v[8];
        int inside = 0;
        for (int i = 0; i < 8; ++i) {
          v[i] = values[corner(x + (i & 1), y + (i >> 1 & 1), z + (i >> 2))];
          inside += v[i] < 0.0f;
        }
        if (inside == 0 || inside == 8) continue;
        Vec3 sum;
        int crossings = 0;
        for (int a = 0; a < 8; ++a)
          for (int axis = 1; axis < 8; axis <<= 1) {
            const int b = a | axis;
            if (b == a || (v[a] < 0.0f) == (v[b] < 0.0f)) continue;
            const float t = v[a] / (v[a] - v[b]);
            const Vec3 from{static_cast<float>(a & 1), static_cast<float>(a >> 1 & 1),
                            static_cast<float>(a >> 2)};
            const Vec3 to{static_cast<float>(b & 1), static_cast<float>(b >> 1 & 1),
                          static_cast<float>(b >> 2)};
            sum = sum + mix(from, to, t);
            ++crossings;
          }
        Vec3 p = low + (Vec3{static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)} +
                        sum * (1.0f / static_cast<float>(crossings))) *
                           cell;
        for (int i = 0; i < 2; ++i)
          p = p - field.normal(p, cell * 0.25f) * std::clamp(field.at(p), -cell * 0.5f, cell * 0.5f);
        const Vec3 n = field.normal(p, cell * 0.25f);
        vertex_of[corner(x, y, z)] = mesh.add(p, n, field.color(p), field.openness(p, n, cell * 6.0f));
      }

  // One quad for each grid edge that crosses the surface, between the four cells around it.
  const auto quad = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d, bool flip) {
    if (a == kNone || b == kNone || c == kNone || d == kNone) return;
    if (flip) std::swap(b, d);
    mesh.triangle(a, b, c);
    mesh.triangle(a, c, d);
  };
  for (int z = 1; z + 1 < nz; ++z)
    for (int y = 1; y + 1 < ny; ++y)
      for (int x = 1; x + 1 < nx; ++x) {
        const bool here = values[corner(x, y, z)] < 0.0f;
        const auto cell_at = [&](int dx, int dy, int dz) {
          return vertex_of[corner(x - dx, y - dy, z - dz)];
        };
        if (here != (values[corner(x + 1, y, z)] < 0.0f))
          quad(cell_at(0, 1, 1), cell_at(0, 0, 1), cell_at(0, 0, 0), cell_at(0, 1, 0), !here);
        if (here != (values[corner(x, y + 1, z)] < 0.0f))
          quad(cell_at(1, 0, 1), cell_at(1, 0, 0), cell_at(0, 0, 0), cell_at(0, 0, 1), !here);
        if (here != (values[corner(x, y, z + 1)] < 0.0f))
          quad(cell_at(1, 1, 0), cell_at(0, 1, 0), cell_at(0, 0, 0), cell_at(1, 0, 0), !here);
      }
  return mesh;
}

Blob ellipsoid(Vec3 center, Vec3 radii, const Paint& color, float blend) {
  return {.kind = Blob::Kind::ellipsoid,
          .size = radii,
          .blend = blend,
          .at = translation(center),
          .color = color};
}

Blob ball(Vec3 center, float radius, const Paint& color, float blend) {
  return ellipsoid(center, {radius, radius, radius}, color, blend);
}

Blob capsule(Vec3 from, Vec3 to, float radius_from, float radius_to, const Paint& color, float blend) {
  Affine at = pointing(to - from);
  at.origin = from;
  return {.kind = Blob::Kind::capsule,
          .size = {radius_from, radius_to, length(to - from)},
          .blend = blend,
          .at = at,
          .color = color};
}

Blob box(Vec3 center, Vec3 half, float round, const Paint& color, float blend) {
  return {.kind = Blob::Kind::box,
          .size = half,
          .round = round,
          .blend = blend,
          .at = translation(center),
          .color = color};
}

Blob torus(Vec3 center, Vec3 axis, float radius, float thickness, const Paint& color, float blend) {
  Affine at = pointing(axis);
  at.origin = center;
  return {
      .kind = Blob::Kind::torus, .size = {radius, thickness, 0.0f}, .blend = blend, .at = at, .color = color};
}

Blob turned(Blob blob, const Affine& rotation) {
  const Vec3 center = blob.at.origin;
  blob.at.origin = {};
  blob.at = rotation * blob.at;
  blob.at.origin = center;
  return blob;
}

Blob carved(Blob blob) {
  blob.mode = Blob::Mode::carve;
  return blob;
}

Blob stained(Blob blob) {
  blob.mode = Blob::Mode::stain;
  return blob;
}

}  // namespace pet
