// The PPO table: published settings of known problems, with bars for every seed. Exit status 1 when a bar is
// missed, 2 after an error.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "engine-bridge/own/standalone.h"
#include "tools/trials/ppo_trial.h"

namespace {

using imprint::trials::Curve;
using imprint::trials::Setting;
using MakeTrial = decltype(&imprint::trials::make_trial);
using Curves = std::vector<Curve>;

template <class T>
T must(imprint::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

struct Bar {
  std::string what;
  std::function<bool(const Curve&)> meets;
  double share = 0.9;  // share of seeds that must meet it
};

struct Row {
  std::string key;
  Setting setting;
  std::vector<Bar> bars;
  double mean_at_end = -1e9;  // of all seeds' greedy means
  MakeTrial make_trial = imprint::trials::make_trial;
  bool resident() const { return make_trial == imprint::trials::make_resident_trial; }
};

Bar reaches(double greedy, std::int64_t steps) {
  return {"greedy >= " + std::to_string(static_cast<int>(greedy)) + " within " +
              std::to_string(steps / 1000) + "k steps",
          [=](const Curve& curve) { return curve.reached(greedy) >= 0 && curve.reached(greedy) <= steps; }};
}

Bar ends(double greedy, double share = 0.9) {
  return {"greedy >= " + std::to_string(static_cast<int>(greedy)) + " at the end",
          [=](const Curve& curve) { return curve.checks.back().greedy >= greedy; }, share};
}

Bar trains(double returned) {
  return {"last 100 episodes of training >= " + std::to_string(static_cast<int>(returned)),
          [=](const Curve& curve) { return curve.checks.back().training >= returned; }};
}

std::vector<Row> rows() {
  using namespace imprint::trials;
  Setting defaults = default_cart_pole();
  defaults.enough = 475;
  defaults.total_steps = 40'960;
  Setting crowd = crowd_cart_pole();
  crowd.enough = 475;
  constexpr double kNoMean = -1e9;
  const auto resident = make_resident_trial;
  return {{"cartpole", zoo_cart_pole(), {reaches(475, 50'000), ends(490, 1)}},
          {"cartpole-resident", zoo_cart_pole(), {reaches(475, 50'000), ends(475)}, kNoMean, resident},
          {"cartpole-default", defaults, {reaches(475, 40'960)}},
          {"cartpole-cleanrl", cleanrl_cart_pole(), {trains(495)}},
          {"cartpole-crowd", crowd, {reaches(475, 1'200'000)}},
          {"cartpole-crowd-resident", large_crowd_cart_pole(), {ends(475)}, kNoMean, resident},
          {"acrobot", zoo_acrobot(), {reaches(-100, 100'000), ends(-85)}},
          {"mountaincar", zoo_mountain_car(), {ends(-130)}},
          {"pendulum", zoo_pendulum(), {ends(-260, 1)}, -210},
          {"pendulum-resident", zoo_pendulum(), {ends(-260, 1)}, -210, resident}};
}

std::string decimals(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// A row of the file that --json writes.
struct Written {
  std::string problem, world, measured, bar, seconds;
};

// Puts the rows into a file of figures (compute/docs/figures): a row of the same problem and world is
// replaced, others stay.
void write_rows(const std::string& path, const std::string& device, const std::string& driver,
                const std::vector<Written>& rows) {
  nlohmann::ordered_json file;
  if (std::filesystem::exists(path)) {
    const auto bytes = must(imprint::read_file(path));
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    file = nlohmann::ordered_json::parse(text, text + bytes.size());
  } else {
    file = {{"device", device},
            {"driver", driver},
            {"command", "tools/learning ppo --json FILE"},
            {"left", 3},
            {"columns", {"problem, steps", "world on", "measured", "bar, seeds", "s"}},
            {"rows", nlohmann::ordered_json::array()}};
  }
  for (const Written& row : rows) {
    const nlohmann::ordered_json cells = {row.problem, row.world, row.measured, row.bar, row.seconds};
    const auto same = std::ranges::find_if(
        file["rows"], [&](const auto& old) { return old[0] == cells[0] && old[1] == cells[1]; });
    if (same == file["rows"].end())
      file["rows"].push_back(cells);
    else
      *same = cells;
  }
  const std::string text = file.dump(1) + "\n";
  const auto saved = imprint::write_file_atomic(path, std::as_bytes(std::span(text)));
  if (!saved) throw std::runtime_error(saved.error().message);
}

// Whether all of the row's bars are met. Adds the row to `written`.
bool run(imprint::Session& session, const Row& row, std::uint64_t first_seed, std::uint64_t seeds,
         bool curve_too, std::vector<Written>& written) {
  std::printf("%s, world on the %s: %lld steps, %lld agents\n", row.setting.name.c_str(),
              row.resident() ? "device" : "CPU", static_cast<long long>(row.setting.total_steps),
              static_cast<long long>(row.setting.options.agents));
  Curves curves;
  double mean = 0, seconds = 0, updating = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    curves.push_back(must(must(row.make_trial(session, row.setting, seed))->learn()));
    const Curve& curve = curves.back();
    std::printf("  seed %2llu: at %lld steps greedy %.1f, training %.1f; best greedy %.1f; %.2f s learning\n",
                static_cast<unsigned long long>(seed), static_cast<long long>(curve.checks.back().steps),
                curve.checks.back().greedy, curve.checks.back().training, curve.best(), curve.seconds);
    for (const imprint::trials::Check& check : curve.checks)
      if (curve_too)
        std::printf("    %8lld %8.1f %8.1f\n", static_cast<long long>(check.steps), check.greedy,
                    check.training);
    std::fflush(stdout);
    mean += curve.checks.back().greedy / static_cast<double>(seeds);
    seconds += curve.seconds / static_cast<double>(seeds);
    updating += curve.updating / static_cast<double>(seeds);
  }
  bool passed = true;
  Written out{imprint::text(row.setting.name, ", ", row.setting.total_steps, " steps"),
              row.resident() ? "GPU" : "CPU", "", "", decimals(seconds, 2)};
  const auto line = [&](const std::string& what, const std::string& found, const std::string& bar, bool met) {
    std::printf("  %-44s %-14s %s\n", what.c_str(), found.c_str(), met ? "met" : "MISSED");
    passed = passed && met;
    out.measured += (out.measured.empty() ? "" : "; ") + what + ": " + found;
    out.bar += (out.bar.empty() ? "" : "; ") + bar;
  };
  for (const Bar& bar : row.bars) {
    const auto met = std::ranges::count_if(curves, bar.meets);
    const double least = bar.share * static_cast<double>(seeds) - 1e-9;
    line(bar.what, std::to_string(met) + " of " + std::to_string(seeds), decimals(std::ceil(least), 0),
         static_cast<double>(met) >= least);
  }
  if (row.mean_at_end > -1e8)
    line("mean greedy >= " + std::to_string(static_cast<int>(row.mean_at_end)) + " at the end",
         decimals(mean, 1), "the mean", mean >= row.mean_at_end);
  written.push_back(std::move(out));
  std::printf("  %.2f s per seed", seconds);
  if (updating > 0) std::printf(", %.2f s of them updates", updating);
  std::printf("; dispatches: %u per step, %u per minibatch, %u per update\n", curves[0].step_dispatches,
              curves[0].minibatch_dispatches, curves[0].update_dispatches);
  return passed;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t first_seed = 1, seeds = 10;
  std::string device, json;
  bool validation = false, curve = false;
  std::vector<std::string> only;
  CLI::App app{"Trains PPO on the classic control problems and prints figures against bars."};
  app.add_option("--seeds", seeds, "number of seeds")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--first-seed", first_seed, "the first seed")->capture_default_str();
  app.add_option(
      "--device", device,
      "GPU by index or part of its name; cpu leaves out the problems whose world is on the device");
  app.add_flag("--curve", curve, "print every check: steps, greedy, training");
  app.add_option("--json", json, "put the rows into this file of figures")->type_name("FILE");
  app.add_flag("--validation", validation, "use the Vulkan validation layer; any message fails");
  const std::vector<Row> all = rows();
  std::string keys;
  for (const Row& row : all) keys += row.key + " ";
  app.add_option("problems", only, keys + "(resident: world on the device); default: all");
  CLI11_PARSE(app, argc, argv);
  try {
    const bool on_cpu = imprint::bridge::names_cpu(device);
    for (const std::string& key : only) {
      const auto row = std::ranges::find(all, key, &Row::key);
      if (row == all.end())
        throw std::runtime_error("problems: found '" + key + "'. See --help for their names.");
      if (on_cpu && row->resident())
        throw std::runtime_error("problems: the world of '" + key +
                                 "' needs a GPU. Choose another --device.");
    }
    const auto runs = [&](const Row& row) {
      return only.empty() ? !(on_cpu && row.resident()) : std::ranges::find(only, row.key) != only.end();
    };
    std::unique_ptr<imprint::Runtime> runtime;
    std::unique_ptr<imprint::Session> session;
    std::unique_ptr<imprint::bridge::Standalone> host;
    if (on_cpu) {
      runtime = imprint::Runtime::create_on_cpu();
      session = std::make_unique<imprint::Session>(*runtime);
      std::puts("CPU");
    } else {
      host = must(imprint::bridge::Standalone::open({.device = device, .validation = validation}));
      std::printf("%s\n", host->context().device().capabilities().device_name.c_str());
    }
    bool passed = true;
    std::vector<Written> written;
    for (const Row& row : all)
      if (runs(row))
        passed = run(host ? host->session() : *session, row, first_seed, seeds, curve, written) && passed;
    if (!json.empty()) {
      const auto* device_found = host ? &host->context().device().capabilities() : nullptr;
      write_rows(json, device_found ? device_found->device_name : "device cpu",
                 device_found ? device_found->driver_name : "", written);
    }
    if (host && host->validation_messages() > 0)
      throw std::runtime_error("validation: " + host->first_validation_message());
    return passed ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ppo_table: %s\n", error.what());
    return 2;
  }
}
