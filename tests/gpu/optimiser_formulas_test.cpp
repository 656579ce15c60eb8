// Ten steps of every optimiser against its published rule, written here in double precision with PyTorch's
// conventions (torch.optim of 2.11): epsilon is added after the square root except in Adadelta; Adamax adds
// it to |g|; momentum buffers are not damped; "decoupled" decay multiplies the parameter by 1 - rate * decay.
// Lion, LAMB and Adan, which PyTorch lacks, follow their papers. Muon iterates in double here, where PyTorch
// rounds to bfloat16.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>

#include "compute/nn/optimisers/optimiser.h"
#include "tests/gpu/session_test.h"
#include "tests/reference/updates.h"
#include "tests/unit/nn_check.h"

namespace imprint::nn {
namespace {

using Numbers = std::vector<double>;

// One parameter: [rows, columns], or [columns] where rows is 0.
struct Matrix {
  std::size_t rows, columns;
  Numbers p;
};
// Applies step t (from 1) with gradient g and learning rate `rate`.
using Rule = std::function<void(Matrix&, const Numbers& g, double rate, int t)>;
struct Case {
  std::string name;
  std::function<std::shared_ptr<Optimiser>(const Parameters&)> make;
  std::function<Rule()> rule;  // a fresh rule with its own moments, for one parameter
  double rate = 0.05;
  std::uint32_t dispatches = 2;
  bool matrices_only = false;
};

Numbers& sized(Numbers& moment, std::size_t size, double value = 0) {
  if (moment.empty()) moment.assign(size, value);
  return moment;
}

// A rule for each number by itself; `count` moments per number.
Rule by_element(std::size_t count, std::function<double(double p, double g, double rate, int t, double* m)> f,
                double initial = 0) {
  return [=, moments = Numbers()](Matrix& x, const Numbers& g, double rate, int t) mutable {
    sized(moments, count * x.p.size(), initial);
    for (std::size_t i = 0; i < x.p.size(); ++i)
      x.p[i] = f(x.p[i], g[i], rate, t, moments.data() + count * i);
  };
}

template <class O, class Options>
auto maker(Options options) {
  return [options](const Parameters& parameters) { return std::make_shared<O>(parameters, options); };
}

double norm_of(const Numbers& x) {
  double sum = 0;
  for (double value : x) sum += value * value;
  return std::sqrt(sum);
}

std::vector<Case> momentum_cases() {
  std::vector<Case> cases;
  for (const bool nesterov : {false, true})
    cases.push_back({nesterov ? "sgd_nesterov" : "sgd_momentum",
                     maker<Sgd>(SgdOptions{.momentum = 0.9, .nesterov = nesterov, .weight_decay = 0.01}),
                     [=] {
                       return by_element(1, [=](double p, double g, double rate, int, double* m) {
                         g += 0.01 * p;
                         m[0] = 0.9 * m[0] + g;
                         return p - rate * (nesterov ? g + 0.9 * m[0] : m[0]);
                       });
                     }});
  cases.push_back({"lion", maker<Lion>(LionOptions{.weight_decay = 0.1}), [] {
                     return by_element(1, [](double p, double g, double rate, int, double* m) {
                       const double c = 0.9 * m[0] + 0.1 * g;
                       m[0] = 0.99 * m[0] + 0.01 * g;
                       return p * (1 - rate * 0.1) - rate * (c > 0 ? 1 : c < 0 ? -1 : 0);
                     });
                   }});
  return cases;
}

std::vector<Case> squares_cases() {
  std::vector<Case> cases;
  for (const bool full : {false, true})
    cases.push_back(
        {full ? "rmsprop_centred_momentum" : "rmsprop",
         maker<RmsProp>(RmsPropOptions{
             .smoothing = 0.9, .momentum = full ? 0.9 : 0.0, .centred = full, .weight_decay = 0.02}),
         [=] {
           return by_element(3, [=](double p, double g, double rate, int, double* m) {
             g += 0.02 * p;
             m[0] = 0.9 * m[0] + 0.1 * g * g;
             if (full) m[1] = 0.9 * m[1] + 0.1 * g;
             const double d = g / (std::sqrt(m[0] - m[1] * m[1]) + 1e-8);
             m[2] = full ? 0.9 * m[2] + d : d;
             return p - rate * m[2];
           });
         },
         0.01});
  cases.push_back({"adagrad",
                   maker<Adagrad>(AdagradOptions{.rate_decay = 0.1, .initial = 0.2, .weight_decay = 0.02}),
                   [] {
                     return by_element(
                         1,
                         [](double p, double g, double rate, int t, double* m) {
                           g += 0.02 * p;
                           m[0] += g * g;
                           return p - rate / (1 + (t - 1) * 0.1) * g / (std::sqrt(m[0]) + 1e-10);
                         },
                         0.2);
                   }});
  cases.push_back({"adadelta", maker<Adadelta>(AdadeltaOptions{.weight_decay = 0.02}),
                   [] {
                     return by_element(2, [](double p, double g, double rate, int, double* m) {
                       g += 0.02 * p;
                       m[0] = 0.9 * m[0] + 0.1 * g * g;
                       const double d = std::sqrt(m[1] + 1e-6) / std::sqrt(m[0] + 1e-6) * g;
                       m[1] = 0.9 * m[1] + 0.1 * d * d;
                       return p - rate * d;
                     });
                   },
                   1});
  return cases;
}

std::vector<Case> adam_cases() {
  std::vector<Case> cases;
  for (const bool decoupled : {false, true})
    for (const bool amsgrad : {false, true})
      cases.push_back({std::string(decoupled ? "adam_w" : "adam") + (amsgrad ? "_amsgrad" : ""),
                       maker<Adam>(AdamOptions{
                           .beta2 = 0.9, .weight_decay = 0.1, .decoupled = decoupled, .amsgrad = amsgrad}),
                       [=] {
                         return by_element(3, [=](double p, double g, double rate, int t, double* m) {
                           if (decoupled)
                             p *= 1 - rate * 0.1;
                           else
                             g += 0.1 * p;
                           m[0] = 0.9 * m[0] + 0.1 * g;
                           m[1] = 0.9 * m[1] + 0.1 * g * g;
                           m[2] = std::fmax(m[2], m[1]);
                           const double v = amsgrad ? m[2] : m[1];
                           return p - rate / (1 - std::pow(0.9, t)) * m[0] /
                                          (std::sqrt(v / (1 - std::pow(0.9, t))) + 1e-8);
                         });
                       }});
  cases.push_back({"adamax", maker<Adamax>(AdamaxOptions{.weight_decay = 0.02}), [] {
                     return by_element(2, [](double p, double g, double rate, int t, double* m) {
                       g += 0.02 * p;
                       m[0] = 0.9 * m[0] + 0.1 * g;
                       m[1] = std::fmax(0.999 * m[1], std::fabs(g) + 1e-8);
                       return p - rate / (1 - std::pow(0.9, t)) * m[0] / m[1];
                     });
                   }});
  for (const bool decoupled : {false, true})
    cases.push_back({decoupled ? "nadam_decoupled" : "nadam",
                     maker<NAdam>(NAdamOptions{.weight_decay = 0.05, .decoupled = decoupled}), [=] {
                       return by_element(
                           3,
                           [=](double p, double g, double rate, int t, double* m) {
                             if (t == 1) m[1] = m[2] = 0;
                             if (decoupled)
                               p *= 1 - rate * 0.05;
                             else
                               g += 0.05 * p;
                             const double mu = 0.9 * (1 - 0.5 * std::pow(0.96, t * 4e-3)),
                                          later = 0.9 * (1 - 0.5 * std::pow(0.96, (t + 1) * 4e-3));
                             m[0] *= mu;
                             m[1] = 0.9 * m[1] + 0.1 * g;
                             m[2] = 0.999 * m[2] + 0.001 * g * g;
                             const double d = std::sqrt(m[2] / (1 - std::pow(0.999, t))) + 1e-8;
                             return p - rate * (1 - mu) / (1 - m[0]) * g / d -
                                    rate * later / (1 - m[0] * later) * m[1] / d;
                           },
                           1);
                     }});
  for (const double beta2 : {0.999, 0.9})
    cases.push_back({"radam", maker<RAdam>(RAdamOptions{.beta2 = beta2, .weight_decay = 0.05}), [=] {
                       return by_element(2, [=](double p, double g, double rate, int t, double* m) {
                         g += 0.05 * p;
                         m[0] = 0.9 * m[0] + 0.1 * g;
                         m[1] = beta2 * m[1] + (1 - beta2) * g * g;
                         const double c1 = 1 - std::pow(0.9, t), c2 = 1 - std::pow(beta2, t);
                         const double limit = 2 / (1 - beta2) - 1,
                                      rho = limit - 2 * t * std::pow(beta2, t) / c2;
                         if (rho <= 5) return p - rate * m[0] / c1;
                         const double r =
                             std::sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho));
                         return p - rate * m[0] / c1 * r * std::sqrt(c2) / (std::sqrt(m[1]) + 1e-8);
                       });
                     }});
  return cases;
}

