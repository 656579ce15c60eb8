// The C++ API after the macros of other libraries and without Vulkan's header. Then the values that its
// descriptors accept.
#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <variant>
#include <vector>

#include <imprint/imprint.hpp>

using namespace imprint::game;

static_assert(std::is_convertible_v<BrainDesc&, imp_brain_desc>);
static_assert(!std::is_convertible_v<BrainDesc, imp_brain_desc>, "it would point into a temporary");

struct Overloads {
  void log(LogLevel, const char*) {}
  void log(int) {}
};

Made<Brain> use(Context& context, const std::vector<std::uint32_t>& sizes);
Made<Brain> use(Context& context, const std::vector<std::uint32_t>& sizes) {
  Overloads services;
  HostDesc host(services), copy(host);
  (void)imp_host(copy).log;

  const auto run = [](auto) {};
  DeviceDesc device;
  device.queue = QueueDesc::run_by(nullptr, 0, run);
  (void)imp_vk_device_info(device).queue.user;

  BrainDesc desc{.observation_count = 3};
  desc.branch_sizes = sizes;
  desc.hidden_sizes = {};
  Made<Brain> brain = context.create_brain(desc);
  const Made<imp_brain_info> info = brain->info();
  if (info && info->brain_count == 0) return context.create_brain(BrainDesc());
  Brain taken = *context.create_brain(desc);
  const Made<Action> action = (*taken.create_agent()).act();
  return {std::move(taken), action.outcome};
}
