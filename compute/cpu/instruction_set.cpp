#include "compute/cpu/kernels.h"

namespace imprint::cpu {

const KernelSet& kernels() {
#ifdef IMPRINT_CPU_X86_KERNELS
  // GCC documents the builtin as safe once static constructors run.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    return kAvx512Kernels;
  if (__builtin_cpu_supports("avx2")) return kAvx2Kernels;
#endif
  return kBaselineKernels;
}

}  // namespace imprint::cpu
