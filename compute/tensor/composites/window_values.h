#pragma once
// Windows of signals on the host. Internal.

#include <cstdint>
#include <vector>

namespace imprint::tensor {

// a0 - a1 cos(t) + a2 cos(2 t), with t = 2 pi i / n; n: the size, or size - 1 if not periodic.
std::vector<float> window_values(std::int64_t size, double a0, double a1, double a2, bool periodic);

}  // namespace imprint::tensor
