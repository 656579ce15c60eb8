#pragma once
// Pictures of a training run as PNG files.

#include <string>

#include "compute/program/run.h"
#include "compute/training/curves.h"

namespace imprint::tools {

// The loss, and beside it the first metric, over the steps. Error: io.
Result<> write_curve_picture(const std::string& path, const std::string& title,
                             const training::Curves& curves);
// pictures: [count, height, width] in [0, 1], in rows of ten, four times as large. Error: io.
Result<> write_pictures(const std::string& path, const HostTensor& pictures);

}  // namespace imprint::tools
