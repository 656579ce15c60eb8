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

/* A part of an observation and its encoder, before the hidden layers. An observation is its streams
 * one after the other; observation_count is the sum of their numbers. Fields of other kinds are 0.
 *   vector    count numbers, as they are
 *   picture   channels * height * width numbers, [channels][height][width], of about 0 .. 1. From
 *             36 x 36 on the convolutions of Mnih et al., 2015, for smaller ones two of 3 x 3 with
 *             stride 2; then a layer. A stack adds its pictures as channels. Default size 512, of
 *             small ones 128
 *   entities  1 + count * features numbers: how many entities there are, then a row for each of at
 *             most `count`; what is in further rows does not matter. Attention among the entities,
 *             then attention pooling: their order does not matter. stack is 1. Default size 64
 *   ids       count whole numbers below vocabulary; each becomes a learned row of `size` numbers.
 *             Default size 16 */
typedef enum imp_stream_kind {
  IMP_STREAM_VECTOR = 0,
  IMP_STREAM_PICTURE = 1,
  IMP_STREAM_ENTITIES = 2,
  IMP_STREAM_IDS = 3
} imp_stream_kind;

#define IMP_MAX_STREAMS 16u
typedef struct imp_stream {
  imp_stream_kind kind;
  uint32_t count;                   /* vector, ids: 1 .. 1048576; entities: 1 .. 1024 */
  uint32_t channels, height, width; /* picture: 1 .. 64, 4 .. 1024, 4 .. 1024 */
  uint32_t features;                /* entities: numbers of each, 1 .. 4096 */
  uint32_t vocabulary;              /* ids: 2 .. 65536 */
  uint32_t size;                    /* outputs, 1 .. 4096; 0: the default. vector: 0 */
} imp_stream;

/* For every learner: `stack`, and except for SAC the streams. With streams PPO does not normalise
 * observations, and its critic uses the policy's layers. For PPO, and for a brain without learner
 * that loads its weights: the cell. An agent's stack and its cell's state are its own. They begin
 * again with an episode; files and snapshots do not hold them. */
typedef struct imp_network_options {
  imp_header header;
  uint32_t stack;          /* the network sees this many observations of an agent: those that it
                            * decided from last, then the newest. At the start of an episode zeros
                            * come before it. 1 .. 64. Default 1 */
  imp_cell cell;           /* Default none */
  uint32_t cell_size;      /* outputs of the cell, 1 .. 4096. Default 64 */
  uint32_t sequence_steps; /* steps that learning goes back in time, 1 .. 256: a divisor of
                            * imp_ppo_options::batch_size. Default 32 */
  uint32_t stream_count;   /* 0: one vector. At most IMP_MAX_STREAMS. Default 0 */
  const imp_stream* streams;
  uint32_t pictures_as_bytes; /* 1: DQN, SAC and bandit remember each number of a picture as a byte,
                               * the nearest k / 255: a quarter of the memory. Numbers of that form
                               * keep their bits; others are rounded, and cut to 0 .. 1. A picture's
                               * observation_scale is 1. Default 0 */
} imp_network_options;

#endif /* IMPRINT_IMPRINT_NETWORKS_H_ */
