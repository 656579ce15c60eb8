#define IMPRINT_KERNEL_SET kBaselineKernels

namespace imprint::cpu {
namespace {
constexpr const char* kSetName = "baseline";
constexpr int kLanes = 4;     // floats of a vector register
constexpr int kTileRows = 4;  // of a matmul's tile, two vectors wide: the most that the registers hold
}  // namespace
}  // namespace imprint::cpu

#include "compute/cpu/kernel_bodies.h"
