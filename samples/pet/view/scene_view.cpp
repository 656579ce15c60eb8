#include "samples/pet/view/scene_view.h"

namespace pet {
namespace {

constexpr float kSpacing = 13.5f;  // metres between the middles of a kennel's yards
constexpr float kBallSeen = 1.2f * kBallRadius;
constexpr Vec3 kMarkInk{0.10f, 0.16f, 0.10f};

// The first pet is ginger.
Vec3 coat_of(std::size_t index) {
  constexpr Vec3 coats[] = {{0.91f, 0.58f, 0.29f}, {0.42f, 0.32f, 0.27f}, {0.93f, 0.82f, 0.62f},
                            {0.45f, 0.47f, 0.52f}, {0.72f, 0.38f, 0.22f}, {0.97f, 0.93f, 0.87f},
                            {0.62f, 0.48f, 0.38f}, {0.24f, 0.22f, 0.24f}};
  return coats[index % std::size(coats)];
}

Vec3 sign_color(FeedbackKind kind) {
  switch (kind) {
    case FeedbackKind::praise:
      return {0.95f, 0.29f, 0.43f};
    case FeedbackKind::scold:
      return {0.38f, 0.33f, 0.62f};
    case FeedbackKind::treat:
      return {0.93f, 0.66f, 0.25f};
    case FeedbackKind::click:
      return {1.0f, 0.80f, 0.22f};
    case FeedbackKind::demonstration:
      return {0.20f, 0.62f, 0.80f};
  }
  return {1, 1, 1};
}

MeshId sign_mesh(FeedbackKind kind) {
  switch (kind) {
    case FeedbackKind::praise:
      return MeshId::heart;
    case FeedbackKind::scold:
      return MeshId::cross;
    case FeedbackKind::treat:
      return MeshId::bone;
    case FeedbackKind::click:
      return MeshId::star;
    case FeedbackKind::demonstration:
      return MeshId::ring;
  }
  return MeshId::star;
}

// Out of nothing, a little too large, then right.
float pop(float t) {
  return t <= 0.0f   ? 0.0f
         : t >= 1.0f ? 1.0f
                     : 1.0f + 2.2f * std::pow(t - 1.0f, 3.0f) + 1.2f * (t - 1.0f) * (t - 1.0f);
}

void blob_shadow(DrawList& list, const Affine& yard, Vec2 at, Vec2 radius, float heading, float strength) {
  list.add(
      MeshId::disc,
      yard * translation({at.x, at.y, 0.012f}) * rotation_z(heading) * scaling({radius.x, radius.y, 1.0f}),
      {.tint = kMarkInk, .opacity = strength}, Layer::mark);
}

Vec3 arc(Vec3 from, Vec3 to, float lift, float t) {
  return mix(from, to, t) + Vec3{0.0f, 0.0f, lift * 4.0f * t * (1.0f - t)};
}

// An upright frame that faces the camera: +x to the picture's right, -y towards the eye.
Affine billboard_to(const Camera& camera) {
  const Vec3 away = camera.backward() * -1.0f;
  return {camera.right(), away, cross(camera.right(), away), {}};
}

}  // namespace

Vec2 SceneView::offset(std::size_t yard) const {
  const std::size_t count = std::min(pets_.size(), most_yards_);
  std::size_t columns = 1;
  while (columns * columns < count) ++columns;
  const std::size_t rows = (std::max<std::size_t>(count, 1) + columns - 1) / columns;
  // Row by row from the back left.
  return {(static_cast<float>(yard % columns) - 0.5f * static_cast<float>(columns - 1)) * kSpacing,
          (0.5f * static_cast<float>(rows - 1) - static_cast<float>(yard / columns)) * kSpacing};
}

Vec2 SceneView::center() const { return {}; }

float SceneView::ghost_apart(const WorldView& world, const WorldView& ghost) {
  return smooth(
      0.35f, 1.1f,
      std::hypot(world.pet.position.x - ghost.pet.position.x, world.pet.position.y - ghost.pet.position.y));
}

SceneView::Frame SceneView::close_frame(const WorldView& world) const {
  Vec2 low = world.pet.position, high = low;
  const auto include = [&](Vec2 p) {
    low = {std::min(low.x, p.x), std::min(low.y, p.y)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y)};
  };
  include(world.player.position);
  if (world.cue == Cue::fetch || world.pet.action == Action::go_ball) include(world.ball);
  if (world.cue == Cue::bed || world.pet.action == Action::go_bed) include(world.bed);
  for (const FeedbackMarker& marker : world.markers)
    if (marker.credited && world.time_s - marker.time_s < 1.5) include(marker.onset_position);
  const Vec2 o = offset(0);
  return {{(low.x + high.x) * 0.5f + o.x, (low.y + high.y) * 0.5f + o.y},
          {std::max((high.x - low.x) * 0.5f + 0.6f, 1.6f), std::max((high.y - low.y) * 0.5f + 0.4f, 1.0f)}};
}