Rule lamb_rule() {
  return [m = Numbers(), v = Numbers()](Matrix& x, const Numbers& g, double rate, int t) mutable {
    sized(m, x.p.size());
    sized(v, x.p.size());
    Numbers r(x.p.size());
    for (std::size_t i = 0; i < r.size(); ++i) {
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
      r[i] =
          m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-6) + 0.05 * x.p[i];
    }
    const double ratio = norm_of(x.p) > 0 && norm_of(r) > 0 ? norm_of(x.p) / norm_of(r) : 1;
    for (std::size_t i = 0; i < r.size(); ++i) x.p[i] -= rate * ratio * r[i];
  };
}

Rule adan_rule() {
  return by_element(4, [](double p, double g, double rate, int t, double* m) {
    const double d = t == 1 ? 0 : g - m[3];
    m[0] = 0.98 * m[0] + 0.02 * g;
    m[1] = 0.92 * m[1] + 0.08 * d;
    m[2] = 0.99 * m[2] + 0.01 * (g + 0.92 * d) * (g + 0.92 * d);
    m[3] = g;
    const double divisor = std::sqrt(m[2] / (1 - std::pow(0.99, t))) + 1e-8;
    return (p - rate * (m[0] / (1 - std::pow(0.98, t)) + 0.92 * m[1] / (1 - std::pow(0.92, t))) / divisor) /
           (1 + rate * 0.02);
  });
}

