#pragma once
// A camera that circles a ground point and frames an area within a part of the picture.

#include <optional>

#include "samples/pet/view/models/mesh_math.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

// A rectangle of the picture, in 0..1 of its size, y down.
struct Region {
  float left = 0.0f, top = 0.0f, right = 1.0f, bottom = 1.0f;
};

class Camera {
 public:
  // Angles: yaw turns around the yard, 0 looks along +y; pitch looks down.
  void orbit(float yaw, float pitch);
  void zoom(float factor);  // > 1: nearer
  void reset();

  // Frames a box of ground, `half` metres each way from `center`, `tall` metres high and a little deep,
  // within `region` of a picture of that size.
  void frame(float width, float height, const Region& region, Vec2 center, Vec2 half, float tall);

  const Mat4& view_projection() const { return view_projection_; }
  Vec3 eye() const { return eye_; }
  Vec3 right() const { return right_; }        // of the picture, in the world
  Vec3 backward() const { return backward_; }  // from the scene to the eye

  // Pixels of a world point; nothing behind the camera.
  std::optional<Vec2> project(Vec3 point) const;
  // Where the pixel's ray meets the ground; nothing above the horizon.
  std::optional<Vec2> ground(Vec2 pixel) const;

 private:
  float yaw_ = kYaw, pitch_ = kPitch, zoom_ = 1.0f;
  float width_ = 1.0f, height_ = 1.0f;
  float scale_x_ = 1.0f, scale_y_ = 1.0f, shift_x_ = 0.0f,
        shift_y_ = 0.0f;  // clip = view * scale + depth * shift
  Vec3 eye_, right_, up_, backward_;
  Mat4 view_projection_;

  static constexpr float kYaw = -0.32f, kPitch = 0.60f;
};

}  // namespace pet
