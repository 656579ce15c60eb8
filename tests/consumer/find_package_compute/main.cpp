#include <engine-bridge/context.h>
#include <engine-bridge/own/standalone.h>
#include <imprint/compute.h>

#include <cmath>
#include <cstdio>

int main() {
  using namespace imprint;
  auto device = bridge::Standalone::open({});
  if (!device) return std::fprintf(stderr, "%s\n", device.error().message.c_str()), 1;

  const Tensor x = Tensor::from({0.0f, 1.0f, 2.0f, 3.0f}, {4});
  const auto squares = (*device)->session().evaluate(sum(square(x)));
  if (!squares) return std::fprintf(stderr, "%s\n", squares.error().message.c_str()), 1;
  std::printf("0 + 1 + 4 + 9 = %g\n", squares->floats[0]);
  return std::fabs(squares->floats[0] - 14.0f) < 1e-6f ? 0 : 1;
}