Rule adafactor_rule() {
  return [rows = Numbers(), columns = Numbers()](Matrix& x, const Numbers& g, double rate, int t) mutable {
    const double fresh = std::pow(t, -0.8), count = static_cast<double>(x.p.size());
    Numbers estimate(x.p.size());
    if (x.rows == 0) {
      sized(rows, x.p.size());
      for (std::size_t i = 0; i < x.p.size(); ++i) estimate[i] = rows[i] += fresh * (g[i] * g[i] - rows[i]);
    } else {
      sized(rows, x.rows);
      sized(columns, x.columns);
      Numbers row_mean(x.rows), column_mean(x.columns);
      for (std::size_t i = 0; i < x.p.size(); ++i) {
        row_mean[i / x.columns] += g[i] * g[i] / static_cast<double>(x.columns);
        column_mean[i % x.columns] += g[i] * g[i] / static_cast<double>(x.rows);
      }
      double mean = 0;
      for (std::size_t i = 0; i < x.rows; ++i)
        mean += (rows[i] += fresh * (row_mean[i] - rows[i])) / static_cast<double>(x.rows);
      for (std::size_t i = 0; i < x.columns; ++i) columns[i] += fresh * (column_mean[i] - columns[i]);
      for (std::size_t i = 0; i < x.p.size(); ++i)
        estimate[i] = rows[i / x.columns] * columns[i % x.columns] / std::fmax(mean, 1.1920929e-7);
    }
    Numbers change(x.p.size());
    for (std::size_t i = 0; i < x.p.size(); ++i)
      change[i] = g[i] / std::sqrt(std::fmax(estimate[i], 1.1920929e-7 * 1.1920929e-7));
    const double alpha = std::fmax(1e-3, norm_of(x.p) / std::sqrt(count)) * std::fmin(rate, 1 / std::sqrt(t));
    const double excess = std::fmax(1, norm_of(change) / std::sqrt(count));
    for (std::size_t i = 0; i < x.p.size(); ++i)
      x.p[i] = x.p[i] * (1 - rate * 0.01) - alpha / excess * change[i];
  };
}

