#pragma once
// Where messages go while the host takes none: to stderr, warnings and errors. The environment variable
// IMPRINT_LOG sets the level: off, error, warning, info, debug. Nothing else of Imprint prints or reads the
// environment.

#include "compute/base/log.h"

namespace imprint::abi {

LogSink stderr_log();  // reads the variable

}  // namespace imprint::abi
