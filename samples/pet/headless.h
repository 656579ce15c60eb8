#pragma once
// The game without a window, as fast as it goes. A scripted player teaches; progress goes to the terminal,
// figures and pictures go to files.

#include "samples/pet/base/result.h"
#include "samples/pet/options.h"

namespace pet {

// The exit status: 0, or 1 when the pet was taught and did not learn. Fails when a file could not be written,
// after writing the others.
Result<int> run_headless(const Options& options);

}  // namespace pet
