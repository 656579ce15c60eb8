#pragma once
// The game in its window, at the pace of the clock on the wall.

#include "samples/pet/options.h"

namespace pet {

int run_window(const Options& options);

}  // namespace pet
