#pragma once
// The library's face: tensors, derivatives, networks, programs, files. One include for C++ projects that write their own networks; a device
// of their own comes from engine-bridge/standalone.h, a game's device from engine-bridge/context.h.

#include "compute/base/result.h"
#include "compute/graph/autodiff.h"
#include "compute/program/program.h"
#include "compute/program/run.h"
#include "compute/program/runtime.h"
#include "compute/tensor/tensor.h"