Vec2 SceneView::half() const {
  const Vec2 first = offset(0);
  return {std::abs(first.x) + 5.95f, std::abs(first.y) + 5.95f};
}

void SceneView::update(const std::vector<const WorldView*>& yards, const WorldView* ghost, float seconds) {
  pets_.resize(std::min(yards.size(), most_yards_));
  seconds_ += seconds;
  for (std::size_t i = 0; i < pets_.size(); ++i) {
    Yard& yard = pets_[i];
    const WorldView& world = *yards[i];
    const bool fresh = yard.scene != world.scene;
    yard.since_scene = fresh ? 0.0f : yard.since_scene + seconds;
    yard.scene = world.scene;
    yard.body.update(world.pet, seconds, fresh || seconds > 0.5f);
    const float moved =
        fresh ? 0.0f
              : std::hypot(world.player.position.x - yard.player.x, world.player.position.y - yard.player.y);
    yard.player = world.player.position;
    yard.stride = std::fmod(yard.stride + moved / 0.9f, 1.0f);
    yard.pace +=
        (std::min(moved / std::max(seconds, 1e-3f), 1.5f) - yard.pace) * (1.0f - std::exp(-12.0f * seconds));
  }
  if (ghost) {
    ghost_.update(ghost->pet, seconds, ghost_scene_ != ghost->scene || seconds > 0.5f);
    ghost_scene_ = ghost->scene;
  }
}

void SceneView::draw_player(const WorldView& world, const Yard& yard, const Affine& at,
                            DrawList& list) const {
  const PlayerView& player = world.player;
  const float bob =
      0.012f * std::sin(seconds_ * 2.1f) + 0.03f * yard.pace * std::abs(std::sin(2.0f * kPi * yard.stride));
  const float since = static_cast<float>(world.time_s - player.hand_since_s);
  const float raised = smooth(0.0f, 0.18f, since);
  const float beat = std::sin(since * 14.0f);

  float left = 0.12f, right = 0.12f, left_out = 0.14f, right_out = 0.14f, stoop = 0.0f,
        nod = 0.0f;  // arms: forward and up, outwards
  switch (player.hand) {
    case Hand::rest:
      break;
    case Hand::praise:
      left = right = 2.5f + 0.18f * beat, left_out = right_out = 0.45f, nod = 0.08f;
      break;
    case Hand::scold:
      right = 1.25f + 0.22f * beat, left = -0.35f, left_out = 0.55f, nod = -0.12f;
      break;
    case Hand::treat:
      right = 1.05f, stoop = 0.22f;
      break;
    case Hand::click:
      right = 1.35f;
      break;
    case Hand::show:
      right = 0.85f + 0.12f * std::sin(since * 5.0f), left = 0.7f, stoop = 0.42f;
      break;
    case Hand::cue:
      right = 2.75f, right_out = 0.18f, nod = 0.10f;
      break;
  }
  left = mix(0.12f, left, raised);
  right = mix(0.12f, right, raised);
  stoop *= raised;

  const Affine root =
      at * translation({player.position.x, player.position.y, bob}) * rotation_z(player.heading);
  const Affine waist = root * translation({0, 0, joint::kPlayerHip.z}) * rotation_y(stoop) *
                       translation({0, 0, -joint::kPlayerHip.z});
  list.add(MeshId::player_body, waist);
  list.add(MeshId::player_head,
           waist * translation({0, 0, joint::kPlayerNeck}) * rotation_y(0.22f - nod * raised - stoop * 0.4f),
           {.gloss = 0.15f});
  const float swing = 0.55f * yard.pace * std::sin(2.0f * kPi * yard.stride);
  for (float side : {1.0f, -1.0f}) {
    const float lift = side > 0.0f ? left : right, out = side > 0.0f ? left_out : right_out;
    const Vec3 shoulder{joint::kPlayerShoulder.x, joint::kPlayerShoulder.y * side, joint::kPlayerShoulder.z};
    const Affine arm = waist * translation(shoulder) * rotation_x(side * out) *
                       rotation_y(-lift + (player.hand == Hand::rest ? swing * side : 0.0f));
    list.add(MeshId::player_arm, arm);
    if (side < 0.0f && player.hand == Hand::treat)
      list.add(MeshId::bone, arm * translation({0.07f, 0, -0.53f}) * rotation_x(0.6f) * scaling(0.12f),
               {.gloss = 0.2f});
    if (side < 0.0f && player.hand == Hand::click)
      list.add(MeshId::clicker, arm * translation({0.07f, 0, -0.53f}) * rotation_y(0.3f), {.gloss = 0.6f});
    const Vec3 hip{joint::kPlayerHip.x, joint::kPlayerHip.y * side, joint::kPlayerHip.z};
    list.add(MeshId::player_leg, root * translation(hip) * rotation_y(swing * side));
  }
  blob_shadow(list, at, player.position, {0.36f, 0.36f}, 0.0f, 0.42f);
}

