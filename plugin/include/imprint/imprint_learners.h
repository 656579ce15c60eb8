#ifndef IMPRINT_IMPRINT_LEARNERS_H_
#define IMPRINT_IMPRINT_LEARNERS_H_
/* Part of imprint.h, which includes it: how brains learn. Each learner has an option struct, made
 * by its imp_*_options_init, with the defaults. Put it on imp_brain_desc's header.next:
 *   imp_dqn_options options = imp_dqn_options_init();
 *   options.epsilon = 0.1f;
 *   desc.learner = IMP_LEARNER_DQN;
 *   desc.header.next = &options;
 * Without one the learner has its defaults. brain_create returns IMP_ERROR_INVALID_ARGUMENT for the
 * options of another learner, for two of one kind and for a value out of its range. */

#include "imprint_base.h"

typedef enum imp_activation {
  IMP_ACTIVATION_RELU = 0,
  IMP_ACTIVATION_TANH = 1,
  IMP_ACTIVATION_SILU = 2,
  IMP_ACTIVATION_ELU = 3,
  IMP_ACTIVATION_GELU = 4
} imp_activation;

typedef enum imp_learner {
  IMP_LEARNER_NONE = 0,     /* does not learn and does not explore */
  IMP_LEARNER_FEEDBACK = 1, /* predicts praise and scolding for each action; one branch */
  IMP_LEARNER_CLONING = 2,  /* imitates demonstrations; branches and continuous actions */
  IMP_LEARNER_DQN = 3,      /* predicts returns, learns from remembered steps; one branch */
  IMP_LEARNER_COACH = 4,    /* moves its policy by feedback at once, without memory; branches */
  IMP_LEARNER_PPO = 5,    /* policy gradient from rewards, for many agents; branches, continuous */
  IMP_LEARNER_SAC = 6,    /* returns from remembered steps, for one or a few bodies; continuous */
  IMP_LEARNER_BANDIT = 7, /* which choice earns most at once, with its doubt; one branch */
  IMP_LEARNER_PQN = 8,    /* predicts returns from rollouts of many agents; one branch */
  IMP_LEARNER_ES = 9      /* weights at random, towards those that earn more; a kennel */
} imp_learner;

/* Every learner, for code that treats all alike. ENTRY(echo, ECHO, Echo, 48): IMP_LEARNER_ECHO, and
 * imp_echo_options with 48 bytes in version 1 where pointers have 8. */
#define IMP_LEARNERS(ENTRY)               \
  ENTRY(feedback, FEEDBACK, Feedback, 56) \
  ENTRY(cloning, CLONING, Cloning, 40)    \
  ENTRY(dqn, DQN, Dqn, 96)                \
  ENTRY(coach, COACH, Coach, 48)          \
  ENTRY(ppo, PPO, Ppo, 88)                \
  ENTRY(sac, SAC, Sac, 64)                \
  ENTRY(bandit, BANDIT, Bandit, 64)       \
  ENTRY(pqn, PQN, Pqn, 80)                \
  ENTRY(es, ES, Es, 40)

/* imp_header::type of their options: 100 and the learner's number. */
typedef enum imp_options_type {
  IMP_STRUCT_FEEDBACK_OPTIONS = 101,
  IMP_STRUCT_CLONING_OPTIONS = 102,
  IMP_STRUCT_DQN_OPTIONS = 103,
  IMP_STRUCT_COACH_OPTIONS = 104,
  IMP_STRUCT_PPO_OPTIONS = 105,
  IMP_STRUCT_SAC_OPTIONS = 106,
  IMP_STRUCT_BANDIT_OPTIONS = 107,
  IMP_STRUCT_PQN_OPTIONS = 108,
  IMP_STRUCT_ES_OPTIONS = 109
} imp_options_type;

/* How an agent takes part. */
typedef enum imp_mode {
  IMP_MODE_LEARNING = 0,  /* acts with exploration and learns. Default */
  IMP_MODE_INFERENCE = 1, /* acts greedily; refuses feedback and demonstrations, ignores rewards */
  IMP_MODE_HEURISTIC = 2, /* the game acts by agent_heuristic; DQN, SAC, BANDIT learn from it */
  IMP_MODE_RECORD = 3     /* as heuristic; each action becomes a demonstration of weight 2 */
} imp_mode;

