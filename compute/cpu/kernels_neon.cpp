#define IMPRINT_KERNEL_SET kNeonKernels

namespace imprint::cpu {
namespace {
constexpr const char* kSetName = "neon";
constexpr int kLanes = 4;     // floats of a vector register
constexpr int kTileRows = 8;  // of a matmul's tile, two vectors wide: half of the registers hold its sums
}  // namespace
}  // namespace imprint::cpu

#include "compute/cpu/kernel_bodies.h"
