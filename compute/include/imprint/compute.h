#pragma once
// The library's face: tensors, derivatives, networks, programs, files. One include for C++ projects that write their own networks; a device
// of their own comes from engine-bridge/standalone.h, a game's device from engine-bridge/context.h.

#include "compute/base/result.h"
#include "compute/graph/autodiff.h"
#include "compute/model/policy.h"
#include "compute/model/safetensors.h"
#include "compute/nn/activation.h"
#include "compute/nn/initialise.h"
#include "compute/nn/linear.h"
#include "compute/nn/losses.h"
#include "compute/nn/normalisation.h"
#include "compute/nn/optimiser.h"
#include "compute/nn/parameter.h"
#include "compute/nn/sequential.h"
#include "compute/program/program.h"
#include "compute/program/run.h"
#include "compute/program/runtime.h"
#include "compute/tensor/tensor.h"
