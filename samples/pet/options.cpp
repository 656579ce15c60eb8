#include "samples/pet/options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "samples/pet/keeping.h"

namespace pet {
namespace {

const std::map<std::string, TeacherKind> kTeachers = {{"demo", TeacherKind::demo},
                                                      {"praise", TeacherKind::praise},
                                                      {"careless", TeacherKind::careless},
                                                      {"off", TeacherKind::off}};
// Of a list of values, the one with that name, which is in it.
template <typename List>
auto named(const List& list, const std::string& word) {
  return *std::find_if(list.begin(), list.end(), [&](auto value) { return name(value) == word; });
}

// CLI11's own check names the largest number there is, digit for digit.
const CLI::Validator kDuration(
    [](std::string& text) {
      double seconds = 0.0;
      return CLI::detail::lexical_cast(text, seconds) && seconds >= 0.0 && seconds <= 1e9
                 ? std::string()
                 : "'" + text + "' is no number of seconds";
    },
    "");

// CLI11 takes -1 for the largest number there is, and what is larger for that one too.
const CLI::Validator kSeed(
    [](std::string& text) {
      std::uint64_t seed = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
      const bool whole = error == std::errc() && end == text.data() + text.size();
      return whole ? std::string() : "'" + text + "' is no seed: expected 0 to 18446744073709551615";
    },
    "");

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv, int* status) {
  Options options;
  CLI::App app{
      "A pet that learns inside a running game. With a window you teach it; without, a scripted player "
      "does."};
  app.name("pet");
  app.get_formatter()->column_width(28);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return "pet: " + std::string(error.what()) + ": see pet --help\n";
  });
  app.add_flag("--headless", options.headless,
               "no window: a scripted player teaches, progress is shown here");
  app.add_option("--seed", options.seed, "temperament of the pet, and the teacher's choices")
      ->check(kSeed)
      ->option_text("N=1");
  bool check = false;
  double seconds = -1.0;
  std::string teacher;
  std::string mode = name(options.access);
  app.add_option("--seconds", seconds,
                 "simulated seconds to play; headless 180, in the window until it is closed")
      ->check(kDuration)
      ->option_text("S");
  app.add_option("--teacher", teacher,
                 "demo: shows each trick once, then praises and scolds\npraise: only praises and scolds\n"
                 "careless: shows twice, then often misses or errs\noff: nothing is learned\nIn the window "
                 "it teaches a new pet, kept only with --save")
      ->check(CLI::IsMember({"demo", "praise", "careless", "off"}))
      ->option_text("demo|praise|careless|off");
  std::string learner = name(options.learner);
  app.add_option(
         "--learner", learner,
         "feedback: predicts how each action will be received, and learns from what it is shown\ndqn, coach, "
         "ppo: to compare with, by praise and scolding only. In the window M changes it")
      ->check(CLI::IsMember({"feedback", "dqn", "coach", "ppo"}))
      ->option_text("feedback|dqn|coach|ppo");
  app.footer(
      "Exit status: 0; 1 when the pet did not learn although its teacher had the time to teach it; 2 when "
      "something went wrong.");
  app.add_option("--kennel", options.kennel, "this many pets, each with its own brain and teacher")
      ->check(CLI::Range(1, 1024))
      ->option_text("1..1024");
  app.add_option("--device", options.device,
                 "GPU by index or part of its name; cpu: the pet thinks and learns on the processor, "
                 "and\nwithout a picture no GPU is needed")
      ->option_text("NAME|INDEX|cpu");
  app.add_option("--budget-us", options.budget_us,
                 "microseconds of the GPU (or the CPU) that Imprint may use in a frame")
      ->option_text("US=500");
  app.add_option("--slice-us", options.slice_us, "longest piece of learning work, microseconds; 0 = no limit")
      ->option_text("US=1000");
  app.add_option("--mode", mode,
                 "how Imprint reaches the GPU: in the frame's command buffer, or by submits of its own\non "
                 "the game's queue; cpu: not at all, while --device draws")
      ->check(CLI::IsMember({"record", "submit", "cpu"}))
      ->option_text("record|submit|cpu");
  const std::string own = own_pet_file(Options());
  app.add_option("--save", options.save,
                 "keep the pet in this file at the end, your names of commands in FILE.names, and what it is "
                 "uneasy about in FILE.life.\n"
                 "Without it the window keeps your own pet, in\n" +
                     own + ",\nand no pet of --load, --teacher, --fresh or --replay")
      ->option_text("FILE");
  app.add_option("--load", options.load,
                 "start with the pet of this file, which stays as it is unless --save names it too")
      ->option_text("FILE");
  app.add_flag("--fresh", options.fresh,
               "in the window: start with a new pet, kept only with --save; the one you left stays as it is");
  app.add_flag_callback(
      "--no-ghost", [&] { options.ghost = false; }, "without the pet beside it that does not learn");
  app.add_option("--report", options.report, "write figures")->option_text("FILE.json");
  app.add_option("--picture", options.picture, "write a sheet of what happened (headless)")
      ->option_text("FILE.png");
  app.add_option("--frames", options.frames, "write four pictures a simulated second (headless)")
      ->option_text("DIR");
  app.add_option("--log", options.log,
                 "write every event that reaches the pet, being led by hand and names of commands too")
      ->option_text("FILE");
  app.add_option("--replay", options.replay,
                 "play the events of a log instead of a teacher, with the same --load if there was one")
      ->option_text("FILE");
  app.add_flag("--validation", options.validation,
               "turn on the Vulkan validation layer with synchronisation checks");
  app.add_flag("--check", check, "only say whether these options make sense");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *status = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  if (!teacher.empty()) options.teacher = kTeachers.at(teacher);
  options.learner = named(kLearners, learner);
  options.access = named(kAccesses, mode);
  if (CLI::detail::to_lower(options.device) == "cpu") {
    options.access = Access::cpu;
    options.device.clear();
  }
  options.seconds = seconds >= 0.0 ? seconds : options.headless ? 180.0 : 0.0;
  const auto refuse = [&](const std::string& why) {
    std::fprintf(stderr, "pet: %s\n", why.c_str());
    *status = 2;
    return std::nullopt;
  };
  if (!options.replay.empty()) {
    options.teacher = TeacherKind::none;
  } else if (options.headless && options.teacher == TeacherKind::none) {
    options.teacher = TeacherKind::demo;
  }
  if (options.headless && options.seconds == 0.0)
    return refuse("--headless needs an end: give --seconds above 0");
  for (const std::string& file : {options.load, options.replay}) {
    std::error_code error;
    if (!file.empty() && !std::filesystem::is_regular_file(file, error))
      return refuse("there is no file " + file);
  }
  // Better now than after minutes of play.
  for (const std::string& file : {options.save, options.report, options.picture, options.log}) {
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    std::error_code error;
    if (!folder.empty() && !std::filesystem::is_directory(folder, error))
      return refuse(file + " cannot be written: there is no folder " + folder.string());
    if (std::filesystem::is_directory(file, error))
      return refuse(file + " cannot be written: it is a folder");
  }
  if (std::error_code error; !options.save.empty() && std::filesystem::exists(options.save, error) &&
                             !std::filesystem::is_regular_file(options.save, error))
    return refuse(options.save + " cannot be written: it is no regular file");
  if (!options.headless && (!options.picture.empty() || !options.frames.empty()))
    return refuse("--picture and --frames need --headless");
  if (check) {
    *status = 0;
    return std::nullopt;
  }
  return options;
}

}  // namespace pet