/* Which actions a feedback is for. */
typedef enum imp_credit {
  IMP_CREDIT_BY_ONSET = 0, /* recent actions, by a triangle around the player's reaction time */
  IMP_CREDIT_CURRENT = 1   /* the action under way at time_s */
} imp_credit;

typedef struct imp_feedback {
  imp_header header;
  float value;       /* -1 .. 1: scolding .. praise; scolding also bans the action */
  float weight;      /* > 0. Default 1; a treat: 2 */
  imp_credit credit; /* which actions it is for. Default by onset */
  double time_s;     /* when the player reacted; not later than the current frame */
} imp_feedback;

/* How an episode ended. DQN, PPO, PQN and SAC estimate the future of a truncated end, and none of a
 * terminated one: call agent_observe with the last state before a truncated end. */
typedef enum imp_episode_end {
  IMP_EPISODE_TERMINATED = 0, /* by what the agent did */
  IMP_EPISODE_TRUNCATED = 1   /* cut off from outside: a time limit, a level that was left */
} imp_episode_end;

/* Fields that several learners have:
 *   learn_period_frames  frames per minibatch (PPO, PQN: per update); its result takes effect one
 *                        period after it began; >= 1
 *   batch_size           samples per minibatch and brain; >= 1
 *   replay_capacity      samples remembered per brain, the newest; >= 1
 *   learning_rate        of Adam (COACH: of plain gradient ascent); >= 0
 *   max_gradient_norm    gradients are scaled down to this global norm; 0 = no limit
 *   exploration          standard deviation of noise on the values of choices; >= 0
 *   discount             value of the next step's return, 0 .. 1
 *   credit_delay_s       reaction time, seconds from the onset of an action; >= 0
 *   credit_width_s       half-width of the triangle of credit around it, seconds; >= 1e-6
 * The credit times are for words of a person, agent_feedback by onset. Rewards are for the newest
 * step, which is learned from as soon as the next observation is known. From an agent's first
 * feedback by onset on, its steps wait for words: all learners but FEEDBACK and CLONING learn from
 * them credit_delay_s + credit_width_s after their onset. */

/* Evaluative feedback: a regression from situation and action to praise or scolding. */
typedef struct imp_feedback_options {
  imp_header header;
  uint32_t learn_period_frames; /* Default 6 */
  uint32_t batch_size;          /* Default 32 */
  uint32_t replay_capacity;     /* Default 4096 */
  float learning_rate;          /* Default 1e-3 */
  float max_gradient_norm;      /* Default 1 */
  float exploration;            /* Default 0.2 */
  float margin;                 /* praise pushes the rival actions below -margin. Default 0.5 */
  float margin_weight;          /* of that push; 0 = off. Default 0.3 */
  float credit_delay_s;         /* Default 0.8 */
  float credit_width_s;         /* Default 0.6 */
} imp_feedback_options;
static inline imp_feedback_options imp_feedback_options_init(void) {
  IMP_INIT(imp_feedback_options, s, IMP_STRUCT_FEEDBACK_OPTIONS);
  s.learn_period_frames = 6;
  s.batch_size = 32;
  s.replay_capacity = 4096;
  s.learning_rate = 1e-3f;
  s.max_gradient_norm = 1.0f;
  s.exploration = 0.2f;
  s.margin = 0.5f;
  s.margin_weight = 0.3f;
  s.credit_delay_s = 0.8f;
  s.credit_width_s = 0.6f;
  return s;
}

/* Behaviour cloning: cross-entropy for branches, squared error for continuous actions. */
typedef struct imp_cloning_options {
  imp_header header;
  uint32_t learn_period_frames; /* Default 6 */
  uint32_t batch_size;          /* Default 32 */
  uint32_t replay_capacity;     /* Default 4096 */
  float learning_rate;          /* Default 1e-3 */
  float max_gradient_norm;      /* Default 1 */
  float exploration;            /* Default 0.2 */
} imp_cloning_options;
static inline imp_cloning_options imp_cloning_options_init(void) {
  IMP_INIT(imp_cloning_options, s, IMP_STRUCT_CLONING_OPTIONS);
  s.learn_period_frames = 6;
  s.batch_size = 32;
  s.replay_capacity = 4096;
  s.learning_rate = 1e-3f;
  s.max_gradient_norm = 1.0f;
  s.exploration = 0.2f;
  return s;
}

