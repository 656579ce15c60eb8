#pragma once
// A world for tests: brains on a device of our own, or with IMPRINT_TEST_DEVICE=cpu on the processor, and
// frames that pass at 60 a second.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "plugin/agent/agent_system.h"

namespace imprint::agent::test {

inline bridge::StandaloneOptions device_options() {
  const char* name = std::getenv("IMPRINT_TEST_DEVICE");
  const char* validation = std::getenv("IMPRINT_TEST_VALIDATION");
  bridge::StandaloneOptions options;
  options.device = name ? name : "";
  options.validation = !validation || std::string(validation) != "0";
  options.options.compile_threads = 2;
  return options;
}

// Messages of the log from warnings up; validation errors arrive here too.
struct Messages {
  std::vector<std::string> texts;

  LogSink sink() {
    return {[](void* self, LogLevel level, std::string_view text) {
              if (level >= LogLevel::warning) static_cast<Messages*>(self)->texts.emplace_back(text);
            },
            this};
  }
};

#define ASSERT_OK(expression)                                                     \
  do {                                                                            \
    const auto status_of = (expression);                                          \
    ASSERT_TRUE(status_of.ok()) << #expression ": " << status_of.error().message; \
  } while (false)
#define EXPECT_OK(expression)                                                     \
  do {                                                                            \
    const auto status_of = (expression);                                          \
    EXPECT_TRUE(status_of.ok()) << #expression ": " << status_of.error().message; \
  } while (false)

inline constexpr double kFrame = 1.0 / 60;

class AgentSystemTest : public ::testing::Test {
 protected:
  void SetUp() override { open({}); }
  void TearDown() override {
    brain.reset();
    world.reset();
    EXPECT_TRUE(messages.texts.empty()) << messages.texts.front();
  }

  void open(const bridge::Budget& budget) {
    brain.reset();
    world.reset();
    frame = 0;
    bridge::StandaloneOptions options = device_options();
    options.options.log = messages.sink();
    options.budget = budget;
    if (options.device == "cpu") {
      world = AgentSystem::open_on_cpu(options.options, budget).value();
      return;
    }
    auto opened = AgentSystem::open(options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    world = std::move(*opened);
  }

  std::shared_ptr<Brain> add(const BrainSpec& spec) {
    auto made = world->add_brain(spec);
    EXPECT_TRUE(made.ok()) << made.error().message;
    if (!made.ok()) return nullptr;
    EXPECT_OK(world->warmup([](float) {}));
    return *made;
  }

  // One frame with `play` between its begin and its submission. As in a game, the GPU has time until the
  // next: answers are never late.
  void pass(const std::function<void()>& play = {}) {
    ++frame;
    ASSERT_OK(world->frame_begin({frame, 0}, static_cast<double>(frame) * kFrame));
    if (play) play();
    ASSERT_OK(world->submit(UINT32_MAX));
    ASSERT_OK(world->frame_end());
    if (vk::Queue* queue = world->context().queue())
      ASSERT_OK(queue->wait(world->context().device().last_ticket(), 10'000'000'000));
  }

  // Frames pass until the file is written: that takes its own time, which is not the game's.
  Status saved(Brain& of) {
    for (int i = 0; i < 1000; ++i) {
      const Status status = of.save_status();
      if (status.ok() || status.error().code != ErrorCode::not_ready) return status;
      pass();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return of.save_status();
  }

  double now() const { return static_cast<double>(frame) * kFrame; }

  Hash128 hash(Brain& of) {
    const auto result = of.hash();
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result.ok() ? *result : Hash128{};
  }

  Messages messages;
  std::unique_ptr<AgentSystem> world;
  std::shared_ptr<Brain> brain;
  std::uint64_t frame = 0;
};

}  // namespace imprint::agent::test
