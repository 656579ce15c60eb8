// imprint export: the policy of a saved brain as an ONNX file.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "compute/model/file.h"
#include "compute/model/onnx_write.h"
#include "compute/model/policy.h"
#include "plugin/agent/keep/exported_policy.h"
#include "plugin/agent/keep/saved_brain.h"
#include "plugin/agent/keep/schema.h"
#include "plugin/agent/spec/network.h"
#include "tools/imprint/brain_file.h"
#include "tools/imprint/commands.h"

namespace imprint::tools {
namespace {

struct ExportOptions {
  std::string saved, output, description;
  std::uint32_t brain = 0;
};

// The brain that the file says, or the one that --brain-file describes.
Result<agent::BrainSpec> spec_of(const ExportOptions& options, std::span<const std::byte> bytes) {
  IMPRINT_ASSIGN(const agent::BrainDescription found, agent::describe_file(bytes));
  std::vector<BrainFile> brains;
  if (!options.description.empty()) {
    IMPRINT_ASSIGN(brains, load_brains(options.description));
  } else if (found.json.empty()) {
    return make_error(ErrorCode::unsupported,
                      text("'", options.saved,
                           "': description: found none, because an older library wrote the file. Describe "
                           "the brain by --brain-file."));
  } else {
    IMPRINT_ASSIGN(brains, parse_brains(options.saved, std::as_bytes(std::span(found.json))));
  }
  if (brains.size() != 1)
    return make_error(ErrorCode::invalid_argument,
                      text("'", options.description, "': found ", brains.size(), " brains, expected one"));
  brains[0].spec.name = found.name;
  return brains[0].spec;
}

Result<> export_brain(const ExportOptions& options) {
  IMPRINT_CHECK(check_replaceable(options.output));
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(options.saved));
  IMPRINT_ASSIGN(const agent::BrainSpec spec, spec_of(options, bytes));
  // Before variables are made.
  if (spec.parameter_count() > bytes.size() / sizeof(float))
    return make_error(ErrorCode::corrupt_file,
                      text("'", options.saved, "': found ", amount(bytes.size(), "byte"), ", expected ",
                           amount(spec.parameter_count(), "parameter"), ": ", agent::schema_text(spec)));
  IMPRINT_ASSIGN(const agent::Network network, agent::Network::create(spec));
  const std::vector<agent::StateVariable> state = network.state();
  IMPRINT_ASSIGN(const auto contents, agent::decode_weights(bytes, spec, state));
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
