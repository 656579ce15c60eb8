#pragma once
// A driver that is loaded and unloaded some forty times in one process may refuse the next time: tests that open many devices keep an instance, and the
// driver with it.

#include "engine-bridge/own_instance.h"

namespace imprint::test {

inline void keep_driver() {
  // To the end of the process, and not torn down in its midst; or none, where there is no Vulkan.
  static const auto* const kept = new Result<std::unique_ptr<bridge::OwnInstance>>(bridge::OwnInstance::create({}));
  (void)kept;
}

}  // namespace imprint::test
