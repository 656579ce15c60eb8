// imprint demos: demonstrations as files, out of saved brains and into them.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "plugin/agent/brain_programs.h"
#include "plugin/agent/keep/demonstrations.h"
#include "plugin/agent/keep/saved_brain.h"
#include "plugin/agent/learn/registry.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/saved_file.h"

namespace imprint::tools {
namespace {

struct DemosOptions {
  std::string saved, output, description;
  std::vector<std::string> files;
  std::uint32_t brain = 0;
};

struct OpenBrain {
  agent::BrainSpec spec;
  std::vector<agent::StateVariable> state;
  agent::SavedBrain saved;
};

// Numbers of the costliest weights that describing a brain makes: a file without them is refused before.
std::uint64_t least_numbers(const agent::BrainSpec& spec) {
  const std::uint64_t hidden = spec.signal_size, seen = spec.observation.width();
  std::uint64_t signals = 0;
  if (spec.curiosity_strength > 0)
    signals += hidden * (spec.curiosity == agent::Curiosity::novelty ? hidden : seen);
  if (spec.imitation_strength > 0) signals += hidden * hidden;
  return spec.parameter_count() * (std::uint64_t{1} + spec.pool_size) + signals * spec.brain_count;
}

Result<OpenBrain> open_brain(const DemosOptions& options) {
  IMPRINT_ASSIGN(const SavedFile file, open_saved(options.saved, options.description));
  const agent::BrainSpec& spec = file.spec;
  if (const agent::Learner* learner = agent::find_learner(spec.learner); learner && learner->replays())
    IMPRINT_CHECK(
        check_fits(file, options.saved,
                   std::uint64_t{spec.replay_capacity} * spec.brain_count * learner->layout(spec).width));
  IMPRINT_CHECK(check_fits(file, options.saved, least_numbers(spec)));
  OpenBrain brain{spec, {}, {}};
  IMPRINT_ASSIGN(agent::BrainPrograms programs, agent::describe_brain(spec));
  brain.state = std::move(programs.state);
  IMPRINT_ASSIGN(brain.saved, agent::decode_brain(file.bytes, brain.spec, brain.state));
  return brain;
}

// The demonstrations of all files, one after the other.
Result<agent::Demonstrations> load_all(const std::vector<std::string>& files) {
  agent::Demonstrations all;
  for (const std::string& name : files) {
    const auto in_file = [&name](const Error& error) {
      return make_error(error.code, text("'", name, "': ", error.message));
    };
    IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(name));
    Result<agent::Demonstrations> shown = agent::read_demonstrations(bytes);
    if (!shown) return in_file(shown.error());
    if (all.count() == 0)
      all = std::move(*shown);
    else if (const Result<> appended = agent::append(all, *shown); !appended)
      return in_file(appended.error());
  }
  return all;
}

void tell(const std::string& file, const agent::Demonstrations& shown) {
  std::printf("%s: %s\n", file.c_str(), shown.text().c_str());
}

Result<> write_demos(const std::string& file, const agent::Demonstrations& shown) {
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, agent::write_demonstrations(shown));
  IMPRINT_CHECK(write_file_atomic(file, bytes));
  tell(file, shown);
  return {};
}

Result<> extract(const DemosOptions& options) {
  IMPRINT_CHECK(check_replaceable(options.output));
  IMPRINT_ASSIGN(const OpenBrain brain, open_brain(options));
  IMPRINT_ASSIGN(const agent::Demonstrations shown,
                 agent::demonstrations_in(brain.spec, brain.state, brain.saved, options.brain));
  return write_demos(options.output, shown);
}

Result<> merge(const DemosOptions& options) {
  IMPRINT_CHECK(check_replaceable(options.output));
  IMPRINT_ASSIGN(const agent::Demonstrations all, load_all(options.files));
  return write_demos(options.output, all);
}

Result<> teach(const DemosOptions& options) {
  IMPRINT_CHECK(check_replaceable(options.output));
  IMPRINT_ASSIGN(const agent::Demonstrations all, load_all(options.files));
  IMPRINT_ASSIGN(OpenBrain brain, open_brain(options));
  IMPRINT_CHECK(agent::add_demonstrations(all, brain.spec, brain.state, brain.saved));
  const std::vector<std::span<const std::byte>> contents(brain.saved.state.begin(), brain.saved.state.end());
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes,
                 agent::encode_brain(brain.spec, brain.state, brain.saved.host, contents));
  IMPRINT_CHECK(write_file_atomic(options.output, bytes));
  tell(options.output, all);
  return {};
}

Result<> show(const DemosOptions& options) {
  for (const std::string& file : options.files) {
    IMPRINT_ASSIGN(const agent::Demonstrations shown, load_all({file}));
    tell(file, shown);
  }
  return {};
}

}  // namespace

void add_demos(CLI::App& app) {
  CLI::App* demos = app.add_subcommand(
      "demos", "take demonstrations out of saved brains, merge them, and put them into other saved brains");
  demos->require_subcommand(1);
  auto options = std::make_shared<DemosOptions>();
  const auto add = [&](const char* name, const char* help, Result<> (*work)(const DemosOptions&)) {
    CLI::App* command = demos->add_subcommand(name, help);
    set_work(*command, [options, work] { return work(*options); });
    return command;
  };
  const auto add_saved = [&](CLI::App* command) {
    command->add_option("saved", options->saved, "a file that brain_save wrote")
        ->required()
        ->type_name("SAVED");
    add_description_option(*command, options->description);
  };
  const auto add_output = [&](CLI::App* command, const char* name) {
    command->add_option("output", options->output, "the file to write")->required()->type_name(name);
  };
  const auto add_files = [&](CLI::App* command) {
    command->add_option("files", options->files, "files of demonstrations")
        ->required()
        ->type_name("DEMOS.safetensors ...");
  };

  CLI::App* out =
      add("extract",
          "write the demonstrations that a saved brain remembers: of the cloning learner, or with "
          "imp_demonstration_options",
          extract);
  add_saved(out);
  add_output(out, "OUT.safetensors");
  out->add_option("--index", options->brain, "which brain of a kennel, from 0")->option_text("N=0");

  CLI::App* together = add("merge", "write the demonstrations of several files into one", merge);
  add_output(together, "OUT.safetensors");
  add_files(together);

  CLI::App* into = add("import", "add demonstrations to a saved brain's memory, for brain_load", teach);
  add_saved(into);
  add_output(into, "OUT");
  add_files(into);

  add_files(add("show", "print the number and form of demonstrations", show));
}

}  // namespace imprint::tools
