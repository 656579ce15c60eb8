/* The C code of plugin/docs/integration.md. integration.cpp is the game that calls it. */

#include <volk.h>

#include <imprint/imprint_vulkan.h>

#include "integration-device.inc"

#include "integration-end.inc"
#include "integration-frame.inc"
