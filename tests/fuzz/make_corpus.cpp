// Writes the seeds of readers whose files the library writes itself. Argument: the corpus folder.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "compute/model/files/file.h"
#include "compute/model/files/safetensors.h"
#include "compute/tuning/tuning_table.h"
#include "compute/vk/pipelines/kernel_archive.h"
#include "compute/vk/pipelines/pipeline_blob.h"
#include "plugin/agent/brain_programs.h"
#include "plugin/agent/keep/demonstrations.h"
#include "plugin/agent/learn/training/sent_experience.h"
#include "tests/fuzz/make_models.h"
#include "tests/fuzz/seed_brain.h"
#include "tools/imprint/profiles.h"

namespace {

namespace fs = std::filesystem;
using namespace imprint;

Result<> write(const fs::path& path, std::span<const std::byte> bytes) {
  fs::create_directories(path.parent_path());
  return write_file_atomic(path.string(), bytes);
}
Result<> write(const fs::path& path, const std::string& text) {
  return write(path, std::as_bytes(std::span(text)));
}

Result<> write_safetensors(const fs::path& folder) {
  safetensors::File file;
  file.metadata = {{"format", "seed"}};
  file.arrays.emplace("a", safetensors::Array::of(std::vector<float>{1, 2}, {2}));
  file.arrays.emplace("b", safetensors::Array::of(std::vector<std::int64_t>{3}, {1, 1}));
  file.arrays.emplace("c", safetensors::Array::of_bools(std::vector<std::int32_t>{1, 0, 1}, {3}));
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, safetensors::serialize(file));
  IMPRINT_CHECK(write(folder / "all.safetensors", bytes));
  agent::Demonstrations shown;
  shown.observation_width = 2;
  shown.branch_sizes = {3};
  shown.continuous_count = 1;
  shown.observations = {1, 2, 3, 4};
  shown.goals = {0, 0};
  shown.branches = {2, 0};
  shown.continuous = {-1, 0.5f};
  shown.weights = {1, 2};
  IMPRINT_ASSIGN(const std::vector<std::byte> demos, agent::write_demonstrations(shown));
  return write(folder / "demos.safetensors", demos);
}

Result<> write_brain(const fs::path& folder) {
  const agent::BrainSpec spec = fuzz::seed_brain();
  IMPRINT_ASSIGN(const agent::BrainPrograms programs, agent::describe_brain(spec));
  std::vector<std::vector<std::byte>> contents;
  for (const agent::StateVariable& entry : programs.state)
    contents.emplace_back(static_cast<std::size_t>(entry.variable.shape().element_count()) * 4);
  agent::HostState host;
  host.draws.resize(1);
  host.replay = agent::ReplayState::empty(spec);
  const std::vector<std::span<const std::byte>> state(contents.begin(), contents.end());
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, agent::encode_brain(spec, programs.state, host, state));
  return write(folder / "seed.brain", bytes);
}

// The steps of an actor: two of one agent, and one of the other brain's.
Result<> write_experience(const fs::path& folder) {
  for (const agent::LearnerKind learner : {agent::LearnerKind::dqn, agent::LearnerKind::ppo}) {
    const agent::BrainSpec spec = fuzz::receiving_brain(learner);
    agent::SampleQueue waiting = agent::ReplayState::empty(spec).waiting;
    for (const std::uint32_t each : {0u, 0u, 3u})
      std::ranges::fill(waiting.push(each / spec.agents_per_brain, {.agent = each}), 1.0f);
    std::vector<std::byte> bytes(agent::waiting_bytes(spec, waiting));
    agent::take_waiting(spec, waiting, bytes);
    IMPRINT_CHECK(write(folder / agent::learner_name(learner), bytes));
  }
  return {};
}

Result<> write_vulkan_files(const fs::path& corpus) {
  vk::Capabilities device;
  device.device_name = "own";
  device.driver_name = "driver";
  device.vendor_id = 0x10de;
  device.device_id = 1;
  device.driver_version = 7;
  device.pipeline_cache_uuid[5] = 0xab;
  IMPRINT_ASSIGN(const std::string table,
                 write_tuning_tables({{"product 1 x 2 x 3 of 4", "64 x 64"}, {"region", "8 rows"}}, device));
  IMPRINT_CHECK(write(corpus / "tuning_table" / "two.json", table));
  IMPRINT_CHECK(write(corpus / "kernel_archive" / "two.kernels",
                      vk::write_kernel_archive(vk::named_profiles(), "compiler",
                                               {{{1, 2}, "first", {vk::kSpirvMagic, 1, 2}},
                                                {{3, 4}, "second", {vk::kSpirvMagic, 3}}})));
  VkPipelineCacheHeaderVersionOne header{};
  header.headerSize = sizeof header;
  header.headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE;
  header.vendorID = device.vendor_id;
  header.deviceID = device.device_id;
  header.pipelineCacheUUID[5] = 0xab;
  const auto bytes = std::as_bytes(std::span(&header, 1));
  IMPRINT_CHECK(write(corpus / "pipeline_cache" / "bare.cache", bytes));
  return write(corpus / "pipeline_cache" / "wrapped.cache", vk::wrap_pipeline_cache(bytes));
}

Result<> write_all(const fs::path& corpus) {
  for (const fuzz::ModelSeed& seed : fuzz::model_seeds())
    IMPRINT_CHECK(write(corpus / "onnx" / seed.name, seed.bytes));
  IMPRINT_CHECK(write_safetensors(corpus / "safetensors"));
  IMPRINT_CHECK(write_brain(corpus / "saved_brain"));
  IMPRINT_CHECK(write_experience(corpus / "experience"));
  IMPRINT_CHECK(write_vulkan_files(corpus));
  for (const vk::CapabilityProfile& profile : vk::named_profiles())
    IMPRINT_CHECK(write(corpus / "profile" / (profile.name + ".json"), tools::profile_json(profile)));
  return write(corpus / "brain_file" / "pet.json",
               std::string(R"([{"name": "pet", "observation_count": 3, "observation_scale": [1, 0.5, 2],
  "branch_sizes": [4], "hidden_sizes": [8], "activation": "relu", "learner": "feedback",
  "observations": [4, 3], "actions": true}])"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_make_corpus FOLDER\n");
    return 2;
  }
  const Result<> written = write_all(argv[1]);
  if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
  return written ? 0 : 1;
}
