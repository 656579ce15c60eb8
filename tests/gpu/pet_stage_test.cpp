// The pet game's stage off screen, on the machine's first device, under validation with synchronisation
// checks.

#include <gtest/gtest.h>

#include <imgui.h>

#include <cmath>
#include <cstring>
#include <future>
#include <mutex>

#include "samples/pet/view/overlay/overlay.h"
#include "samples/pet/view/render/renderer.h"
#include "samples/pet/view/stage.h"
#include "samples/pet/view/stage_input.h"

namespace pet {
namespace {

WorldView yard_with(Pose pose) {
  WorldView world;
  world.time_s = 12.0;
  world.scene = 1;
  world.pet.position = {-1.0f, 0.5f};
  world.pet.pose = pose;
  world.pet.pose_progress = 0.4f;
  world.pet.thought = {true, {Action::sit, Action::spin}, {0.6f, 0.3f}, {}, true};
  world.player.position = {2.0f, -1.0f};
  world.ball = {1.0f, 2.0f};
  world.bowl = {-3.0f, -2.0f};
  world.bed = {3.0f, 2.0f};
  world.sofa = {3.2f, 4.4f};
  world.cue = Cue::sit;
  world.cue_since_s = 11.0;
  if (pose == Pose::walk || pose == Pose::eat)
    world.lure = {true, {0.5f, 1.0f}, pose == Pose::walk, Action::go_ball};
  for (FeedbackKind kind : {FeedbackKind::praise, FeedbackKind::scold, FeedbackKind::treat,
                            FeedbackKind::click, FeedbackKind::demonstration})
    world.markers.push_back({kind, 11.6, true, Action::sit, 11.0, {-2.0f, 1.0f}, {-1.0f, 0.5f}});
  return world;
}

class PetStage : public testing::Test {
 protected:
  static StageOptions options() {
    StageOptions options;
    options.window = false;
    options.validation = true;
    options.width = 480;
    options.height = 270;
    return options;
  }

  static std::unique_ptr<Stage> open() {
    Result<std::unique_ptr<Stage>> stage = Stage::create(options());
    if (stage) return std::move(*stage);
    reason() = stage.error().message;
    return nullptr;
  }

  static std::string& reason() {
    static std::string text;
    return text;
  }