void SceneView::draw_yard(const WorldView& world, const Yard& yard, const Affine& at, std::size_t index,
                          bool detailed, DrawList& list) const {
  list.add(MeshId::island, at, {.surface = Surface::ground});
  if (detailed) list.add(MeshId::meadow, at, {.surface = Surface::swaying});
  list.add(MeshId::scenery, at);
  list.add(MeshId::sofa, at * translation({world.sofa.x, world.sofa.y, 0.0f}));
  const float size = pop(yard.since_scene / 0.35f + 0.4f);
  list.add(MeshId::bed,
           at * translation({world.bed.x, world.bed.y, 0.0f}) * rotation_z(-1.2f) * scaling(size * 1.14f));
  list.add(MeshId::bowl, at * translation({world.bowl.x, world.bowl.y, 0.0f}) * scaling(size),
           {.gloss = 0.5f});
  // The less hungry the pet, the emptier the bowl was left.
  list.add(MeshId::kibble, at * translation({world.bowl.x, world.bowl.y, 0.0f}) *
                               scaling({size, size, size * mix(0.55f, 1.0f, world.pet.drives.hunger)}));
  blob_shadow(list, at, world.bed, {1.05f, 1.05f}, 0.0f, 0.45f);
  blob_shadow(list, at, world.bowl, {0.42f, 0.42f}, 0.0f, 0.45f);
  blob_shadow(list, at, world.sofa, {1.4f, 0.8f}, 0.0f, 0.40f);

  const Vec3 ball = world.pet.holding ? yard.body.mouth(world.pet)
                                      : Vec3{world.ball.x, world.ball.y, kBallSeen + world.ball_height};
  list.add(MeshId::ball,
           at * translation(ball) * rotation_z(world.ball.x * 2.0f) * rotation_x(0.5f + world.ball.y) *
               scaling(kBallSeen),
           {.gloss = 0.35f});
  if (!world.pet.holding) blob_shadow(list, at, world.ball, {0.19f, 0.19f}, 0.0f, 0.5f);

  yard.body.draw(list, at, world.pet, {.tint = coat_of(index), .gloss = 0.05f}, Layer::solid);
  const float fade = 1.0f - clamp01(world.pet.height);
  blob_shadow(list, at, yard.body.middle(world.pet), {0.78f, 0.45f}, world.pet.heading, 0.55f * fade);
  draw_player(world, yard, at, list);

  if (world.pet.pose == Pose::bark) {
    const float open = std::max(0.0f, std::sin(4.0f * kPi * world.pet.pose_progress));
    const Affine mouth =
        at * translation(yard.body.mouth(world.pet)) * rotation_z(world.pet.heading + world.pet.head_turn);
    for (float angle : {-0.55f, 0.0f, 0.55f})
      list.add(MeshId::bark_line,
               mouth * rotation_y(-0.25f) * rotation_z(angle) * translation({0.12f + 0.12f * open, 0, 0}) *
                   scaling({0.05f + 0.22f * open, 0.17f, 0.17f}),
               {.glow = 0.9f}, Layer::sign);
  }
}

