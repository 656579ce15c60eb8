#include "tests/learning/careless_person.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <imprint/imprint.hpp>
#include <numbers>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/must.h"
#include "tools/trials/environments.h"

namespace imprint::trials {
namespace {

constexpr std::uint32_t kNumbers = 40, kCommands = 8, kActions = 12, kMostTries = 8, kProbes = 25;
constexpr double kFrames = 60;  // per second

using Seen = std::array<float, kNumbers>;

class Lesson {
 public:
  explicit Lesson(const CarelessPerson& person) : draws_(person.seed, 7), situations_(person.situations) {
    for (std::uint32_t& answer : answers_) answer = below(kActions);
  }
  std::uint32_t below(std::uint32_t count) {
    return std::min(count - 1, static_cast<std::uint32_t>(draws_.between(0, count)));
  }
  bool happens(double probability) { return draws_.between(0, 1) < probability; }
  double between(double low, double high) { return draws_.between(low, high); }
  Seen look() {
    Seen seen;
    for (float& number : seen) {
      const double radius = std::sqrt(-2 * std::log(1 - draws_.between(0, 1)));
      number = static_cast<float>(radius * std::cos(2 * std::numbers::pi * draws_.between(0, 1)));
    }
    return seen;
  }
  // first: the number whose sign, with those after it, makes the situation.
  std::uint32_t cell(std::uint32_t command, const Seen& seen, std::uint32_t first = 0) const {
    std::uint32_t situation = 0;
    for (std::uint32_t bit = 0; (2u << bit) <= situations_; ++bit)
      situation = 2 * situation + (seen[(first + bit) % kNumbers] > 0 ? 1 : 0);
    return command * situations_ + situation;
  }
  std::uint32_t cells() const { return kCommands * situations_; }
  std::uint32_t right(std::uint32_t command, const Seen& seen) const { return answers_[cell(command, seen)]; }

 private:
  Draws draws_;
  std::uint32_t situations_;
  std::array<std::uint32_t, std::size_t{kCommands} * 4> answers_{};
};

struct Word {
  double time_s = 0;
  float value = 0;
  std::uint32_t command = 0, action = 0;
  Seen seen{};
};

// Weights of 1 and the observation: (X'X + lambda I) w = X'y by Cholesky's decomposition.
class Ridge {
 public:
  static constexpr std::size_t kWidth = kNumbers + 1;
  explicit Ridge(double lambda) {
    for (std::size_t i = 0; i < kWidth; ++i) square_[i * kWidth + i] = lambda;
  }
  void add(const Seen& seen, double target) {
    std::array<double, kWidth> x{1};
    std::ranges::copy(seen, x.begin() + 1);
    for (std::size_t i = 0; i < kWidth; ++i) {
      weights_[i] += target * x[i];
      for (std::size_t j = 0; j < kWidth; ++j) square_[i * kWidth + j] += x[i] * x[j];
    }
  }
  void solve() {
    std::vector<double>& a = square_;
    for (std::size_t j = 0; j < kWidth; ++j)
      for (std::size_t i = j; i < kWidth; ++i) {
        double left = a[i * kWidth + j];
        for (std::size_t k = 0; k < j; ++k) left -= a[i * kWidth + k] * a[j * kWidth + k];
        a[i * kWidth + j] = i == j ? std::sqrt(left) : left / a[j * kWidth + j];
      }
    for (std::size_t i = 0; i < kWidth; ++i) {
      for (std::size_t k = 0; k < i; ++k) weights_[i] -= a[i * kWidth + k] * weights_[k];
      weights_[i] /= a[i * kWidth + i];
    }
    for (std::size_t i = kWidth; i-- > 0;) {
      for (std::size_t k = i + 1; k < kWidth; ++k) weights_[i] -= a[k * kWidth + i] * weights_[k];
      weights_[i] /= a[i * kWidth + i];
    }
  }
  double at(const Seen& seen) const {
    double sum = weights_[0];
    for (std::size_t i = 0; i < kNumbers; ++i) sum += weights_[i + 1] * double{seen[i]};
    return sum;
  }

