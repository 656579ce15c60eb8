// Writes the seeds of readers whose files the library writes itself. Argument: the corpus folder.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "compute/model/files/file.h"
#include "compute/model/files/safetensors.h"
#include "compute/tuning/tuning_table.h"
#include "compute/vk/pipelines/kernel_archive.h"
#include "compute/vk/pipelines/pipeline_blob.h"
#include "plugin/agent/brain_programs.h"
#include "plugin/agent/keep/demonstrations.h"
#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/training/sent_experience.h"
#include "tests/fuzz/make_models.h"
#include "tests/fuzz/seed_brain.h"
#include "tools/imprint/profiles.h"
#include "tools/studio/episode_log.h"
#include "tools/studio/league.h"

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

// As a library without usual words wrote it, with a memory of words.
Result<> write_older_brain(const fs::path& folder, const agent::BrainSpec& spec,
                           std::span<const agent::StateVariable> state, agent::HostState host) {
  const agent::SampleLayout layout = agent::learner_of(spec).layout(spec);
  std::vector<float> words(std::size_t{spec.replay_capacity} * layout.width, 1.0f);
  for (std::size_t k = 0; k < spec.replay_capacity; ++k) words[k * layout.width + layout.goal] = 0;
  std::vector<agent::StateVariable> written;
  std::vector<std::vector<std::byte>> contents;
  for (const agent::StateVariable& entry : state) {
    if (entry.otherwise) continue;
    written.push_back(entry);
    const auto bytes = std::as_bytes(std::span(words));
    contents.push_back(
        entry.name == agent::kReplayName
            ? std::vector(bytes.begin(), bytes.end())
            : std::vector<std::byte>(static_cast<std::size_t>(entry.variable.shape().element_count()) * 4));
  }
  host.replay.filled = {static_cast<std::int32_t>(spec.replay_capacity)};
  host.replay.next = {1};
  const std::vector<std::span<const std::byte>> spans(contents.begin(), contents.end());
  IMPRINT_ASSIGN(const std::vector<std::byte> bytes, agent::encode_brain(spec, written, host, spans));
  return write(folder / "older.brain", bytes);
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
  IMPRINT_CHECK(write_older_brain(folder, spec, programs.state, host));
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

// The harness's two bytes (dataset.cpp), and a file.
Result<> write_dataset(const fs::path& folder) {
  const std::string labels("\0\0\x08\x01\0\0\0\2\7\3", 10),
      pixels("\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\2\0\xff\x33\0", 20);
  IMPRINT_CHECK(write(folder / "idx", std::string{0, static_cast<char>(labels.size())} + labels + pixels));
  IMPRINT_CHECK(write(folder / "cifar", std::string{1, 2} + "\6\xff\x33"));
  return write(folder / "csv", std::string{2, 'y'} + "a,y,\"b\"\r\n1, 2.5,3\n\n-4,5,6e1\n");
}

Result<> write_extents(const fs::path& folder) {
  IMPRINT_CHECK(write(folder / "steps", std::string("height=64/32\nwidth=6/2\nn=4")));
  IMPRINT_CHECK(write(folder / "sums", std::string("past=0..8\ny:3=past+n+2\nn=2")));
  return write(folder / "place", std::string("x:2=8\ny:3=3\nwidth=1"));
}

// The harness's byte (studio_files.cpp), and a file.
Result<> write_studio_files(const fs::path& folder) {
  studio::EpisodeLog log{.seed = 5, .number = 6, .rank = 7, .parameters = {{"lean", 0.25}}, .score = 12};
  for (const float at : {0.5f, 1.0f}) {
    const float seen[] = {at, -1}, numbers[] = {0.125f};
    const std::uint32_t chosen[] = {3};
    IMPRINT_CHECK(log.add(seen, chosen, numbers));
  }
  constexpr std::size_t kHash = 16;
  const std::vector<std::byte> whole = log.bytes();
  std::vector<std::byte> file{std::byte{0}};
  file.insert(file.end(), whole.begin(), whole.end());
  IMPRINT_CHECK(write(folder / "episode", file));
  file[0] = std::byte{1};
  file.resize(file.size() - kHash);
  IMPRINT_CHECK(write(folder / "episode_body", file));
  IMPRINT_CHECK(write(folder / "curriculum",
                      "\2" + std::string(R"({"parameters": {"length": {"uniform": [0.3, 0.8]}, "gravity": 9.8,
  "push": {"normal": [10, 0.5]}, "mass": {"grid": [0.1, 0.2]}, "wind": {"adaptive": [0, 5]}},
 "lessons": [{"name": "short", "parameters": {"length": 0.3}, "score": 200, "episodes": 50}, {}],
 "adapt": {"score": 200, "episodes": 50, "step": 0.1}})")));
  studio::League league;
  league.keep("1.brain");
  league.keep("a b.brain");
  return write(folder / "league", "\3" + league.text());
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
  IMPRINT_CHECK(write_dataset(corpus / "dataset"));
  IMPRINT_CHECK(write_extents(corpus / "extents"));
  IMPRINT_CHECK(write_studio_files(corpus / "studio_files"));
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