Numbers product(const Numbers& a, const Numbers& b, std::size_t rows, std::size_t inner,
                std::size_t columns) {
  Numbers out(rows * columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      for (std::size_t k = 0; k < inner; ++k) out[i * columns + j] += a[i * inner + k] * b[k * columns + j];
  return out;
}

// The parameter is stored [in, out], as Linear's weight: rows are inputs.
Rule muon_rule(bool match) {
  return [=, m = Numbers()](Matrix& x, const Numbers& g, double rate, int) mutable {
    sized(m, x.p.size());
    // PyTorch's layout: [out, in].
    const std::size_t out = x.columns, in = x.rows;
    Numbers update(x.p.size());
    for (std::size_t i = 0; i < x.p.size(); ++i) {
      m[i] += 0.05 * (g[i] - m[i]);
      update[(i % x.columns) * in + i / x.columns] = g[i] + 0.95 * (m[i] - g[i]);
    }
    std::size_t rows = out, columns = in;
    const auto transposed = [&](const Numbers& a, std::size_t r, std::size_t c) {
      Numbers t(a.size());
      for (std::size_t i = 0; i < a.size(); ++i) t[(i % c) * r + i / c] = a[i];
      return t;
    };
    if (out > in) update = transposed(update, out, in), std::swap(rows, columns);
    const double size = std::fmax(norm_of(update), 1e-7);
    for (double& value : update) value /= size;
    for (int i = 0; i < 5; ++i) {
      const Numbers gram = product(update, transposed(update, rows, columns), rows, columns, rows);
      const Numbers squared = product(gram, gram, rows, rows, rows);
      Numbers mixed(gram.size());
      for (std::size_t k = 0; k < gram.size(); ++k) mixed[k] = -4.775 * gram[k] + 2.0315 * squared[k];
      const Numbers next = product(mixed, update, rows, rows, columns);
      for (std::size_t k = 0; k < update.size(); ++k) update[k] = 3.4445 * update[k] + next[k];
    }
    if (out > in) update = transposed(update, rows, columns);
    const double o = static_cast<double>(out), n = static_cast<double>(in);
    const double factor = match ? 0.2 * std::sqrt(std::fmax(o, n)) : std::sqrt(std::fmax(1, o / n));
    for (std::size_t i = 0; i < x.p.size(); ++i)
      x.p[i] = x.p[i] * (1 - rate * 0.1) - rate * factor * update[(i % x.columns) * in + i / x.columns];
  };
}

std::vector<Case> large_cases() {
  return {{"lamb", maker<Lamb>(LambOptions{.weight_decay = 0.05}), lamb_rule},
          {"adan", maker<Adan>(AdanOptions{.weight_decay = 0.02}), adan_rule},
          {"adafactor", maker<Adafactor>(AdafactorOptions{.weight_decay = 0.01}), adafactor_rule, 0.02},
          {"muon", maker<Muon>(MuonOptions{}), [] { return muon_rule(false); }, 0.02, 2, true},
          {"muon_match", maker<Muon>(MuonOptions{.rate = MuonRate::match_adam_rms}),
           [] { return muon_rule(true); }, 0.02, 2, true}};
}

void PrintTo(const Case& c, std::ostream* stream) { *stream << c.name; }

class OptimiserFormulas : public test::SessionTest, public testing::WithParamInterface<Case> {};

TEST_P(OptimiserFormulas, TenSteps) {
  const Case& c = GetParam();
  Parameters parameters;
  std::vector<Matrix> expected{{5, 3, test::waves(15, 0.8, 1)}, {3, 5, test::waves(15, 0.6, 2)}};
  if (!c.matrices_only) expected.push_back({0, 7, test::waves(7, 0.5, 3)});
  std::vector<Tensor> gradients;
  std::vector<Rule> rules;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::vector<float> values(expected[i].p.begin(), expected[i].p.end());
    const auto columns = static_cast<std::int64_t>(expected[i].columns),
               rows = static_cast<std::int64_t>(expected[i].rows);
    const Shape shape = rows == 0 ? Shape{columns} : Shape{rows, columns};
    parameters.add(text("p", i), Variable(text("p", i), shape, std::span<const float>(values)), rows > 0);
    gradients.push_back(input(text("g", i), shape));
    rules.push_back(c.rule());
  }
  const std::shared_ptr<Optimiser> optimiser = c.make(parameters);
  const Tensor rate = input("rate", {});
  const auto updates = optimiser->step(gradients, rate);
  ASSERT_TRUE(updates) << updates.error().message;

  std::vector<Tensor> inputs = gradients;
  inputs.push_back(rate);
  // A program takes the variables' initial content.
  reference::Bindings state;
  for (const Parameter& item : parameters)
    state[item.variable.name()] = reference::initial_values(item.variable);
  for (const Parameter& item : optimiser->state())
    state[item.variable.name()] = reference::initial_values(item.variable);
  Program program = compile({.name = c.name, .inputs = inputs, .updates = *updates});
  // A CPU runs each kernel by itself.
  if (!runtime().on_cpu()) {
    EXPECT_LE(program.stats().dispatches, c.dispatches);
  }
  for (int t = 1; t <= 10; ++t) {
    std::vector<HostTensor> hosts;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      Numbers g = test::waves(static_cast<std::int64_t>(expected[i].p.size()), 0.5, t + static_cast<int>(i));
      state[text("g", i)] = g;
      hosts.push_back(HostTensor::from({g.begin(), g.end()}, gradients[i].shape()));
      rules[i](expected[i], g, c.rate * (1 + 0.1 * t), t);
    }
    state["rate"] = {c.rate * (1 + 0.1 * t)};
    hosts.push_back(HostTensor::from({static_cast<float>(c.rate * (1 + 0.1 * t))}, {}));
    reference::run_updates(*updates, state);
    ASSERT_TRUE(session().run(program, hosts));
    const auto found = session().read(parameters.variables());
    ASSERT_TRUE(found);
    for (std::size_t i = 0; i < expected.size(); ++i)
      for (std::size_t k = 0; k < expected[i].p.size(); ++k) {
        const double wanted = expected[i].p[k];
        ASSERT_NEAR(state[text("p", i)][k], wanted, 2e-6) << "oracle: step " << t << " p" << i << " " << k;
        ASSERT_NEAR((*found)[i].floats[k], wanted, 2e-5) << "device: step " << t << " p" << i << " " << k;
      }
  }
}

