// For test programs that compile many kernels and run each a few times. Turns off LLVM's optimisation in
// Mesa's software device, which shortens the test. A value already in the environment wins.

#include <cstdlib>

namespace {

[[maybe_unused]] const int quick = setenv("GALLIVM_PERF", "nopt", 0);

}  // namespace
