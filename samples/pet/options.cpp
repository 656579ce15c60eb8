#include "samples/pet/options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "samples/pet/base/result.h"
#include "samples/pet/keeping.h"

namespace pet {
namespace {

const std::map<std::string, TeacherKind> kTeachers = {{"demo", TeacherKind::demo},
                                                      {"praise", TeacherKind::praise},
                                                      {"careless", TeacherKind::careless},
                                                      {"off", TeacherKind::off}};
// The value of a list with that name. It must be in the list.
template <typename List>
auto named(const List& list, const std::string& word) {
  return *std::find_if(list.begin(), list.end(), [&](auto value) { return name(value) == word; });
}

// CLI11's own range check would print the largest double, digit by digit.
const CLI::Validator kDuration(
    [](std::string& text) {
      double seconds = 0.0;
      return CLI::detail::lexical_cast(text, seconds) && seconds >= 0.0 && seconds <= 1e9
                 ? std::string()
                 : "found '" + text + "', expected seconds from 0 to 1e9";
    },
    "");

// CLI11 turns -1, and every number that is too large, into the largest one.
const CLI::Validator kSeed(
    [](std::string& text) {
      std::uint64_t seed = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
      const bool whole = error == std::errc() && end == text.data() + text.size();
      return whole ? std::string() : "found '" + text + "', expected 0 to 18446744073709551615";
    },
    "");

// Values as typed, before they become Options.
struct Typed {
  bool check = false;
  double seconds = -1.0;
  std::string teacher, learner = name(Options().learner), mode = name(Options().access);
};

void add_play_options(CLI::App& app, Options& options, Typed& typed) {
  app.add_flag("--headless", options.headless, "no window: a scripted player teaches, progress is printed");
  app.add_option("--seed", options.seed, "the pet's first weights and the teacher's choices")
      ->check(kSeed)
      ->option_text("N=1");
  app.add_option("--seconds", typed.seconds,
                 "simulated seconds to play; headless 180, in a window until you close it")
      ->check(kDuration)
      ->option_text("S");
  app.add_option("--teacher", typed.teacher,
                 "demo: shows each trick once, then praises and scolds\npraise: only praises and scolds\n"
                 "careless: shows twice, then often misses or errs\noff: the pet does not learn\nIn a window "
                 "it teaches a new pet, which only --save keeps")
      ->check(CLI::IsMember({"demo", "praise", "careless", "off"}))
      ->option_text("demo|praise|careless|off");
  app.add_option("--learner", typed.learner,
                 "feedback: predicts how each action will be received, and learns from what it is shown\n"
                 "dqn, coach, ppo: for comparison, by praise and scolding only. M changes it in a window")
      ->check(CLI::IsMember({"feedback", "dqn", "coach", "ppo"}))
      ->option_text("feedback|dqn|coach|ppo");
  app.add_option("--kennel", options.kennel, "number of pets, each with its own brain and teacher")
      ->check(CLI::Range(1, 1024))
      ->option_text("1..1024");
  app.add_flag_callback(
      "--no-ghost", [&] { options.ghost = false; }, "without the second pet that does not learn");
}

void add_device_options(CLI::App& app, Options& options, Typed& typed) {
  app.add_option("--device", options.device,
                 "GPU by index or part of its name; cpu: the pet thinks and learns on the CPU, "
                 "and\nwithout a picture no GPU is needed")
      ->option_text("NAME|INDEX|cpu");
  app.add_option("--budget-us", options.budget_us,
                 "microseconds of GPU (or CPU) time that Imprint may use per frame")
      ->option_text("US=500");
  app.add_option("--slice-us", options.slice_us, "longest piece of learning work, microseconds; 0 = no limit")
      ->option_text("US=1000");
  app.add_option("--mode", typed.mode,
                 "how Imprint reaches the GPU: record into the frame's command buffer, or submit\n"
                 "on the game's queue; cpu: not at all, while --device draws")
      ->check(CLI::IsMember({"record", "submit", "cpu"}))
      ->option_text("record|submit|cpu");
  app.add_flag("--validation", options.validation,
               "use the Vulkan validation layer with synchronisation checks");
}

void add_file_options(CLI::App& app, Options& options, Typed& typed) {
  app.add_option("--save", options.save,
                 "save the pet in this file at the end, your names of commands in FILE.names, and what it is "
                 "uneasy about in FILE.life.\nWithout it a window saves your own pet, in\n" +
                     own_pet_file(Options()) + ",\nbut no pet of --load, --teacher, --fresh or --replay")
      ->option_text("FILE");
  app.add_option("--load", options.load,
                 "start with the pet of this file; the file changes only if --save names it too")
      ->option_text("FILE");
  app.add_flag("--fresh", options.fresh,
               "in a window: start with a new pet, which only --save keeps; your own pet's file stays");
  app.add_option("--report", options.report, "write the figures")->option_text("FILE.json");
  app.add_option("--picture", options.picture, "write a sheet of the session (headless)")
      ->option_text("FILE.png");
  app.add_option("--frames", options.frames, "write four pictures per simulated second (headless)")
      ->option_text("DIR");
  app.add_option("--log", options.log, "write every event that reaches the pet")->option_text("FILE");
  app.add_option("--replay", options.replay,
                 "play the events of a log instead of a teacher; needs the same --load, if there was one")
      ->option_text("FILE");
  app.add_flag("--check", typed.check, "only check these options");
}

Options finished(Options options, const Typed& typed) {
  if (!typed.teacher.empty()) options.teacher = kTeachers.at(typed.teacher);
  options.learner = named(kLearners, typed.learner);
  options.access = named(kAccesses, typed.mode);
  if (CLI::detail::to_lower(options.device) == "cpu") {
    options.access = Access::cpu;
    options.device.clear();
  }
  options.seconds = typed.seconds >= 0.0 ? typed.seconds : options.headless ? 180.0 : 0.0;
  if (!options.replay.empty()) {
    options.teacher = TeacherKind::none;
  } else if (options.headless && options.teacher == TeacherKind::none) {
    options.teacher = TeacherKind::demo;
  }
  return options;
}

// Errors that would otherwise show after minutes of play.
Result<> check(const Options& options) {
  if (options.headless && options.seconds == 0.0)
    return Error{"--seconds: found 0, expected more with --headless"};
  std::error_code error;
  for (const std::string& file : {options.load, options.replay}) {
    if (!file.empty() && !std::filesystem::is_regular_file(file, error))
      return Error{"there is no file " + file};
  }
  for (const std::string& file : {options.save, options.report, options.picture, options.log}) {
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder, error))
      return Error{file + " cannot be written: there is no folder " + folder.string()};
    if (std::filesystem::is_directory(file, error)) return Error{file + " cannot be written: it is a folder"};
  }
  if (!options.save.empty() && std::filesystem::exists(options.save, error) &&
      !std::filesystem::is_regular_file(options.save, error))
    return Error{options.save + " cannot be written: it is no regular file"};
  if (!options.headless && (!options.picture.empty() || !options.frames.empty()))
    return Error{"--picture and --frames need --headless"};
  return {};
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv, int* status) {
  Options options;
  Typed typed;
  CLI::App app{
      "A pet that learns inside a running game. With a window you teach it; without one, a scripted player "
      "does."};
  app.name("pet");
  app.get_formatter()->column_width(28);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return "pet: " + std::string(error.what()) + ": see pet --help\n";
  });
  app.footer(
      "Exit status: 0; 1 when the pet did not learn although its teacher had the time to teach it; 2 after "
      "an "
      "error.");
  add_play_options(app, options, typed);
  add_device_options(app, options, typed);
  add_file_options(app, options, typed);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // CLI11 has no other way to fail
    *status = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  options = finished(std::move(options), typed);
  if (const Result<> good = check(options); !good) {
    std::fprintf(stderr, "pet: %s\n", good.error().message.c_str());
    *status = 2;
    return std::nullopt;
  }
  *status = 0;
  return typed.check ? std::nullopt : std::optional(options);
}

}  // namespace pet
