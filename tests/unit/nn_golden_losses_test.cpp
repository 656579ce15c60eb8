// Golden values of PyTorch for losses that are composed of its operators there, and RReLU in evaluation:
// golden_losses.json.

#include "compute/nn/losses/losses.h"
#include "compute/nn/losses/losses_sequences.h"
#include "compute/nn/modules/dropout.h"
#include "tests/unit/nn_golden.h"

namespace imprint::nn {
namespace {

const Json& golden_losses() {
  static const Json json = read_golden("golden_losses.json");
  return json;
}

class GoldenLosses : public GoldenTest {
 protected:
  void SetUp() override { ASSERT_TRUE(golden_losses().is_object()) << "tests/data/torch/golden_losses.json"; }
};

Tensor composed_loss_of(const std::string& name, const std::vector<Tensor>& x) {
  if (name == "focal") return focal_loss(x[0], x[1]);
  if (name == "focal_unweighted") return focal_loss(x[0], x[1], {.gamma = 1.5, .alpha = -1});
  if (name == "focal_soft") return focal_loss(x[0], x[1], {.alpha = 0.6});
  if (name == "dice") return dice_loss(x[0], x[1]);
  if (name == "dice_squares") return dice_loss(x[0], x[1], {.smooth = 0.5, .squares = true});
  if (name == "contrastive") return contrastive_loss(x[0], x[1], x[2]);
  if (name == "contrastive_margin") return contrastive_loss(x[0], x[1], x[2], 2.5);
  if (name == "hinge") return hinge_loss(x[0], x[1]);
  if (name == "rnnt_mean") return rnnt_loss(log_softmax(x[0]), x[1], x[2], x[3]);
  if (name == "rnnt_sum")
    return rnnt_loss(log_softmax(x[0]), x[1], x[2], x[3], {.reduction = Reduction::sum});
  return Tensor();
}

TEST_F(GoldenLosses, ValuesAndGradients) {
  EXPECT_EQ(golden_losses().at("losses").size(), 10u);
  for (const auto& [name, record] : golden_losses().at("losses").items()) {
    SCOPED_TRACE(name);
    std::vector<Tensor> operands;
    for (const Json& array : record.at("inputs"))
      operands.push_back(name.starts_with("rnnt") && !operands.empty() ? indices_of(array)
                                                                       : constant_of(array));
    expect_loss(
        record, operands, [&](const std::vector<Tensor>& x) { return composed_loss_of(name, x); }, 5e-6);
  }
}

TEST_F(GoldenLosses, RandomLeaksInEvaluation) {
  for (const auto& [name, record] : golden_losses().at("modules").items()) {
    SCOPED_TRACE(name);
    Pass pass("net", 1);
    const bool has_bounds = name == "rrelu_bounds";
    expect_module(record, one_input(has_bounds ? RRelu(0.05, 0.45) : RRelu()), pass);
  }
}

}  // namespace
}  // namespace imprint::nn
