// The pet game's stage off screen, on the machine's first device, under validation with synchronisation checks.

#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <mutex>

#include "samples/pet/stage.h"

namespace pet {
namespace {

WorldView yard_with(Pose pose) {
  WorldView world;
  world.time_s = 12.0;
  world.scene = 1;
  world.pet.position = {-1.0f, 0.5f};
  world.pet.pose = pose;
  world.pet.pose_progress = 0.4f;
  world.pet.thought = {true, {Action::kSit, Action::kSpin}, {0.6f, 0.3f}, {}, true};
  world.player.position = {2.0f, -1.0f};
  world.ball = {1.0f, 2.0f};
  world.bowl = {-3.0f, -2.0f};
  world.bed = {3.0f, 2.0f};
  world.sofa = {3.2f, 4.4f};
  world.cue = Cue::kSit;
  world.cue_since_s = 11.0;
  for (FeedbackKind kind : {FeedbackKind::kPraise, FeedbackKind::kScold, FeedbackKind::kTreat, FeedbackKind::kClick, FeedbackKind::kDemonstration})
    world.markers.push_back({kind, 11.6, true, Action::kSit, 11.0, {-2.0f, 1.0f}, {-1.0f, 0.5f}});
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
    try {
      return std::make_unique<Stage>(options());
    } catch (const VulkanError& error) {
      reason() = error.what();
      return nullptr;
    }
  }

  static std::string& reason() {
    static std::string text;
    return text;
  }

  static Picture drawn(Stage& stage, const Show& show, const OverlayState& overlay) {
    stage.begin_frame();
    stage.draw(show, overlay);
    stage.end_frame();
    return stage.capture();
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
  for (int pose = 0; pose <= static_cast<int>(Pose::kPlayBow); ++pose) {
    const WorldView world = yard_with(static_cast<Pose>(pose)), other = yard_with(Pose::kStand);
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
  const WorldView world = yard_with(Pose::kSit);
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
  std::vector<WorldView> worlds(20, yard_with(Pose::kWalk));
  Show show;
  for (const WorldView& world : worlds) show.yards.push_back(&world);
  OverlayState overlay;
  overlay.kennel.assign(20, 0.5f);
  EXPECT_FALSE(drawn(*stage, show, overlay).empty());
  for (int i = 0; i < 5; ++i) {
    const FrameStart frame = stage->begin_frame();
    EXPECT_LT(frame.safe_frame, frame.frame);
    EXPECT_GE(frame.safe_frame + VulkanHost::kFramesInFlight, frame.frame);
    stage->end_frame();
  }
  EXPECT_EQ(stage->host().validation_messages(), 0u);
}

TEST_F(PetStage, DeclaresItsDeviceToImprint) {
  const auto stage = open();
  ASSERT_TRUE(stage) << reason();
  const imp_vk_device_info record = stage->host().device_info(QueueAccess::record), submit = stage->host().device_info(QueueAccess::submit);
  EXPECT_EQ(record.queue.queue, nullptr);
  EXPECT_EQ(record.queue.family, stage->host().queue_family());
  EXPECT_EQ(submit.queue.queue, stage->host().queue());
  ASSERT_NE(submit.queue.lock, nullptr);
  const auto free_for_others = [&] {
    return std::async(std::launch::async, [&] { return std::unique_lock(stage->host().queue_mutex(), std::try_to_lock).owns_lock(); }).get();
  };
  submit.queue.lock(submit.queue.user, submit.queue.queue);
  EXPECT_FALSE(free_for_others());
  submit.queue.unlock(submit.queue.user, submit.queue.queue);
  EXPECT_TRUE(free_for_others());
  EXPECT_EQ(record.device, stage->host().device());
  EXPECT_NE(record.features, nullptr);
}

TEST(PetHost, AnUnknownDeviceIsRefusedWithTheKnownOnes) {
  VulkanOptions options;
  options.device = "no such device";
  try {
    const VulkanHost host(options);
    FAIL() << "a device that does not exist was found";
  } catch (const VulkanError& error) {
    EXPECT_NE(std::strstr(error.what(), "no such device"), nullptr) << error.what();
  }
}

}  // namespace
}  // namespace pet
