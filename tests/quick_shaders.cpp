// Linked into test programs that compile many kernels and run each a few times: on Mesa's software device
// LLVM is asked for machine code as it comes, which is there sooner. What a person asks for stays.

#include <cstdlib>

namespace {

[[maybe_unused]] const int quick = setenv("GALLIVM_PERF", "nopt", 0);

}  // namespace
