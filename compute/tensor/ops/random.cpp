#include <numbers>

#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint {

using namespace tensor;

Tensor random_uniform(const Tensor& generator, Shape shape, std::uint32_t stream) {
  return make(Op::random_uniform, {generator},
              {.ints = {static_cast<std::int64_t>(stream)}, .shape = shape, .dtype = DType::float32});
}

Tensor random_permutation(const Tensor& generator, Shape shape, std::uint32_t stream) {
  return make(Op::random_permutation, {generator},
              {.ints = {static_cast<std::int64_t>(stream)}, .shape = shape, .dtype = DType::int32});
}

// Box and Muller, A Note on the Generation of Random Normal Deviates, 1958.
Tensor random_normal(const Tensor& generator, Shape shape, std::uint32_t stream) {
  // 1 - u lies in (0, 1], where the logarithm is finite.
  const Tensor radius = sqrt(-2.0f * log(1.0f - random_uniform(generator, shape, stream)));
  const Tensor turn = random_uniform(generator, shape, stream + 0x80000000u);
  return radius * cos(Tensor(2 * std::numbers::pi) * turn);
}

// argmax(logits + Gumbel noise) is distributed as softmax(logits): Gumbel, Statistical Theory of Extreme
// Values, 1954.
Tensor random_categorical(const Tensor& generator, const Tensor& logits, std::uint32_t stream) {
  if (!logits.ok()) return logits;
  if (logits.rank() == 0 || logits.dtype() != DType::float32)
    return failure(ErrorCode::shape_mismatch, "random_categorical",
                   text("found ", dtype_name(logits.dtype()), " logits ", describe(logits),
                        ", expected float32 [..., classes]"));
  // 0 would become an infinitely unlikely draw. Half a step above 0 is the closest that 24 bits allow.
  const Tensor uniform = clamp_min(random_uniform(generator, logits.shape(), stream), 0x1p-25);
  return argmax(logits - log(-log(uniform)), -1);
}

Tensor random_integers(const Tensor& generator, Shape shape, const Tensor& bound, std::uint32_t stream) {
  if (!bound.ok()) return bound;
  const std::optional<Shape> fits = broadcast(bound.shape(), shape);
  if (bound.dtype() != DType::int32) return bad_dtype("random_integers", bound, "an int32 bound");
  if (!fits || *fits != shape)
    return failure(
        ErrorCode::shape_mismatch, "random_integers",
        text("found bound ", describe(bound), ", expected a shape that broadcasts to ", shape.text()));
  const Tensor scaled = random_uniform(generator, shape, stream) * cast(bound, DType::float32);
  // The product may round up to the bound itself.
  return maximum(minimum(cast(scaled, DType::int32), bound - 1), 0);
}

Tensor generator_next(const Tensor& generator) {
  if (!generator.ok()) return generator;
  if (generator.shape() != Shape{4} || generator.dtype() != DType::int32)
    return failure(ErrorCode::shape_mismatch, "generator_next",
                   text("found ", dtype_name(generator.dtype()), " ", describe(generator),
                        ", expected an int32 [4] generator"));
  return generator + cast(equal(iota({4}, 0), 2), DType::int32);
}

}  // namespace imprint
