// Convolutions in patches (compute/graph/schedule/winograd.h) against the double oracle, in every tile of
// patches that the device has: whole and ragged channels, rows and columns, with padding and without, and
// with what is fused after them.

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/composites/images.h"
#include "compute/vk/pipelines/capability_profile.h"
#include "tests/gpu/gpu_device.h"
#include "tests/gpu/session_test.h"
#include "tests/reference/interpreter.h"

namespace imprint {
namespace {

Tensor waved(const std::string& name, const Shape& shape) {
  return Variable(name, shape, test::wave(shape.element_count(), 1, static_cast<int>(name.size()))).value();
}

struct PatchCase {
  const char* name;
  std::function<std::vector<Tensor>()> outputs;
};

class PatchesTest : public test::SessionTest, public testing::WithParamInterface<PatchCase> {
 protected:
  void TearDown() override {
    runtime().set_variants(nullptr);
    SessionTest::TearDown();
  }

  // Kernels that may be of patches, with the names of those tiles.
  static std::vector<std::pair<std::string, std::set<std::string>>> choices(const Program& program) {
    std::vector<std::pair<std::string, std::set<std::string>>> found;
    for (const ScheduleFigures& part : program.schedule())
      for (const DispatchFigures& dispatch : part.dispatches)
        for (const KernelFigures& kernel : dispatch.kernels)
          for (const graph::VariantChoice& choice : kernel.choices) {
            std::set<std::string> tiles;
            for (const std::string& variant : choice.variants)
              if (variant.ends_with("of patches")) tiles.insert(variant);
            if (!tiles.empty()) found.emplace_back(choice.kernel, tiles);
          }
    return found;
  }

  std::vector<std::vector<float>> run(Program& program) {
    const std::vector<HostTensor> outputs = session().run(program).value();
    std::vector<std::vector<float>> found;
    for (const HostTensor& output : outputs) found.push_back(output.floats);
    return found;
  }
};

TEST_P(PatchesTest, EqualTheOracle) {
  const vk::Device& device = test::gpu()->context().device();
  if (vk::CapabilityProfile::of(device.capabilities(), device.options().schedule_as_gpu).processor)
    GTEST_SKIP() << "the schedule of a software device has no patches";
  const std::vector<Tensor> outputs = GetParam().outputs();
  const auto expected = reference::evaluate_all(outputs);
  const ProgramDescription description{.name = GetParam().name, .outputs = outputs};
  const auto kernels = choices(compile(description));
  ASSERT_FALSE(kernels.empty());
  for (const std::string& tile : kernels.front().second) {
    SCOPED_TRACE(tile);
    VariantTable table;
    for (const auto& [kernel, tiles] : kernels) table[kernel] = tile;
    runtime().set_variants(std::make_shared<const VariantTable>(table));
    Program program = compile(description);
    const std::vector<std::vector<float>> found = run(program);
    for (std::size_t o = 0; o < outputs.size(); ++o)
      for (std::size_t i = 0; i < expected[o].size(); ++i)
        ASSERT_NEAR(found[o][i], expected[o][i], 3e-5 * std::max(1.0, std::fabs(expected[o][i])))
            << "output " << o << " element " << i;
    EXPECT_EQ(run(program), found);
  }
}

Tensor convolved_by_three(const Shape& image, std::int64_t channels, std::int64_t padding) {
  return convolution(waved("image", image), waved("weights", {channels, image[1], 3, 3}),
                     waved("bias", {channels}), {.padding = padding});
}

const PatchCase kPatchCases[] = {
    {"activation_and_residual_of_ragged_channels",
     [] {
       const Tensor y = relu(convolved_by_three({3, 16, 10, 12}, 40, 1));
       return std::vector{y + waved("residual", y.shape())};
     }},
    {"odd_places_without_padding",
     [] {
       return std::vector{convolved_by_three({2, 16, 15, 17}, 40, 0)};
     }},
    {"pairs_beyond_the_last_column",
     [] {
       return std::vector{convolved_by_three({3, 24, 12, 14}, 24, 1)};
     }},
    {"one_place_more_than_fours",
     [] {
       return std::vector{convolved_by_three({3, 24, 12, 13}, 32, 1)};
     }},
    {"gradient_of_the_image",
     [] {
       const Tensor image = waved("image", {2, 16, 13, 14});
       const Tensor y = convolution(image, waved("weights", {32, 16, 3, 3}), Tensor(), {.padding = 1});
       return gradients(sum(y * waved("by", y.shape())), std::span(&image, 1)).value();
     }},
};
INSTANTIATE_TEST_SUITE_P(All, PatchesTest, testing::ValuesIn(kPatchCases),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace imprint