 private:
  std::vector<double> square_ = std::vector<double>(kWidth * kWidth);
  std::array<double, kWidth> weights_{};
};

using Probe = std::pair<std::uint32_t, Seen>;

double ridge_score(const Lesson& lesson, std::span<const Word> words, std::span<const Probe> probes) {
  std::vector<Ridge> models(std::size_t{kCommands} * kActions, Ridge(1));
  for (const Word& word : words)
    models[word.command * kActions + word.action].add(word.seen, double{word.value});
  for (Ridge& model : models) model.solve();
  std::uint32_t right = 0;
  for (const auto& [command, seen] : probes) {
    std::array<double, kActions> values{};
    for (std::uint32_t a = 0; a < kActions; ++a) values[a] = models[command * kActions + a].at(seen);
    const auto best = std::ranges::max_element(values) - values.begin();
    right += static_cast<std::uint32_t>(best) == lesson.right(command, seen) ? 1 : 0;
  }
  return right / static_cast<double>(probes.size());
}

// Answers by the words, if the number whose sign matters is this one.
struct Hypothesis {
  std::vector<double> chances;  // of each cell's actions to be the right one
  double evidence = 0;          // log
};

Hypothesis hypothesis(const Lesson& lesson, std::span<const Word> words, std::uint32_t number, double step) {
  Hypothesis found;
  std::vector<double>& odds = found.chances;
  odds.assign(std::size_t{lesson.cells()} * kActions, 0);
  for (const Word& word : words)
    odds[lesson.cell(word.command, word.seen, number) * kActions + word.action] +=
        word.value > 0 ? step : -step;
  for (auto cell = odds.begin(); cell != odds.end(); cell += kActions) {
    const double most = *std::max_element(cell, cell + kActions);
    double sum = 0;
    for (std::uint32_t a = 0; a < kActions; ++a) sum += cell[a] = std::exp(cell[a] - most);
    for (std::uint32_t a = 0; a < kActions; ++a) cell[a] /= sum;
    found.evidence += most + std::log(sum / kActions);
  }
  return found;
}

// The best answers from the same words by Bayes' rule, for an observer who knows that the sign of one number
// matters but not of which, and the share of wrong words. All that are equally likely share the answer.
double bayes_score(const Lesson& lesson, std::span<const Word> words, std::span<const Probe> probes,
                   double wrong) {
  const double step = std::log((1 - std::max(wrong, 1e-6)) / std::max(wrong, 1e-6));
  std::vector<Hypothesis> all;
  for (std::uint32_t number = 0; number < kNumbers; ++number)
    all.push_back(hypothesis(lesson, words, number, step));
  const double most = std::ranges::max_element(all, {}, &Hypothesis::evidence)->evidence;
  double right = 0;
  for (const auto& [command, seen] : probes) {
    std::array<double, kActions> chances{};
    for (std::uint32_t number = 0; number < kNumbers; ++number) {
      const double weight = std::exp(all[number].evidence - most);
      const std::size_t first = std::size_t{lesson.cell(command, seen, number)} * kActions;
      for (std::uint32_t a = 0; a < kActions; ++a) chances[a] += weight * all[number].chances[first + a];
    }
    const double best = std::ranges::max(chances);
    const auto equals = std::ranges::count_if(chances, [&](double one) { return one > best * (1 - 1e-9); });
    if (chances[lesson.right(command, seen)] > best * (1 - 1e-9)) right += 1.0 / static_cast<double>(equals);
  }
  return right / static_cast<double>(probes.size());
}

game::Context open_cpu() {
  game::StandaloneDesc device;
  device.device = "cpu";
  imp_limits limits = imp_limits_init();
  limits.gpu_us_per_frame = 1'000'000'000;
  limits.memory_cap_bytes = std::uint64_t{1} << 32;
  return must(game::Context::create_standalone(game::Library(imp_get_api), device, imp_host_init(), limits));
}

game::BrainDesc describe(std::uint64_t seed, std::uint32_t agents) {
  game::BrainDesc desc;
  desc.observation_count = kNumbers;
  desc.branch_sizes = {kActions};
  desc.goal_count = kCommands;
  desc.agents_per_brain = agents;
  desc.seed = seed;
  return desc;
}

double learner_score(const Lesson& lesson, std::span<const Probe> probes, std::uint64_t seed,
                     const std::string& weights) {
  game::Context context = open_cpu();
  game::BrainDesc desc = describe(seed, static_cast<std::uint32_t>(probes.size()));
  desc.learner = game::NoLearner();
  desc.action_latency_frames = 1;
  game::Brain brain = must(context.create_brain(desc));
  must(brain.load_weights(weights.c_str()));
  std::vector<game::Agent> agents;
  for (const auto& [command, seen] : probes) {
    agents.push_back(must(brain.create_agent()));
    must(agents.back().set_mode(game::Mode::inference));
    must(agents.back().set_goal(command));
  }
  must(context.warmup());
  std::uint32_t right = 0;
  for (std::uint64_t frame = 1; frame <= 2; ++frame) {
    must(context.frame_begin(frame, static_cast<double>(frame) / kFrames));
    for (std::size_t i = 0; i < probes.size(); ++i) {
      if (frame == 1) {
        must(agents[i].observe(probes[i].second));
        continue;
      }
      const game::Made<game::Action> made = agents[i].act();
      must(made.outcome);
      right += made.value.branches[0] == lesson.right(probes[i].first, probes[i].second) ? 1 : 0;
    }
    must(context.submit());
    must(context.frame_end());
  }
  return right / static_cast<double>(probes.size());
}

// The person and the creature, frame by frame.
class Teaching {
 public:
  explicit Teaching(const CarelessPerson& person) : person_(person), lesson_(person), context_(open_cpu()) {
    game::BrainDesc desc = describe(person.seed, 1);
    game::FeedbackOptions options;
    options.credit_delay_s = 1;  // the middle of this person's reaction times
    desc.learner = options;
    brain_ = must(context_.create_brain(desc));
    agent_ = must(brain_.create_agent());
    must(context_.warmup());
  }

