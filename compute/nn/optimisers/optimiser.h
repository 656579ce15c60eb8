#pragma once
// Optimisers turn gradients into updates. They hold their moments as variables and record one step; put the
// updates into a program and run it.
//
// learning_rate: a number, a float32 scalar tensor (such as an input), or float32 [groups].
// active: float32 scalar, or [groups]. Where it is 0, parameters, moments and step counters keep their
// content, whatever the gradients are. Empty: always active.
// groups: networks in a kennel (parameter.h). Norms, step counters and learning rates are then per network.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/nn/parameter.h"

namespace imprint::nn {

struct StepKernel;  // step_kernel.h

struct ClippedGradients {
  std::vector<Tensor> gradients;
  Tensor norm;  // before clipping: a scalar, or [groups]
};

// Scales all gradients by min(1, max_norm / (norm + 1e-6)), where norm is the norm of all of them together.
// A norm that is not finite makes the gradients NaN: skip such a step with active = is_finite(norm).
// loss_scale: the factor of the loss (LossScaler), a float32 scalar or [groups], or empty. Gradients and norm
// are divided by it first; with an infinite max_norm nothing else happens.
// Pascanu, Mikolov, Bengio, On the Difficulty of Training Recurrent Neural Networks, 2013.
Result<ClippedGradients> clip_by_global_norm(std::span<const Tensor> gradients, double max_norm,
                                             std::int64_t groups = 0, const Tensor& loss_scale = Tensor());

// Limits every element of the gradients to [-limit, limit].
Result<std::vector<Tensor>> clip_by_value(std::span<const Tensor> gradients, double limit);

struct AdaptiveClipping {
  double factor = 0.01;
  double epsilon = 1e-3;  // the least norm of a unit's weights
  std::int64_t groups = 0;
};
// Scales the gradient of each unit by min(1, factor max(|w|, epsilon) / |gradient|), where w are the unit's
// weights. Units are the outputs of a weight, and a whole bias. gradients: one per parameter, in order.
// Brock, De, Smith, Simonyan, High-Performance Large-Scale Image Recognition Without Normalization, 2021.
Result<std::vector<Tensor>> clip_adaptively(std::span<const Tensor> gradients, const Parameters& parameters,
                                            const AdaptiveClipping& options = {});

class Optimiser {
 public:
  virtual ~Optimiser() = default;

  // The updates of parameters and state. gradients: one per parameter, in order and of its shape.
  // Errors: invalid_argument for a wrong number of gradients or no parameter, shape_mismatch, and the error
  // of any tensor that carries one.
  virtual Result<std::vector<Update>> step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                           const Tensor& active = Tensor()) const = 0;

  // Moments and step counter, for saving and copying: "first_moment.0.weight", "step", ...
  const Parameters& state() const { return state_; }
  const Parameters& parameters() const { return parameters_; }

 protected:
  Optimiser(Parameters parameters, std::int64_t groups)
      : parameters_(std::move(parameters)), groups_(groups) {}

  Parameters parameters_;
  Parameters state_;
  std::int64_t groups_;
};

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;    // Sutskever et al., On the Importance of Initialization and Momentum, 2013
  double weight_decay = 0;  // times the parameter, added to the gradient
  std::int64_t groups = 0;
};

// velocity = momentum velocity + gradient
// parameter -= learning_rate velocity, or with nesterov learning_rate (gradient + momentum velocity)
class Sgd final : public Optimiser {
 public:
  Sgd(const Parameters& parameters, const SgdOptions& options = {});
  Result<std::vector<Update>> step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                   const Tensor& active = Tensor()) const override;

 private:
  SgdOptions options_;
  std::vector<Variable> velocity_;
};

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  // true: AdamW, Loshchilov, Hutter, Decoupled Weight Decay Regularization, 2019.
  // false: the decay is added to the gradient.
  bool decoupled = false;
  // The denominator uses the largest v so far: Reddi, Kale, Kumar, On the Convergence of Adam and Beyond,
  // 2018.
  bool amsgrad = false;
  std::int64_t groups = 0;
};

// parameter -= learning_rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
// Kingma, Ba, Adam: A Method for Stochastic Optimization, 2015.
class Adam final : public Optimiser {
 public:
  Adam(const Parameters& parameters, const AdamOptions& options = {});
  Result<std::vector<Update>> step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                   const Tensor& active = Tensor()) const override;

 private:
  AdamOptions options_;
  std::vector<Variable> first_moment_;
  std::vector<Variable> second_moment_;
  std::vector<Variable> largest_moment_;
  Variable step_;  // int32: [1], or [groups]
};