// Signs float up where the pet was told; dots and a ring lead back to the action that gets the credit.
void SceneView::draw_signs(const WorldView& world, const Affine& at, const Camera& camera, float youngest,
                           DrawList& list) const {
  const Affine billboard = billboard_to(camera);
  for (const FeedbackMarker& marker : world.markers) {
    const float age = std::max(static_cast<float>(world.time_s - marker.time_s), youngest);
    constexpr float kLife = 1.5f;
    if (age > kLife) continue;
    const Vec3 color = sign_color(marker.kind);
    const float leave = 1.0f - smooth(kLife - 0.35f, kLife, age);
    // Above its back: its thought is over its head.
    const float back =
        std::cos(world.pet.heading) * camera.right().x + std::sin(world.pet.heading) * camera.right().y > 0.0f
            ? -0.75f
            : 0.75f;
    const Vec3 start = Vec3{marker.position.x, marker.position.y, 0.85f} + camera.right() * back;
    const bool burst = marker.kind == FeedbackKind::praise;
    if (marker.kind != FeedbackKind::demonstration) {
      for (int i = 0; i < (burst ? 3 : 1); ++i) {
        const float late = 0.10f * static_cast<float>(i), t = age - late;
        const float spread = i == 0 ? 0.0f : (i == 1 ? 0.38f : -0.38f);
        const Vec3 p = start + Vec3{0, 0, 0.25f + 0.55f * smooth(0.0f, 1.4f, t)} +
                       camera.right() * (spread * smooth(0.0f, 0.6f, t));
        const float size = (i == 0 ? 0.27f : 0.17f) * pop(t / 0.22f) * leave;
        if (size <= 0.0f) continue;
        const float sway = marker.kind == FeedbackKind::scold
                               ? 0.3f * std::sin(age * 16.0f) * (1.0f - smooth(0.0f, 0.7f, age))
                               : 0.18f * std::sin(age * 4.0f + static_cast<float>(i) * 2.0f);
        list.add(sign_mesh(marker.kind), at * translation(p) * billboard * rotation_y(sway) * scaling(size),
                 {.gloss = 0.15f, .glow = 0.12f}, Layer::sign);
      }
    }
    if (marker.kind == FeedbackKind::treat && age < 0.45f) {
      const Vec3 hand{world.player.position.x, world.player.position.y, 1.0f};
      list.add(MeshId::bone,
               at * translation(arc(hand, {marker.position.x, marker.position.y, 0.6f}, 0.5f, age / 0.45f)) *
                   billboard * rotation_y(age * 14.0f) * scaling(0.13f),
               {.gloss = 0.2f}, Layer::sign);
    }
    if (!marker.credited) continue;
    const float shown = smooth(0.05f, 0.25f, age) * leave;
    const Vec3 onset{marker.onset_position.x, marker.onset_position.y, 0.03f};
    for (float phase : {0.0f, 0.5f}) {
      const float t = std::fmod(age * 0.9f + phase, 1.0f);
      list.add(MeshId::ring, at * translation(onset) * scaling(0.45f + 0.45f * t),
               {.tint = color, .opacity = 0.85f * shown * (1.0f - t)}, Layer::mark);
    }
    list.add(MeshId::disc, at * translation(onset) * scaling(0.75f),
             {.tint = color, .opacity = 0.45f * shown}, Layer::mark);
    constexpr int kDots = 16;
    const float far =
        std::hypot(marker.onset_position.x - marker.position.x, marker.onset_position.y - marker.position.y);
    for (int i = 1; i < kDots && far > 0.5f; ++i) {
      const float t = static_cast<float>(i) / kDots;
      if (t > smooth(0.0f, 0.45f, age)) break;
      const Vec3 p = arc({marker.position.x, marker.position.y, 0.05f}, onset, 0.08f * far, t);
      list.add(MeshId::disc,
               at * translation(p) * billboard * rotation_x(kPi / 2) * scaling(mix(0.11f, 0.07f, t)),
               {.tint = color, .opacity = 0.9f * shown}, Layer::mark);
    }
  }
}

