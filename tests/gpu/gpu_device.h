#pragma once
// The one device that all GPU tests of a program share, under the validation layer with synchronisation
// checks. IMPRINT_TEST_DEVICE names another device than the default. IMPRINT_TEST_VALIDATION=0 turns the
// layer off if it cannot be installed.

#include "engine-bridge/own/standalone.h"
#include "tests/gpu/session_test.h"

namespace imprint::test {

// Opened at first use; a failure to open fails the calling test. Null only then.
bridge::Standalone* gpu();

}  // namespace imprint::test
