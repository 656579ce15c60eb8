#include "samples/pet/view/scene_view_pet.h"

namespace pet {
namespace {

constexpr float kSize = 1.25f;         // a large dog, because the player looks at it
constexpr float kHipsBehind = 0.235f;  // of the hips behind the pet's middle

std::array<Vec3, 4> standing_feet() {
  return {{{0.215f, 0.115f, 0}, {0.215f, -0.115f, 0}, {-0.25f, 0.12f, 0}, {-0.25f, -0.12f, 0}}};
}

// Diagonal pairs of legs swing together.
void step(Posture& p, float cycle, float stride, float lift) {
  for (std::size_t leg = 0; leg < 4; ++leg) {
    const float phase = 2.0f * kPi * (cycle + (leg == 0 || leg == 3 ? 0.0f : 0.5f));
    p.feet[leg].x += stride * std::cos(phase);
    p.feet[leg].z += lift * std::max(0.0f, std::sin(phase));
  }
  p.hips += 0.02f * std::sin(4.0f * kPi * cycle);
}

// Two barks in one action.
float bark_opening(float progress) { return std::max(0.0f, std::sin(4.0f * kPi * progress)); }

// Poses on the ground.
void set_resting(Posture& p, const PetView& view) {
  switch (view.pose) {
    case Pose::sit:
      p.hips = 0.215f;
      p.lean = 0.62f;
      p.shift = -0.02f;
      p.feet = {{{0.17f, 0.095f, 0}, {0.17f, -0.095f, 0}, {-0.04f, 0.20f, 0}, {-0.04f, -0.20f, 0}}};
      p.head_pitch = 0.08f;
      break;
    case Pose::lie:
      p.hips = 0.165f;
      p.lean = 0.02f;
      p.elbows = 1.0f;
      p.feet = {{{0.45f, 0.13f, 0}, {0.45f, -0.13f, 0}, {-0.10f, 0.25f, 0}, {-0.10f, -0.25f, 0}}};
      break;
    case Pose::rest:
      p.forward = -0.02f;
      p.hips = 0.18f;
      p.lean = -0.04f;
      p.elbows = 1.0f;
      p.feet = {
          {{0.38f, 0.17f, 0.06f}, {0.36f, 0.0f, 0.06f}, {-0.06f, 0.26f, 0.06f}, {-0.10f, -0.24f, 0.06f}}};
      p.head_pitch = -0.28f;
      p.head_turn = 0.55f + 0.4f * view.head_turn;
      p.eyes = view.acting || std::abs(view.head_turn) < 0.05f ? 0.0f : 1.0f;
      p.tail = -0.35f;
      break;
    default:
      break;
  }
}

// Poses of the whole body.
void set_moving(Posture& p, const PetView& view) {
  const float t = view.pose_progress;
  switch (view.pose) {
    case Pose::walk:
      step(p, t, 0.17f, 0.10f);
      p.head_pitch = 0.06f * std::sin(4.0f * kPi * t);
      p.lean = 0.03f * std::sin(4.0f * kPi * t + 0.6f);
      break;
    case Pose::spin:
      p.forward = -0.04f;
      step(p, 2.0f * t, 0.10f, 0.08f);
      p.roll = 0.16f;
      p.head_turn = 0.75f;
      p.tail = 1.0f;
      break;
    case Pose::jump: {
      const float air = 4.0f * t * (1.0f - t);
      p.lean = 0.32f * std::cos(kPi * t);
      p.hips = joint::kStandHeight - 0.10f * (1.0f - smooth(0.0f, 0.3f, air));
      p.feet = {{{0.30f, 0.115f, 0.16f * air},
                 {0.30f, -0.115f, 0.16f * air},
                 {-0.34f, 0.12f, 0.05f * air},
                 {-0.34f, -0.12f, 0.05f * air}}};
      p.jaw = 0.5f * air;
      p.ears = 1.0f - 1.6f * air * (t < 0.5f ? 1.0f : 0.2f);
      p.head_pitch = 0.15f;
      break;
    }
    case Pose::bark: {
      const float open = bark_opening(t);
      p.jaw = open;
      p.head_pitch = 0.18f + 0.22f * open;
      p.shift = 0.05f * open;
      p.lean = 0.06f + 0.05f * open;
      p.feet[0].x += 0.05f;
      p.feet[1].x += 0.05f;
      p.ears = 0.8f;
      break;
    }
    default:
      break;
  }
}

// Poses of the head: picking up, giving, eating, and gestures.
void set_head_pose(Posture& p, const PetView& view) {
  const float t = view.pose_progress;
  switch (view.pose) {
    case Pose::pick:
    case Pose::give: {
      const float down = smooth(0.0f, 0.4f, t) * (1.0f - smooth(0.75f, 1.0f, t));
      p.lean = -0.30f * down;
      p.shift = 0.04f * down;
      p.forward = view.pose == Pose::pick ? mix(p.forward, -0.27f, down) : p.forward;
      p.head_pitch = -0.85f * down;
      p.jaw = view.pose == Pose::pick ? 0.9f * down : 0.3f + 0.6f * down;
      p.feet[0].x += 0.08f * down;
      p.feet[1].x += 0.08f * down;
      break;
    }
    case Pose::eat:
      p.forward = -0.22f;
      p.lean = -0.30f;
      p.shift = 0.03f;
      p.head_pitch = -0.95f + 0.07f * std::sin(10.0f * kPi * t);
      p.jaw = 0.3f + 0.3f * std::sin(10.0f * kPi * t + 1.0f);
      p.feet[0].x += 0.08f;
      p.feet[1].x += 0.08f;
      break;
    case Pose::puzzled:
      p.head_tilt = 0.42f;
      p.head_pitch = 0.10f;
      p.ears = 0.5f;
      break;
    case Pose::play_bow:
      p.lean = -0.50f;
      p.hips = joint::kStandHeight + 0.02f;
      p.shift = -0.10f;
      p.elbows = 0.6f;
      p.feet[0] = {0.42f, 0.15f, 0};
      p.feet[1] = {0.42f, -0.15f, 0};
      p.head_pitch = 0.35f;
      p.tail = 1.0f;
      p.ears = 1.0f;
      p.jaw = 0.35f;
      break;
    default:
      break;
  }
}

Posture wanted_posture(const PetView& view) {
  Posture p;
  p.feet = standing_feet();
  p.ears = view.expected;
  p.tail = 0.25f + 0.75f * view.expected;
  p.head_turn = view.head_turn;
  set_resting(p, view);
  set_moving(p, view);
  set_head_pose(p, view);
  if (view.holding) p.jaw = std::max(p.jaw, 0.62f);
  return p;
}

void approach(float& value, float wanted, float share) { value += (wanted - value) * share; }

// The knee between two points, on the side of `hint`.
Vec3 knee_of(Vec3 hip, Vec3 ankle, float upper, float lower, Vec3 hint) {
  const Vec3 way = ankle - hip;
  const float reach = std::clamp(length(way), 0.05f, upper + lower - 1e-4f);
  const Vec3 along = normalize(way);
  const float a = (upper * upper - lower * lower + reach * reach) / (2.0f * reach);
  const float h = std::sqrt(std::max(upper * upper - a * a, 0.0f));
  const Vec3 side = normalize(hint - along * dot(hint, along));
  return hip + along * a + side * h;
}

// A limb mesh hangs along -z from its joint: turned to point from `from` to `to`, its front (+x) kept towards
// `front`.
Affine limb(Vec3 from, Vec3 to, Vec3 front) {
  const Vec3 z = normalize(from - to);
  const Vec3 y = normalize(cross(z, front));
  return {cross(y, z), y, z, from};
}

}  // namespace

void PetBody::update(const PetView& view, float seconds, bool jump_cut) {
  const Posture wanted = wanted_posture(view);
  seconds_ += seconds;
  breath_phase_ = std::fmod(breath_phase_ + seconds * 1.9f, 2.0f * kPi);
  const float joy = clamp01(0.5f + 0.5f * view.expected);
  wag_phase_ = std::fmod(wag_phase_ + seconds * mix(4.0f, 26.0f, joy), 2.0f * kPi);
  const bool quick = view.pose == Pose::walk || view.pose == Pose::jump || view.pose == Pose::bark ||
                     view.pose == Pose::spin || view.pose == Pose::eat;
  // Poses blend in about a tenth of a second; cyclic movement follows at once.
  const float share = jump_cut ? 1.0f : 1.0f - std::exp(-seconds * (quick ? 28.0f : 13.0f));
  approach(now_.hips, wanted.hips, share);
  approach(now_.lean, wanted.lean, share);
  approach(now_.roll, wanted.roll, share);
  approach(now_.shift, wanted.shift, share);
  approach(now_.forward, wanted.forward, share);
  approach(now_.head_pitch, wanted.head_pitch, share);
  approach(now_.head_turn, wanted.head_turn, share);
  approach(now_.head_tilt, wanted.head_tilt, share);
  approach(now_.jaw, wanted.jaw, share);
  approach(now_.tail, wanted.tail, share);
  approach(now_.ears, wanted.ears, share);
  approach(now_.eyes, wanted.eyes, share);
  approach(now_.elbows, wanted.elbows, share);
  approach(wag_, view.pose == Pose::rest ? 0.0f : mix(0.10f, 0.75f, joy * joy), share);
  for (std::size_t i = 0; i < 4; ++i) now_.feet[i] = mix(now_.feet[i], wanted.feet[i], share);
}

PetBody::Frames PetBody::frames(const PetView& view) const {
  Frames f;
  f.root = translation({view.position.x, view.position.y, view.height}) * rotation_z(view.heading) *
           translation({now_.forward * kSize, 0.0f, 0.0f}) * scaling(kSize);
  f.body_in_root =
      translation({now_.shift - kHipsBehind, 0.0f, now_.hips + 0.004f * std::sin(breath_phase_)}) *
      rotation_x(now_.roll) * rotation_y(-now_.lean);
  f.body = f.root * f.body_in_root;
  // The head keeps level while the back leans.
  f.head = f.body * translation(joint::kNeck) * rotation_y(0.92f * now_.lean) * rotation_z(now_.head_turn) *
           rotation_y(-now_.head_pitch) * rotation_x(now_.head_tilt) * scaling(1.1f);
  return f;
}

Vec3 PetBody::head_top(const PetView& view) const {
  return transform(frames(view).head, {0.05f, 0.0f, 0.45f});
}
Vec3 PetBody::mouth(const PetView& view) const { return transform(frames(view).head, {0.37f, 0.0f, 0.01f}); }
Vec2 PetBody::middle(const PetView& view) const {
  const Vec3 p = transform(frames(view).root, {});
  return {p.x, p.y};
}

void PetBody::draw(DrawList& list, const Affine& yard, const PetView& view, const Look& look,
                   Layer layer) const {
  Frames f = frames(view);
  for (Affine* frame : {&f.root, &f.body, &f.head}) *frame = yard * *frame;
  Look glossy = look;
  glossy.gloss = 0.9f;

  const float breath = 1.0f + 0.012f * std::sin(breath_phase_);
  list.add(MeshId::torso, f.body * scaling({1.0f, breath, breath}), look, layer);
  list.add(MeshId::collar, f.body, glossy, layer);
  list.add(MeshId::head, f.head, look, layer);
  // A blink every few seconds.
  const float blink = std::fmod(seconds_ + 0.37f, 3.7f);
  const bool open = now_.eyes > 0.5f && blink > 0.13f;
  list.add(open ? MeshId::face : MeshId::eyelids, f.head, glossy, layer);
  list.add(MeshId::jaw, f.head * translation(joint::kJaw) * rotation_y(0.62f * now_.jaw), look, layer);

  const float back = clamp01(-now_.ears), pricked = clamp01(now_.ears);
  for (float side : {1.0f, -1.0f}) {
    const Affine at = translation({joint::kEar.x, joint::kEar.y * side, joint::kEar.z - 0.03f * back}) *
                      rotation_x(side * (-0.10f - 0.75f * back + 0.08f * pricked)) *
                      rotation_y(-0.15f - 0.85f * back + 0.22f * pricked);
    list.add(side > 0.0f ? MeshId::ear_left : MeshId::ear_right, f.head * at, look, layer);
  }

  const float wag = wag_ * std::sin(wag_phase_);
  const float droop = mix(-2.1f, 0.12f, smooth(-0.9f, 0.5f, now_.tail));
  list.add(MeshId::tail,
           f.body * translation(joint::kTail) * rotation_x(wag * 0.9f) * rotation_z(wag * 0.5f) *
               rotation_y(droop),
           look, layer);

  for (std::size_t leg = 0; leg < 4; ++leg) {
    const bool front = leg < 2;
    const float side = leg % 2 ? -1.0f : 1.0f;
    const Vec3 socket = front ? joint::kShoulder : joint::kHip;
    const Vec3 hip = transform(f.body_in_root, {socket.x, socket.y * side, socket.z});
    const Vec3 ankle = now_.feet[leg] + Vec3{0.0f, 0.0f, joint::kAnkle};
    const Vec3 hint = front ? mix(Vec3{-1.0f, 0.0f, 0.0f}, Vec3{-0.5f, side, 0.35f}, now_.elbows)
                            : Vec3{1.0f, 0.25f * side, 0.1f};
    const Vec3 knee = knee_of(hip, ankle, joint::kThigh, joint::kShin, hint);
    const Vec3 forward{1.0f, 0.0f, 0.001f};
    list.add(front ? MeshId::thigh_front : MeshId::thigh_hind, f.root * limb(hip, knee, forward), look,
             layer);
    // The shin keeps its length when the foot is out of reach.
    const Vec3 foot = knee + normalize(ankle - knee) * joint::kShin;
    Affine shin = limb(knee, foot, forward);
    list.add(MeshId::shin, f.root * shin, look, layer);
  }
}

}  // namespace pet
