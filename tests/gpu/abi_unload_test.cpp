// T5. The library is loaded, used by two contexts on two devices under validation, and unloaded by dlclose.
// Saved brains continue when it is loaded again.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <imprint/imprint_tools.h>

namespace {

// A library of this build; the path is relative to the program.
std::string path_of(const char* library) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / library).string();
}

bool mapped() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libimprint") != line.npos) return true;
  return false;
}

struct Hash {
  std::uint64_t low = 0, high = 0;
};

// Two devices, each with its own context. The brains load `file`, if it exists, and save to it at the end.
void live(const imp_api* api, const std::string& file, bool goes_on, Hash& hash) {
  const char* name = std::getenv("IMPRINT_TEST_DEVICE");
  imp_standalone_info device = imp_standalone_info_init();
  device.device = name;
  device.validation = 1;
  const std::string shaders = ::testing::TempDir() + "imprint-unload-shaders";
  std::string errors;
  imp_host host = imp_host_init();
  host.user = &errors;
  host.log = [](void* user, imp_log_level level, const char* text) {
    if (level >= IMP_LOG_ERROR) static_cast<std::string*>(user)->append(text).append("\n");
  };
  host.shader_cache_directory = shaders.c_str();
  imp_context contexts[2] = {};
  for (imp_context& context : contexts)
    ASSERT_EQ(api->tools->context_create_standalone(&device, &host, nullptr, &context), IMP_OK)
        << api->last_error();
  for (const imp_context context : contexts) {
    const std::uint32_t branch = 4, hidden = 8;
    imp_brain_desc desc = imp_brain_desc_init();
    desc.observation_count = 6;
    desc.branch_count = 1;
    desc.branch_sizes = &branch;
    desc.hidden_count = 1;
    desc.hidden_sizes = &hidden;
    imp_feedback_options options = imp_feedback_options_init();
    options.replay_capacity = 64;
    desc.header.next = &options;
    desc.snapshot_count = 0;
    desc.learner = IMP_LEARNER_FEEDBACK;
    imp_brain brain{};
    imp_agent agent{};
    ASSERT_EQ(api->brain_create(context, &desc, &brain), IMP_OK) << api->last_error();
    ASSERT_EQ(api->agent_create(brain, 0, &agent), IMP_OK);
    ASSERT_EQ(api->context_warmup(context, nullptr, nullptr), IMP_OK) << api->last_error();
    if (goes_on) {
      ASSERT_EQ(api->brain_load(brain, file.c_str()), IMP_OK) << api->last_error();
      Hash loaded;
      ASSERT_EQ(api->tools->brain_hash(brain, &loaded.low, &loaded.high), IMP_OK) << api->last_error();
      ASSERT_TRUE(loaded.low == hash.low && loaded.high == hash.high) << "a different brain came back";
    }
    for (std::uint64_t frame = 1; frame < 10; ++frame) {
      const float seen[6] = {1, 2, 3, 4, 5, 6};
      imp_frame_info info = imp_frame_info_init();
      info.frame = frame;
      const std::uint32_t choice = static_cast<std::uint32_t>(frame % 4);
      imp_demonstration shown = imp_demonstration_init();
      shown.observation = seen;
      shown.observation_count = 6;
      shown.branches = &choice;
      shown.branch_count = 1;
      ASSERT_EQ(api->frame_begin(context, &info), IMP_OK);
      ASSERT_EQ(api->agent_observe(agent, seen, 6), IMP_OK);
      ASSERT_EQ(api->agent_demonstrate(agent, &shown), IMP_OK);
      ASSERT_EQ(api->frame_submit(context, UINT32_MAX), IMP_OK);
      ASSERT_EQ(api->frame_end(context), IMP_OK);
    }
    ASSERT_EQ(api->context_drain(context, 60000), IMP_OK) << api->last_error();
    ASSERT_EQ(api->brain_save(brain, file.c_str()), IMP_OK) << api->last_error();
    ASSERT_EQ(api->context_drain(context, 60000), IMP_OK) << api->last_error();
    ASSERT_EQ(api->brain_save_status(brain), IMP_OK) << api->last_error();
    ASSERT_EQ(api->tools->brain_hash(brain, &hash.low, &hash.high), IMP_OK) << api->last_error();
    goes_on = true;
  }
  for (const imp_context context : contexts)
    ASSERT_EQ(api->context_destroy(context), IMP_OK) << api->last_error();
  EXPECT_EQ(errors, "");
}

// Loads the library, lives with it, and unloads it; its version.
void live_with(const char* name, const std::string& file, bool goes_on, Hash& hash,
               std::string* version = nullptr) {
  void* library = dlopen(path_of(name).c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto get_api = reinterpret_cast<imp_get_api_function>(dlsym(library, "imp_get_api"));
  ASSERT_NE(get_api, nullptr);
  const imp_api* api = nullptr;
  ASSERT_EQ(get_api(IMP_ABI_VERSION, &api), IMP_OK);
  if (version) *version = api->version;
  ASSERT_NO_FATAL_FAILURE(live(api, file, goes_on, hash));
  ASSERT_EQ(dlclose(library), 0);
  ASSERT_FALSE(mapped());
}

TEST(T5Unload, AHundredUnloadsLeaveNothingAndTheBrainContinues) {
  Hash hash;
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(
        live_with(IMPRINT_TEST_LIBRARY, ::testing::TempDir() + "imprint-unload.brain", round > 0, hash));
  }
}

// A patch of the game brings another build: a brain saved by one continues in the other with the same steps,
// in both directions.
TEST(T5Unload, ABrainContinuesInANewerBuildOfTheLibrary) {
  const std::string file = ::testing::TempDir() + "imprint-patch.brain";
  const auto lives = [&](const char* first, const char* second, const char* third) {
    Hash hash;
    bool goes_on = false;
    for (const char* library : {first, second, third}) {
      live_with(library, file, goes_on, hash);
      goes_on = true;
    }
    return hash;
  };
  const Hash same = lives(IMPRINT_TEST_LIBRARY, IMPRINT_TEST_LIBRARY, IMPRINT_TEST_LIBRARY);
  const Hash patched = lives(IMPRINT_TEST_LIBRARY, IMPRINT_TEST_NEWER, IMPRINT_TEST_LIBRARY);
  EXPECT_EQ(patched.low, same.low);
  EXPECT_EQ(patched.high, same.high);
  EXPECT_NE(same.low, 0u);
  std::string version, newer;
  Hash hash;
  live_with(IMPRINT_TEST_LIBRARY, file, false, hash, &version);
  live_with(IMPRINT_TEST_NEWER, file, true, hash, &newer);
  EXPECT_NE(version, newer);
}

}  // namespace
