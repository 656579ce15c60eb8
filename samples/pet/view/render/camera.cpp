#include "samples/pet/view/render/camera.h"

namespace pet {
namespace {

constexpr float kTanHalfView = 0.24f;  // a long lens: little perspective, as of a model on a table
constexpr float kNear = 0.5f, kFar = 400.0f;

}  // namespace

void Camera::orbit(float yaw, float pitch) {
  yaw_ += yaw;
  pitch_ = std::clamp(pitch_ + pitch, 0.25f, 1.4f);
}

void Camera::zoom(float factor) { zoom_ = std::clamp(zoom_ * factor, 0.6f, 4.0f); }

void Camera::reset() {
  yaw_ = kYaw;
  pitch_ = kPitch;
  zoom_ = 1.0f;
}

void Camera::frame(float width, float height, const Region& region, Vec2 center, Vec2 half, float tall) {
  width_ = width;
  height_ = height;
  // Looking along -backward; yaw 0 looks along +y.
  backward_ = {std::sin(yaw_) * std::cos(pitch_), -std::cos(yaw_) * std::cos(pitch_), std::sin(pitch_)};
  right_ = {std::cos(yaw_), std::sin(yaw_), 0.0f};
  up_ = cross(backward_, right_);

  const float region_width = std::max((region.right - region.left) * width, 1.0f),
              region_height = std::max((region.bottom - region.top) * height, 1.0f);
  const Vec3 target{center.x, center.y, 0.0f};
  // The distance at which the box just fits the region, found by a few rounds: the picture's size falls
  // nearly as one over the distance.
  float distance = 4.0f * std::max(half.x, half.y);
  float low_x = 0.0f, high_x = 0.0f, low_y = 0.0f, high_y = 0.0f;
  for (int round = 0; round < 12; ++round) {
    low_x = low_y = 1e9f;
    high_x = high_y = -1e9f;
    for (int corner = 0; corner < 8; ++corner) {
      const Vec3 p{corner & 1 ? half.x : -half.x, corner & 2 ? half.y : -half.y, corner & 4 ? tall : -0.45f};
      const float depth = distance - dot(p, backward_);
      low_x = std::min(low_x, dot(p, right_) / depth);
      high_x = std::max(high_x, dot(p, right_) / depth);
      low_y = std::min(low_y, dot(p, up_) / depth);
      high_y = std::max(high_y, dot(p, up_) / depth);
    }
    const float tan_x = kTanHalfView * std::min(region_width / region_height, 10.0f);
    const float excess =
        std::max((high_x - low_x) / (2.0f * tan_x), (high_y - low_y) / (2.0f * kTanHalfView));
    distance *= excess;
  }
  // Zooming in narrows the view instead of moving the eye: nothing gets between the camera and the yard.
  const float tan_half = kTanHalfView / zoom_;
  scale_y_ = region_height / height / tan_half;
  scale_x_ = region_height / width / tan_half;
  const float middle_x = (low_x + high_x) * 0.5f, middle_y = (low_y + high_y) * 0.5f;
  shift_x_ = (region.left + region.right - 1.0f) - middle_x * scale_x_;
  shift_y_ = (region.top + region.bottom - 1.0f) + middle_y * scale_y_;

  eye_ = target + backward_ * distance;
  Mat4 view;
  view.m = {right_.x, up_.x, backward_.x, 0, right_.y,           up_.y,           backward_.y,           0,
            right_.z, up_.z, backward_.z, 0, -dot(right_, eye_), -dot(up_, eye_), -dot(backward_, eye_), 1};
  Mat4 projection;  // Vulkan's clip space: y down, depth 0..1
  projection.m = {scale_x_,
                  0,
                  0,
                  0,
                  0,
                  -scale_y_,
                  0,
                  0,
                  -shift_x_,
                  -shift_y_,
                  kFar / (kNear - kFar),
                  -1,
                  0,
                  0,
                  kNear * kFar / (kNear - kFar),
                  0};
  view_projection_ = projection * view;
}

std::optional<Vec2> Camera::project(Vec3 point) const {
  const Vec4 clip = view_projection_ * Vec4{point.x, point.y, point.z, 1.0f};
  if (clip.w <= kNear) return std::nullopt;
  return Vec2{(clip.x / clip.w * 0.5f + 0.5f) * width_, (clip.y / clip.w * 0.5f + 0.5f) * height_};
}

std::optional<Vec2> Camera::ground(Vec2 pixel) const {
  const float x = (pixel.x / width_ * 2.0f - 1.0f - shift_x_) / scale_x_;
  const float y = -(pixel.y / height_ * 2.0f - 1.0f - shift_y_) / scale_y_;
  const Vec3 ray = right_ * x + up_ * y - backward_;
  if (ray.z >= -1e-4f) return std::nullopt;
  const Vec3 hit = eye_ - ray * (eye_.z / ray.z);
  return Vec2{hit.x, hit.y};
}

}  // namespace pet
