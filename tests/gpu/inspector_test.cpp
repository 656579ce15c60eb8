// The inspector adapter: what a Dear ImGui window says about a brain that learns, read back as text.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include <string>

#include <imprint/imprint.hpp>

#include "samples/adapters/inspector.h"
#include "tests/gpu/standalone_game.h"

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace imprint::game;

class InspectorTest : public imprint::game::test::StandaloneGame {
 protected:
  void SetUp() override {
    open_test_device();
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = ImVec2(800, 900);
    unsigned char* pixels = nullptr;
    int width = 0, height = 0;
    io.Fonts->GetTexDataAsRGBA32(&pixels, &width, &height);
    io.ClipboardUserData = this;
    io.SetClipboardTextFn = [](void* user, const char* text) {
      static_cast<InspectorTest*>(user)->shown_ = text;
    };
  }
  void TearDown() override { ImGui::DestroyContext(); }

  // All text of the window.
  std::string drawn() {
    shown_.clear();
    ImGui::NewFrame();
    ImGui::SetNextWindowSize(ImVec2(600, 880));
    ImGui::Begin("Imprint");
    ImGui::LogToClipboard();
    inspector.draw_inside(context);
    ImGui::LogFinish();
    ImGui::End();
    ImGui::Render();
    vertices = ImGui::GetDrawData()->TotalVtxCount;
    return shown_;
  }
  void learn(int frames) {
    const float seen[] = {1, 0.5f};
    for (int i = 0; i < frames; ++i)
      pass([&] {
        if (const Made<Action> action = agents[0].act())
          ASSERT_WORKS(agents[0].reward(action->branches[0] == 0 ? 1.0f : 0.0f));
        ASSERT_WORKS(agents[0].observe(seen));
      });
    ASSERT_WORKS(context.drain(60'000));
  }

  imprint::adapters::Inspector inspector;
  int vertices = 0;

 private:
  std::string shown_;
};

TEST_F(InspectorTest, TellsHowABrainLearns) {
  DqnOptions options;
  options.batch_size = 8;
  options.replay_capacity = 64;
  options.learn_period_frames = 1;
  BrainDesc desc = BrainDesc::of(options, 2, {3});
  desc.hidden_sizes = {8};
  desc.action_latency_frames = 1;
  add(desc);
  inspector.watch("guard", brain);
  EXPECT_THAT(drawn(), AllOf(HasSubstr("guard"), HasSubstr("MiB"), HasSubstr("0 minibatches"),
                             HasSubstr("no curves yet")));
  const int before = vertices;
  learn(600);
  const imp_brain_stats stats = brain.stats().value;
  const std::uint64_t rows = brain.curves()->rows;
  ASSERT_GE(rows, 3u);
  const std::string text = drawn();
  EXPECT_THAT(text, HasSubstr(std::to_string(stats.decisions) + " decisions"));
  EXPECT_THAT(text, HasSubstr(std::to_string(stats.minibatches) + " minibatches"));
  EXPECT_THAT(text, AllOf(HasSubstr("loss "), HasSubstr("return "), HasSubstr("learning rate ")));
  EXPECT_THAT(text, Not(HasSubstr("entropy")));  // DQN has none
  EXPECT_GT(vertices, before + 500) << "curves have lines";
  EXPECT_EQ(drawn(), text) << "nothing has happened";

  inspector.forget(brain);
  EXPECT_THAT(drawn(), Not(HasSubstr("guard")));
}

TEST_F(InspectorTest, TellsAlarms) {
  BrainDesc desc = BrainDesc::of(DqnOptions(), 2, {3});
  desc.action_latency_frames = 1;
  add(desc);
  inspector.watch("guard", brain);
  EXPECT_THAT(drawn(), Not(HasSubstr("!")));
  const float large[] = {1000, -2000};
  for (int i = 0; i < 300; ++i)
    pass([&] {
      (void)agents[0].act();
      ASSERT_WORKS(agents[0].observe(large));
    });
  ASSERT_NE(brain.stats()->alarms & IMP_ALARM_UNSCALED, 0u);
  EXPECT_THAT(drawn(), HasSubstr("! observations are large: set observation_scale"));
}

// The window shows the error's text.
TEST_F(InspectorTest, ADestroyedBrainIsAnError) {
  BrainDesc desc = BrainDesc::of(DqnOptions(), 2, {3});
  add(desc);
  inspector.watch("guard", brain);
  agents.clear();
  brain = Brain();
  EXPECT_THAT(drawn(), AllOf(HasSubstr("guard"), Not(HasSubstr("decisions,"))));
}

}  // namespace
