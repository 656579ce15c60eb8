/* The C code of plugin/docs/integration.md. integration.cpp is the game that calls it. */

#include <volk.h>

#include <imprint/imprint_vulkan.h>

struct game;
const float* game_look(const struct game* game);
float game_step(struct game* game, uint32_t action);
int game_over(const struct game* game);

#include "integration-device.inc"

#include "integration-end.inc"
#include "integration-frame.inc"