// AdamW. Its default weight decay is 0.01.
Adam adam_w(const Parameters& parameters, AdamOptions options = {.weight_decay = 0.01});

struct EightBitAdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;
  std::int64_t block = 256;  // elements that share a scale
};

// Adam with moments of 8 bits each: a quarter of its memory. The codes are logarithmic and rounded at random
// in proportion, so that slow averages move. No groups. PyTorch has none; bitsandbytes' Adam8bit has other
// codes. Dettmers, Lewis, Shleifer, Zettlemoyer, 8-bit Optimizers via Block-wise Quantization, 2022.
class EightBitAdam final : public Optimiser {
 public:
  explicit EightBitAdam(const Parameters& parameters, const EightBitAdamOptions& options = {});
  Result<std::vector<Update>> step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                   const Tensor& active = Tensor()) const override;

 private:
  struct Moments {
    Variable first, first_scale, second, second_scale;
  };
  EightBitAdamOptions options_;
  std::vector<Moments> moments_;
  Variable step_;  // int32 [1]
};

// Optimisers that treat one parameter at a time by a rule. PyTorch's formulas and defaults, except where a
// comment says otherwise. t counts the steps from 1; g is the gradient; p the parameter. Every options struct
// has weight_decay: added to the gradient as weight_decay p, or, where the comment says "decoupled",
// p -= learning_rate weight_decay p.
class RuleOptimiser : public Optimiser {
 public:
  Result<std::vector<Update>> step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                   const Tensor& active = Tensor()) const override;

 protected:
  struct Moment {
    std::string name;
    Shape (*shape)(const Parameter& parameter, std::int64_t groups) = nullptr;  // null: the parameter's
    float initial = 0;
  };
  struct Plan {
    std::int64_t groups = 0;
    double weight_decay = 0;
    bool decoupled = false;
    std::vector<Moment> moments = {};
    bool counts = false;                    // keeps t
    std::vector<std::string> scalars = {};  // one number per network each; they start at 1
  };
  // Numbers of one step that all parameters share, each float32 [1] or [groups].
  struct Shared {
    Tensor rate = {}, t = {};          // t is empty unless Plan::counts
    std::vector<Tensor> scalars = {};  // replaced by their next content
    std::vector<Tensor> factors = {};  // for the rule
  };
  // One parameter in one step. All operands broadcast beside the parameter.
  struct Rule {
    const Parameter& parameter;
    Tensor value, gradient, rate;
    Tensor decay = {};  // of the value, if it is decoupled: times the rate; empty: none
    Tensor done = {};   // int32: steps before this one; empty unless Plan::counts
    std::vector<Tensor> factors = {};
    std::vector<Tensor> moments = {};  // replaced by their next content
    Axes axes = {};                    // of one network's parameter
  };

  RuleOptimiser(const Parameters& parameters, Plan plan);
  // Error, for parameters that the optimiser cannot treat.
  virtual Result<> validate() const { return {}; }
  virtual void share(Shared&) const {}
  virtual Tensor next(Rule& rule) const = 0;  // the parameter's next content, without decoupled decay
  // The next content of all parameters, with the decay. Rules that fold over a parameter take one kernel for
  // a small network (step_kernel.h).
  virtual std::vector<Tensor> next_of_all(std::span<Rule> rules) const { return one_by_one(rules); }
  std::vector<Tensor> one_by_one(std::span<Rule> rules) const;
  // By the kernel. self: a copy of this.
  std::vector<Tensor> in_one_kernel(const StepKernel& kernel, std::span<Rule> rules,
                                    const std::shared_ptr<const RuleOptimiser>& self) const;

 private:
  Plan plan_;
  std::vector<std::vector<Variable>> moments_;  // per parameter
  std::vector<Variable> scalars_;
  Variable step_;
};

struct RmsPropOptions {
  double smoothing = 0.99;
  double epsilon = 1e-8;
  double momentum = 0;
  bool centred = false;  // divides by the deviation of g instead of its root mean square
  double weight_decay = 0;
  std::int64_t groups = 0;
};
// v = smoothing v + (1 - smoothing) g^2; p -= learning_rate g / (sqrt(v) + epsilon).
// Tieleman, Hinton, Lecture 6.5, 2012; centred: Graves, Generating Sequences With Recurrent Neural Networks,
// 2013.
class RmsProp final : public RuleOptimiser {
 public:
  explicit RmsProp(const Parameters& parameters, const RmsPropOptions& options = {});

