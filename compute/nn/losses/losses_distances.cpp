#include "compute/base/text.h"
#include "compute/nn/losses/loss_checks.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

std::optional<Tensor> refuse_rows(std::string_view loss, const Tensor& a, const Tensor& b,
                                  const Tensor& label) {
  if (std::optional<Tensor> refused = refuse_shapes(loss, {a, b})) return refused;
  if (!label.ok()) return label;
  Shape rows = label.shape();
  if (a.rank() > 0) rows.append(a.extent(-1));
  if (a.rank() > 0 && rows == a.shape()) return std::nullopt;
  return failure(
      ErrorCode::shape_mismatch, loss,
      text("found ", describe(a), " and label ", describe(label), ", expected [..., features] and [...]"));
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double epsilon) {
  if (std::optional<Tensor> refused = refuse_shapes("pairwise_distance", {a, b})) return *refused;
  if (p < 1)
    return failure(ErrorCode::invalid_argument, "pairwise_distance",
                   text("found p ", p, ", expected 1 or more"));
  const Tensor difference = a - b + Tensor(epsilon);
  if (p == 2) return sqrt(sum(square(difference), {-1}));
  if (p == 1) return sum(abs(difference), {-1});
  return pow(sum(pow(abs(difference), Tensor(p)), {-1}), Tensor(1 / p));
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletOptions& options) {
  if (std::optional<Tensor> refused = refuse_shapes("triplet_margin_loss", {anchor, positive, negative}))
    return *refused;
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return pairwise_distance(a, b, options.p, options.epsilon);
  };
  Tensor far = distance(anchor, negative);
  if (options.swap) far = minimum(far, distance(positive, negative));
  return weighted_loss(relu(distance(anchor, positive) - far + Tensor(options.margin)), options.weight,
                       options.reduction, "triplet_margin_loss");
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b) {
  if (std::optional<Tensor> refused = refuse_shapes("cosine_similarity", {a, b})) return *refused;
  const auto squared = [](const Tensor& x) { return sum(square(x), {-1}) + Tensor(1e-12); };
  return sum(a * b, {-1}) / sqrt(squared(a) * squared(b));
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& label, double margin,
                             Reduction reduction, const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_rows("cosine_embedding_loss", a, b, label)) return *refused;
  const Tensor cosine = cosine_similarity(a, b);
  return weighted_loss(where(label > 0.0f, 1.0f - cosine, relu(cosine - Tensor(margin))), weight, reduction,
                       "cosine_embedding_loss");
}

Tensor contrastive_loss(const Tensor& a, const Tensor& b, const Tensor& same, double margin,
                        Reduction reduction, const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_rows("contrastive_loss", a, b, same)) return *refused;
  const Tensor distance = pairwise_distance(a, b);
  const Tensor short_of = relu(Tensor(margin) - distance);
  return weighted_loss(0.5f * (same * square(distance) + (1.0f - same) * square(short_of)), weight, reduction,
                       "contrastive_loss");
}

}  // namespace imprint::nn
