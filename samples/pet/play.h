#pragma once
// The game in its window, in real time.

#include "samples/pet/base/result.h"
#include "samples/pet/options.h"

namespace pet {

// The exit status.
Result<int> run_window(const Options& options);

}  // namespace pet