// A second optimiser that takes over the state of the first continues to the same bits.
TEST_P(OptimiserFormulas, ResumesToTheSameBits) {
  struct Run {
    Parameters parameters, all;
    std::shared_ptr<Optimiser> optimiser;
    std::vector<Update> updates;
  };
  const Tensor gradient = input("g", {3, 5});
  const auto make = [&](const std::string& name, float value) {
    Run run;
    const std::vector<float> values(15, value);
    run.parameters.add("p", Variable(name, {3, 5}, std::span<const float>(values)), true);
    run.optimiser = GetParam().make(run.parameters);
    const auto updates = run.optimiser->step(std::span(&gradient, 1), 0.03f);
    EXPECT_TRUE(updates) << updates.error().message;
    if (updates) run.updates = *updates;
    run.all = run.parameters;
    run.all.add("state", run.optimiser->state());
    return run;
  };
  const Run first = make("first", 0.5f), second = make("second", -2);
  Program one = compile({.name = "first", .inputs = {gradient}, .updates = first.updates});
  Program two = compile({.name = "second", .inputs = {gradient}, .updates = second.updates});
  const auto step = [&](Program& program, int t) {
    const Numbers g = test::waves(15, 1, t);
    ASSERT_TRUE(session().run(program, std::vector{HostTensor::from({g.begin(), g.end()}, {3, 5})}));
  };
  for (int t = 0; t < 4; ++t) step(one, t);
  const auto saved = session().read(first.all.variables());
  ASSERT_TRUE(saved);
  for (std::size_t i = 0; i < saved->size(); ++i)
    ASSERT_TRUE(session().write(second.all[i].variable, (*saved)[i]));
  for (int t = 4; t < 7; ++t) step(one, t), step(two, t);
  const auto a = session().read(first.all.variables()), b = session().read(second.all.variables());
  ASSERT_TRUE(a);
  ASSERT_TRUE(b);
  for (std::size_t i = 0; i < a->size(); ++i) {
    EXPECT_EQ((*a)[i].floats, (*b)[i].floats) << first.all[i].name;
    EXPECT_EQ((*a)[i].ints, (*b)[i].ints) << first.all[i].name;
  }
}

class LbfgsSteps : public test::SessionTest {};

