#ifndef IMPRINT_IMPRINT_SIGNALS_H_
#define IMPRINT_IMPRINT_SIGNALS_H_
/* Part of imprint.h, which includes it: what DQN, SAC and PPO learn from beside a game's rewards.
 * Put one or both on imp_brain_desc's header.next, beside the learner's options:
 *   imp_demonstration_options shown = imp_demonstration_options_init();
 *   desc.header.next = &shown;
 * Without a cell. UNSUPPORTED: another learner, or observations from a tensor. */

#include "imprint_base.h"

/* Demonstrations, in a memory of their own: agent_demonstrate, IMP_MODE_RECORD, files
 * (brain_load_demonstrations). Their loss stands beside the learner's:
 *   PPO  minus the log-probability of what was shown
 *   DQN  what was shown is worth `margin` more than other choices (Hester et al., Deep Q-learning
 *        from Demonstrations, 2018)
 *   SAC  squared distance from what was shown (Fujimoto, Gu, A Minimalist Approach to Offline
 *        Reinforcement Learning, 2021) */
typedef struct imp_demonstration_options {
  imp_header header;
  uint32_t capacity;    /* kept per brain, the newest; >= 1. Default 1024 */
  uint32_t batch_size;  /* of them per minibatch and brain; >= 1. Default 32 */
  uint32_t pretraining; /* minibatches from them alone, while a brain has no steps. Default 0 */
  uint32_t half_life;   /* minibatches after which their loss counts half, again and again; 0: it
                         * stays. Default 0 */
  float strength;       /* of their loss; >= 0. Default 1 */
  float margin;         /* DQN; >= 0. Default 0.8 */
} imp_demonstration_options;

typedef enum imp_curiosity {
  IMP_CURIOSITY_NOVELTY = 0, /* states where agents seldom were (Burda et al., Exploration by Random
                              * Network Distillation, 2019) */
  IMP_CURIOSITY_SURPRISE = 1 /* what was not foreseen of what an action does (Pathak et al.,
                              * Curiosity-driven Exploration by Self-supervised Prediction, 2017) */
} imp_curiosity;

/* Rewards that a brain gives itself, added to the game's by their strengths. Curiosity is brought
 * to a deviation of about 1. Imitation (Ho, Ermon, Generative Adversarial Imitation Learning, 2016)
 * is above 0: how much a step looks like imp_demonstration_options' demonstrations. Without
 * streams. */
typedef struct imp_signal_options {
  imp_header header;
  float reward_strength;    /* of the game's rewards; >= 0. Default 1 */
  imp_curiosity curiosity;  /* Default novelty */
  float curiosity_strength; /* >= 0; 0: none. Default 0 */
  float curiosity_discount; /* PPO, 0 .. 1; 0: that of the game's rewards. Default 0 */
  float imitation_strength; /* >= 0; 0: none. Default 0 */
  float imitation_discount; /* PPO, 0 .. 1; 0: that of the game's rewards. Default 0 */
  uint32_t hidden_size;     /* of their networks' layers, 1 .. 4096. Default 64 */
  float learning_rate;      /* of their networks; >= 0. Default 3e-4 */
} imp_signal_options;

#endif /* IMPRINT_IMPRINT_SIGNALS_H_ */
