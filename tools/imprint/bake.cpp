// imprint bake: compiles all kernels that models and brains need into one file.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>

#include "compute/base/amount.h"
#include "compute/base/sha256.h"
#include "compute/base/text.h"
#include "compute/model/files/file.h"
#include "compute/program/bake.h"
#include "compute/tuning/tuning_table.h"
#include "plugin/agent/brain_programs.h"
#include "tools/imprint/brain_file.h"
#include "tools/imprint/commands.h"
#include "tools/imprint/computer.h"
#include "tools/imprint/file_limits.h"
#include "tools/imprint/model_file.h"
#include "tools/imprint/profiles.h"
#include "tools/imprint/workloads.h"

namespace imprint::tools {

using namespace program;

namespace {

struct BakeOptions {
  std::vector<std::string> models, game_models, brains, profiles, devices, tunings;
  std::vector<std::uint32_t> batches{1};
  std::string output;
  Precision precision = Precision::float32;
  FileLimits limits;  // of each model
};

Result<std::vector<vk::CapabilityProfile>> profiles_of(const BakeOptions& options) {
  std::vector<vk::CapabilityProfile> profiles;
  for (const std::string& device : options.devices) {
    IMPRINT_ASSIGN(const vk::CapabilityProfile profile, device_profile(device));
    profiles.push_back(profile);
  }
  for (const std::string& name : options.profiles) {
    IMPRINT_ASSIGN(vk::CapabilityProfile profile, find_profile(name));
    profiles.push_back(std::move(profile));
  }
  if (!profiles.empty()) return profiles;
  for (const char* name : {"desktop", "baseline"}) {
    IMPRINT_ASSIGN(vk::CapabilityProfile profile, find_profile(name));
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

void tell(const std::string& what, std::size_t kernels) {
  std::printf("%s: %s\n", what.c_str(), amount(kernels, "kernel").c_str());
}

void limit_dispatches(Baker& baker, const FileLimits& limits) {
  baker.limit_dispatches(limits.most_dispatches, "If you trust the file, raise --most-dispatches");
}

// The program that both imprint run and the library compile.
Result<> add_model(Baker& baker, const onnx::Model& model, const std::string& name, std::uint32_t batch,
                   Precision precision, const FileLimits& limits) {
  const ImportOptions options{.constant_limit_bytes = limits.bytes()};
  IMPRINT_ASSIGN(const ImportedModel imported,
                 with_remedy(import_at(model, name, {.batch = batch}, options), limits));
  // A variable, since GCC 13 crashes on this initialiser as an argument.
  const ProgramDescription description{.name = name,
                                       .inputs = imported.input_tensors(),
                                       .outputs = imported.output_tensors(),
                                       .precision = precision};
  return baker.add(description);
}

Result<> add_models(Baker& baker, const BakeOptions& options) {
  for (const std::string& file : options.models) {
    FileLimits limits = options.limits;
    IMPRINT_ASSIGN(const onnx::Model model, load_limited(file, limits));
    limit_dispatches(baker, limits);
    IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(file));
    const std::string name = std::filesystem::path(file).stem().string();
    for (const std::uint32_t batch : options.batches) {
      const std::size_t before = baker.kernel_count();
      const Result<> added = add_model(baker, model, name, batch, options.precision, limits);
      if (!added) return make_error(added.error().code, text("'", file, "': ", added.error().message));
      const Result<> policy = agent::bake_policy(
          baker,
          {.name = name, .file = bytes, .agent_capacity = batch, .constant_limit_bytes = limits.bytes()});
      tell(file + ", batch " + std::to_string(batch), baker.kernel_count() - before);
      if (!policy)
        std::fprintf(stderr, "note: not for imp_api::brain_create_from_onnx: %s\n",
                     policy.error().message.c_str());
    }
  }
  return {};
}

Result<> add_game_models(Baker& baker, const BakeOptions& options) {
  for (const std::string& file : options.game_models) {
    FileLimits limits;
    const auto load = [&](const std::string& path) {
      limits = options.limits;
      return load_limited(path, limits);
    };
    IMPRINT_ASSIGN(std::vector<agent::ModelSpec> models, load_models(file, load));
    for (agent::ModelSpec& model : models) {
      IMPRINT_CHECK(load(model.path));
      limit_dispatches(baker, limits);
      model.constant_limit_bytes = limits.bytes();
      const std::size_t before = baker.kernel_count();
      if (const Result<> added = with_remedy(agent::bake_model(baker, model), limits); !added)
        return make_error(added.error().code, text("'", file, "': ", added.error().message));
      tell(file + ", model '" + model.name + "'", baker.kernel_count() - before);
    }
  }
  return {};
}

// Checked before weights are made: describing a brain makes its first weights, although an archive has none.
Result<> check_weights(const std::string& file, const agent::BrainSpec& spec) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // four times the default memory cap of a game
  const std::vector<std::uint32_t> sizes = spec.layer_sizes();
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    bytes += (std::uint64_t{sizes[i]} + 1) * sizes[i + 1] * spec.brain_count * sizeof(float);
  if (bytes <= kMostBytes) return {};
  return make_error(ErrorCode::invalid_argument,
                    text("'", file, "': brain '", spec.name, "': hidden_sizes: found ", bytes,
                         " bytes of weights, expected at most ", kMostBytes));
}

Result<> add_brains(Baker& baker, const BakeOptions& options) {
  for (const std::string& file : options.brains) {
    IMPRINT_ASSIGN(const std::vector<BrainFile> brains, load_brains(file));
    for (const BrainFile& brain : brains) {
      IMPRINT_CHECK(check_weights(file, brain.spec));
      const std::size_t before = baker.kernel_count();
      std::vector<Variable> observations, actions;
      if (brain.observations) observations.push_back(Variable::external("observations", *brain.observations));
      if (brain.actions)
        actions.push_back(
            Variable::external("actions", {brain.spec.agent_capacity(), agent::action_width(brain.spec)}));
      IMPRINT_CHECK(agent::bake_brain(baker, brain.spec, observations, actions));
      tell(file + ", brain '" + brain.spec.name + "'", baker.kernel_count() - before);
    }
  }
  return {};
}

Result<> bake(const BakeOptions& options) {
  if (options.models.empty() && options.game_models.empty() && options.brains.empty())
    return make_error(
        ErrorCode::invalid_argument,
        "found nothing to bake. Name what the game loads, with --model, --game-model and --agent.");
  IMPRINT_CHECK(check_replaceable(options.output));
  IMPRINT_ASSIGN(const std::vector<vk::CapabilityProfile> profiles, profiles_of(options));
  std::vector<VariantTable> tables;
  for (const std::string& file : options.tunings) {
    IMPRINT_ASSIGN(const std::vector<std::byte> bytes, read_file(file));
    auto read = read_tuning_tables({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!read) return make_error(read.error().code, text("'", file, "': ", read.error().message));
    std::ranges::move(*read, std::back_inserter(tables));
  }
  Baker baker(profiles, std::move(tables));
  IMPRINT_CHECK(add_models(baker, options));
  IMPRINT_CHECK(add_game_models(baker, options));
  baker.limit_dispatches(SIZE_MAX, {});  // brains are described by the game's own files
  IMPRINT_CHECK(add_brains(baker, options));

  std::size_t quarter = 0;
  IMPRINT_ASSIGN(const std::vector<std::byte> archive, baker.compile([&](std::size_t done) {
    if (const std::size_t now = 4 * done / baker.kernel_count(); now > quarter) {
      quarter = now;
      std::fprintf(stderr, "compiled %zu of %zu\n", done, baker.kernel_count());
    }
  }));
  IMPRINT_CHECK(write_file_atomic(options.output, archive));
  std::string names;
  for (const vk::CapabilityProfile& profile : profiles) names += (names.empty() ? "" : ", ") + profile.name;
  std::printf("%s: %s, %zu bytes, for %s\nsha256 %s\n", options.output.c_str(),
              amount(baker.kernel_count(), "kernel").c_str(), archive.size(), names.c_str(),
              hex(sha256(archive)).c_str());
  return {};
}

}  // namespace

void add_bake(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "bake", "compile all kernels that models and brains need into one file, for a game without a compiler");
  auto options = std::make_shared<BakeOptions>();
  command
      ->add_option("--model", options->models,
                   "an ONNX file, for imprint run and for policies of the plugin; may be repeated")
      ->type_name("MODEL.onnx");
  command
      ->add_option(
          "--game-model", options->game_models,
          "models as the game creates them, as JSON: fields of imp_model_desc; one object or a list; "
          "may be repeated")
      ->type_name("DESC.json");
  command
      ->add_option(
          "--batch", options->batches,
          "size of a model's open dimensions, and agents of a policy (imp_policy_desc::agent_capacity)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 30))
      ->option_text("N,...=1");
  command
      ->add_option_function<std::string>(
          "--precision", [options](const std::string& name) { options->precision = precision_named(name); },
          "of models, as in imprint run: float32, mixed or float16")
      ->check(CLI::IsMember({"float32", "mixed", "float16"}))
      ->option_text("TYPE=float32");
  command
      ->add_option(
          "--agent", options->brains,
          "brains as the game creates them, as JSON: the fields of imp_brain_desc, and its learner's options "
          "under the learner's name; one object or a "
          "list; may be repeated")
      ->type_name("DESC.json");
  command
      ->add_option(
          "--profile", options->profiles,
          "the kind of device: " + profile_names() +
              ", or a file of imprint devices --profile; may be repeated, the best first: a device uses "
              "the first that it can run. Default without --device: desktop and baseline")
      ->type_name("PROFILE");
  command
      ->add_option(
          "--device", options->devices,
          "the profile of a device of this computer, before those of --profile; may be repeated. Without it "
          "no Vulkan is needed")
      ->type_name("DEVICE");
  command
      ->add_option("--tuning", options->tunings,
                   "tables of imprint tune, of any device: the variants that they name are baked too, for a "
                   "game that calls tuning_set; may be repeated")
      ->type_name("FILE");
  command
      ->add_option("--output", options->output,
                   "the archive, for imp_host::kernel_archive or imprint run --kernels")
      ->required()
      ->type_name("FILE");
  add_memory_limit_option(*command, options->limits);
  add_dispatch_limit_option(*command, options->limits);
  set_work(*command, [options] { return bake(*options); });
}

}  // namespace imprint::tools
