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

/* Self-play: the brain keeps old weights of its own in a pool, and agents may act by them
 * (agent_set_opponent) while others learn. match_report says who won: the newest weights and each
 * entry have a rating (Elo, The Rating of Chessplayers, 1978), 1200 at first. A decision evaluates
 * all entries. On header.next of DQN, SAC and PPO; without a cell. */
typedef struct imp_self_play_options {
  imp_header header;
  uint32_t pool_size;   /* entries, 1 .. 64; the oldest goes. Default 8 */
  uint32_t pool_period; /* decisions of a brain, all its agents, until it keeps its weights; 0: only
                         * by brain_keep_opponent. Default 20000 */
  float newest_share;   /* of drawn opponents that act by the newest weights, 0 .. 1. Default 0.5 */
} imp_self_play_options;

/* For agent_set_opponent, beside the index of an entry. */
#define IMP_OPPONENT_NONE UINT32_MAX         /* the agent learns by the newest weights. Default */
#define IMP_OPPONENT_DRAWN (UINT32_MAX - 1)  /* an entry by chance, or the newest weights */
#define IMP_OPPONENT_NEWEST (UINT32_MAX - 2) /* acts by the newest weights and does not learn */

typedef struct imp_opponent {
  imp_header header;
  float rating;
  uint64_t decisions; /* of the brain, when the entry was kept */
  uint64_t matches;   /* that were reported */
} imp_opponent;

/* Groups: agents of a brain that share their rewards (agent_set_group, agent_group_reward). PPO's
 * critic sees all agents of a group at once, as a set of any number, so agents may come and leave
 * within an episode: what an agent did before it left is worth what the others reach afterwards
 * (Cohen et al., On the Use and Misuse of Absorbing States in Multi-agent Reinforcement Learning,
 * 2022). Each agent still acts by what it sees itself. On header.next of PPO; without a cell,
 * streams and signals. Observations are not normalised: scale them. */
typedef struct imp_group_options {
  imp_header header;
  uint32_t group_size; /* most agents of a group, 2 .. 1024. Default 4 */
} imp_group_options;

#endif /* IMPRINT_IMPRINT_SIGNALS_H_ */
