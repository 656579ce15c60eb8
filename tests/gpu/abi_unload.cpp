// The library is loaded, used by two contexts, and really gone after dlclose.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include <imprint/imprint.h>

namespace {

bool mapped() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libimprint") != line.npos) return true;
  return false;
}

void live(const imp_api* api, const std::string& file) {
  const char* name = std::getenv("IMPRINT_TEST_DEVICE");
  imp_standalone_info device = imp_standalone_info_init();
  device.device = name;
  imp_context contexts[2] = {};
  for (imp_context& context : contexts) ASSERT_EQ(api->context_create_standalone(&device, nullptr, nullptr, &context), IMP_OK) << api->last_error();
  for (const imp_context context : contexts) {
    const std::uint32_t branch = 4;
    imp_brain_desc desc = imp_brain_desc_init();
    desc.observation_count = 6;
    desc.branch_count = 1;
    desc.branch_sizes = &branch;
    desc.learner = IMP_LEARNER_FEEDBACK;
    imp_brain brain{};
    imp_agent agent{};
    ASSERT_EQ(api->brain_create(context, &desc, &brain), IMP_OK) << api->last_error();
    ASSERT_EQ(api->agent_create(brain, 0, &agent), IMP_OK);
    ASSERT_EQ(api->warmup(context, nullptr, nullptr), IMP_OK) << api->last_error();
    for (std::uint64_t frame = 1; frame < 10; ++frame) {
      const float seen[6] = {1, 2, 3, 4, 5, 6};
      imp_frame_info info = imp_frame_info_init();
      info.frame = frame;
      ASSERT_EQ(api->frame_begin(context, &info), IMP_OK);
      ASSERT_EQ(api->agent_observe(agent, seen, 6), IMP_OK);
      ASSERT_EQ(api->submit(context, UINT32_MAX), IMP_OK);
      ASSERT_EQ(api->frame_end(context), IMP_OK);
    }
    ASSERT_EQ(api->brain_save(brain, file.c_str()), IMP_OK);
    ASSERT_EQ(api->drain(context, 10000), IMP_OK) << api->last_error();
    ASSERT_EQ(api->brain_save_status(brain), IMP_OK) << api->last_error();
  }
  for (const imp_context context : contexts) ASSERT_EQ(api->context_destroy(context), IMP_OK) << api->last_error();
}

TEST(Unload, NothingOfItStaysBehind) {
  for (int round = 0; round < 3; ++round) {
    void* library = dlopen(IMPRINT_TEST_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto get_api = reinterpret_cast<imp_get_api_function>(dlsym(library, "imp_get_api"));
    ASSERT_NE(get_api, nullptr);
    const imp_api* api = nullptr;
    ASSERT_EQ(get_api(IMP_ABI_VERSION, &api), IMP_OK);
    live(api, ::testing::TempDir() + "imprint-unload.brain");
    ASSERT_EQ(dlclose(library), 0);
    ASSERT_FALSE(mapped()) << "round " << round;
  }
}

}  // namespace
