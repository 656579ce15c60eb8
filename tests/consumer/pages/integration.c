/* The C of plugin/docs/integration.md, as its readers have it; integration.cpp is the game around it. */

#include <volk.h>

#include <imprint/imprint_vulkan.h>

#include "integration-device.inc"

#include "integration-end.inc"
#include "integration-frame.inc"
