#pragma once
// Programs for tests of shared buffers: one trains on rows that the host writes, one writes points that the
// host draws.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "compute/graph/gradients/autodiff.h"
#include "engine-bridge/context.h"
#include "tests/hosts/buffer_host.h"

namespace imprint::bridge {

inline constexpr std::uint32_t kRows = 32, kPoints = 64;
inline constexpr std::uint64_t kFrames = 120;
inline constexpr VkBufferUsageFlags kStorage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;

inline const HostProfile kBaseline{"baseline_1_1", VK_API_VERSION_1_1, false};
inline const HostProfile kEverything{"everything_1_3", VK_API_VERSION_1_3, true};

enum class Mode { record, submit };

Result<std::unique_ptr<Context>> adopt_sharing(PlainHost& host, Mode mode);

template <class T>
T taken(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

inline void works(const Result<>& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

// y = x w + b from rows [kRows, 5] of x0 .. x3 and y in a host buffer.
struct Learner {
  Variable rows = Variable::external("rows", {kRows, 5});
  Variable weight = Variable("weight", {4, 1}, std::vector<float>{0, 0, 0, 0});
  Variable bias = Variable::zeros("bias", {1});
  std::optional<Program> program;

  void build(Runtime& runtime, const std::shared_ptr<SharedBuffer>& buffer) {
    works(runtime.place_in(rows, buffer->range(buffer)));
    const Tensor x = narrow(rows.value(), 1, 0, 4), y = narrow(rows.value(), 1, 4, 1);
    const Tensor loss = mean(square(matmul(x, weight.value()) + bias.value() - y));
    const Tensor parameters[] = {weight.value(), bias.value()};
    const std::vector<Tensor> slopes = taken(gradients(loss, parameters));
    ProgramDescription description;
    description.name = "train";
    description.updates = {Update::assign(weight, weight.value() - slopes[0] * 0.1f),
                           Update::assign(bias, bias.value() - slopes[1] * 0.1f)};
    program = taken(Program::compile(runtime, description));
  }
};

// Points (i, (i + turn) mod kPoints), in pixels of the picture, in the clip space of a vertex shader.
struct Mover {
  Variable turn = Variable::zeros("turn", {1});
  Variable places = Variable::external("places", {kPoints, 2});
  std::optional<Program> program;

  void build(Runtime& runtime, const std::shared_ptr<SharedBuffer>& buffer) {
    works(runtime.place_in(places, buffer->range(buffer)));
    const Tensor column = arange(0.0, kPoints, 1.0), sum = column + turn.value();
    const Tensor row = sum - floor(sum / float{kPoints}) * float{kPoints};
    ProgramDescription description;
    description.name = "move";
    description.updates = {Update::assign(places, (stack({column, row}, 1) + 0.5f) / 32.0f - 1.0f),
                           Update::assign(turn, turn.value() + 1.0f)};
    program = taken(Program::compile(runtime, description));
  }

  static void expect_picture(const std::vector<std::uint8_t>& picture, std::uint32_t turn) {
    for (std::uint32_t y = 0; y < kPoints; ++y)
      for (std::uint32_t x = 0; x < kPoints; ++x)
        ASSERT_EQ(picture[y * kPoints + x], (x + turn) % kPoints == y ? 255 : 0)
            << "pixel " << x << ", " << y << " after turn " << turn;
  }
};

// A game in which host and Imprint share two buffers. Returns what was learned. Throws std::runtime_error.
std::vector<float> play(const HostProfile& profile, Mode mode);

}  // namespace imprint::bridge
