#pragma once
// The game that tests play in every mode that a host can choose, on every kind of device.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/hosts/plain_host.h"
#include "tests/hosts/regression.h"

namespace imprint::bridge {

inline constexpr std::uint64_t kFrames = 200, kWarmUp = 20;
inline constexpr std::uint32_t kUnlimited = ~0u;

inline const HostProfile kBaseline{"baseline_1_1", VK_API_VERSION_1_1, false};
inline const HostProfile kEverything{"everything_1_3", VK_API_VERSION_1_3, true};

enum class Mode { record, lock, submit, single_thread, exclusive };
const char* name_of(Mode mode);

Result<std::unique_ptr<Context>> adopt(PlainHost& host, Mode mode, const Budget& budget);

// A learner in a game: an inference every frame, and every other frame a training step that is due in the
// next.
class Player {
 public:
  Player(Context& context, Mode mode) : context_(context), mode_(mode) {
    const Result<> built = model_.build(context.runtime());
    EXPECT_TRUE(built) << built.error().message;
    auto readback = context.runtime().read(std::vector<Variable>{model_.weight, model_.bias});
    EXPECT_TRUE(readback) << readback.error().message;
    readback_ = std::move(*readback);
  }

  void frame(std::uint64_t frame, std::uint64_t safe_frame, VkCommandBuffer commands, bool refused = false) {
    expect(context_.frame_begin({frame, safe_frame}));
    if (frame < kFrames) {
      if (frame % 2 == 0) {
        FrameJob job;
        job.program = &*model_.train;
        job.slot = static_cast<std::uint32_t>(frame / 2 % 3);
        job.kind = FrameJobKind::learn;
        job.deadline_frame = frame + 1;
        job.on_complete = [this](std::uint64_t) { ++steps; };
        model_.fill(job.slot, static_cast<std::uint32_t>(frame));
        expect(context_.enqueue(std::move(job)));
      }
      FrameJob job;
      job.program = &*model_.infer;
      job.slot = static_cast<std::uint32_t>(frame % 3);
      expect(context_.enqueue(std::move(job)));
    } else if (frame == kFrames) {
      expect(context_.enqueue(readback_->commands(), [this](std::uint64_t) {
        for (std::size_t i = 0; i < 2; ++i) {
          const auto* floats = reinterpret_cast<const float*>(readback_->bytes(i).data());
          weights.insert(weights.end(), floats, floats + readback_->bytes(i).size() / sizeof(float));
        }
      }));
    }
    if (mode_ == Mode::record) {
      const auto left = context_.record(commands, kFromBudget);
      EXPECT_TRUE(left) << left.error().message;
    } else if (const Result<> status = context_.submit(kFromBudget); refused) {
      EXPECT_FALSE(status);
      EXPECT_EQ(status.error().code, ErrorCode::out_of_host_memory);
    } else {
      expect(status);
    }
    expect(context_.frame_end());
  }

  int steps = 0;
  std::vector<float> weights;

 private:
  void expect(const Result<>& status) { EXPECT_TRUE(status) << status.error().message; }

  Context& context_;
  Mode mode_;
  Regression model_;
  std::unique_ptr<StateReadback> readback_;
};

// Plays the game and returns what was learned.
std::vector<float> play(const HostProfile& profile, Mode mode, const Budget& budget);
// The expected result, in every mode.
const std::vector<float>& expected();

}  // namespace imprint::bridge