  static Picture drawn(Stage& stage, const Show& show, const OverlayState& overlay) {
    EXPECT_TRUE(stage.begin_frame());
    EXPECT_TRUE(stage.draw(show, overlay));
    EXPECT_TRUE(stage.end_frame());
    const Result<Picture> picture = stage.capture();
    EXPECT_TRUE(picture) << (picture ? "" : picture.error().message);
    return picture ? *picture : Picture();
  }
};

TEST_F(PetStage, DrawsEveryPoseWithPanelsAndWithoutAMessage) {
  const auto stage = open();
  ASSERT_TRUE(stage) << reason();
  OverlayState overlay;
  overlay.kennel = {};
  overlay.lesson = "lesson";
  overlay.caption = "woof!";
  overlay.curve = {{0.0f, 0.1f}, {15.0f, 0.8f}};
  overlay.snapshots = {{10.0f, 0.5f}};
  Picture before;
  for (int pose = 0; pose <= static_cast<int>(Pose::play_bow); ++pose) {
    const WorldView world = yard_with(static_cast<Pose>(pose)), other = yard_with(Pose::stand);
    Show show;
    show.yards = {&world};
    show.ghost = &other;
    show.panels = pose % 2 == 0;
    const Picture picture = drawn(*stage, show, overlay);
    ASSERT_EQ(picture.rgba.size(), 480u * 270u * 4u);
    EXPECT_NE(picture.rgba, before.rgba);
    before = picture;
  }
  EXPECT_EQ(stage->host().validation_messages(), 0u);
}

TEST_F(PetStage, TheSameWorldGivesTheSamePicture) {
  const WorldView world = yard_with(Pose::sit);
  Show show;
  show.yards = {&world};
  Picture pictures[2];
  for (Picture& picture : pictures) {
    const auto stage = open();
    ASSERT_TRUE(stage) << reason();
    picture = drawn(*stage, show, {});
  }
  EXPECT_EQ(pictures[0].rgba, pictures[1].rgba);
}

TEST_F(PetStage, AKennelIsDrawnAndFramesMayBeLeftEmpty) {
  const auto stage = open();
  ASSERT_TRUE(stage) << reason();
  std::vector<WorldView> worlds(20, yard_with(Pose::walk));
  Show show;
  for (const WorldView& world : worlds) show.yards.push_back(&world);
  OverlayState overlay;
  overlay.kennel.assign(20, 0.5f);
  EXPECT_FALSE(drawn(*stage, show, overlay).empty());
  for (int i = 0; i < 5; ++i) {
    const Result<FrameStart> begun = stage->begin_frame();
    ASSERT_TRUE(begun);
    const FrameStart frame = *begun;
    EXPECT_LT(frame.safe_frame, frame.frame);
    EXPECT_GE(frame.safe_frame + VulkanHost::kFramesInFlight, frame.frame);
    ASSERT_TRUE(stage->end_frame());
  }
  EXPECT_EQ(stage->host().validation_messages(), 0u);
}

TEST_F(PetStage, DeclaresItsDeviceToImprint) {
  const auto stage = open();
  ASSERT_TRUE(stage) << reason();
  const imp_vk_device_info record = stage->host().device_info(QueueAccess::record),
                           submit = stage->host().device_info(QueueAccess::submit);
  EXPECT_EQ(record.queue.queue, nullptr);
  EXPECT_EQ(record.queue.family, stage->host().queue_family());
  EXPECT_EQ(submit.queue.queue, stage->host().queue());
  ASSERT_NE(submit.queue.lock, nullptr);
  const auto free_for_others = [&] {
    return std::async(
               std::launch::async,
               [&] { return std::unique_lock(stage->host().queue_mutex(), std::try_to_lock).owns_lock(); })
        .get();
  };
  submit.queue.lock(submit.queue.user, submit.queue.queue);
  EXPECT_FALSE(free_for_others());
  submit.queue.unlock(submit.queue.user, submit.queue.queue);
  EXPECT_TRUE(free_for_others());
  EXPECT_EQ(record.device, stage->host().device());
  EXPECT_NE(record.features, nullptr);
}

// StageInput and Overlay with a hand and keys, without a window.
class PetInput : public PetStage {
 protected:
  void SetUp() override {
    VulkanOptions vulkan;
    vulkan.validation = true;
    Result<std::unique_ptr<VulkanHost>> host = VulkanHost::create(vulkan);
    ASSERT_TRUE(host) << host.error().message;
    host_ = std::move(*host);
    Result<std::unique_ptr<Renderer>> renderer = Renderer::create(*host_, kExtent, true);
    ASSERT_TRUE(renderer) << renderer.error().message;
    renderer_ = std::move(*renderer);
    Result<std::unique_ptr<Overlay>> overlay = Overlay::create(*host_, renderer_->overlay_pass(), nullptr);
    ASSERT_TRUE(overlay) << overlay.error().message;
    overlay_ = std::move(*overlay);
    input_.attach(camera_, *overlay_);
    events_ = input_.events();
    aim();
    see();
  }
  void TearDown() override {
    if (!host_) return;
    EXPECT_EQ(host_->validation_messages(), 0u);
    EXPECT_TRUE(host_->wait_idle());
    overlay_.reset();
    renderer_.reset();
  }

  void aim() {
    camera_.frame(static_cast<float>(kExtent.width), static_cast<float>(kExtent.height),
                  {0.0f, 0.1f, 0.75f, 0.9f}, {}, {5.0f, 5.0f}, 1.0f);
  }
  void see() {
    Anchors anchors;
    anchors.camera = &camera_;
    anchors.world = &world_;
    input_.see(world_, anchors);
  }
  Vec2 pixel(Vec2 at) { return camera_.project({at.x, at.y, 0.45f}).value_or(Vec2{}); }
  Vec2 pet() { return pixel(world_.pet.position); }
  float metre() {
    const Vec2 a = pet(), b = pixel({world_.pet.position.x + camera_.right().x,
                                     world_.pet.position.y + camera_.right().y});
    return std::hypot(a.x - b.x, a.y - b.y);
  }
  static constexpr int kLeft = 0, kRight = 1, kMiddle = 2;  // GLFW's
  void press(Vec2 at, int button = kLeft) { events_.mouse(button, true, hand_ = at); }
  void release(int button = kLeft) { events_.mouse(button, false, hand_); }
  // In small steps, as a mouse moves.
  void move(Vec2 to) {
    const Vec2 from = hand_;
    for (int i = 1; i <= 10; ++i) {
      const float t = static_cast<float>(i) / 10.0f;
      const Vec2 next{from.x + (to.x - from.x) * t, from.y + (to.y - from.y) * t};
      events_.moved(next, {next.x - hand_.x, next.y - hand_.y});
      hand_ = next;
    }
  }
  // One frame of the overlay. Its input goes to input_.
  void build() {
    Anchors anchors;
    anchors.camera = &camera_;
    anchors.world = &world_;
    overlay_->build(kExtent, 1.0f / 60.0f, state_, anchors, true, input_.pending());
  }

