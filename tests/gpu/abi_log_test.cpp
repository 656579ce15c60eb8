// Messages without a log function of the host: to stderr, at the level of IMPRINT_LOG.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include <imprint/imprint.hpp>

namespace {

using namespace imprint::game;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A child program that causes one message of each level: of what went with the context (info), of a save that
// went with its brain (warning), of a save to no folder (error).
[[noreturn]] void live(const char* level, bool takes_messages) {
  if (level) ::setenv("IMPRINT_LOG", level, 1);
  imp_host host = imp_host_init();
  if (takes_messages) host.log = [](void*, imp_log_level, const char*) {};
  imp_standalone_info device = imp_standalone_info_init();
  device.device = "cpu";
  Made<Context> context = Context::create_standalone(Library(imp_get_api), device, host);
  BrainDesc desc;
  desc.observation_count = 2;
  desc.branch_sizes = {3};
  Made<Brain> saved = context->create_brain(desc), left = context->create_brain(desc);
  const std::string path = testing::TempDir() + "imprint-log.brain";
  bool good = context->warmup().ok() && context->frame_begin(1, 0) && saved->save(path.c_str());
  good = good && context->frame_end();
  saved->reset();
  good = good && left->save("/no/such/folder/imprint-log.brain");
  good = good && !context->destroy() && context->destroy();
  std::exit(good ? 0 : 1);
}

void expect_stderr(const char* level, bool takes_messages, const testing::Matcher<const std::string&>& text) {
  EXPECT_EXIT(live(level, takes_messages), testing::ExitedWithCode(0), text) << (level ? level : "unset");
}

constexpr const char* kInfo = "imprint: info: context_destroy: destroyed with it";
constexpr const char* kWarning = "imprint: warning: brain_save: brain 'brain' was destroyed";
constexpr const char* kError = "imprint: error: context_destroy: brain 'brain': the save to '/no/such/folder";

TEST(StderrLog, HasWarningsAndErrorsUntilAHostTakesThem) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  expect_stderr(nullptr, false, AllOf(HasSubstr(kWarning), HasSubstr(kError), Not(HasSubstr(kInfo))));
  expect_stderr(nullptr, true, Not(HasSubstr("imprint: ")));
}

TEST(StderrLog, HasWhatImprintLogSays) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  expect_stderr("info", false, AllOf(HasSubstr(kInfo), HasSubstr(kWarning), HasSubstr(kError)));
  expect_stderr("error", false, AllOf(HasSubstr(kError), Not(HasSubstr(kWarning))));
  expect_stderr("off", false, Not(HasSubstr("imprint: ")));
  expect_stderr("loud", false, AllOf(HasSubstr("IMPRINT_LOG: found 'loud'"), HasSubstr(kWarning)));
}

}  // namespace