// Against its operations in double precision. The fifth step is not active.
TEST_F(LbfgsSteps, EqualTheOracle) {
  Parameters parameters;
  std::vector<Tensor> inputs;
  for (const std::int64_t columns : {3, 5}) {
    const std::string name = text("p", columns);
    parameters.add(name, Variable(name, {2, columns}, test::wave(2 * columns, 0.5f, 3)));
    inputs.push_back(input("g" + name, {2, columns}));
  }
  const Tensor active = input("active", {});
  const Lbfgs optimiser(parameters, {.history = 3});
  const auto updates = optimiser.step(inputs, 0.3f, active);
  ASSERT_TRUE(updates) << updates.error().message;
  // A program takes the initial content.
  Parameters all = parameters;
  all.add("state", optimiser.state());
  reference::Bindings state;
  for (const Parameter& item : all) state[item.variable.name()] = reference::initial_values(item.variable);
  inputs.push_back(active);
  Program program = compile({.name = "lbfgs", .inputs = inputs, .updates = *updates});
  if (!runtime().on_cpu()) {
    EXPECT_LE(program.stats().dispatches, 2u);
  }
  for (int t = 1; t <= 8; ++t) {
    std::vector<HostTensor> hosts;
    for (const Parameter& parameter : parameters) {  // of a bowl, so that the history grows
      Numbers g = state[parameter.variable.name()];
      for (std::size_t k = 0; k < g.size(); ++k) g[k] *= 1 + 0.25 * static_cast<double>(k);
      state["g" + parameter.name] = g;
      hosts.push_back(HostTensor::from({g.begin(), g.end()}, parameter.variable.shape()));
    }
    state["active"] = {t == 5 ? 0.0 : 1.0};
    hosts.push_back(HostTensor::from({t == 5 ? 0.0f : 1.0f}, {}));
    reference::run_updates(*updates, state);
    ASSERT_TRUE(session().run(program, hosts));
    const auto found = session().read(all.variables());
    ASSERT_TRUE(found);
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t k = 0; k < (*found)[i].floats.size(); ++k)
        ASSERT_NEAR((*found)[i].floats[k], state[all[i].variable.name()][k],
                    1e-4 * (1 + std::fabs(state[all[i].variable.name()][k])))
            << "step " << t << " " << all[i].name << " " << k;
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& part : {momentum_cases(), squares_cases(), adam_cases(), large_cases()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, OptimiserFormulas, testing::ValuesIn(all_cases()),
                         [](const auto& each) { return text(each.param.name, "_", each.index); });

// A kennel of three networks against three of one, where the middle one sits out every other step.
TEST(OptimiserRules, GroupsEqualSeparateRuns) {
  for (const Case& c : all_cases()) {
    if (c.name.starts_with("sgd") || c.name.starts_with("adam_") || c.name == "adam")
      continue;  // nn_optimiser_test
    SCOPED_TRACE(c.name);
    const auto make = [&](const Parameters& parameters, std::int64_t groups) -> std::shared_ptr<Optimiser> {
      if (c.name == "lamb") return std::make_shared<Lamb>(parameters, LambOptions{.groups = groups});
      if (c.name == "adafactor")
        return std::make_shared<Adafactor>(parameters, AdafactorOptions{.groups = groups});
      if (c.name == "nadam") return std::make_shared<NAdam>(parameters, NAdamOptions{.groups = groups});
      if (c.name == "radam") return std::make_shared<RAdam>(parameters, RAdamOptions{.groups = groups});
      if (c.name == "muon") return std::make_shared<Muon>(parameters, MuonOptions{.groups = groups});
      if (c.name == "adan")
        return std::make_shared<Adan>(parameters, AdanOptions{.weight_decay = 0.1, .groups = groups});
      return nullptr;
    };
    Parameters together;
    together.add("w", Variable::zeros("w", {3, 2, 3}), true);
    const auto kennel = make(together, 3);
    if (!kennel) continue;
    const Tensor g = input("g", {3, 2, 3});
    const auto updates = kennel->step(std::span(&g, 1), input("rate", {3}), input("active", {3}));
    ASSERT_TRUE(updates) << updates.error().message;
    reference::Bindings state{{"rate", {0.1, 0.2, 0.05}}, {"w", test::waves(18, 1, 2)}};
    Parameters own;
    own.add("v", Variable::zeros("v", {2, 3}), true);
    const Tensor h = input("h", {2, 3});
    const auto alone = make(own, 0);
    const auto single = alone->step(std::span(&h, 1), input("rate", {}));
    ASSERT_TRUE(single) << single.error().message;
    std::vector<reference::Bindings> states(3);
    const auto part = [](const Numbers& all, std::size_t network) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(6 * network);
      return Numbers(first, first + 6);
    };
    for (std::size_t n = 0; n < 3; ++n)
      states[n] = {{"rate", {state["rate"][n]}}, {"v", part(state["w"], n)}};
    for (int t = 0; t < 4; ++t) {
      state["g"] = test::waves(18, 1, t);
      state["active"] = {1, t % 2 == 0 ? 1.0 : 0.0, 1};
      for (std::size_t n = 0; n < 3; ++n) {
        states[n]["h"] = part(state["g"], n);
        if (state["active"][n] != 0) reference::run_updates(*single, states[n]);
      }
      reference::run_updates(*updates, state);
      for (std::size_t n = 0; n < 3; ++n)
        for (std::size_t k = 0; k < 6; ++k) EXPECT_NEAR(state["w"][6 * n + k], states[n]["v"][k], 1e-9);
    }
  }
}