/* Deep Q-learning. Mnih et al., Human-level Control through Deep Reinforcement Learning, 2015. */
typedef struct imp_dqn_options {
  imp_header header;
  uint32_t learn_period_frames; /* at most four minibatches per decision are run. Default 2 */
  uint32_t batch_size;          /* Default 64 */
  uint32_t replay_capacity;     /* Default 20000 */
  float learning_rate;          /* Default 1e-3 */
  float max_gradient_norm;      /* Default 10 */
  float exploration;            /* beside epsilon's random choices. Default 0 */
  float discount;               /* Default 0.99 */
  uint32_t target_period;       /* minibatches per step of the target network, >= 1. Default 100 */
  float target_rate;            /* share of the way in a step, 1e-6 .. 1. Default 1: a copy */
  uint32_t double_estimate;     /* 1: double DQN (van Hasselt et al., 2016). Default 1 */
  float epsilon;                /* final share of random choices, 0 .. 1. Default 0.05 */
  uint32_t epsilon_decisions;   /* of a brain, all its agents, until that share. Default 500 */
  float credit_delay_s;         /* Default 0.8 */
  float credit_width_s;         /* Default 0.6 */
  uint32_t n_step;       /* rewards summed before the estimate of the rest, 1 .. 64. Default 1 */
  uint32_t squared_loss; /* 1: squared error; 0: Huber's. Default 0 */
  uint32_t dueling; /* 1: a network for values, one for choices (Wang et al., 2016). Default 0 */
  uint32_t follow_changes; /* 1: forgets old steps when rewards fall and stay low. Default 1 */
  uint32_t rate_half_life; /* minibatches after which learning_rate is half, after twice as many a
                            * third, ..., at least 1/32; 0: it stays. Default 5000 */
} imp_dqn_options;
/* Measured by `tools/learning abi`. */
static inline imp_dqn_options imp_dqn_options_init(void) {
  IMP_INIT(imp_dqn_options, s, IMP_STRUCT_DQN_OPTIONS);
  s.learn_period_frames = 2;
  s.batch_size = 64;
  s.replay_capacity = 20000;
  s.learning_rate = 1e-3f;
  s.max_gradient_norm = 10.0f;
  s.discount = 0.99f;
  s.target_period = 100;
  s.target_rate = 1.0f;
  s.double_estimate = 1;
  s.epsilon = 0.05f;
  s.epsilon_decisions = 500;
  s.n_step = 1;
  s.follow_changes = 1;
  s.rate_half_life = 5000;
  s.credit_delay_s = 0.8f;
  s.credit_width_s = 0.6f;
  return s;
}

/* Policy gradient with feedback as the advantage. MacGlashan et al., Interactive Learning from
 * Policy-Dependent Human Feedback (COACH), 2017. */
typedef struct imp_coach_options {
  imp_header header;
  uint32_t learn_period_frames; /* Default 6 */
  uint32_t batch_size;          /* most steps per minibatch. Default 32 */
  float learning_rate;          /* Default 0.05 */
  float max_gradient_norm;      /* Default 1 */
  float trace_decay;    /* share of feedback that the step before gets, 0 .. 0.9999. Default 0 */
  float credit_delay_s; /* Default 0.8 */
  float credit_width_s; /* Default 0.6 */
} imp_coach_options;
static inline imp_coach_options imp_coach_options_init(void) {
  IMP_INIT(imp_coach_options, s, IMP_STRUCT_COACH_OPTIONS);
  s.learn_period_frames = 6;
  s.batch_size = 32;
  s.learning_rate = 0.05f;
  s.max_gradient_norm = 1.0f;
  s.credit_delay_s = 0.8f;
  s.credit_width_s = 0.6f;
  return s;
}

