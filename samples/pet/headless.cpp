#include "samples/pet/headless.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

#include "samples/pet/director.h"
#include "samples/pet/run.h"

namespace pet {
namespace {

std::string bar(float share, int width) {
  const int full = static_cast<int>(share * static_cast<float>(width) + 0.5f);
  return std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(width - full), '.');
}

int whole_percent(float share) { return static_cast<int>(share * 100.0f + 0.5f); }

void print_head(bool ghost) {
  std::printf("%7s", "time");
  for (const Cue cue : kTricks) std::printf("  %-15s", name(cue));
  std::printf("  %-15s%s\n", "all", ghost ? "  ghost" : "");
}

void print_check(const Check& check) {
  std::printf("%5.0f s", check.seconds);
  for (const float success : check.per_trick)
    std::printf("  %s %3d%%", bar(success, 10).c_str(), whole_percent(success));
  std::printf("  %s %3d%%", bar(check.success, 10).c_str(), whole_percent(check.success));
  if (check.ghost) std::printf("  %4d%%", whole_percent(*check.ghost));
  std::printf("\n");
  std::fflush(stdout);
}

// Says how many frames the median is of: few frames mean little.
std::string cost(const char* what, const Spread& us) {
  char text[96];
  if (us.frames == 0)
    std::snprintf(text, sizeof text, "%s not measured", what);
  else
    std::snprintf(text, sizeof text, "%s %.0f us (median of %zu frame%s with it)", what, us.median, us.frames,
                  us.frames == 1 ? "" : "s");
  return text;
}

void print_end(const Report& report) {
  const char* whom = report.pets > 1 ? "The pets" : "The pet";
  std::printf("\n%s %s %d %% of the commands after %.0f simulated seconds (%.1f s of real time)", whom,
              report.pets > 1 ? "follow" : "follows", whole_percent(report.final_success),
              report.simulated_seconds, report.wall_seconds);
  if (report.held_90_at_s) std::printf("; 90 %% or more since %.0f s", *report.held_90_at_s);
  std::printf(".\n%llu decisions, %llu signals, %llu demonstrations, %llu minibatches.\n",
              static_cast<unsigned long long>(report.decisions),
              static_cast<unsigned long long>(report.feedbacks),
              static_cast<unsigned long long>(report.demonstrations),
              static_cast<unsigned long long>(report.minibatches));
  std::printf(
      "%s per frame: %s; %s; both together %.0f us in 99 %% of %zu measured frames. CPU time of the calls: "
      "%.0f us "
      "(median).\n",
      report.access == Access::cpu ? "CPU" : "GPU", cost("infer", report.infer_gpu_us).c_str(),
      cost("learn", report.learn_gpu_us).c_str(), report.gpu_us.p99, report.gpu_us.frames,
      report.frame_cpu_us.median);
  std::printf("weights %s\n", report.weights_hash.c_str());
  const std::optional<double> needed =
      report.learner == Learner::feedback ? lesson_seconds(report.teacher) : std::nullopt;
  const std::optional<bool> judged = learned(report);
  if (judged == false && report.minibatches == 0)
    std::printf("%s learned nothing: not one minibatch ran. Give it a larger --budget-us.\n", whom);
  else if (judged == false)
    std::printf("%s did not learn what this teacher can teach.\n", whom);
  else if (needed && !judged)
    std::printf("Too short to tell whether %s: with this teacher it takes about %.0f simulated seconds.\n",
                report.pets > 1 ? "they learn" : "it learns", *needed);
}

Result<> write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return Error{"cannot write " + path};
  return {};
}

std::string full_path(const std::string& file) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(file, error);
  return error ? file : path.lexically_normal().string();
}

// Joins the problems of a game. A file that cannot be written must not stop the others.
class Problems {
 public:
  void add(const std::string& problem) {
    if (!problem.empty()) all_ += (all_.empty() ? "" : "; ") + problem;
  }
  void write(const char* what, const std::string& file, const Result<>& written) {
    if (!written) return add(written.error().message);
    if (!file.empty()) std::printf("%s: %s\n", what, full_path(file).c_str());
  }
  const std::string& all() const { return all_; }

 private:
  std::string all_;
};

// Plays until the game is finished. The value: seconds of real time.
Result<double> play(Run& run, Director* director) {
  const auto start = std::chrono::steady_clock::now();
  std::size_t printed = 0;
  while (!run.game().finished()) {
    PET_CHECK(director ? director->frame(run) : run.frame());
    for (; printed < run.game().checks().size(); ++printed) print_check(run.game().checks()[printed]);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<int> run_headless(const Options& options) {
  std::unique_ptr<Director> director;
  std::unique_ptr<VulkanHost> own_host;
  if (!options.picture.empty() || !options.frames.empty()) {
    PET_ASSIGN(director, Director::create(options));
  } else if (options.access != Access::cpu) {
    VulkanOptions vulkan;
    vulkan.device = options.device;
    vulkan.validation = options.validation;
    PET_ASSIGN(own_host, VulkanHost::create(vulkan));
  }
  VulkanHost* host = director ? &director->host() : own_host.get();  // null: nothing is drawn, the CPU learns

  PET_ASSIGN(const auto run, Run::create(host, options, [](const std::string& message) {
               std::fprintf(stderr, "imprint: %s\n", message.c_str());
             }));
  std::printf("%s, seed %llu, teacher %s, learner %s, %u %s, %s\n\n",
              host ? host->properties().deviceName : "no GPU", static_cast<unsigned long long>(options.seed),
              name(options.teacher), name(options.learner), options.kennel,
              options.kennel == 1 ? "pet" : "pets", name(options.access));
  print_head(run->game().ghost() != nullptr);

  PET_ASSIGN(const double wall_seconds, play(*run, director.get()));
  PET_ASSIGN(Report report, run->finish());
  report.wall_seconds = wall_seconds;
  print_end(report);
  Problems problems;
  problems.add(report.save_problem);
  problems.add(report.log_problem);
  if (!options.report.empty())
    problems.write("figures", options.report, write_text(options.report, to_json(report)));
  if (director) problems.write("picture", options.picture, director->write(run->game(), report));
  if (!options.frames.empty()) std::printf("frames: %s\n", full_path(options.frames).c_str());
  if (!problems.all().empty()) return Error{problems.all()};
  if (host && host->validation_messages() > 0)
    return Error{"validation layer: found " + std::to_string(host->validation_messages()) +
                 " messages, expected 0"};
  return learned(report) == false ? 1 : 0;
}

}  // namespace pet