 private:
  Tensor next(Rule& rule) const override;
  RmsPropOptions options_;
};

struct AdagradOptions {
  double rate_decay = 0;  // divides the rate by 1 + (t - 1) rate_decay
  double epsilon = 1e-10;
  double initial = 0;  // of the sums
  double weight_decay = 0;
  std::int64_t groups = 0;
};
// v += g^2; p -= learning_rate g / (sqrt(v) + epsilon).
// Duchi, Hazan, Singer, Adaptive Subgradient Methods for Online Learning and Stochastic Optimization, 2011.
class Adagrad final : public RuleOptimiser {
 public:
  explicit Adagrad(const Parameters& parameters, const AdagradOptions& options = {});

 private:
  void share(Shared& shared) const override;
  Tensor next(Rule& rule) const override;
  AdagradOptions options_;
};

struct AdadeltaOptions {
  double smoothing = 0.9;
  double epsilon = 1e-6;
  double weight_decay = 0;
  std::int64_t groups = 0;
};
// v = mean of g^2; d = sqrt(u + epsilon) / sqrt(v + epsilon) g; u = mean of d^2; p -= learning_rate d. Usual
// learning rate: 1. Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012.
class Adadelta final : public RuleOptimiser {
 public:
  explicit Adadelta(const Parameters& parameters, const AdadeltaOptions& options = {});

 private:
  Tensor next(Rule& rule) const override;
  AdadeltaOptions options_;
};

struct AdamaxOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  std::int64_t groups = 0;
};
// m as Adam's; u = max(beta2 u, |g| + epsilon); p -= learning_rate / (1 - beta1^t) m / u.
// Kingma, Ba, Adam: A Method for Stochastic Optimization, 2015, section 7.1.
class Adamax final : public RuleOptimiser {
 public:
  explicit Adamax(const Parameters& parameters, const AdamaxOptions& options = {});

 private:
  void share(Shared& shared) const override;
  Tensor next(Rule& rule) const override;
  AdamaxOptions options_;
};

struct NAdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum_decay = 4e-3;
  double weight_decay = 0;
  bool decoupled = false;
  std::int64_t groups = 0;
};
// Adam with Nesterov's momentum: mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2).
// Dozat, Incorporating Nesterov Momentum into Adam, 2016.
class NAdam final : public RuleOptimiser {
 public:
  explicit NAdam(const Parameters& parameters, const NAdamOptions& options = {});

 private:
  void share(Shared& shared) const override;
  Tensor next(Rule& rule) const override;
  NAdamOptions options_;
};

struct RAdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;
  std::int64_t groups = 0;
};
// Adam without its second moment until that has small variance, then with a factor that corrects it.
// Liu et al., On the Variance of the Adaptive Learning Rate and Beyond, 2020.
class RAdam final : public RuleOptimiser {
 public:
  explicit RAdam(const Parameters& parameters, const RAdamOptions& options = {});

 private:
  void share(Shared& shared) const override;
  Tensor next(Rule& rule) const override;
  RAdamOptions options_;
};

struct LionOptions {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;  // decoupled
  std::int64_t groups = 0;
};
// p -= learning_rate sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g. PyTorch has none.
// Chen et al., Symbolic Discovery of Optimization Algorithms, 2023.
class Lion final : public RuleOptimiser {
 public:
  explicit Lion(const Parameters& parameters, const LionOptions& options = {});

 private:
  Tensor next(Rule& rule) const override;
  LionOptions options_;
};

struct LambOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0;  // part of r
  std::int64_t groups = 0;
};
// r = m' / (sqrt(v') + epsilon) + weight_decay p with Adam's corrected moments;
// p -= learning_rate |p| / |r| r, with the norms of the whole parameter; their ratio is 1 where either is 0.
// PyTorch has none. You et al., Large Batch Optimization for Deep Learning, 2020.
class Lamb final : public RuleOptimiser {
 public:
  explicit Lamb(const Parameters& parameters, const LambOptions& options = {});

 private:
  void share(Shared& shared) const override;
  Tensor next(Rule& rule) const override;
  std::vector<Tensor> next_of_all(std::span<Rule> rules) const override;
  LambOptions options_;
};

