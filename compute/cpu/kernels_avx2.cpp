#define IMPRINT_KERNEL_SET kAvx2Kernels

namespace imprint::cpu {
namespace {
constexpr const char* kSetName = "avx2";
constexpr int kLanes = 8;     // floats of a vector register
constexpr int kTileRows = 6;  // of a matmul's tile, two vectors wide: the most that the registers hold
}  // namespace
}  // namespace imprint::cpu

#include "compute/cpu/kernel_bodies.h"
