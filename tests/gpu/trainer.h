#pragma once

#include <vector>

#include "compute/graph/gradients/autodiff.h"
#include "compute/program/program.h"

namespace imprint::test {

// A two-layer network with momentum, dropout and a replay draw: every kind of dependency between state and
// steps.
struct Trainer {
  Variable w0, w1, m0, m1, generator;
  ProgramDescription description;
  Trainer() {
    std::vector<float> a(8 * 32), b(32 * 4);
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = 0.4f * static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 50.0f;
    for (std::size_t i = 0; i < b.size(); ++i)
      b[i] = 0.4f * static_cast<float>(static_cast<int>(i * 53 % 97) - 48) / 48.0f;
    w0 = Variable("w0", {8, 32}, a);
    w1 = Variable("w1", {32, 4}, b);
    m0 = Variable::zeros("m0", {8, 32});
    m1 = Variable::zeros("m1", {32, 4});
    generator = Variable("generator", {4}, std::vector<std::int32_t>{7, 9, 0, 0});
    const Tensor x = random_normal(generator.value(), {64, 8}, 1);
    const Tensor hidden = tanh(matmul(x, w0.value()));
    const Tensor kept =
        where(random_uniform(generator.value(), {64, 32}, 2) < Tensor(0.8f), hidden, zeros_like(hidden));
    const Tensor loss = mean(square(matmul(kept, w1.value()) - sin(slice(x, 1, 0, 4))));
    const Tensor weights[] = {w0.value(), w1.value()};
    const std::vector<Tensor> gradient = gradients(loss, weights).value();
    const Tensor norm = sqrt(sum(square(gradient[0])) + sum(square(gradient[1])));
    const Tensor scale = minimum(Tensor(1.0f), Tensor(1.0f) / norm);
    const Variable moments[] = {m0, m1}, parameters[] = {w0, w1};
    for (std::size_t i = 0; i < 2; ++i) {
      const Tensor moment = moments[i].value() * 0.9f + gradient[i] * scale;
      description.updates.push_back(Update::assign(moments[i], moment));
      description.updates.push_back(Update::assign(parameters[i], parameters[i].value() - moment * 0.05f));
    }
    description.updates.push_back(Update::assign(generator, generator_next(generator.value())));
    description.outputs = {loss};
    description.name = "trainer";
  }
};

}  // namespace imprint::test