  std::vector<CarelessCheck> run() {
    std::vector<CarelessCheck> checks;
    const auto frames = static_cast<std::uint64_t>(person_.minutes * 60 * kFrames);
    for (frame_ = 1; frame_ <= frames; ++frame_) {
      must(context_.frame_begin(frame_, now()));
      if (frame_ == 1 && person_.demonstrates) demonstrate();
      creature();
      say();
      must(context_.submit());
      must(context_.frame_end());
      if (checks.size() < person_.checks.size() && now() >= person_.checks[checks.size()] * 60 - 1e-9)
        checks.push_back(check());
    }
    return checks;
  }

 private:
  double now() const { return static_cast<double>(frame_) / kFrames; }

  void demonstrate() {
    for (std::uint32_t cell = 0; cell < lesson_.cells(); ++cell) {
      const std::uint32_t command = cell / person_.situations;
      Seen seen = lesson_.look();
      while (lesson_.cell(command, seen) != cell) seen = lesson_.look();
      game::Demonstration shown;
      shown.observation = seen;
      shown.goal = command;
      shown.branches = {lesson_.right(command, seen)};
      must(agent_.demonstrate(shown));
    }
  }

  void creature() {
    if (asked_) {
      const game::Made<game::Action> made = agent_.act();
      must(made.outcome);
      if (made.outcome.ready()) {
        asked_ = false;
        next_s_ = now() + person_.action_s;
        judge(made.value.branches[0]);
      }
    }
    if (asked_ || now() < next_s_) return;
    if (right_ || tries_ == kMostTries) {
      command_ = lesson_.below(kCommands);
      must(agent_.set_goal(command_));
      tries_ = 0;
      right_ = false;
    }
    seen_ = lesson_.look();
    must(agent_.observe(seen_));
    asked_ = true;
  }

  void judge(std::uint32_t action) {
    right_ = action == lesson_.right(command_, seen_);
    ++tries_;
    const bool speaks = lesson_.happens(0.5), errs = lesson_.happens(person_.wrong);
    const double late_s = lesson_.between(0.5, 1.5);
    if (speaks) pending_.push_back({now() + late_s, right_ != errs ? 1.0f : -1.0f, command_, action, seen_});
  }

  void say() {
    for (std::size_t i = 0; i < pending_.size();) {
      if (pending_[i].time_s > now()) {
        ++i;
        continue;
      }
      must(agent_.feedback(pending_[i].value, now()));
      words_.push_back(pending_[i]);
      pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  CarelessCheck check() {
    const std::string path = (std::filesystem::temp_directory_path() /
                              ("imprint-careless-" + std::to_string(person_.seed) + "-" +
                               std::to_string(std::chrono::steady_clock::now().time_since_epoch().count())))
                                 .string();
    must(brain_.save(path.c_str()));
    must(context_.drain(60'000));
    must(brain_.save_status());
    std::vector<Probe> probes;
    Lesson eyes(person_);  // looks elsewhere than the lesson does
    for (int skipped = 0; skipped < 100'000; ++skipped) (void)eyes.below(2);
    for (std::uint32_t i = 0; i < kCommands * kProbes; ++i) probes.emplace_back(i % kCommands, eyes.look());
    CarelessCheck found;
    found.minutes = now() / 60;
    found.learner = learner_score(lesson_, probes, person_.seed, path);
    (void)std::remove(path.c_str());
    found.ridge = ridge_score(lesson_, words_, probes);
    found.bayes = bayes_score(lesson_, words_, probes, person_.wrong);
    found.reliability = double{must(brain_.stats()).reliability};
    found.words = static_cast<std::uint32_t>(words_.size());
    found.praise =
        static_cast<double>(std::ranges::count_if(words_, [](const Word& w) { return w.value > 0; })) /
        static_cast<double>(std::max<std::size_t>(words_.size(), 1));
    return found;
  }

  CarelessPerson person_;
  Lesson lesson_;
  game::Context context_;
  game::Brain brain_;
  game::Agent agent_;
  std::uint64_t frame_ = 0;
  std::vector<Word> pending_, words_;
  Seen seen_{};
  std::uint32_t command_ = 0, tries_ = kMostTries;
  bool asked_ = false, right_ = false;
  double next_s_ = 0;
};

}  // namespace

std::vector<CarelessCheck> teach_carelessly(const CarelessPerson& person) { return Teaching(person).run(); }

std::vector<CarelessRow> careless_rows() {
  CarelessPerson careless, right, teacher;
  right.wrong = 0;
  teacher.demonstrates = true;
  return {{"careless-person", "words, one in five wrong", careless, {0.4, 0.6}},
          {"right-person", "words, none wrong", right, {0.6, 0.85}},
          {"careless-teacher", "a demonstration each, then words, one in five wrong", teacher, {0, 0.75}}};
}

}  // namespace imprint::trials
