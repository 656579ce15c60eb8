#define IMPRINT_KERNEL_SET kAvx512Kernels

namespace imprint::cpu {
namespace {
constexpr const char* kSetName = "avx512";
constexpr int kLanes = 16;    // floats of a vector register
constexpr int kTileRows = 8;  // of a matmul's tile, two vectors wide: the most that the registers hold
}  // namespace
}  // namespace imprint::cpu

#include "compute/cpu/kernel_bodies.h"
