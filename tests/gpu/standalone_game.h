#pragma once
// A game of one brain on a device of Imprint's own: a fixture for tests of learners through the table.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/hosts/assert_works.h"

namespace imprint::game::test {

class StandaloneGame : public ::testing::Test {
 protected:
  // The device of IMPRINT_TEST_DEVICE, under validation unless IMPRINT_TEST_VALIDATION is 0.
  void open_test_device() {
    const char* validation = std::getenv("IMPRINT_TEST_VALIDATION");
    imp_standalone_info device = imp_standalone_info_init();
    device.device = std::getenv("IMPRINT_TEST_DEVICE");
    device.validation = !validation || std::string(validation) != "0";
    open(device);
  }
  // With GPU time for every learner. Warnings and errors go to `log`.
  void open(const imp_standalone_info& device) {
    imp_limits limits = imp_limits_init();
    limits.gpu_us_per_frame = 100'000'000;  // also where a software device shares its processor
    imp_host host = imp_host_init();
    host.user = this;
    host.log = [](void* user, imp_log_level level, const char* text) {
      if (level >= IMP_LOG_WARNING) static_cast<StandaloneGame*>(user)->log.emplace_back(text);
    };
    Made<Context> made = Context::create_standalone(Library(imp_get_api), device, host, limits);
    ASSERT_TRUE(made) << made.outcome.message();
    context = std::move(*made);
  }

  // The brain, with all of its agents.
  void add(const BrainDesc& desc) {
    Made<Brain> made = context.create_brain(desc);
    ASSERT_TRUE(made) << made.outcome.message();
    brain = std::move(*made);
    agents.clear();
    for (std::uint32_t i = 0; i < desc.brain_count; ++i)
      for (std::uint32_t j = 0; j < desc.agents_per_brain; ++j) {
        Made<Agent> agent = brain.create_agent(i);
        ASSERT_TRUE(agent) << agent.outcome.message();
        agents.push_back(std::move(*agent));
      }
    ASSERT_WORKS(context.warmup());
  }

  // One frame.
  void pass(const std::function<void()>& play) {
    ++frame;
    ASSERT_WORKS(context.frame_begin(frame, now()));
    play();
    ASSERT_WORKS(context.submit());
    ASSERT_WORKS(context.frame_end());
    if (frame % 16 != 0) return;
    // A loop without pictures would run ahead of the GPU.
    ASSERT_WORKS(context.quiesce(60'000));
    ASSERT_WORKS(context.resume());
  }
  double now() const { return static_cast<double>(frame) / 60; }

  Context context;
  Brain brain;
  std::vector<Agent> agents;
  std::vector<std::string> log;
  std::uint64_t frame = 0;
};

}  // namespace imprint::game::test
