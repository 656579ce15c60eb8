#pragma once
// Vectors and matrices of the renderer. Right-handed, z up; angles in radians, counter-clockwise seen against
// the axis.

#include <algorithm>
#include <array>
#include <cmath>

namespace pet {

inline constexpr float kPi = 3.14159265f;

struct Vec3 {
  float x = 0.0f, y = 0.0f, z = 0.0f;
};

constexpr Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
constexpr Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
constexpr Vec3 operator-(Vec3 a) { return {-a.x, -a.y, -a.z}; }
constexpr Vec3 operator*(Vec3 a, float s) { return {a.x * s, a.y * s, a.z * s}; }
constexpr Vec3 operator*(Vec3 a, Vec3 b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
constexpr float dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
constexpr Vec3 cross(Vec3 a, Vec3 b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline float length(Vec3 a) { return std::sqrt(dot(a, a)); }
inline Vec3 normalize(Vec3 a) {
  const float l = length(a);
  return l > 1e-12f ? a * (1.0f / l) : Vec3{0.0f, 0.0f, 1.0f};
}
constexpr float mix(float a, float b, float t) { return a + (b - a) * t; }
constexpr Vec3 mix(Vec3 a, Vec3 b, float t) { return a + (b - a) * t; }
constexpr float clamp01(float v) { return v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v; }
constexpr float smooth(float t) {
  t = clamp01(t);
  return t * t * (3.0f - 2.0f * t);
}
constexpr float smooth(float from, float to, float v) { return smooth((v - from) / (to - from)); }

// Rotation, scale and translation: column vectors x, y, z and the origin.
struct Affine {
  Vec3 x{1.0f, 0.0f, 0.0f}, y{0.0f, 1.0f, 0.0f}, z{0.0f, 0.0f, 1.0f}, origin{};
};

constexpr Vec3 rotate(const Affine& m, Vec3 v) { return m.x * v.x + m.y * v.y + m.z * v.z; }
constexpr Vec3 transform(const Affine& m, Vec3 p) { return rotate(m, p) + m.origin; }
constexpr Affine operator*(const Affine& a, const Affine& b) {
  return {rotate(a, b.x), rotate(a, b.y), rotate(a, b.z), transform(a, b.origin)};
}
constexpr Affine translation(Vec3 t) { return {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, t}; }
constexpr Affine scaling(Vec3 s) { return {{s.x, 0, 0}, {0, s.y, 0}, {0, 0, s.z}, {}}; }
constexpr Affine scaling(float s) { return scaling({s, s, s}); }
inline Affine rotation_x(float a) {
  const float c = std::cos(a), s = std::sin(a);
  return {{1, 0, 0}, {0, c, s}, {0, -s, c}, {}};
}
inline Affine rotation_y(float a) {
  const float c = std::cos(a), s = std::sin(a);
  return {{c, 0, -s}, {0, 1, 0}, {s, 0, c}, {}};
}
inline Affine rotation_z(float a) {
  const float c = std::cos(a), s = std::sin(a);
  return {{c, s, 0}, {-s, c, 0}, {0, 0, 1}, {}};
}
// Turns +z to `direction` and keeps y sideways.
inline Affine pointing(Vec3 direction) {
  const Vec3 z = normalize(direction);
  const Vec3 x = normalize(std::abs(z.y) < 0.99f ? cross({0, 1, 0}, z) : Vec3{1, 0, 0});
  return {x, cross(z, x), z, {}};
}
// Column-major, as GLSL has it.
struct Mat4 {
  std::array<float, 16> m{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
};

inline Mat4 operator*(const Mat4& a, const Mat4& b) {
  Mat4 r;
  for (int c = 0; c < 4; ++c)
    for (int row = 0; row < 4; ++row) {
      float sum = 0.0f;
      for (int k = 0; k < 4; ++k) sum += a.m[k * 4 + row] * b.m[c * 4 + k];
      r.m[c * 4 + row] = sum;
    }
  return r;
}
struct Vec4 {
  float x = 0.0f, y = 0.0f, z = 0.0f, w = 0.0f;
};
constexpr Vec4 operator*(const Mat4& a, Vec4 v) {
  return {a.m[0] * v.x + a.m[4] * v.y + a.m[8] * v.z + a.m[12] * v.w,
          a.m[1] * v.x + a.m[5] * v.y + a.m[9] * v.z + a.m[13] * v.w,
          a.m[2] * v.x + a.m[6] * v.y + a.m[10] * v.z + a.m[14] * v.w,
          a.m[3] * v.x + a.m[7] * v.y + a.m[11] * v.z + a.m[15] * v.w};
}

}  // namespace pet