struct AdanOptions {
  double beta1 = 0.98;
  double beta2 = 0.92;
  double beta3 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0;  // p = (p - change) / (1 + learning_rate weight_decay)
  std::int64_t groups = 0;
};
// With d = g - previous g (0 at first): m, v and n are the averages of g, d and (g + beta2 d)^2, corrected as
// Adam's; change = learning_rate (m + beta2 v) / (sqrt(n) + epsilon). PyTorch has none; betas are of the
// authors' code, 1 minus those of the paper. Xie et al., Adan: Adaptive Nesterov Momentum Algorithm, 2022.
class Adan final : public RuleOptimiser {
 public:
  explicit Adan(const Parameters& parameters, const AdanOptions& options = {});

 private:
  void share(Shared& shared) const override;
  Tensor next(Rule& rule) const override;
  AdanOptions options_;
};

struct AdafactorOptions {
  double decay = 0.8;              // v = t^-decay g^2 + (1 - t^-decay) v
  double epsilon1 = 1.1920929e-7;  // least second moment: its square
  double epsilon2 = 1e-3;          // least root mean square of p in the step
  double clip = 1;                 // of the root mean square of the change
  double weight_decay = 0;         // decoupled
  std::int64_t groups = 0;
};
// Adam's second moment as the product of one number per row and one per column, in memory of rows + columns.
// The rate is min(learning_rate, 1 / sqrt(t)) max(epsilon2, rms(p)). Usual learning rate: 0.01.
// Shazeer, Stern, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, 2018.
class Adafactor final : public RuleOptimiser {
 public:
  explicit Adafactor(const Parameters& parameters, const AdafactorOptions& options = {});

 private:
  void share(Shared& shared) const override;
  Tensor next(Rule& rule) const override;
  std::vector<Tensor> next_of_all(std::span<Rule> rules) const override;
  AdafactorOptions options_;
};

enum class MuonRate : std::uint8_t {
  original,        // times sqrt(max(1, out / in)): Jordan et al.
  match_adam_rms,  // times 0.2 sqrt(max(out, in)): Liu et al., Muon is Scalable for LLM Training, 2025
};
struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  int iterations = 5;
  double epsilon = 1e-7;
  MuonRate rate = MuonRate::original;
  double weight_decay = 0.1;  // decoupled
  std::int64_t groups = 0;
};
// For matrices: the momentum, made nearly orthogonal by Newton and Schulz's iteration with the coefficients
// 3.4445, -4.775, 2.0315. Kernels of convolutions count as [out, the rest]; vectors are refused: give them to
// another optimiser (CombinedOptimiser). float32, where PyTorch iterates in bfloat16. Takes about three
// dispatches per iteration, but two in all for up to 32 matrices of at most 16 rows and columns.
// Jordan et al., Muon: An Optimizer for Hidden Layers in Neural Networks, 2024.
class Muon final : public RuleOptimiser {
 public:
  explicit Muon(const Parameters& parameters, const MuonOptions& options = {});

 private:
  Result<> validate() const override;
  Tensor next(Rule& rule) const override;
  std::vector<Tensor> next_of_all(std::span<Rule> rules) const override;
  double scale_of(const Parameter& parameter) const;
  MuonOptions options_;
};

struct LbfgsOptions {
  std::int64_t history = 10;     // PyTorch: 100
  double least_gradient = 1e-7;  // a step with smaller gradients changes nothing
  double least_change = 1e-9;    // nor does one that would lower the loss by less
};
// One iteration of L-BFGS without a line search: p += learning_rate d, where d solves H d = -g for an
// approximation H of the second derivatives from the last steps. Give it the gradients of the whole data set.
// PyTorch's LBFGS with max_iter 1. Takes about two dispatches per step of history, but two in all for up to
// 1,024 numbers. No groups.
// Liu, Nocedal, On the Limited Memory BFGS Method for Large Scale Optimization, 1989.
class Lbfgs final : public Optimiser {
 public:
  explicit Lbfgs(const Parameters& parameters, const LbfgsOptions& options = {});
  Result<std::vector<Update>> step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                   const Tensor& active = Tensor()) const override;

 private:
  LbfgsOptions options_;
  Variable gradient_, direction_, moves_, changes_, inverses_, scale_, rate_, step_;
};

// Parameter groups: several optimisers, each with its own parameters, options and factor of the learning
// rate. Gradients are in the order of parameters(): those of the first part, then those of the second.
class CombinedOptimiser final : public Optimiser {
 public:
  struct Part {
    std::shared_ptr<const Optimiser> optimiser;
    double rate_factor = 1;
  };
  explicit CombinedOptimiser(std::vector<Part> parts);
  Result<std::vector<Update>> step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                   const Tensor& active = Tensor()) const override;

 private:
  std::vector<Part> parts_;
};

}  // namespace imprint::nn
