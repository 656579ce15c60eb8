#ifndef IMPRINT_IMPRINT_NETWORKS_H_
#define IMPRINT_IMPRINT_NETWORKS_H_
/* Part of imprint.h, which includes it: what a brain's network sees and remembers. Put the struct
 * on imp_brain_desc's header.next, before or after the learner's options:
 *   imp_network_options network = imp_network_options_init();
 *   network.stack = 4;
 *   desc.header.next = &network;
 *   network.header.next = &options;
 * Without one the network sees the newest observation and remembers nothing. */

#include "imprint_base.h"

/* A recurrent cell between the hidden layers and the outputs. */
typedef enum imp_cell {
  IMP_CELL_NONE = 0,
  IMP_CELL_GRU = 1, /* Cho et al., 2014 */
  IMP_CELL_LSTM = 2 /* Hochreiter, Schmidhuber, 1997 */
} imp_cell;

/* For every learner: `stack`. For PPO, and for a brain without learner that loads its weights: the
 * cell. An agent's stack and its cell's state are its own. They begin again with an episode; files
 * and snapshots do not hold them. */
typedef struct imp_network_options {
  imp_header header;
  uint32_t stack;          /* the network sees this many observations of an agent: those that it
                            * decided from last, then the newest. At the start of an episode zeros
                            * come before it. 1 .. 64. Default 1 */
  imp_cell cell;           /* Default none */
  uint32_t cell_size;      /* outputs of the cell, 1 .. 4096. Default 64 */
  uint32_t sequence_steps; /* steps that learning goes back in time, 1 .. 256: a divisor of
                            * imp_ppo_options::batch_size. Default 32 */
} imp_network_options;

#endif /* IMPRINT_IMPRINT_NETWORKS_H_ */
