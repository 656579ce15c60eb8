// R34. Debug labels surround every submission, recording and program; they are balanced, and absent where
// VK_EXT_debug_utils is not declared.

#include <gmock/gmock.h>

#include <cstring>
#include <set>
#include <string>

#include "tests/hosts/bridge_player.h"

namespace imprint::bridge {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::StartsWith;

// One at a time: Vulkan's functions have no user pointer.
struct Labels {
  PFN_vkGetInstanceProcAddr real = nullptr;
  PFN_vkGetDeviceProcAddr real_device = nullptr;
  std::set<std::string> commands, submissions;
  int open_commands = 0, open_submissions = 0;
};
Labels labels;

void VKAPI_CALL begin_commands(VkCommandBuffer, const VkDebugUtilsLabelEXT* label) {
  labels.commands.insert(label->pLabelName);
  ++labels.open_commands;
}
void VKAPI_CALL end_commands(VkCommandBuffer) { --labels.open_commands; }
void VKAPI_CALL begin_submission(VkQueue, const VkDebugUtilsLabelEXT* label) {
  labels.submissions.insert(label->pLabelName);
  ++labels.open_submissions;
}
void VKAPI_CALL end_submission(VkQueue) { --labels.open_submissions; }

PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  if (is("vkCmdBeginDebugUtilsLabelEXT")) return reinterpret_cast<PFN_vkVoidFunction>(begin_commands);
  if (is("vkCmdEndDebugUtilsLabelEXT")) return reinterpret_cast<PFN_vkVoidFunction>(end_commands);
  if (is("vkQueueBeginDebugUtilsLabelEXT")) return reinterpret_cast<PFN_vkVoidFunction>(begin_submission);
  if (is("vkQueueEndDebugUtilsLabelEXT")) return reinterpret_cast<PFN_vkVoidFunction>(end_submission);
  return labels.real_device(device, name);
}
PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(device_function);
  return labels.real(instance, name);
}

void live(PlainHost& host, Mode mode, bool declares) {
  labels = {};
  vk::DeviceDescription device = host.describe();
  labels.real = device.get_instance_proc_addr;
  labels.real_device =
      reinterpret_cast<PFN_vkGetDeviceProcAddr>(labels.real(device.instance, "vkGetDeviceProcAddr"));
  device.get_instance_proc_addr = instance_function;
  if (!declares) device.instance_extensions = {};
  ContextDescription description;
  description.device = device;
  description.queue.family = host.family();
  if (mode != Mode::record) {
    description.queue.queue = host.queue();
    description.queue.single_thread = true;
  }
  auto context = Context::adopt(description);
  ASSERT_TRUE(context) << context.error().message;
  Player player(**context, mode);
  for (std::uint64_t frame = 1; frame <= 6; ++frame) {
    const VkCommandBuffer commands = host.begin_frame(frame);
    player.frame(frame, host.safe_frame(), commands);
    host.end_frame();
    host.finish_frames();
  }
  EXPECT_EQ(labels.open_commands, 0);
  EXPECT_EQ(labels.open_submissions, 0);
}

TEST(Labels, NameSlicesInferenceLearningAndPrograms) {
  PlainHost host(kEverything);
  ASSERT_TRUE(host.ok());
  ASSERT_NO_FATAL_FAILURE(live(host, Mode::single_thread, true));
  EXPECT_THAT(labels.submissions, Contains("imprint inference"));
  EXPECT_THAT(labels.submissions, Contains(StartsWith("imprint inference and learning")));
  EXPECT_THAT(labels.commands, Contains("train"));
  EXPECT_THAT(labels.commands, Contains(StartsWith("train 1/")));
  EXPECT_THAT(labels.commands, Contains("infer"));
  EXPECT_THAT(labels.commands, Contains("imprint uploads"));
  ASSERT_NO_FATAL_FAILURE(live(host, Mode::record, true));
  EXPECT_THAT(labels.commands, Contains("imprint inference"));
  EXPECT_THAT(labels.submissions, IsEmpty()) << "the host submits";
}

TEST(Labels, AreNotThereWithoutTheExtension) {
  PlainHost host(kEverything);
  ASSERT_TRUE(host.ok());
  ASSERT_NO_FATAL_FAILURE(live(host, Mode::single_thread, false));
  EXPECT_THAT(labels.commands, IsEmpty());
  EXPECT_THAT(labels.submissions, IsEmpty());
}

}  // namespace
}  // namespace imprint::bridge
