// imprint export: the policy of a saved brain as an ONNX file.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "compute/model/files/file.h"
#include "compute/model/onnx/format/write.h"
#include "compute/model/policy.h"
#include "plugin/agent/keep/exported_policy.h"
#include "plugin/agent/keep/saved_brain.h"
#include "plugin/agent/spec/network.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/saved_file.h"

namespace imprint::tools {
namespace {

struct ExportOptions {
  std::string saved, output, description;
  std::uint32_t brain = 0;
};

Result<> export_brain(const ExportOptions& options) {
  IMPRINT_CHECK(check_replaceable(options.output));
  IMPRINT_ASSIGN(const SavedFile file, open_saved(options.saved, options.description));
  const agent::BrainSpec& spec = file.spec;
  IMPRINT_ASSIGN(const agent::Network network, agent::Network::create(spec));
  const std::vector<agent::StateVariable> state = network.state();
  IMPRINT_ASSIGN(const auto contents, agent::decode_weights(file.bytes, spec, state));
  IMPRINT_ASSIGN(const onnx::Model model, agent::export_policy(spec, state, contents, options.brain));
  IMPRINT_ASSIGN(const Policy policy, import_policy(model, 1));
  IMPRINT_CHECK(write_file_atomic(options.output, onnx::serialize(model)));
  std::printf("%s: %s\n", options.output.c_str(), policy.description.text().c_str());
  return {};
}

}  // namespace

void add_export(CLI::App& app) {
  CLI::App* command = app.add_subcommand("export", "write the policy of a saved brain as an ONNX file");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("brain", options->saved, "a file that brain_save wrote")
      ->required()
      ->type_name("SAVED");
  command->add_option("output", options->output, "the file to write")->required()->type_name("OUT.onnx");
  command->add_option("--index", options->brain, "which brain of a kennel, from 0")->option_text("N=0");
  command
      ->add_option("--brain-file", options->description, "the brain's fields, for files of older libraries")
      ->type_name("BRAIN.json");
  set_work(*command, [options] { return export_brain(*options); });
}

}  // namespace imprint::tools
