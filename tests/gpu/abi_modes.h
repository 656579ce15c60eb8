#pragma once
// The host's side of its queue in every access mode, for tests through the C++ API.

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/hosts/bridge_abi.h"
#include "tests/hosts/plain_host.h"

namespace imprint::game::test {

using bridge::HostProfile;
using bridge::PlainHost;

enum class Way {
  record,
  lock,
  submit,
  submit_without_fence,
  run_on_queue,
  single_thread,
  internally_synchronized,
  exclusive
};

// The host's side of the queue.
struct Side {
  PlainHost& host;
  bool refuse = false;  // submissions
  int refused = 0;
  int fences = 0;  // given to the host's submit
  std::vector<std::string> log;
};

inline imp_queue_access access_of(Way way) {
  switch (way) {
    case Way::record:
      return IMP_QUEUE_RECORD_ONLY;
    case Way::lock:
      return IMP_QUEUE_LOCK;
    case Way::submit:
    case Way::submit_without_fence:
      return IMP_QUEUE_SUBMIT_CALLBACK;
    case Way::run_on_queue:
      return IMP_QUEUE_RUN_ON_QUEUE;
    case Way::single_thread:
      return IMP_QUEUE_SINGLE_THREAD;
    case Way::internally_synchronized:  // a single-threaded host may share any queue this way
      return IMP_QUEUE_INTERNALLY_SYNCHRONIZED;
    case Way::exclusive:
      return IMP_QUEUE_EXCLUSIVE;
  }
  return IMP_QUEUE_RECORD_ONLY;
}

inline imp_vk_device_info info_of(const vk::DeviceDescription& device, Side& side, Way way) {
  PlainHost& host = side.host;
  imp_vk_device_info info = bridge::device_info(host, device, access_of(way));
  if (way == Way::record || way == Way::single_thread || way == Way::internally_synchronized) return info;
  info.queue.user = &side;
  if (way == Way::exclusive && host.second_queue()) {
    info.queue.queue = host.second_queue();
    info.queue.family = host.second_family();
  } else if (way == Way::lock || way == Way::exclusive) {
    info.queue.lock = [](void* user, VkQueue) { static_cast<Side*>(user)->host.mutex().lock(); };
    info.queue.unlock = [](void* user, VkQueue) { static_cast<Side*>(user)->host.mutex().unlock(); };
  } else if (way == Way::run_on_queue) {  // the host's submission thread
    info.queue.run_on_queue = [](void* user, void (*work)(void* data, VkQueue queue), void* data) {
      PlainHost& self = static_cast<Side*>(user)->host;
      std::thread([&] {
        const std::lock_guard lock(self.mutex());
        work(data, self.queue());
      }).join();
    };
  } else {
    info.queue.submit_without_fence = way == Way::submit_without_fence;
    info.queue.submit = [](void* user, VkQueue, std::uint32_t count, const void* submits,
                           std::uint64_t number) -> std::int32_t {
      VkFence fence = VK_NULL_HANDLE;
      std::memcpy(&fence, &number, sizeof fence);
      auto& self = *static_cast<Side*>(user);
      self.fences += fence != VK_NULL_HANDLE;
      if (!self.refuse) return self.host.submit(count, static_cast<const VkSubmitInfo*>(submits), fence);
      ++self.refused;
      return VK_ERROR_OUT_OF_HOST_MEMORY;
    };
  }
  return info;
}

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace imprint::game::test