  static constexpr VkExtent2D kExtent{1280, 720};
  WorldView world_ = yard_with(Pose::stand);
  OverlayState state_;
  Camera camera_;
  std::unique_ptr<VulkanHost> host_;
  std::unique_ptr<Renderer> renderer_;
  std::unique_ptr<Overlay> overlay_;
  StageInput input_;
  WindowEvents events_;
  Vec2 hand_;
};

TEST_F(PetInput, ATapAndAStrokePraiseOnce) {
  const Vec2 at = pet();
  press(at);
  EXPECT_EQ(input_.take().praise, 0u);
  move({at.x + 2.0f, at.y});  // hands are never quite still
  release();
  PlayerInput tapped = input_.take();
  EXPECT_EQ(tapped.praise, 1u);
  EXPECT_FALSE(tapped.lure_to || tapped.let_go || tapped.walk_to);

  const float far = 0.45f * metre();
  press({at.x - far, at.y});
  for (int i = 0; i < 2; ++i) move({at.x + far, at.y}), move({at.x - far, at.y});
  PlayerInput stroked = input_.take();
  EXPECT_EQ(stroked.praise, 1u);
  release();
  EXPECT_EQ(input_.take().praise, 0u) << "the stroke already praised";
  EXPECT_FALSE(stroked.lure_to);

  press({at.x + far, at.y});
  for (int i = 1; i <= 24; ++i)
    move({at.x + far * std::cos(0.3f * static_cast<float>(i)),
          at.y + far * std::sin(0.3f * static_cast<float>(i))});
  release();
  const PlayerInput circled = input_.take();
  EXPECT_GE(circled.praise, 1u);
  EXPECT_LE(circled.praise, 2u);
  EXPECT_FALSE(circled.lure_to);
}

TEST_F(PetInput, DraggedAwayItIsLuredAndLetGo) {
  press(pet());
  move(pixel({2.0f, 2.0f}));
  const PlayerInput dragged = input_.take();
  ASSERT_TRUE(dragged.lure_to);
  EXPECT_NEAR(dragged.lure_to->x, 2.0f, 0.6f);
  EXPECT_NEAR(dragged.lure_to->y, 2.0f, 0.9f);
  EXPECT_EQ(dragged.praise, 0u);
  EXPECT_FALSE(dragged.let_go || dragged.walk_to);
  release();
  const PlayerInput let_go = input_.take();
  EXPECT_TRUE(let_go.let_go);
  EXPECT_EQ(let_go.praise, 0u);

  // A pet that walks away from under a still hand was tapped.
  press(pet());
  world_.pet.position = {3.0f, -2.0f};
  see();
  move({hand_.x + 1.0f, hand_.y});
  release();
  const PlayerInput tapped = input_.take();
  EXPECT_EQ(tapped.praise, 1u);
  EXPECT_FALSE(tapped.lure_to || tapped.let_go);
}

TEST_F(PetInput, AnotherButtonNeitherTakesTheLeashNorDropsIt) {
  for (const int other : {kMiddle, kRight}) {
    SCOPED_TRACE(other);
    press(pet());
    move(pixel({2.0f, 2.0f}));
    ASSERT_TRUE(input_.take().lure_to);
    press(hand_, other);
    move(pixel({2.0f, -2.0f}));
    release(other);
    const PlayerInput led = input_.take();
    EXPECT_TRUE(led.lure_to) << "the hand still leads it";
    EXPECT_FALSE(led.let_go || led.walk_to);
    EXPECT_EQ(led.praise + led.scold, 0u);
    release();
    EXPECT_TRUE(input_.take().let_go);
    EXPECT_FALSE(input_.take().let_go);
  }
}

TEST_F(PetInput, ARightClickOnAHeldPetIsAScoldAlone) {
  press(pet());
  press(hand_, kRight);
  release(kRight);
  const PlayerInput scolded = input_.take();
  EXPECT_EQ(scolded.scold, 1u);
  EXPECT_EQ(scolded.praise, 0u);
  move(pixel({2.0f, 2.0f}));
  EXPECT_TRUE(input_.take().lure_to) << "the left button is still down";
  release();
  const PlayerInput let_go = input_.take();
  EXPECT_TRUE(let_go.let_go);
  EXPECT_EQ(let_go.praise, 0u);
}

TEST_F(PetInput, TheViewIsTurnedByTheButtonThatTookIt) {
  const Vec3 eye = camera_.eye();
  press(pixel({3.5f, -3.5f}), kMiddle);
  press(hand_, kLeft);
  release(kLeft);
  move({hand_.x + 40.0f, hand_.y});
  aim();
  EXPECT_NE(camera_.eye().x, eye.x);
  EXPECT_FALSE(input_.take().walk_to);
  release(kMiddle);
  const Vec3 turned = camera_.eye();
  move({hand_.x + 40.0f, hand_.y});
  aim();
  EXPECT_EQ(camera_.eye().x, turned.x);
}

TEST_F(PetInput, HoldingPraisesAgainOnlyWhereThatIsWanted) {
  for (int i = 0; i < 300; ++i) input_.hold(true, 1.0f / 60.0f);
  EXPECT_EQ(input_.take().praise, 0u);
  events_.key('H', 0);
  EXPECT_EQ(input_.take().hold_praise, true);
  for (int i = 0; i < 300; ++i) input_.hold(true, 1.0f / 60.0f);
  EXPECT_EQ(input_.take().praise, 6u);
  input_.hold(false, 1.0f / 60.0f);
  for (int i = 0; i < 40; ++i) input_.hold(true, 1.0f / 60.0f);
  EXPECT_EQ(input_.take().praise, 0u);
  events_.key('H', 0);
  EXPECT_EQ(input_.take().hold_praise, false);
}

TEST_F(PetInput, AWordIsSaidByTypingItAndACommandIsNamed) {
  constexpr int kEscape = 256, kEnter = 257, kF3 = 292;  // GLFW's
  ImGuiIO& io = ImGui::GetIO();
  const auto type = [&](const char* text) {
    for (int i = 0; i < 3; ++i) build();  // the field takes the keys
    io.AddInputCharactersUTF8(text);
    build();
    events_.key(kEnter, 0);
    build();
  };
  build();
  EXPECT_FALSE(overlay_->typing());
  events_.key(kEnter, 0);
  build();
  EXPECT_TRUE(overlay_->typing());
  events_.key('P', 0);
  EXPECT_EQ(input_.take().praise, 0u) << "a letter does not praise";
  type("Fetch");
  EXPECT_EQ(input_.take().cue, Cue::fetch);
  EXPECT_FALSE(overlay_->typing());

  world_.cue = Cue::bed;
  events_.key(kF3, 0);
  type("home");
  const PlayerInput named = input_.take();
  ASSERT_TRUE(named.name);
  EXPECT_EQ(named.name->cue, Cue::bed);
  EXPECT_STREQ(named.name->text.data(), "home");
  EXPECT_FALSE(named.cue);

  ASSERT_EQ(state_.names.set(Cue::bed, "home"), "");
  events_.key(kEnter, 0);
  type("HOME");
  EXPECT_EQ(input_.take().cue, Cue::bed);
  events_.key(kEnter, 0);
  type("nonsense");
  EXPECT_TRUE(overlay_->typing()) << "to try again";
  EXPECT_FALSE(input_.take().cue);
  events_.key(kEscape, 0);
  EXPECT_FALSE(overlay_->typing());
  EXPECT_FALSE(input_.take().quit);
}

TEST(PetHost, AnUnknownDeviceIsRefusedWithTheKnownOnes) {
  VulkanOptions options;
  options.device = "no such device";
  const Result<std::unique_ptr<VulkanHost>> host = VulkanHost::create(options);
  ASSERT_FALSE(host) << "a device that does not exist was found";
  EXPECT_NE(host.error().message.find("no such device"), std::string::npos) << host.error().message;
}

}  // namespace
}  // namespace pet
