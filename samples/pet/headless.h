#pragma once
// The game without a window, as fast as it goes: a scripted player teaches, progress goes to the terminal,
// figures and pictures to files.

#include "samples/pet/options.h"

namespace pet {

// The exit status: 0, or 1 when the pet was taught and did not learn. Throws std::runtime_error when
// something could not be written, after writing what could.
int run_headless(const Options& options);

}  // namespace pet
