// The snippet of plugin/docs/models.md: a herd on the policy of samples/02-run-policy, on the CPU.

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include <imprint/imprint.hpp>

#include "models.inc"

namespace {

int fail(const char* what, const Outcome& outcome) {
  return std::fprintf(stderr, "models: %s: %s %s\n", what, outcome.name(), outcome.message()), 1;
}

}  // namespace

int main() {
  const Library library(imp_get_api);
  imp_standalone_info device = imp_standalone_info_init();
  device.device = "cpu";
  Made<Context> context = Context::create_standalone(library, device);
  if (!context) return fail("context", context.outcome);
  Herd herd;
  if (const Outcome opened = herd.open(*context, PAGE_ROOT "/samples/02-run-policy/models/BallChase.onnx");
      !opened)
    return fail("open", opened);
  herd.seen[20] = 1;
  for (std::uint64_t frame = 1; frame <= 10; ++frame) {
    if (const Outcome begun = context->frame_begin(frame, static_cast<double>(frame) / 60); !begun)
      return fail("frame_begin", begun);
    const Outcome played = herd.frame();
    if (!played) return fail("frame", played);
    if (const Outcome sent = context->submit(); !sent) return fail("submit", sent);
    if (const Outcome ended = context->frame_end(); !ended) return fail("frame_end", ended);
  }
  float most = 0;
  for (const float value : herd.steering) most = std::fmax(most, std::fabs(value));
  if (herd.model.info()->runs < 4 || !(most > 0)) return fail("no answers", herd.model.info().outcome);
  herd.model.reset();
  return context->destroy() ? 0 : 1;
}
