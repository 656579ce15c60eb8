#pragma once
// The feedback learner: praise and scolding, demonstrations, rewards; one branch.
//
// H(s, g, a) is the expected feedback. For a sample (s, g, a, h, w) of the game's rewards
//   loss = w * (H(s,g,a) - h)^2
// Knox, Stone, Interactively Shaping Agents via Human Reinforcement: The TAMER Framework, 2009.
//
// A person's words and demonstrations also tell about the other choices, because one of them is right:
//   p     = softmax(kCertainty * H(s,g,.))[a], the chance that a is right
//   loss += w * (kToldWeight * -log P(h) + c * margin_weight * M)
//   M     = sum over a' != a of max(0, H(s,g,a') + margin)^2
//   P(h)  = e + (1 - 2 e) p for praise, 1 minus that for scolding
//   e     = the share of this person's words that are wrong
//   c     = p, taken as a constant, for praise; 1 for a demonstration; 0 for scolding
//
// So a word that contradicts what is known moves little. Loss of noisy labels: Mnih, Hinton, Learning to
// Label Aerial Images from Noisy Data, 2012; margin: Hester et al., Deep Q-learning from Demonstrations,
// 2018.
//
// e is estimated from the words as they arrive, before they are learned, by expectation maximisation: a word
// is wrong with probability e (1 - q) / (e (1 - q) + (1 - e) q), where q is the chance that it is right.
//
// Parameters are shrunk, and more for a person who errs more: the gradient is that of the mean loss
// + e (1 - e) / (kCareless (1 - kCareless)) * (kShrink / (samples + kShrinkSamples) + kLeastShrink) * the sum
// of share * their squares. share is that of words and demonstrations in all samples so far, by weight: in
// the goal's samples for the last layer's parameters of a goal, in the brain's for all others. So rewards are
// not doubted, and what they taught stays while a person teaches other goals. A goal counts a word before its
// first sample: choices that nothing taught fall to 0. Else their values would change with the hidden layers
// that other goals teach, and a choice that falls low by that is never tried. The noise of a decision is
// smaller for choices that many words were about (decide/infer_graph.cpp).
//
// While few words were heard, of which many are wrong, what is seen misleads more than it tells. Minibatches
// and agents that explore use H as it is. Other agents act by U + t (H - U), and so do weights that leave the
// brain (keep/saved_brain.h). U(g, a) is the usual word for a choice, whatever is seen: the mean of the words
// and demonstrations about it, after kUntaughtWords of (1 - 2 kCareless) (2 / choices - 1). A person who errs
// so often says that, on average, of an untaught choice.
//   t = 1 - share * d * (1 - kTrustFactor * r), where share is the goal's
//   d = (e - kBelieved) / (kCareless - kBelieved): a person who seldom errs is not doubted
//   r = (sum of w (h - U) (H - U) + kTrustBefore * kFirstTrust) / (sum of w (H - U)^2 + kTrustBefore)
// d and kTrustFactor * r stay in 0 to 1. H and U are those of a word's choice before the word is learned. The
// sums forget: they hold about kTrustWords by weight. r is the factor of a regression that predicts new words
// best (Copas, Regression, Prediction and Shrinkage, 1983). kTrustFactor is above 1, since choosing needs
// less certainty than guessing.

#include <span>

#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

struct ReplayState;

// Sample: observation | goal | choice | target | weight | meaning.
const Learner& feedback_learner();

// For a brain that was saved without usual words: those of the samples that it remembers, oldest first.
// heard becomes their weight, so that new words count beside them as in any brain.
// memory: float32 [P * capacity, ReplayColumns::numbers]; heard, usual: [P, G, V].
void hear_again(const BrainSpec& spec, const ReplayState& replay, std::span<const float> memory,
                std::span<float> heard, std::span<float> usual);

}  // namespace imprint::agent
