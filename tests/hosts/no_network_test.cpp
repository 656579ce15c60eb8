// The plugin learns in a process that may not open a socket.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <imprint/imprint.hpp>

namespace {

using namespace imprint::game;

// From now on the process ends when it opens a socket or connects one. allow_local: except sockets of this
// computer, by which a device's driver may talk to its own service.
bool refuse_sockets(bool allow_local) {
  constexpr unsigned kCalls[] = {SYS_socketpair, SYS_bind, SYS_listen, SYS_accept, SYS_accept4};
  const auto load = [](std::size_t offset) -> sock_filter {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset));
  };
  const sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_filter kill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  std::vector<sock_filter> filter = {load(offsetof(seccomp_data, nr))};
  for (const unsigned call : kCalls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    filter.push_back(kill);
  }
  if (!allow_local) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1));
    filter.push_back(kill);
  }
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3));
  filter.push_back(load(offsetof(seccomp_data, args)));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allow_local ? AF_UNIX : ~0u, 1, 0));
  filter.push_back(kill);
  filter.push_back(allow);
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

[[noreturn]] void give_up(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::_Exit(1);
}
template <class T>
T must(Made<T> made) {
  if (!made) give_up(made.outcome.message());
  return std::move(made.value);
}
void must(const Outcome& outcome) {
  if (!outcome) give_up(outcome.message());
}

// Opens the device, learns a few minibatches, saves and loads.
void learn(const char* device_name, const std::string& path) {
  imp_standalone_info device = imp_standalone_info_init();
  device.device = device_name;
  Context context =
      must(Context::create_standalone(Library(imp_get_api), device, imp_host_init(), imp_limits_init()));
  DqnOptions options;
  options.batch_size = 8;
  Brain brain = must(context.create_brain(BrainDesc::of(options, 2, {3})));
  Agent agent = must(brain.create_agent());
  must(context.warmup());
  bool asked = false;
  for (std::uint64_t frame = 1; frame <= 200; ++frame) {
    must(context.frame_begin(frame, static_cast<double>(frame) / 60));
    const Made<Action> action = asked ? agent.act() : Made<Action>{};
    if (!asked || action) {
      if (asked) must(agent.reward(action->branches[0] == 1 ? 1.0f : 0.0f));
      must(agent.observe(std::vector<float>{1, 0}));
      asked = true;
    }
    must(context.submit());
    must(context.frame_end());
    if (frame % 16 == 0) must(context.drain(60'000));
  }
  must(brain.save(path.c_str()));
  must(context.drain(60'000));
  must(brain.load(path.c_str()));
  if (must(brain.stats()).minibatches == 0) give_up("it learned nothing");
}

class NoNetwork : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
  const std::string path_ = ::testing::TempDir() + "/no_network.brain";
};

void learn_and_exit(const char* device, bool allow_local, const std::string& path) {
  if (!refuse_sockets(allow_local)) give_up("the filter is not there");
  learn(device, path);
  std::_Exit(0);
}

TEST_F(NoNetwork, IsNeededOnTheCpu) {
  EXPECT_EXIT(learn_and_exit("cpu", false, path_), ::testing::ExitedWithCode(0), "");
}

TEST_F(NoNetwork, IsNeededOnAVulkanDevice) {
  EXPECT_EXIT(learn_and_exit(std::getenv("IMPRINT_TEST_DEVICE"), true, path_), ::testing::ExitedWithCode(0),
              "");
}

// The filter does what the other tests rely on.
TEST_F(NoNetwork, EndsAProcessThatOpensASocket) {
  const auto open_one = [](int domain, bool allow_local) {
    if (!refuse_sockets(allow_local)) give_up("the filter is not there");
    (void)!::socket(domain, SOCK_STREAM, 0);
    std::_Exit(0);
  };
  EXPECT_EXIT(open_one(AF_UNIX, false), ::testing::KilledBySignal(SIGSYS), "");
  EXPECT_EXIT(open_one(AF_INET, true), ::testing::KilledBySignal(SIGSYS), "");
}

}  // namespace