// A titbit in the player's hand, and the way that it leads.
void SceneView::draw_lure(const WorldView& world, const Affine& at, const Camera& camera,
                          DrawList& list) const {
  if (!world.lure.active) return;
  const Affine billboard = billboard_to(camera);
  const Vec3 color = sign_color(FeedbackKind::demonstration);
  const Vec3 hand{world.lure.at.x, world.lure.at.y, 0.45f},
      pet{world.pet.position.x, world.pet.position.y, 0.03f};
  list.add(MeshId::bone,
           at * translation(hand + Vec3{0, 0, 0.05f * std::sin(seconds_ * 5.0f)}) * billboard *
               rotation_y(0.5f) * scaling(0.2f),
           {.gloss = 0.2f}, Layer::sign);
  list.add(MeshId::ring,
           at * translation({hand.x, hand.y, 0.03f}) *
               scaling(world.lure.leads ? 0.75f + 0.05f * std::sin(seconds_ * 6.0f) : 0.4f),
           {.tint = color, .opacity = 0.9f}, Layer::mark);
  constexpr int kDots = 10;
  for (int i = 1; i < kDots && std::hypot(hand.x - pet.x, hand.y - pet.y) > 0.5f; ++i)
    list.add(
        MeshId::disc,
        at * translation(mix(pet, {hand.x, hand.y, 0.03f}, static_cast<float>(i) / kDots)) * scaling(0.07f),
        {.tint = color, .opacity = 0.8f}, Layer::mark);
}

// Dots fly from the player to the pet that is being shown something.
void SceneView::draw_lesson(const WorldView& world, const Affine& at, const Camera& camera,
                            DrawList& list) const {
  if (!world.demonstrating) return;
  const Affine billboard = billboard_to(camera);
  const Vec3 color = sign_color(FeedbackKind::demonstration);
  const Vec3 hand{world.player.position.x, world.player.position.y, 0.85f},
      pet{world.pet.position.x, world.pet.position.y, 0.55f + world.pet.height};
  for (int i = 1; i < 14; ++i) {
    const float t = std::fmod(static_cast<float>(i) / 14.0f + seconds_ * 0.25f, 1.0f);
    list.add(MeshId::disc,
             at * translation(arc(hand, pet, 0.25f, t)) * billboard * rotation_x(kPi / 2) * scaling(0.055f),
             {.tint = color, .opacity = 0.9f * std::sin(kPi * t)}, Layer::mark);
  }
  const float t = std::fmod(seconds_ * 0.8f, 1.0f);
  list.add(MeshId::ring, at * translation({pet.x, pet.y, 0.03f}) * scaling(0.7f + 0.3f * t),
           {.tint = color, .opacity = 0.9f * (1.0f - t)}, Layer::mark);
}

void SceneView::draw(const std::vector<const WorldView*>& yards, const WorldView* ghost, const Camera& camera,
                     float youngest_sign, bool same_pet, DrawList& list) const {
  list.clear();
  const std::size_t count = std::min(yards.size(), pets_.size());
  // A soft shadow under each island: it floats above a calm ground.
  for (std::size_t i = 0; i < count; ++i) {
    const Vec2 o = offset(i);
    list.add(MeshId::disc, translation({o.x + 0.9f, o.y - 0.4f, -2.2f}) * scaling({9.0f, 8.2f, 1.0f}),
             {.tint = {0.22f, 0.30f, 0.36f}, .opacity = 0.42f}, Layer::mark);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Vec2 o = offset(i);
    const Affine at = translation({o.x, o.y, 0.0f});
    draw_yard(*yards[i], pets_[i], at, same_pet ? 0 : i, count <= 4, list);
    draw_signs(*yards[i], at, camera, youngest_sign, list);
    draw_lure(*yards[i], at, camera, list);
    draw_lesson(*yards[i], at, camera, list);
  }
  if (ghost && count > 0) {
    const Vec2 o = offset(0);
    const float apart = ghost_apart(*yards[0], *ghost);
    if (apart <= 0.0f) return;
    ghost_.draw(list, translation({o.x, o.y, 0.0f}), ghost->pet,
                {.tint = {0.70f, 0.84f, 1.0f}, .opacity = 0.78f * apart, .glow = 0.3f, .whole = 0.85f},
                Layer::ghost);
  }
}

}  // namespace pet
