#ifndef IMPRINT_IMPRINT_LEARNER_H_
#define IMPRINT_IMPRINT_LEARNER_H_
/* Part of imprint.h, which includes it: the ways in which a brain can learn, and in which an agent takes part
 * in it. */

typedef enum imp_learner {
  IMP_LEARNER_NONE = 0,
  IMP_LEARNER_FEEDBACK = 1, /* evaluative feedback: predicts how each action will be received, learns from
                               praise, scolding and demonstrations */
  IMP_LEARNER_CLONING = 2,  /* behaviour cloning: imitates demonstrations (cross-entropy for branches, squared
                               error for continuous actions) */
  /* Deep Q-learning: predicts the discounted return of each choice from steps (what was seen and chosen, the
   * reward, what was seen next) that it remembers. One branch. Mnih et al., Human-level Control through Deep
   * Reinforcement Learning, 2015 */
  IMP_LEARNER_DQN = 3,
  /* Takes feedback for the advantage of an action over what the agent was likely to do, and moves the policy
   * by it at once, without a memory; acts by a draw from its policy, the softmax of the values. Branches
   * only. MacGlashan et al., Interactive Learning from Policy-Dependent Human Feedback (COACH), 2017 */
  IMP_LEARNER_COACH = 4,
  /* Proximal policy optimisation: gathers rollout_steps steps of a brain's agents, all done by the same
   * weights, and learns from them in epochs of minibatches, towards a higher return than its critic expected;
   * then it forgets them. Steps done while an update is under way are not learned from. Acts by a draw from
   * its policy, as COACH does. Branches only. For rewards and many agents: it wants more steps than any other
   * learner. Schulman et al., Proximal Policy Optimization Algorithms, 2017 */
  IMP_LEARNER_PPO = 5
} imp_learner;

/* Steps. DQN, COACH and PPO learn from what came of an action: agent_reward, and agent_feedback in the
 * measure in which it is credited to the action, all summed. A step begins when agent_act first gives the
 * action, and is followed by the next action or by the end of the episode; it is remembered, or learned from,
 * once no feedback can be credited to it by its onset any more: credit_delay_s + credit_width_s after it
 * began, or when the episode is over. Where there are rewards only, a credit_delay_s of 0 and a small
 * credit_width_s let it be remembered at once. Steps on their way are in no file and in no snapshot, and are
 * forgotten by brain_load, brain_restore, brain_set_learning(0) and agent_destroy: end the episode of an
 * agent that leaves first. */

typedef enum imp_mode {
  IMP_MODE_LEARNING =
      0, /* acts by its brain with exploration; feedback, demonstrations and steps are learned from */
  IMP_MODE_INFERENCE = 1, /* acts greedily; feedback and demonstrations are refused with
                             IMP_ERROR_WRONG_STATE, rewards are ignored */
  IMP_MODE_HEURISTIC =
      2, /* the game acts (agent_heuristic); the brain is not asked, and agent_act repeats what the game
            chose. DQN learns from these steps too, COACH and PPO only from their own */
  IMP_MODE_RECORD = 3 /* as heuristic, and where the learner takes demonstrations each heuristic action is
                         remembered as one of weight 2 */
} imp_mode;

typedef enum imp_credit {
  IMP_CREDIT_BY_ONSET =
      0, /* spread over recent actions by a triangle around the player's reaction time (praise, scold) */
  IMP_CREDIT_CURRENT = 1 /* the action under way at time_s, exactly (clicker, "no!") */
} imp_credit;

/* How an episode ended: by what the agent did, or cut off from outside (a time limit, a level that was left),
 * when the state it was in still had a future. A learner that estimates returns (DQN, PPO) must tell them
 * apart: it goes on from the value of the last state where the end was truncated, and from 0 where it was
 * terminated. So before a truncated end call agent_observe with that last state, in the same frame or before;
 * without it the last step is not learned from. Evaluative feedback and demonstrations rate an action by
 * itself: for their learners both ends do the same. */
typedef enum imp_episode_end { IMP_EPISODE_TERMINATED = 0, IMP_EPISODE_TRUNCATED = 1 } imp_episode_end;

#endif /* IMPRINT_IMPRINT_LEARNER_H_ */