/* Schulman et al., Proximal Policy Optimization Algorithms, 2017. */
typedef struct imp_ppo_options {
  imp_header header;
  uint32_t learn_period_frames; /* 0: as many as the update has minibatches, but at most a quarter
                                 * of the frames that a rollout takes. Default 0 */
  uint32_t rollout_steps;       /* steps per update and brain, up to 65536. 0: 32 per agent, 512 to
                                 * 16384 in all. Default 0 */
  uint32_t batch_size;       /* a divisor of rollout_steps. 0: an eighth, at least 64. Default 0 */
  uint32_t epochs;           /* passes over a rollout, 1 .. 64. Default 4 */
  float learning_rate;       /* Default 1e-3 */
  float max_gradient_norm;   /* Default 0.5 */
  float discount;            /* 0 where each choice is paid at once. Default 0.99 */
  float advantage_decay;     /* lambda of its estimation (GAE), 0 .. 1. Default 0.95 */
  float clip_range;          /* change of probability per update, 1e-6 .. 1. Default 0.2 */
  float entropy_coefficient; /* weight of the policy's entropy; >= 0. Default 0.02 */
  float credit_delay_s;      /* Default 0.8 */
  float credit_width_s;      /* Default 0.6 */
  float value_coefficient;   /* weight of the critic's error; >= 0. Default 0.5 */
  float max_divergence;      /* an update stops beyond this KL divergence; 0: never. Default 0.03 */
  uint32_t clip_values;      /* 1: values move by clip_range per update at most. Default 0 */
  uint32_t normalise_observations; /* 1: by their running mean and deviation. Default 1 */
  uint32_t normalise_rewards;      /* 1: by the deviation of their discounted sum. Default 1 */
  uint32_t rate_decisions; /* of a brain, after which learning_rate has fallen linearly to 0; 0: it
                            * stays. Default 0 */
} imp_ppo_options;
/* Measured by `tools/learning abi`. */
static inline imp_ppo_options imp_ppo_options_init(void) {
  IMP_INIT(imp_ppo_options, s, IMP_STRUCT_PPO_OPTIONS);
  s.epochs = 4;
  s.learning_rate = 1e-3f;
  s.max_gradient_norm = 0.5f;
  s.discount = 0.99f;
  s.advantage_decay = 0.95f;
  s.clip_range = 0.2f;
  s.entropy_coefficient = 0.02f;
  s.value_coefficient = 0.5f;
  s.max_divergence = 0.03f;
  s.normalise_observations = 1;
  s.normalise_rewards = 1;
  s.credit_delay_s = 0.8f;
  s.credit_width_s = 0.6f;
  return s;
}

/* Haarnoja et al., Soft Actor-Critic Algorithms and Applications, 2018. */
typedef struct imp_sac_options {
  imp_header header;
  uint32_t learn_period_frames; /* at most four minibatches per decision are run. Default 2 */
  uint32_t batch_size;          /* Default 128 */
  uint32_t replay_capacity;     /* Default 20000 */
  float learning_rate;          /* of policy, critics and temperature. Default 1e-3 */
  float max_gradient_norm;      /* Default 10 */
  float discount;               /* Default 0.99 */
  float target_rate;            /* of the target critics in each step, 1e-6 .. 1. Default 0.005 */
  float entropy_per_action; /* target of the policy's entropy, times continuous_count. Default -1 */
  float credit_delay_s;     /* Default 0.8 */
  float credit_width_s;     /* Default 0.6 */
  uint32_t follow_changes;  /* 1: forgets old steps when rewards fall and stay low. Default 1 */
  uint32_t slow_noise; /* 1: draws change slowly from one decision to the next, so that a body that
                        * must gather speed gets somewhere. Default 1 */
} imp_sac_options;
/* Measured by `tools/learning abi`. */
static inline imp_sac_options imp_sac_options_init(void) {
  IMP_INIT(imp_sac_options, s, IMP_STRUCT_SAC_OPTIONS);
  s.learn_period_frames = 2;
  s.batch_size = 128;
  s.replay_capacity = 20000;
  s.learning_rate = 1e-3f;
  s.max_gradient_norm = 10.0f;
  s.discount = 0.99f;
  s.target_rate = 0.005f;
  s.entropy_per_action = -1.0f;
  s.credit_delay_s = 0.8f;
  s.credit_width_s = 0.6f;
  s.follow_changes = 1;
  s.slow_noise = 1;
  return s;
}

/* Contextual bandit: Bayesian linear regression of rewards on the last hidden layer, which learns
 * too. Li et al., A Contextual-Bandit Approach to Personalized News Article Recommendation, 2010
 * (LinUCB); Riquelme, Tucker, Snoek, Deep Bayesian Bandits Showdown, 2018. */
