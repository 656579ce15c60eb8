#include "compute/cpu/kernels.h"

namespace imprint::cpu {

const KernelSet& kernels() {
#if defined(IMPRINT_CPU_ARM_KERNELS)
  return kNeonKernels;  // part of every 64-bit Arm
#elif defined(IMPRINT_CPU_X86_KERNELS)
  // GCC documents the builtin as safe once static constructors run.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    return kAvx512Kernels;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? kAvx2Kernels : kBaselineKernels;
#else
  return kBaselineKernels;
#endif
}

}  // namespace imprint::cpu
