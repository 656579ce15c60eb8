#include "samples/pet/report.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace pet {
namespace {

// Rounds a share: 0.93, not 0.930000007152557.
double rounded(float share) { return std::round(static_cast<double>(share) * 1e4) / 1e4; }

nlohmann::ordered_json to_json(const Spread& spread) {
  return {{"median", std::round(spread.median * 10.0) / 10.0},
          {"p99", std::round(spread.p99 * 10.0) / 10.0},
          {"frames", spread.frames}};
}

}  // namespace

Spread spread(std::vector<float> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return static_cast<double>(
        values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)]);
  };
  return {at(0.5), at(0.99), values.size()};
}

std::optional<double> held_90(const std::vector<Check>& checks) {
  constexpr double kHeldSeconds = 15.0;
  const Check* first = nullptr;  // of those that hold it now
  for (const Check& check : checks) {
    if (check.success < 0.9f) {
      first = nullptr;
    } else if (!first) {
      first = &check;
    } else if (check.seconds >= first->seconds + kHeldSeconds - 1e-6) {
      return check.seconds;
    }
  }
  return std::nullopt;
}

std::optional<float> success_at(const std::vector<Check>& checks, double seconds) {
  std::optional<float> found;
  for (const Check& check : checks) {
    if (check.seconds <= seconds + 1e-6) found = check.success;
  }
  return found;
}

// Bars far above the 10 % of an untaught pet, and below what every seed reached. tests/learning holds
// stricter bars over ten seeds.
namespace {

struct Lesson {
  double seconds;
  float bar;
};

std::optional<Lesson> lesson(TeacherKind teacher) {
  switch (teacher) {
    case TeacherKind::demo:
      return Lesson{60.0, 0.8f};
    case TeacherKind::careless:
      return Lesson{120.0, 0.7f};
    case TeacherKind::praise:
      return Lesson{180.0, 0.6f};
    case TeacherKind::none:
    case TeacherKind::off:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> lesson_seconds(TeacherKind teacher) {
  const std::optional<Lesson> taught = lesson(teacher);
  return taught ? std::optional(taught->seconds) : std::nullopt;
}

std::optional<bool> learned(const Report& report) {
  const std::optional<Lesson> taught = lesson(report.teacher);
  if (!taught || report.learner != Learner::feedback) return std::nullopt;
  if (report.minibatches == 0 && report.feedbacks + report.demonstrations > 0)
    return false;  // taught, but not one minibatch ran
  if (report.minibatches > 0 && report.final_success >= taught->bar) return true;
  return report.simulated_seconds < taught->seconds ? std::nullopt : std::optional(false);
}

std::string to_json(const Report& report) {
  nlohmann::ordered_json json;
  json["device"] = report.device;
  json["driver"] = report.driver;
  json["seed"] = report.seed;
  json["teacher"] = name(report.teacher);
  json["learner"] = name(report.learner);
  json["replayed"] = report.replayed;
  json["mode"] = name(report.access);
  json["pets"] = report.pets;
  json["budget_us"] = report.budget_us;
  json["slice_us"] = report.slice_us;
  json["simulated_seconds"] = report.simulated_seconds;
  json["wall_seconds"] = std::round(report.wall_seconds * 100.0) / 100.0;
  json["frames"] = report.frames;
  json["checks"] = nlohmann::ordered_json::array();
  json["ghost_checks"] = nlohmann::ordered_json::array();
  for (const Check& check : report.checks) {
    json["checks"].push_back({check.seconds, rounded(check.success)});
    if (check.ghost) json["ghost_checks"].push_back({check.seconds, rounded(*check.ghost)});
  }
  json["per_trick"] = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < kTrickCount; ++i) {
    json["per_trick"][name(kTricks[i])] =
        report.checks.empty() ? 0.0 : rounded(report.checks.back().per_trick[i]);
  }
  json["final_success"] = rounded(report.final_success);
  if (report.pets > 1) {
    json["final_per_pet"] = nlohmann::ordered_json::array();
    for (const float success : report.final_per_pet) json["final_per_pet"].push_back(rounded(success));
  }
  json["held_90_at_s"] =
      report.held_90_at_s ? nlohmann::ordered_json(*report.held_90_at_s) : nlohmann::ordered_json(nullptr);
  const std::optional<bool> judged = learned(report);
  json["learned"] = judged ? nlohmann::ordered_json(*judged) : nlohmann::ordered_json(nullptr);
  json["decisions"] = report.decisions;
  json["feedbacks"] = report.feedbacks;
  json["demonstrations"] = report.demonstrations;
  json["minibatches"] = report.minibatches;
  json["parameters"] = report.parameters;
  json["infer_dispatches"] = report.infer_dispatches;
  json["learn_dispatches"] = report.learn_dispatches;
  json["infer_gpu_us"] = to_json(report.infer_gpu_us);
  json["learn_gpu_us"] = to_json(report.learn_gpu_us);
  json["gpu_us"] = to_json(report.gpu_us);
  json["frame_cpu_us"] = to_json(report.frame_cpu_us);
  json["slices"] = report.slices;
  json["over_budget_frames"] = report.over_budget_frames;
  json["frame_thread_compiles"] = report.frame_thread_compiles;
  json["frame_thread_allocations"] = report.frame_thread_allocations;
  json["frame_thread_waits"] = report.frame_thread_waits;
  json["late_actions"] = report.late_actions;
  json["weights_hash"] = report.weights_hash;
  if (!report.save_problem.empty()) json["save_problem"] = report.save_problem;
  return json.dump(2) + "\n";
}

}  // namespace pet
