#include <algorithm>
#include <cmath>

#include "compute/base/text.h"
#include "compute/nn/optimisers/optimiser_step.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

Result<ClippedGradients> clip_by_global_norm(std::span<const Tensor> gradients, double max_norm,
                                             std::int64_t groups, const Tensor& loss_scale) {
  if (!is_empty(loss_scale))
    IMPRINT_CHECK(check_per_group("clip_by_global_norm: loss scale", loss_scale, groups));
  Tensor squares = groups > 0 ? zeros({groups}) : Tensor(0.0f);
  for (const Tensor& gradient : gradients) {
    if (!gradient.ok()) return gradient.error();
    if (groups > 0 && gradient.extent(0) != groups)
      return make_error(ErrorCode::shape_mismatch,
                        text("clip_by_global_norm: found gradient ", gradient.shape().text(),
                             ", expected a first extent of ", groups, " groups"));
    Axes axes;
    for (int axis = groups > 0 ? 1 : 0; axis < gradient.rank(); ++axis) axes.push_back(axis);
    squares = squares + (axes.empty() ? square(gradient) : sum(square(gradient), axes));
  }
  ClippedGradients clipped;
  clipped.norm = sqrt(squares);
  if (!is_empty(loss_scale)) clipped.norm = clipped.norm / reshape(loss_scale, clipped.norm.shape());
  Tensor scale = std::isinf(max_norm) ? ones_like(clipped.norm)
                                      : clamp_max(Tensor(max_norm) / (clipped.norm + Tensor(1e-6)), 1);
  // One factor for both, applied to the raw sums, so that the norm is computed in the kernel that sums them.
  if (!is_empty(loss_scale)) scale = scale / reshape(loss_scale, scale.shape());
  for (const Tensor& gradient : gradients) {
    Shape aligned = groups > 0 ? Shape{groups} : Shape{};
    while (groups > 0 && aligned.rank() < gradient.rank()) aligned.append(1);
    clipped.gradients.push_back(gradient * reshape(scale, aligned));
    if (!clipped.gradients.back().ok()) return clipped.gradients.back().error();
  }
  if (!clipped.norm.ok()) return clipped.norm.error();
  return clipped;
}

Result<std::vector<Tensor>> clip_by_value(std::span<const Tensor> gradients, double limit) {
  std::vector<Tensor> clipped;
  for (const Tensor& gradient : gradients) {
    clipped.push_back(clamp(gradient, -limit, limit));
    if (!clipped.back().ok()) return clipped.back().error();
  }
  return clipped;
}

Result<std::vector<Tensor>> clip_adaptively(std::span<const Tensor> gradients, const Parameters& parameters,
                                            const AdaptiveClipping& options) {
  IMPRINT_CHECK(check_gradients(gradients, parameters, options.groups));
  std::vector<Tensor> clipped;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Axes axes = own_axes(gradients[i], options.groups);
    if (axes.size() > 1) axes.erase(parameters[i].transposed ? axes.end() - 1 : axes.begin());
    const auto size = [&](const Tensor& x) {
      return axes.empty() ? abs(x) : sqrt(sum(square(x), axes, true));
    };
    const Tensor allowed = Tensor(options.factor) * clamp_min(size(parameters[i].value()), options.epsilon);
    const Tensor found = size(gradients[i]);
    const Tensor exceeds = found > allowed;
    clipped.push_back(gradients[i] * where(exceeds, allowed / where(exceeds, found, 1.0f), 1.0f));
    if (!clipped.back().ok()) return clipped.back().error();
  }
  return clipped;
}

}  // namespace imprint::nn