typedef struct imp_bandit_options {
  imp_header header;
  uint32_t learn_period_frames; /* at most four minibatches per decision are run. Default 2 */
  uint32_t batch_size;          /* Default 32 */
  uint32_t replay_capacity;     /* for the hidden layers. Default 4096 */
  float learning_rate;          /* of the hidden layers. Default 1e-3 */
  float max_gradient_norm;      /* Default 1 */
  float exploration;            /* factor of the doubt about a choice. Default 0.3 */
  uint32_t thompson;            /* 1: draws from its belief; 0: LinUCB. Default 1 */
  float drift; /* share of what is known that each sample puts in doubt, 0 .. 1. Default 5e-4 */
  uint32_t follow_changes; /* 1: begins again when rewards fall and stay low. Default 1 */
  float credit_delay_s;    /* Default 0.8 */
  float credit_width_s;    /* Default 0.6 */
} imp_bandit_options;
/* Measured by `tools/learning abi`. */
static inline imp_bandit_options imp_bandit_options_init(void) {
  IMP_INIT(imp_bandit_options, s, IMP_STRUCT_BANDIT_OPTIONS);
  s.learn_period_frames = 2;
  s.batch_size = 32;
  s.replay_capacity = 4096;
  s.learning_rate = 1e-3f;
  s.max_gradient_norm = 1.0f;
  s.exploration = 0.3f;
  s.thompson = 1;
  s.drift = 5e-4f;
  s.follow_changes = 1;
  s.credit_delay_s = 0.8f;
  s.credit_width_s = 0.6f;
  return s;
}

/* Q-learning of many agents at once by lambda returns, without a memory or a target network; hidden
 * layers are normalised. Gallici et al., Simplifying Deep Temporal Difference Learning, 2024. */
typedef struct imp_pqn_options {
  imp_header header;
  uint32_t learn_period_frames; /* as imp_ppo_options. Default 0 */
  uint32_t rollout_steps;       /* as imp_ppo_options. Default 0 */
  uint32_t batch_size;          /* as imp_ppo_options. Default 0 */
  uint32_t epochs;              /* passes over a rollout, 1 .. 64. Default 4 */
  float learning_rate;          /* of RAdam. Default 2e-3 */
  float max_gradient_norm;      /* Default 10 */
  float discount;               /* Default 0.99 */
  float trace_decay; /* lambda: share of later rewards in place of estimates. Default 0.9 */
  float epsilon;     /* final share of random choices, 0 .. 1. Default 0.05 */
  uint32_t epsilon_decisions; /* of a brain, all its agents, until that share. 0: those of eight
                               * rollouts. Default 0 */
  uint32_t normalise_rewards; /* 1: learns on rewards by the deviation of their discounted sum;
                               * values stay in the game's units. Default 1 */
  uint32_t rate_decisions;    /* as imp_ppo_options. Default 0 */
  uint32_t rate_half_life;    /* as imp_dqn_options. Default 5000 */
  float credit_delay_s;       /* Default 0.8 */
  float credit_width_s;       /* Default 0.6 */
} imp_pqn_options;
/* Measured by `tools/learning abi`. */
static inline imp_pqn_options imp_pqn_options_init(void) {
  IMP_INIT(imp_pqn_options, s, IMP_STRUCT_PQN_OPTIONS);
  s.epochs = 4;
  s.learning_rate = 2e-3f;
  s.max_gradient_norm = 10.0f;
  s.discount = 0.99f;
  s.trace_decay = 0.9f;
  s.epsilon = 0.05f;
  s.normalise_rewards = 1;
  s.rate_half_life = 5000;
  s.credit_delay_s = 0.8f;
  s.credit_width_s = 0.6f;
  return s;
}

/* Evolution strategies: a kennel whose brains have a body each. The first brain is what was
 * learned. The others' weights differ from its own at random, and it moves to those that earn more.
 * An odd brain_count makes pairs; agents_per_brain is 1. Salimans et al., Evolution Strategies as a
 * Scalable Alternative to Reinforcement Learning, 2017. */
typedef struct imp_es_options {
  imp_header header;
  uint32_t learn_period_frames; /* frames between two looks at the rewards. Default 4 */
  uint32_t rollout_steps;       /* steps after which a longer episode counts too. Default 1000 */
  float learning_rate;          /* of Adam. Default 0.1 */
  float exploration;            /* standard deviation of the weights, above 0. Default 0.1 */
  float credit_delay_s;         /* Default 0.8 */
  float credit_width_s;         /* Default 0.6 */
} imp_es_options;
static inline imp_es_options imp_es_options_init(void) {
  IMP_INIT(imp_es_options, s, IMP_STRUCT_ES_OPTIONS);
  s.learn_period_frames = 4;
  s.rollout_steps = 1000;
  s.learning_rate = 0.1f;
  s.exploration = 0.1f;
  s.credit_delay_s = 0.8f;
  s.credit_width_s = 0.6f;
  return s;
}

#endif /* IMPRINT_IMPRINT_LEARNERS_H_ */
