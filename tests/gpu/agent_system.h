#pragma once
// An agent system for tests: brains on Imprint's own device, or on the CPU with IMPRINT_TEST_DEVICE=cpu, and
// frames at 60 per second.

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

// Log messages from warnings up, validation errors included.
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
    system.reset();
    EXPECT_TRUE(messages.texts.empty()) << messages.texts.front();
  }

  void open(const bridge::Budget& budget) {
    brain.reset();
    system.reset();
    frame = 0;
    bridge::StandaloneOptions options = device_options();
    options.options.log = messages.sink();
    options.budget = budget;
    if (options.device == "cpu") {
      system = AgentSystem::open_on_cpu(options.options, budget).value();
      return;
    }
    auto opened = AgentSystem::open(options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    system = std::move(*opened);
  }

  std::shared_ptr<Brain> add(const BrainSpec& spec) {
    auto made = system->add_brain(spec);
    EXPECT_TRUE(made.ok()) << made.error().message;
    if (!made.ok()) return nullptr;
    EXPECT_OK(system->warmup([](float) {}));
    return *made;
  }

  // One frame, with `play` between its begin and its submission. The GPU finishes before the next frame, so
  // answers are never late.
  void pass(const std::function<void()>& play = {}) {
    ++frame;
    ASSERT_OK(system->frame_begin({frame, 0}, static_cast<double>(frame) * kFrame));
    if (play) play();
    ASSERT_OK(system->submit(UINT32_MAX));
    ASSERT_OK(system->frame_end());
    if (vk::Queue* queue = system->context().queue())
      ASSERT_OK(queue->wait(system->context().device().last_ticket(), 10'000'000'000));
  }

  // Runs frames until the file is written.
  Result<> saved(Brain& of) {
    for (int i = 0; i < 1000; ++i) {
      const Result<> status = of.state().save_status();
      if (status.ok() || status.error().code != ErrorCode::not_ready) return status;
      pass();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return of.state().save_status();
  }

  double now() const { return static_cast<double>(frame) * kFrame; }

  Hash128 hash(Brain& of) {
    const auto result = of.state().hash();
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result.ok() ? *result : Hash128{};
  }

  Messages messages;
  std::unique_ptr<AgentSystem> system;
  std::shared_ptr<Brain> brain;
  std::uint64_t frame = 0;
};

}  // namespace imprint::agent::test
