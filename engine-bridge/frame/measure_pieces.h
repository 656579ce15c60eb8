#pragma once
// Times a program's pieces one by one, at create time.

#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "compute/vk/device.h"
#include "engine-bridge/host/in_flight.h"

namespace imprint::bridge {

// Microseconds of the pieces [0, first_state_write()) of slot 0, each the least of three runs; may be empty.
// Submits and waits. The device has timestamps. Errors: those of submission, not_ready.
Result<std::vector<float>> measure_pieces(vk::Device& device, vk::Queue& queue, Runtime& runtime,
                                          const Program& program);

}  // namespace imprint::bridge