TEST(OptimiserRules, CombinedTreatsEachPartByItsOwn) {
  Parameters matrices, vectors;
  matrices.add("w", Variable::zeros("w", {2, 3}), true);
  vectors.add("b", Variable::zeros("b", {3}));
  const CombinedOptimiser both({{std::make_shared<Muon>(matrices)},
                                {std::make_shared<Sgd>(vectors, SgdOptions{.momentum = 0.9}), 0.5}});
  EXPECT_EQ(both.parameters().size(), 2u);
  EXPECT_NE(both.state().find("0.momentum.w"), nullptr);
  EXPECT_NE(both.state().find("1.velocity.b"), nullptr);
  const std::vector<Tensor> gradients{input("g", {2, 3}), input("h", {3})};
  const auto updates = both.step(gradients, 0.1f);
  ASSERT_TRUE(updates) << updates.error().message;
  reference::Bindings state{
      {"g", test::waves(6)}, {"h", {1, 2, 3}}, {"w", Numbers(6, 0)}, {"b", Numbers(3, 0)}};
  reference::run_updates(*updates, state);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(state["b"][k], -0.05 * static_cast<double>(k + 1), 1e-7);
  EXPECT_NE(state["w"][0], 0);
  EXPECT_FALSE(both.step(std::span(gradients).first(1), 0.1f));
  const auto refused = Muon(vectors).step(std::span(gradients).last(1), 0.1f);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("found b [3], expected a matrix"), std::string::npos);
}

TEST(Clipping, ByValueAndAdaptively) {
  const std::vector<Tensor> gradients{input("g", {2, 3}), input("h", {3})};
  Parameters parameters;
  const std::vector<float> w{3, 0, 1, 4, 0, 1}, b{0, 0, 0};
  parameters.add("w", Variable("w", {2, 3}, std::span<const float>(w)), true);
  parameters.add("b", Variable("b", {3}, std::span<const float>(b)));
  const reference::Bindings bindings{{"g", {1, 1, 0.001, -2, 1, 0}}, {"h", {0.6, 0.8, 0}}};
  const auto by_value = clip_by_value(gradients, 0.7);
  ASSERT_TRUE(by_value);
  const Numbers limited = reference::evaluate((*by_value)[0], bindings);
  for (const auto& [k, wanted] : {std::pair<std::size_t, double>{0, 0.7}, {2, 0.001}, {3, -0.7}})
    EXPECT_NEAR(limited[k], wanted, 1e-7);
  // Units of w are its columns: norms 5, 0 and sqrt 2; those of the gradient sqrt 5, sqrt 2 and 0.001.
  const auto adaptive = clip_adaptively(gradients, parameters, {.factor = 0.1, .epsilon = 0.01});
  ASSERT_TRUE(adaptive) << adaptive.error().message;
  const Numbers weight = reference::evaluate((*adaptive)[0], bindings),
                bias = reference::evaluate((*adaptive)[1], bindings);
  EXPECT_NEAR(weight[0], 0.5 / std::sqrt(5.0), 1e-7);
  EXPECT_NEAR(weight[3], -1 / std::sqrt(5.0), 1e-7);
  EXPECT_NEAR(weight[1], 0.001 / std::sqrt(2.0), 1e-7);
  EXPECT_NEAR(weight[2], 0.001, 1e-9);
  EXPECT_NEAR(bias[1], 0.0008, 1e-7);
  EXPECT_FALSE(clip_adaptively(std::span(gradients).first(1), parameters));
}

}  // namespace
}  // namespace imprint::nn
